//! IOMeter's results, level by level: the columns of its CSV that matter, as a table.
//!
//! MiBps is of 2^20 bytes and MBps of 10^6; files of versions before 1.1 have one column `MBps`,
//! which is the first of these. Response times count from the issue of a request.

use record::Run;

use super::layout::Misfit;
use super::shape;
use crate::figures::{Figures, StreamOfCell, known};
use crate::text::{Columns, cut, plain};

/// Longest name of an access specification.
const NAME: usize = 22;

pub fn print(run: &Run) -> Result<String, Misfit> {
    let streams = shape::single(run)?;
    let mut table =
        Columns::new([true].into_iter().chain(std::iter::repeat_n(false, 10)).collect());
    let heads = [
        ["Access", "Specification"],
        ["", "Workers"],
        ["Queue", "Depth"],
        ["", "IOps"],
        ["Read", "IOps"],
        ["Write", "IOps"],
        ["", "MiBps"],
        ["", "MBps"],
        ["Average", "Response"],
        ["Maximum", "Response"],
        ["", "% CPU"],
    ];
    for line in 0..2 {
        table.row(heads.iter().map(|head| head[line].to_owned()).collect());
    }
    let mut notes = Notes::default();
    for stream in streams.iter().filter(|stream| !stream.counted().is_empty()) {
        table.row(row(run, stream, &mut notes)?);
    }
    let mut out = table.print();
    out.push_str("(Response times in ms.)\n");
    if notes.own_cpu {
        out.push_str(&crate::text::wrapped(
            "",
            "(CPU is of all processors, as IOMeter's, but of the workers' work alone; \
             IOMeter's has everything else that ran.)",
        ));
    }
    if notes.no_cpu {
        out.push_str("(CPU is blank where it is not known.)\n");
    }
    Ok(out)
}

#[derive(Default)]
struct Notes {
    own_cpu: bool,
    no_cpu: bool,
}

fn row(run: &Run, stream: &StreamOfCell, notes: &mut Notes) -> Result<Vec<String>, Misfit> {
    let all = stream.figures();
    let name = plain(&stream.cell.phase);
    let (Some(iops), Some(bytes)) = (all.iops_of_visits(), all.bytes_per_second_of_visits()) else {
        return Err(Misfit::new(format!("the rates of its phase {name} are not known")));
    };
    let of = |op: &str| {
        let figures = stream.figures_of(|name| name == op);
        // 0 where the specification has none of it.
        format!("{:.2}", figures.iops_of_visits().unwrap_or(0.0))
    };
    let number = |n: u32| known(run, n).map(|n| n.to_string()).unwrap_or_default();
    let ms = |ns: Option<f64>| ns.map(|ns| format!("{:.4}", ns / 1e6)).unwrap_or_default();
    Ok(vec![
        cut(&specification(run, stream), NAME),
        number(stream.plan.threads),
        number(stream.plan.queue_depth),
        format!("{iops:.2}"),
        of("read"),
        of("write"),
        format!("{:.2}", bytes / 1024.0 / 1024.0),
        format!("{:.2}", bytes / 1e6),
        ms(all.latency_ns_mean()),
        ms(all.latency_ns_max().map(|ns| ns as f64)),
        cpu(run, stream, &all, notes),
    ])
}

/// The name of the access specification: as it was told of imported runs, the suite's in ours,
/// with what else its cells differ in.
fn specification(run: &Run, stream: &StreamOfCell) -> String {
    let mut name = match run.header.imported {
        Some(_) => return plain(&stream.plan.name),
        None => run.header.suite.trim_start_matches("iometer-").to_owned(),
    };
    for (field, value) in &stream.cell.coordinates {
        let column = field.ends_with("queue_depth") || field.ends_with("threads");
        if !column {
            name += &format!(" {value}");
        }
    }
    plain(&name)
}

fn cpu(run: &Run, stream: &StreamOfCell, all: &Figures, notes: &mut Notes) -> String {
    let Some(percent) = shape::cpu_percent(stream) else {
        notes.no_cpu = true;
        return String::new();
    };
    if all.is_told() {
        return format!("{percent:.2}");
    }
    notes.own_cpu = true;
    format!("{:.2}", percent / f64::from(run.header.machine.processors.max(1)))
}
