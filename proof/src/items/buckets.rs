//! Volumes with a budget, played on the simulated device, and devices that fall without one.

use device::model::{BucketSpec, CliffSpec, Law, ModelSpec, NoiseSpec, RegimeSpec};
use device::{Device, FileIndex, Model, Op, Request, Slot};
use explain::View;
use explain::bucket::{TokenBucket, buckets};
use record::Run;
use stats::Random;
use units::{ByteOffset, Bytes, Instant, Nanos};

use super::changes::{Second, record, visit};
use crate::Bound::{AtLeast, AtMost};
use crate::{Claim, Lot, Proof};

/// See [`crate::items`].
pub const PROOFS: &[Proof] = &[Proof {
    name: "buckets",
    about: "loads held on simulated volumes with a token bucket, and on devices that fall for other reasons",
    run: all,
}];

const BLOCK: u32 = 4096;
const DEPTH: u32 = 8;
const SECOND_NS: u64 = 1_000_000_000;

fn between(low: f64, high: f64, random: &mut Random) -> f64 {
    low * (high / low).powf(random.unit())
}

/// A device of so many requests a second, with noise that a tenth of a second remembers as `rho` says.
fn device(rate: f64, cv: f64, rho: f64) -> ModelSpec {
    let latency = Nanos::from_secs_f64(f64::from(DEPTH) / rate);
    let law = Law { iops: None, bandwidth: None, latency, request_bandwidth: None, sharpness: 5.0 };
    let noise = NoiseSpec { cv, rho, jitter: 0.2, visit_shift: 0.0 };
    ModelSpec { noise, ..ModelSpec::from_law(law, None) }
}

/// Visits of so many seconds, with a rest after each.
fn play(spec: &ModelSpec, op: Op, visits: &[[u64; 2]], seed: u64) -> Option<Run> {
    let mut model = Model::new(spec, DEPTH, seed).ok()?;
    let mut done = Vec::with_capacity(DEPTH as usize);
    let mut records = Vec::new();
    for (order, &[seconds, rest]) in (0_u32..).zip(visits) {
        model.begin_visit(seed);
        let begun = model.now();
        let end = begun + Nanos::secs(seconds);
        let mut counts = vec![0_u32; usize::try_from(seconds).ok()?];
        let mut ready: Vec<u32> = (0..DEPTH).collect();
        while model.now() < end {
            for slot in ready.drain(..) {
                let (offset, slot) = (ByteOffset::ZERO, Slot(slot));
                let request = Request { offset, length: BLOCK, slot, file: FileIndex(0), op };
                model.submit(request).ok()?;
            }
            model.reap(1, end, &mut done).ok()?;
            let second = (model.now().get() - begun.get()) / SECOND_NS;
            if let Some(count) = counts.get_mut(usize::try_from(second).ok()?) {
                *count += u32::try_from(done.len()).ok()?;
            }
            ready.extend(done.drain(..).map(|completion| completion.slot.0));
        }
        let seconds: Vec<Second> = counts.iter().map(|&n| Second::Rate(f64::from(n))).collect();
        let mut made = visit(0, order, order, &seconds);
        made.started_unix_ns = i64::try_from(begun.get()).ok()?;
        let name = if op == Op::Write { "write" } else { "read" };
        made.streams.iter_mut().flat_map(|s| &mut s.ops).for_each(|op| op.op = name.to_owned());
        // What is in flight at the end passed the bucket, and is counted nowhere.
        made.streams.iter_mut().for_each(|stream| stream.ramp_requests = u64::from(DEPTH));
        records.push(made);
        model.begin_visit(seed);
        let until = Instant::new(end.get()) + Nanos::secs(rest);
        model.reap(1, until, &mut done).ok()?;
    }
    Some(record(records))
}

fn found(spec: &ModelSpec, op: Op, visits: &[[u64; 2]], random: &mut Random) -> Vec<TokenBucket> {
    let run = play(spec, op, visits, random.bits());
    run.map(|run| buckets(&View::new(&run))).unwrap_or_default()
}

