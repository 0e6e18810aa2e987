//! A simulation takes its memory before its first request.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "event/closed.rs"]
#[expect(dead_code, reason = "the other tests need more of it")]
mod closed;

use array::{ArrayState, Fill, Load, Simulation, SimulationOptions, builtin};
use closed::{Loop, begin};
use units::Bytes;

#[test]
fn nothing_is_allocated_for_a_request() {
    for (name, _) in builtin::arrays() {
        let mut design = builtin::design(name).unwrap();
        if design.array.level().is_redundant() {
            design.state = ArrayState::Rebuilding;
        }
        for (cache, read_share, block) in
            [(Fill::Room, 0.5, 4), (Fill::Full, 0.3, 64), (Fill::Full, 0.0, 2048)]
        {
            let size = design.capacity();
            let load =
                Load { cache, read_share, ..Load::random_reads(Bytes::kib(block), 32, size) };
            let options = SimulationOptions { pages_max: 1 << 15, ..begin(&load) };
            let mut simulation = Simulation::new(&design, &options).unwrap();
            let mut requests = Loop::of(&load, 1);
            let found = allocation_counter::measure(|| {
                (0..32).for_each(|n| simulation.submit(requests.request(n), n).unwrap());
                for _ in 0..5_000 {
                    let (_, token) = simulation.advance(u64::MAX).unwrap();
                    simulation.submit(requests.request(token), token).unwrap();
                }
                let _ = simulation.usage();
            });
            assert_eq!(found.count_total, 0, "{name}, {block} KiB, {cache:?}");
        }
    }
}
