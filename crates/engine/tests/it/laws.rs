//! Whatever the load and whatever goes wrong: no panic, an end, and every request accounted for.

use device::{Errno, Fault, FaultRule, Faulty, Op};
use engine::{Limits, Visit};
use proptest::prelude::*;
use suite::model::{
    Access, Arrivals, Choice, Data, Operation, Pacing, Region, Spread, Stop, Stream, SyncAtEnd,
    SyncPolicy, Zone,
};
use units::{Bytes, Nanos};

use crate::help::*;

fn accesses() -> impl Strategy<Value = Access> {
    prop_oneof![
        any::<bool>().prop_map(|shared| Access::Sequential { shared }),
        any::<bool>().prop_map(|shared| Access::Backward { shared }),
        (1u64..20).prop_map(|step| Access::Stride { step }),
        Just(Access::Same),
        Just(Access::Uniform),
        Just(Access::UniformOnce),
        Just(Access::Permutation),
        (0.1f64..3.0).prop_map(|theta| Access::Zipf { theta }),
        (0.0f64..=1.0).prop_map(|random_share| Access::Mixed { random_share }),
        (0.01f64..0.99, 0.0f64..=1.0).prop_map(|(space, access)| Access::Hot {
            zones: vec![
                Zone { space_share: space, access_share: access },
                Zone { space_share: 1.0 - space, access_share: 1.0 - access },
            ],
        }),
    ]
}

fn operations() -> impl Strategy<Value = Vec<suite::model::Class>> {
    let one = (
        prop::sample::select(vec![
            Operation::Read,
            Operation::Write,
            Operation::Fsync,
            Operation::Fdatasync,
            Operation::SyncRange,
            Operation::Trim,
        ]),
        prop::sample::select(vec![512u64, 4096, 6144, 16384]),
        0.01f64..5.0,
    );
    prop::collection::vec(one, 1..5).prop_map(|classes| {
        classes
            .into_iter()
            .map(|(op, size, weight)| {
                let length = !matches!(op, Operation::Fsync | Operation::Fdatasync);
                class(op, weight, if length { size } else { 0 })
            })
            .collect()
    })
}

fn pacings() -> impl Strategy<Value = Pacing> {
    prop_oneof![
        4 => Just(Pacing::Closed { think: Nanos::ZERO, burst: 1 }),
        2 => (1u64..20_000_000, 1u32..5)
            .prop_map(|(think, burst)| Pacing::Closed { think: Nanos::new(think), burst }),
        2 => (1.0f64..50_000.0, any::<bool>()).prop_map(|(rate, fixed)| Pacing::Open {
            rate,
            arrivals: if fixed { Arrivals::Fixed } else { Arrivals::Poisson },
        }),
    ]
}

fn syncs() -> impl Strategy<Value = Option<SyncPolicy>> {
    let policy = (
        prop::option::of(1u64..10),
        any::<bool>(),
        any::<bool>(),
        prop::sample::select(vec![SyncAtEnd::No, SyncAtEnd::Timed]),
    );
    prop::option::of(policy.prop_map(|(every, shared, each_file, at_end)| SyncPolicy {
        op: Operation::Fdatasync,
        every,
        shared,
        each_file,
        at_end,
    }))
}

fn stops() -> impl Strategy<Value = Stop> {
    // Always a number of operations, since requests without length never use up bytes.
    (
        prop::option::weighted(0.3, 1u64..200_000_000),
        prop::option::weighted(0.3, 1u64..2_000_000),
        1u64..400,
    )
        .prop_map(|(time, bytes, operations)| Stop {
            ramp: Nanos::ZERO,
            time: time.map(Nanos::new),
            bytes: bytes.map(Bytes::new),
            operations: Some(operations),
            until: suite::model::Until::All,
            last: suite::model::Last::Whole,
            extend: None,
        })
}

fn streams() -> impl Strategy<Value = Stream> {
    let where_ = (
        prop::sample::select(vec![512u64, 1000, 4096, 5000]),
        0u64..40_000,
        16_384u64..60_000,
        any::<bool>(),
    );
    let how = (1u32..4, 1u32..40, pacings(), syncs(), stops());
    (accesses(), operations(), any::<bool>(), where_, how).prop_map(
        |(access, classes, dice, (align, start, length, per_worker), how)| {
            let (threads, queue_depth, pacing, sync, stop) = how;
            let mut s = Stream { access, threads, queue_depth, pacing, sync, stop, ..stream() };
            s.mix.classes = classes;
            s.mix.choice = if dice { Choice::Dice } else { Choice::Interleave };
            s.align = Bytes::new(align);
            s.region = Region {
                start: Bytes::new(start),
                length: Bytes::new(length),
                spread: if per_worker { Spread::FilePerWorker } else { Spread::Concatenated },
            };
            s
        },
    )
}