/// A volume whose bucket lasts for so many seconds, on a device that is faster than its burst.
fn volume(lasts: f64, random: &mut Random) -> (ModelSpec, [f64; 3]) {
    let base = between(200.0, 1_000.0, random);
    let burst = base * between(1.5, 8.0, random);
    let size = lasts * (burst - base);
    let bucket = if random.unit() < 0.5 {
        BucketSpec::Ops { base, burst, size }
    } else {
        let [base, burst, size] =
            [base, burst, size].map(|n| Bytes::new((n * f64::from(BLOCK)) as u64));
        BucketSpec::Bytes { base, burst, size }
    };
    let cv = 0.1 * random.unit();
    let spec = device(burst * between(2.0, 4.0, random), cv, 0.98);
    (ModelSpec { buckets: vec![bucket], ..spec }, [base, burst, size])
}

fn is_right(found: &[TokenBucket], [base, burst, size]: [f64; 3]) -> bool {
    let near = |seen: f64, wanted: f64, by: f64| (seen / wanted - 1.0).abs() <= by;
    matches!(found, [one] if near(one.base, base, 0.01) && near(one.burst, burst, 0.01)
        && near(one.size, size, 0.05))
}

fn all(lot: &Lot) -> Vec<Claim> {
    let times = lot.effort.times(500, 40);
    let mut claims = found_claims(lot, times);
    let mut none = |what: &str, label: u64, op: Op, spec: &dyn Fn(&mut Random) -> ModelSpec| {
        let mut yes = 0;
        for time in 0..times as u64 {
            let mut random = lot.random(&[label, time]);
            let spec = spec(&mut random);
            yes += usize::from(!found(&spec, op, &[[60, 30], [60, 0]], &mut random).is_empty());
        }
        claims.push(Claim::share(format!("{what}: a bucket is named"), AtMost(0.05), yes, times));
    };
    let noisy = |random: &mut Random| {
        let rho = if random.unit() < 0.5 { 0.98 } else { 0.0 };
        device(between(300.0, 3_000.0, random), between(0.01, 0.2, random), rho)
    };
    none("noise, half of it with a memory of 5 s", 10, Op::Read, &noisy);
    none("two speeds", 11, Op::Read, &|random| {
        let dwell = Nanos::from_secs_f64(between(5.0, 120.0, random));
        let ratio = between(0.1, 0.8, random);
        let regime = Some(RegimeSpec { ratio, dwell, dwell_second: None });
        ModelSpec { regime, ..noisy(random) }
    });
    let cliff = |random: &mut Random, refill: Option<Nanos>| {
        let rate = between(300.0, 3_000.0, random);
        let after = Bytes::new((rate * between(15.0, 45.0, random) * f64::from(BLOCK)) as u64);
        let factor = between(0.1, 0.8, random);
        let write_cliff = Some(CliffSpec { after, factor, reads: false, refill });
        // As even as a quota.
        ModelSpec { write_cliff, ..device(rate, 0.0, 0.0) }
    };
    none("a cliff of writes without any noise", 12, Op::Write, &|random| cliff(random, None));
    let refill = Some(Nanos::secs(20));
    none("one that refills after 20 s", 13, Op::Write, &|random| cliff(random, refill));
    none("a bucket that is not used up", 14, Op::Read, &|random| volume(400.0, random).0);
    claims
}

fn found_claims(lot: &Lot, times: usize) -> Vec<Claim> {
    let cases: [(&str, Op, &[[u64; 2]]); 3] = [
        ("reads, one visit", Op::Read, &[[90, 0]]),
        ("reads in rounds of 10 s", Op::Read, &[[10, 0]; 9]),
        ("writes, a rest of 60 s between two visits", Op::Write, &[[90, 60], [90, 0]]),
    ];
    let claim = |(label, (name, op, visits)): (u64, (&str, Op, &[[u64; 2]]))| {
        let mut right = 0;
        for time in 0..times as u64 {
            let mut random = lot.random(&[label, time]);
            let lasts = between(15.0, 60.0, &mut random);
            let (spec, truth) = volume(lasts, &mut random);
            right += usize::from(is_right(&found(&spec, op, visits, &mut random), truth));
        }
        let what = format!("{name}: named, rates within 1 %, size within 5 %");
        Claim::share(what, AtLeast(0.95), right, times)
    };
    (0..).zip(cases).map(claim).collect()
}
