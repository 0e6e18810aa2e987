//! Random reads by pread on threads, one clock reading per read, each latency in a histogram.

use std::os::unix::fs::FileExt;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::{Blocks, Buffers, Tally, Target};

/// Powers of two, each in eight parts.
const BUCKETS: usize = 64 * 8;

pub fn run(target: &Target, threads: u32, time: Duration) -> Result<Tally> {
    let threads = threads.max(1);
    let barrier = Barrier::new(threads as usize);
    let tallies: Vec<Result<Tally>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|number| {
                let barrier = &barrier;
                scope.spawn(move || {
                    let mut blocks = Blocks::new(u64::from(number) + 1, target.blocks);
                    let mut buffers = Buffers::new(target.block, 1);
                    barrier.wait();
                    read(target, &mut blocks, buffers.get(0), time)
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|_| bail!("a worker panicked")))
            .collect()
    });
    let mut total = Tally { ios: 0, elapsed: Duration::ZERO, latency_ns_max: None };
    for tally in tallies {
        let tally = tally?;
        total.ios += tally.ios;
        total.elapsed = total.elapsed.max(tally.elapsed);
        total.latency_ns_max = total.latency_ns_max.max(tally.latency_ns_max);
    }
    Ok(total)
}

fn read(target: &Target, blocks: &mut Blocks, buffer: &mut [u8], time: Duration) -> Result<Tally> {
    let wanted = target.block as usize;
    let buffer = &mut buffer[..wanted];
    let mut counts = vec![0u64; BUCKETS];
    let mut highest = 0;
    let start = Instant::now();
    // The end of one read is the start of the next: one clock reading each.
    let mut last = Duration::ZERO;
    loop {
        let offset = blocks.next() * u64::from(target.block);
        let got = target.file.read_at(buffer, offset).context("reading")?;
        if got != wanted {
            bail!("a read of {wanted} bytes at {offset} gave {got}");
        }
        let now = start.elapsed();
        let latency = (now - last).as_nanos() as u64;
        last = now;
        counts[bucket(latency)] += 1;
        highest = highest.max(latency);
        if now >= time {
            let ios = counts.iter().sum();
            return Ok(Tally { ios, elapsed: now, latency_ns_max: Some(highest) });
        }
    }
}

#[inline]
fn bucket(ns: u64) -> usize {
    let ns = ns.max(8);
    let power = ns.ilog2() as usize;
    (power << 3 | (ns >> (power - 3)) as usize & 7).min(BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_rise() {
        assert!(bucket(0) <= bucket(8));
        assert!(bucket(100) < bucket(120));
        assert!(bucket(u64::MAX) < BUCKETS);
    }
}