fn visits() -> impl Strategy<Value = Visit> {
    let data = prop::sample::select(vec![
        Data::Incompressible,
        Data::Zero,
        Data::Pattern { byte: 3 },
        Data::Compressible { random_share: 0.4 },
    ]);
    (prop::collection::vec(streams(), 1..3), 1u32..4, data, any::<u64>()).prop_map(
        |(streams, files, data, seed)| Visit {
            files,
            file_size: Bytes::new(100_000),
            data,
            seed,
            ..visit(streams)
        },
    )
}

fn faults() -> impl Strategy<Value = Vec<FaultRule>> {
    let what = prop_oneof![
        Just(Fault::Error(Errno::EIO)),
        Just(Fault::Short(Bytes::new(100))),
        Just(Fault::Lost),
        (1u64..40_000_000_000).prop_map(|ns| Fault::Late(Nanos::new(ns))),
    ];
    prop::collection::vec((what, 0.0f64..0.02).prop_map(|(w, r)| FaultRule::new(w).rate(r)), 0..3)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_request_is_accounted_for_and_there_is_an_end(
        v in visits(),
        rules in faults(),
        failures in prop::sample::select(vec![0u64, 1000]),
        on_model in any::<bool>(),
        ramp in prop::sample::select(vec![0u64, 0, 3_000_000]),
    ) {
        let mut v = v;
        v.streams.iter_mut().for_each(|s| s.stop.ramp = Nanos::new(ramp));
        let limits = Limits { hang: Nanos::secs(5), failures };
        if on_model {
            let inner = model(&v).inner;
            account(&v, Faulty::new(inner, &rules, v.seed).unwrap(), limits);
        } else {
            let inner = memory(&v).inner;
            account(&v, Faulty::new(inner, &rules, v.seed).unwrap(), limits);
        }
    }
}

fn account<D: device::Device>(v: &Visit, inner: D, limits: Limits) {
    let mut device = Recording::new(inner);
    let played = play_with(v, &mut device, limits, &mut ());
    assert_eq!(played.error, None);
    let records = || played.result.streams.iter().flat_map(|s| &s.ops);
    let failed: u64 = records().map(|r| r.short + r.errors.iter().map(|e| e.1).sum::<u64>()).sum();
    let hanging: usize = played.workers.iter().map(|w| w.hanging.len()).sum();
    let ramp: u64 = played.result.streams.iter().map(|s| s.ramp_requests).sum();
    let all = played.total() + failed + hanging as u64 + ramp;
    let issued = device.log.len() as u64;
    let ramps = v.streams[0].stop.ramp > Nanos::ZERO;
    // Failures of the ramp are forgotten with it.
    assert!(all == issued || ramps && all <= issued, "{all} accounted for of {issued}");
    for (stream, plan) in played.result.streams.iter().zip(&v.streams) {
        let policy = plan.sync.map(|p| Op::ALL.into_iter().find(|o| o.name() == p.op.name()));
        let counted: u64 = stream
            .ops
            .iter()
            .filter(|r| Some(r.op.as_str()) != policy.flatten().map(Op::name))
            .map(|r| r.requests)
            .sum();
        // What was in flight at the ramp's end counts whether or not the budget pays for it.
        let beforehand = if ramps { u64::from(plan.threads * plan.queue_depth) } else { 0 };
        let most = plan.stop.operations.unwrap().max(beforehand);
        assert!(counted <= most, "{counted} of {:?}", plan.stop);
        for record in &stream.ops {
            assert_eq!(record.latency.count(), record.requests);
            assert_eq!(record.series.rows.iter().map(|r| r.requests).sum::<u64>(), record.requests);
            assert_eq!(record.series.rows.iter().map(|r| r.bytes).sum::<u64>(), record.bytes);
        }
    }
    for event in &device.log {
        let r = event.request;
        assert!(r.file.0 < v.files, "{r:?}");
        assert!(r.offset.get() + u64::from(r.length) <= v.file_size.get(), "{r:?}");
    }
    // Nobody waits for ever: the hang limit after the last thing that happened, and a little.
    let last = device.log.iter().filter_map(|e| e.completed).max().unwrap_or_default();
    let waited = device::Device::now(&device).since(last);
    assert!(waited <= Nanos::secs(52), "{waited} after the last completion");
}
