//! Random reads through a ring with everything registered.

use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use io_uring::{IoUring, opcode, types};

use crate::{Blocks, Buffers, Tally, Target};

pub fn run(target: &Target, depth: u32, batch: u32, time: Duration) -> Result<Tally> {
    let batch = batch.clamp(1, depth.max(1));
    let mut buffers = Buffers::new(target.block, depth);
    let mut ring: IoUring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .build(depth)
        .context("setting up the ring")?;
    let vectors: Vec<libc::iovec> = (0..depth)
        .map(|slot| {
            let buffer = buffers.get(slot);
            libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() }
        })
        .collect();
    ring.submitter().register_files(&[target.file.as_raw_fd()]).context("registering the file")?;
    // SAFETY: `buffers` is neither moved nor dropped before the ring, which is declared after it.
    unsafe { ring.submitter().register_buffers(&vectors) }.context("registering buffers")?;
    // Older kernels have no registered rings; the loop then pays for the lookup.
    let _ = ring.submitter().register_ring_fd();

    let mut blocks = Blocks::new(1, target.blocks);
    let mut free: Vec<u32> = (0..depth).collect();
    let mut ios = 0;
    let start = Instant::now();
    loop {
        let elapsed = start.elapsed();
        let done = elapsed >= time && ios > 0;
        if done && free.len() == depth as usize {
            return Ok(Tally { ios, elapsed, latency_ns_max: None });
        }
        if !done {
            submit(&mut ring, target, &vectors, &mut blocks, &mut free, batch)?;
        }
        // Wait only when nothing more could be submitted, and then for a batch: fewer system calls.
        let in_flight = depth as usize - free.len();
        let wait = if done || free.is_empty() { in_flight.min(batch as usize) } else { 0 };
        ring.submit_and_wait(wait).context("entering the ring")?;
        for completion in ring.completion() {
            if completion.result() != target.block as i32 {
                bail!("a read of {} bytes gave {}", target.block, completion.result());
            }
            ios += 1;
            free.push(completion.user_data() as u32);
        }
    }
}

fn submit(
    ring: &mut IoUring,
    target: &Target,
    vectors: &[libc::iovec],
    blocks: &mut Blocks,
    free: &mut Vec<u32>,
    batch: u32,
) -> Result<()> {
    let mut queue = ring.submission();
    for _ in 0..batch {
        let Some(slot) = free.pop() else { break };
        let base = vectors[slot as usize].iov_base.cast();
        let entry = opcode::ReadFixed::new(types::Fixed(0), base, target.block, slot as u16)
            .offset(blocks.next() * u64::from(target.block))
            .build()
            .user_data(u64::from(slot));
        // SAFETY: the buffer of the slot lives as long as the ring and has at least `block` bytes;
        // the slot is not free before its completion, so no two requests share it.
        unsafe { queue.push(&entry) }.context("the submission queue is full")?;
    }
    Ok(())
}
