//! What holds for every network, and for every answer whatever the design.
#![expect(clippy::unwrap_used, clippy::unreachable, reason = "a test may panic")]

use array::network::{Visit, solve};
use array::{Addressing, ArrayDesign, Drive, Fill, Load, Model, PerSecond, builtin};
use proptest::prelude::*;
use units::{Bytes, Nanos};

fn visits() -> impl Strategy<Value = Vec<Visit>> {
    let visit = prop_oneof![
        (1e-6..1e-2).prop_map(Visit::delay),
        ((1.0..20.0), (1e-6..1e-2)).prop_map(|(servers, time)| Visit::one_of(servers, time)),
    ];
    prop::collection::vec(visit, 1..8)
}

fn loads() -> impl Strategy<Value = Load> {
    let access = prop_oneof![Just(Addressing::Random), Just(Addressing::Sequential)];
    let cache = prop_oneof![Just(Fill::Room), Just(Fill::Full)];
    let share = prop_oneof![Just(0.0), Just(1.0), 0.0..1.0];
    (share, access, 0u32..14, 1u32..40, 1u32..4, 30u32..40, 1u32..4, cache).prop_map(
        |(read_share, access, block, threads, depth, size, files, cache)| Load {
            read_share,
            access,
            block: Bytes::new(512 << block),
            threads,
            depth,
            size: Bytes::new(1 << size),
            files,
            cache,
        },
    )
}

fn models() -> Vec<Model> {
    let all = builtin::arrays().iter();
    all.map(|(name, _)| Model::new(builtin::design(name).unwrap())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn networks_keep_the_laws(visits in visits(), customers in 1u32..60) {
        let n = f64::from(customers);
        let solution = solve(&visits, customers);
        // Little's law, exactly.
        prop_assert!((solution.rate * solution.response() / n - 1.0).abs() < 1e-12);
        let alone: f64 = visits.iter().map(|visit| visit.time).sum();
        let most = visits.iter().fold(0.0, |most: f64, visit| most.max(visit.demand));
        let above = (n / alone).min(1.0 / most);
        prop_assert!(solution.rate <= above * (1.0 + 1e-9), "{} > {above}", solution.rate);
        // All others are found at the slowest.
        let servers = visits.iter().filter(|visit| visit.demand > 0.0);
        let slowest = servers.fold(0.0, |most: f64, visit| most.max(visit.time));
        let below = n / (alone + (n - 1.0) * slowest);
        prop_assert!(solution.rate >= below * (1.0 - 1e-9), "{} < {below}", solution.rate);
        for (busy, visit) in solution.busy.iter().zip(&visits) {
            prop_assert!(*busy <= 1.0 + 1e-9);
            prop_assert!((busy - solution.rate * visit.demand).abs() < 1e-9);
        }
        prop_assert!(solve(&visits, customers + 1).rate >= solution.rate * (1.0 - 1e-9));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn answers_keep_the_laws(load in loads()) {
        for model in models() {
            let why = &model.design().why;
            let answer = model.answer(&load).unwrap();
            let in_flight = f64::from(load.threads * load.depth);
            let response = answer.response.as_secs_f64();
            prop_assert!((answer.rate * response / in_flight - 1.0).abs() < 1e-3, "{why}");
            let parts: f64 = answer.parts.iter().map(|part| part.time.as_secs_f64()).sum();
            prop_assert!((parts - response).abs() < 1e-8 + 1e-6 * response, "{why}: {answer:?}");
            for part in &answer.parts {
                prop_assert!((0.0..=1.0 + 1e-9).contains(&part.busy), "{why}: {part:?}");
                prop_assert!((1.0 - 1e-9..=2.0 + 1e-9).contains(&part.gain), "{why}: {part:?}");
            }
            prop_assert!(answer.parts.iter().any(|part| part.component == answer.binding));
            let more = Load { threads: load.threads + 1, ..load };
            let more = model.answer(&more).unwrap();
            prop_assert!(more.rate >= answer.rate * (1.0 - 1e-9), "{why}");
        }
    }
}

#[test]
fn loads_that_nobody_means_are_refused() {
    let good = Load::random_reads(Bytes::kib(4), 1, Bytes::gib(1));
    let model = Model::new(builtin::design("mtron-alone").unwrap());
    let refused = |load: Load| model.answer(&load).unwrap_err().to_string();
    assert_eq!(
        refused(Load { read_share: 1.5, ..good }),
        "load: `read_share` is 1.5, wanted 0 to 1"
    );
    assert_eq!(
        refused(Load { block: Bytes::ZERO, ..good }),
        "load: `block` is 0B, wanted 512B to 1GiB"
    );
    assert_eq!(
        refused(Load { size: Bytes::new(512), ..good }),
        "load: `size` is 512B, wanted at least one block"
    );
    assert_eq!(
        refused(Load { threads: 0, ..good }),
        "load: `threads x depth` is 0 x 1, wanted 1 to 4096 in flight"
    );
    assert_eq!(refused(Load { files: 0, ..good }), "load: `files` is 0, wanted at least one");
}

/// A virtual disk: n of m servers at work are n m / (n + m - 1), up to its quota, which delays
/// nobody before.
#[test]
fn a_volume_serves_side_by_side_up_to_its_quota() {
    let mut design = builtin::design("gp3-alone").unwrap();
    let Drive::Volume(volume) = &mut design.drive.part else { unreachable!() };
    volume.servers.value = 4.0;
    volume.read_time.value = Nanos::new(1_000_000);
    volume.server_rate.value = PerSecond(Bytes::new(64_000_000));
    volume.request_time.value = Nanos::new(333_000);
    let rate = |design: &ArrayDesign, block, n| {
        let load = Load::random_reads(Bytes::new(block), n, Bytes::gib(20));
        Model::new(design.clone()).answer(&load).unwrap().rate
    };
    // 64 bytes in a microsecond: 512 of them take 8, and 64 000 as long as the request itself.
    for (block, n, wanted) in
        [(512, 1, 992.0), (512, 2, 1587.0), (512, 32, 3003.0), (64_000, 1, 500.0)]
    {
        let found = rate(&design, block, n);
        assert!((found / wanted - 1.0).abs() < 0.06, "{block} x {n}: {found}, not {wanted}");
    }
    let Drive::Volume(volume) = &mut design.drive.part else { unreachable!() };
    volume.request_time.value = Nanos::new(1_000);
    assert!((rate(&design, 512, 32) / 3628.0 - 1.0).abs() < 0.03, "{}", rate(&design, 512, 32));
    let Drive::Volume(volume) = &mut design.drive.part else { unreachable!() };
    volume.rate.value = PerSecond(Bytes::new(64_000_000));
    // Four servers would make 1829.
    assert!((rate(&design, 64_000, 32) / 1000.0 - 1.0).abs() < 0.01);
}
