//! How fast the model twin is, in requests a second of one core: `cargo run --release --example
//! model_speed`.

use std::time::Instant as Wall;

use device::model::{CacheSpec, Law, ModelSpec, NoiseSpec};
use device::{Device, FileIndex, Model, Op, Request, Slot};
use units::{ByteOffset, Bytes, Instant, Nanos};

const REQUESTS: u64 = 5_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let law = Law {
        iops: Some(600_000.0),
        bandwidth: Some(Bytes::gib(3)),
        latency: Nanos::micros(80),
        request_bandwidth: Some(Bytes::gib(1)),
        sharpness: 5.0,
    };
    let plain = ModelSpec::from_law(law, None);
    let noise = NoiseSpec { cv: 0.05, rho: 0.8, jitter: 0.3, visit_shift: 0.03 };
    let noisy = ModelSpec { noise, ..plain.clone() };
    let cache = CacheSpec {
        size: Bytes::gib(4),
        chunk: Bytes::kib(64),
        latency: Nanos::micros(30),
        request_bandwidth: None,
        writes: true,
        before: None,
    };
    let cached = ModelSpec { cache: Some(cache), ..noisy.clone() };
    for (name, spec) in [("law alone", &plain), ("noise", &noisy), ("noise, cache", &cached)] {
        for depth in [1, 32, 128] {
            let mut best = 0.0f64;
            for _ in 0..3 {
                best = best.max(run(&mut Model::new(spec, depth, 1)?, depth)?);
            }
            #[expect(clippy::print_stdout, reason = "that is what it is for")]
            {
                println!(
                    "{name:13} depth {depth:3}: {:6.2} M requests/s, {:4.0} ns each",
                    best / 1e6,
                    1e9 / best
                );
            }
        }
    }
    Ok(())
}

fn run(model: &mut Model, depth: u32) -> Result<f64, device::DeviceError> {
    let mut done = Vec::with_capacity(depth as usize);
    let mut place = 1u64;
    let mut next = |slot| {
        place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // 8 GiB in steps of 4 KiB.
        let offset = ByteOffset::new((place >> 43) << 12);
        Request { offset, length: 4096, slot, file: FileIndex(0), op: Op::Read }
    };
    for slot in 0..depth {
        // There is room for `depth`.
        let _ = model.submit(next(Slot(slot)));
    }
    let start = Wall::now();
    let mut count = 0;
    while count < REQUESTS {
        done.clear();
        model.reap(1, Instant::MAX, &mut done)?;
        count += done.len() as u64;
        for completion in &done {
            let _ = model.submit(next(completion.slot));
        }
    }
    Ok(count as f64 / start.elapsed().as_secs_f64())
}
