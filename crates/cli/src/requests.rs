//! A suite's requests written out: what xdd calls a seek list, saved to be played again.

use std::fmt::Write;

use device::model::Law;
use device::{Device, Model, ModelSpec, Recording};
use engine::{Drive, Limits, Shared, Visit};
use stats::random::derive_seed;
use suite::model::{Cell, Operation, Phase, StartFile, Stream, Suite, Work, WriteThrough};
use units::Nanos;

use crate::exit::ExitCode;
use crate::failure::Failure;

/// Longest list, in bytes: with its sizes as they are stored it can be read again, too.
const LIST_BYTES_MAX: usize = 18 << 20;
const _: () = assert!(LIST_BYTES_MAX + LIST_BYTES_MAX / 10 <= suite::TEXT_BYTES_MAX);
/// No line of a list is shorter: `  { op = "read", offset = 0, length = 512 },`.
const LINE_BYTES_MIN: u64 = 44;

/// The suite as lists of requests: a suite of its own, a phase for each cell, with access
/// `replay`. The same seed gives the same lists.
pub fn listed(suite: &Suite, seed: u64) -> Result<String, Failure> {
    let mut least = 0u64;
    for cell in suite.cells() {
        least = least.saturating_add(requests_of(listable(cell)?));
    }
    // Before any is played.
    if least.saturating_mul(LINE_BYTES_MIN) > LIST_BYTES_MAX as u64 {
        return Err(too_long(&format!("about {least} requests are too many for a list")));
    }
    let mut out = head(suite, seed);
    let mut index = 0u64;
    for phase in &suite.phases {
        for (number, cell) in (1..).zip(&phase.cells) {
            let stream = listable(cell)?;
            let name = match phase.cells.len() {
                1 => phase.name.clone(),
                _ => format!("{}-{number}", phase.name),
            };
            head_of(&mut out, phase, cell, stream, &name);
            let requests = played(suite, cell, derive_seed(seed, &[index]), seed)?;
            write_list(&mut out, suite, &requests);
            if out.len() > LIST_BYTES_MAX {
                return Err(too_long("its requests are too many for a list"));
            }
            index += 1;
        }
    }
    Ok(out)
}

/// What could not be read again is not written.
fn too_long(what: &str) -> Failure {
    let most = LIST_BYTES_MAX >> 20;
    let message = format!("{what}: one has at most {most} MiB, some 350000 requests");
    let hint = "make it smaller: --scale 0.01, or --set bytes= and --set operations=";
    Failure::new(ExitCode::Usage, message).hint(hint)
}

/// The one stream of a cell whose requests do not depend on the target.
fn listable(cell: &Cell) -> Result<&Stream, Failure> {
    let refused = |why: &str, hint: &str| {
        Failure::new(ExitCode::Usage, format!("its requests cannot be listed: {why}")).hint(hint)
    };
    let [stream] = cell.streams.as_slice() else {
        return Err(refused(
            "several streams run at once",
            "list one of them: --set streams=NAME where the suite has that axis",
        ));
    };
    let ends = stream.stop.operations.is_some() || stream.stop.bytes.is_some();
    if !ends || stream.stop.time.is_some() {
        let hint = "say how many: --set time=none --set operations=10000";
        return Err(refused("time ends it, and how many there are depends on the target", hint));
    }
    let mut ops = stream.mix.classes.iter().map(|class| class.op);
    if stream.work != Work::Blocks
        || stream.copy_to.is_some()
        || ops.any(|op| op.is_pair() || op == Operation::Commit)
        || stream.start_file != StartFile::Keep
    {
        let hint = "lists are of reads, writes, discards and flushes of files that are there";
        return Err(refused(
            "updates, copies, commits, new files and whole files are no single requests",
            hint,
        ));
    }
    Ok(stream)
}

fn requests_of(stream: &Stream) -> u64 {
    let smallest = stream.mix.classes.iter().map(|class| class.block_size.get()).min();
    let by_bytes =
        stream.stop.bytes.map(|bytes| bytes.get().div_ceil(smallest.unwrap_or(1).max(1)));
    [stream.stop.operations, by_bytes].into_iter().flatten().min().unwrap_or(0)
}

