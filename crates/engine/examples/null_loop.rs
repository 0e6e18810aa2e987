#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]
//! The loop on the null twin and a virtual clock: `null_loop OPERATIONS [DEPTH]`.
//!
//! For counting instructions: run it under callgrind with two numbers of operations and divide
//! the difference.

use device::{Null, VirtualClock};
use engine::{Drive, Limits, Shared, Visit};
use suite::model::{
    Access, Backend, Choice, Class, Data, Last, Mix, Operation, Pacing, Region, Spread, Stop,
    Stream, Until, WriteThrough,
};
use units::{Bytes, Instant, Nanos};

fn main() {
    let mut arguments = std::env::args().skip(1).filter_map(|a| a.parse().ok());
    let operations: u64 = arguments.next().unwrap_or(1_000_000);
    let depth = arguments.next().unwrap_or(32) as u32;
    let stream = Stream {
        name: "read".to_owned(),
        access: Access::Uniform,
        mix: Mix {
            classes: vec![Class {
                weight: 1.0,
                op: Operation::Read,
                block_size: Bytes::kib(4),
                line: None,
            }],
            choice: Choice::Dice,
        },
        align: Bytes::kib(4),
        copy_to: None,
        work: suite::model::Work::Blocks,
        region: Region { start: Bytes::ZERO, length: Bytes::gib(1), spread: Spread::Concatenated },
        sync: None,
        threads: 1,
        queue_depth: depth,
        pacing: Pacing::Closed { think: Nanos::ZERO, burst: 1 },
        duty: None,
        direct: false,
        commit_writes: 1,
        write_through: WriteThrough::No,
        backend: Backend::Auto,
        stop: Stop {
            ramp: Nanos::ZERO,
            time: None,
            bytes: None,
            operations: Some(operations),
            until: Until::All,
            last: Last::Whole,
            extend: None,
        },
        start_file: suite::model::StartFile::Keep,
    };
    let visit = Visit {
        streams: vec![stream],
        files: 1,
        file_size: Bytes::gib(1),
        data: Data::Incompressible,
        seed: 1,
        run_seed: 1,
        verify: None,
    };
    let shared = Shared::new(&visit.streams);
    let mut drive = match Drive::new(&visit, &visit.workers(), &shared, Limits::default()) {
        Ok(drive) => drive,
        Err(error) => {
            eprintln!("error: {error}");
            std::process::exit(1);
        }
    };
    let mut device = Null::new(VirtualClock::default(), Nanos::micros(10), depth);
    drive.prepare(&mut device);
    let started = std::time::Instant::now();
    if let Err(error) = drive.run(&mut device, Instant::ZERO, &mut ()) {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
    let seconds = started.elapsed().as_secs_f64();
    let result = engine::merge(&visit, drive.finish());
    let requests: u64 = result.streams[0].ops.iter().map(|op| op.requests).sum();
    println!("{requests} requests, {:.1} ns each", seconds * 1e9 / requests as f64);
}
