//! The least loop around a back end: closed, 4 KiB, uniform random, one clock reading per reaped
//! batch, nothing recorded. What it costs is the back end's own; `docs/back-ends.md` has figures.
//!
//! ```text
//! loop FILE [depth=32] [min=DEPTH] [time=3] [backend=auto|io_uring|...] [op=read|write]
//!           [direct=0|1] [block=4096] [span=BYTES] [without=registered_buffers,...]
//! ```
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

use std::process::ExitCode;
use std::sync::Arc;

use device::{Completion, Device, FileIndex, Op, Request, Slot};
use units::{ByteOffset, Bytes, Instant, Nanos};
use uring::{Allow, Choice, DirectWish, FileSet, Fill, OpenSpec, Requested, Visitor};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

struct Loop {
    depth: u32,
    min: usize,
    time: Nanos,
    op: Op,
    block: u32,
    blocks: u64,
}

struct Outcome {
    requests: u64,
    failed: u64,
    elapsed: Nanos,
    cpu: uring::ThreadUsage,
}

impl Visitor for Loop {
    type Output = Result<Outcome, device::DeviceError>;

    fn visit<D: Device>(self, device: &mut D) -> Self::Output {
        let mut done: Vec<Completion> = Vec::with_capacity(self.depth as usize);
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let (op, block, blocks) = (self.op, self.block, self.blocks);
        let mut next = |slot| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let place = ((u128::from(state) * u128::from(blocks)) >> 64) as u64;
            let offset = ByteOffset::new(place * u64::from(block));
            Request { offset, length: block, slot, file: FileIndex(0), op }
        };
        for slot in 0..self.depth {
            let _ = device.submit(next(Slot(slot)));
        }
        let before = uring::thread_usage();
        let start = device.now();
        let end = start + self.time;
        let (mut requests, mut failed) = (0, 0);
        let mut now = start;
        while now < end {
            device.reap(self.min, end, &mut done)?;
            now = device.now();
            requests += done.len() as u64;
            for completion in done.drain(..) {
                failed += u64::from(completion.result() != Ok(block));
                let _ = device.submit(next(completion.slot));
            }
        }
        let cpu = uring::thread_usage().since(&before);
        // What was submitted last is not counted.
        device.reap(self.depth as usize, Instant::MAX, &mut done)?;
        Ok(Outcome { requests, failed, elapsed: now.since(start), cpu })
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: loop FILE [key=value ...]")?;
    let mut choice = Choice::Auto;
    let (mut depth, mut min, mut block, mut span) = (32, None, 4096, None);
    let (mut time, mut op, mut direct) = (3.0, Op::Read, DirectWish::No);
    let mut allow = Allow::default();
    for arg in args {
        let (key, value) = arg.split_once('=').ok_or_else(|| format!("`{arg}` has no `=`"))?;
        match key {
            "depth" => depth = value.parse()?,
            "min" => min = Some(value.parse()?),
            "time" => time = value.parse()?,
            "block" => block = value.parse()?,
            "span" => span = Some(value.parse()?),
            "direct" if value == "1" => direct = DirectWish::Require,
            "direct" => {}
            "op" => op = Op::ALL.into_iter().find(|op| op.name() == value).ok_or("no such op")?,
            "backend" => choice = parse_choice(value)?,
            "without" => value.split(',').try_for_each(|name| take_away(&mut allow, name))?,
            _ => return Err(format!("unknown key `{key}`").into()),
        }
    }
    let spec = OpenSpec {
        files: vec![path.into()],
        read: true,
        write: op.modifies(),
        direct,
        ..OpenSpec::default()
    };
    let files = Arc::new(FileSet::open(&spec)?);
    let requested = Requested {
        choice,
        depth,
        buffer_len: Bytes::new(u64::from(block)),
        fill: Fill::Incompressible { seed: 1 },
        allow,
    };
    let mut backend = uring::open(&files, &requested)?;
    println!("{:?}", backend.report());
    let size = files.files()[0].size.map_or(1 << 30, Bytes::get);
    let blocks = (span.unwrap_or(size) / u64::from(block)).max(1);
    let time = Nanos::from_secs_f64(time);
    let min = min.unwrap_or(depth as usize);
    let outcome = backend.visit(Loop { depth, min, time, op, block, blocks })?;
    let helpers = backend.helper_usage();
    let per = |time: Nanos| time.get() as f64 / outcome.requests.max(1) as f64;
    println!(
        "iops {:.0} user_ns {:.1} system_ns {:.1} cpu_ns {:.1} helper_ns {:.1} waits {} preempted {} failed {}",
        outcome.requests as f64 / outcome.elapsed.as_secs_f64(),
        per(outcome.cpu.user),
        per(outcome.cpu.system),
        per(outcome.cpu.user) + per(outcome.cpu.system),
        per(helpers.user) + per(helpers.system),
        outcome.cpu.voluntary_switches,
        outcome.cpu.involuntary_switches,
        outcome.failed,
    );
    Ok(())
}

fn parse_choice(name: &str) -> Result<Choice, String> {
    Ok(match name {
        "auto" => Choice::Auto,
        "io_uring" => Choice::IoUring,
        "sqpoll" => Choice::IoUringSqpoll,
        "iopoll" => Choice::IoUringIopoll,
        "libaio" => Choice::Libaio,
        "blocking" => Choice::Blocking,
        "mmap" => Choice::Mmap,
        _ => return Err(format!("no back end `{name}`")),
    })
}

fn take_away(allow: &mut Allow, name: &str) -> Result<(), String> {
    let field = match name {
        "io_uring" => &mut allow.io_uring,
        "libaio" => &mut allow.libaio,
        "registered_files" => &mut allow.registered_files,
        "registered_buffers" => &mut allow.registered_buffers,
        "registered_ring" => &mut allow.registered_ring,
        "defer_taskrun" => &mut allow.defer_taskrun,
        "coop_taskrun" => &mut allow.coop_taskrun,
        "no_sqarray" => &mut allow.no_sqarray,
        "no_iowait" => &mut allow.no_iowait,
        "timed_wait" => &mut allow.timed_wait,
        _ => return Err(format!("nothing called `{name}`")),
    };
    *field = false;
    Ok(())
}