// Writing to a string cannot fail, hence `let _`.
fn head(suite: &Suite, seed: u64) -> String {
    let mut out = String::new();
    let _ =
        writeln!(out, "# The requests of {} with --seed {seed}, in the order issued.", suite.name);
    let _ = writeln!(out, "schema = 1\nname = \"{}-list\"", suite.name);
    let _ = writeln!(out, "title = \"The requests of {}, one by one\"", suite.name);
    let files = &suite.files;
    let _ = writeln!(out, "file_count = {}\nfile_size = {}", files.count, files.size.get());
    let _ =
        writeln!(out, "fill = {}\nmethod = \"classic\"\nrepeats = {}", files.fill, suite.repeats);
    if suite.table.name() != "plain" {
        let _ = writeln!(out, "table = \"{}\"", suite.table.name());
    }
    out
}

fn head_of(out: &mut String, phase: &Phase, cell: &Cell, stream: &Stream, name: &str) {
    let _ = writeln!(out, "\n[[phase]]\nname = \"{name}\"");
    if !phase.axes.is_empty() {
        let _ = writeln!(out, "# {}", report::plain(&phase.place_text(cell)));
    }
    let _ = writeln!(out, "threads = {}\nqueue_depth = {}", stream.threads, stream.queue_depth);
    let _ = writeln!(out, "direct = {}", stream.direct);
    let through = match stream.write_through {
        WriteThrough::No => "no",
        WriteThrough::Data => "data",
        WriteThrough::DataAndMeta => "data-and-meta",
    };
    let _ = writeln!(out, "write_through = \"{through}\"");
    if phase.settle > Nanos::ZERO {
        let _ = writeln!(out, "settle = \"{}ns\"", phase.settle.get());
    }
    if let Ok(steps) = serde_json::to_string(&phase.caches)
        && !phase.caches.is_empty()
    {
        let _ = writeln!(out, "caches = {steps}");
    }
}

fn write_list(out: &mut String, suite: &Suite, requests: &[device::Request]) {
    out.push_str("[phase.access]\nkind = \"replay\"\nrequests = [\n");
    for request in requests {
        let file = u64::from(request.file.0).saturating_mul(suite.files.size.get());
        let offset = file.saturating_add(request.offset.get());
        let _ = writeln!(
            out,
            "  {{ op = \"{}\", offset = {offset}, length = {} }},",
            request.op.name(),
            request.length
        );
    }
    out.push_str("]\n");
}

/// The requests of a visit, in the order in which they are issued where all take equally long.
fn played(
    suite: &Suite,
    cell: &Cell,
    seed: u64,
    run_seed: u64,
) -> Result<Vec<device::Request>, Failure> {
    let failed = |why: String| Failure::new(ExitCode::Unexpected, why);
    let visit = Visit {
        streams: cell.streams.clone(),
        files: suite.files.count,
        file_size: suite.files.size,
        data: suite.files.data,
        seed,
        run_seed,
        verify: None,
    };
    let depth = visit.streams.iter().map(|s| s.threads.saturating_mul(s.queue_depth)).sum();
    let law = Law {
        iops: None,
        bandwidth: None,
        latency: Nanos::micros(100),
        request_bandwidth: None,
        sharpness: 5.0,
    };
    let model = Model::new(&ModelSpec::from_law(law, None), depth, seed)
        .map_err(|error| failed(error.to_string()))?;
    let mut device = Recording::new(model);
    let shared = Shared::new(&visit.streams);
    let workers = visit.workers();
    let mut drive = Drive::new(&visit, &workers, &shared, Limits::default())
        .map_err(|error| failed(error.to_string()))?;
    drive.prepare(&mut device);
    let begin = device.now();
    drive.run(&mut device, begin, &mut ()).map_err(|error| failed(error.to_string()))?;
    Ok(device.requests())
}
