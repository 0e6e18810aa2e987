//! What several layouts need: which cells are measured ones, the CPU they took, C's `%g`.

use record::{OpRecord, Run};

use super::layout::Misfit;
pub use crate::figures::is_sync;
use crate::figures::{self, StreamOfCell, total};
use crate::text::plain;

/// Every stream of a cell that is measured: neither the fill nor a preconditioning pass.
pub fn measured(run: &Run) -> Vec<StreamOfCell<'_>> {
    let prepares = |phase: &str| phase == "fill" || phase.starts_with("precondition-");
    figures::streams_of(run).into_iter().filter(|s| !prepares(&s.cell.phase)).collect()
}

/// The same where each cell has one stream, which is what most originals know.
pub fn single(run: &Run) -> Result<Vec<StreamOfCell<'_>>, Misfit> {
    let streams = measured(run);
    if let Some(other) = streams.iter().find(|s| s.cell.streams.len() > 1) {
        let (phase, count) = (plain(&other.cell.phase), other.cell.streams.len());
        return Err(Misfit::new(format!(
            "{count} streams run at once in its phase {phase}, and the original has one"
        )));
    }
    any(streams)
}

/// Those that were measured, if any was.
pub fn any(streams: Vec<StreamOfCell<'_>>) -> Result<Vec<StreamOfCell<'_>>, Misfit> {
    if streams.iter().all(|stream| stream.counted().is_empty()) {
        return Err(Misfit::new("nothing was measured in it"));
    }
    Ok(streams)
}

/// Refuses more than one request in flight. 0 threads or a depth of 0 is what an imported run did
/// not tell.
pub fn one_at_a_time(stream: &StreamOfCell<'_>, tool: &str) -> Result<(), Misfit> {
    let plan = stream.plan;
    let in_flight = u64::from(plan.threads.max(1)) * u64::from(plan.queue_depth.max(1));
    if in_flight > 1 {
        let phase = plain(&stream.cell.phase);
        return Err(Misfit::new(format!(
            "its phase {phase} has {in_flight} requests in flight, and {tool} has one"
        )));
    }
    Ok(())
}

/// A stream's visits that count, each as if it were the only one.
pub fn visit_by_visit<'a>(stream: &StreamOfCell<'a>) -> Vec<StreamOfCell<'a>> {
    let one = |visit| StreamOfCell { visits: vec![visit], ..stream.clone() };
    stream.counted().into_iter().map(one).collect()
}

/// The records of the operations in the visits that count.
pub fn ops<'a>(stream: &StreamOfCell<'a>) -> Vec<&'a OpRecord> {
    let counted = stream.counted();
    counted.into_iter().filter_map(|v| stream.record(v)).flat_map(|s| &s.ops).collect()
}

/// Measured time of the visits that count; `None` where it is not known.
pub fn elapsed_ns(stream: &StreamOfCell<'_>) -> Option<u64> {
    Some(total(stream.counted().iter().map(|v| v.elapsed_ns))).filter(|&ns| ns > 0)
}

/// User and system CPU in percent of one processor: as another tool told it, or of the stream's
/// threads over the measured time. `None` where it is not known.
pub fn cpu_percent(stream: &StreamOfCell<'_>) -> Option<f64> {
    let told: Vec<f64> = ops(stream)
        .iter()
        .filter_map(|op| op.reported.as_ref())
        .filter_map(|told| told.cpu_percent)
        .collect();
    if !told.is_empty() {
        return Some(told.iter().sum::<f64>() / told.len() as f64);
    }
    let mut ns = 0u64;
    let records = stream.counted();
    let workers = records.iter().filter_map(|v| stream.record(v)).flat_map(|s| &s.workers);
    for worker in workers {
        ns = ns.saturating_add(worker.cpu_user_ns?).saturating_add(worker.cpu_system_ns?);
    }
    // A thread that did anything took some.
    let elapsed = elapsed_ns(stream)?;
    (ns > 0).then(|| ns as f64 * 100.0 / elapsed as f64)
}

/// Where a cell is: `read, block_size 4KiB`.
pub fn place(stream: &StreamOfCell<'_>) -> String {
    let mut text = stream.cell.phase.clone();
    for (field, value) in &stream.cell.coordinates {
        text += &format!(", {field} {value}");
    }
    plain(&text)
}

/// How a tool set itself, as an imported run has it.
pub fn setting<'a>(run: &'a Run, name: &str) -> Option<&'a str> {
    let settings = &run.header.imported.as_ref()?.settings;
    settings.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// Whole numbers as C's `%d` of a double: cut, not rounded. A hair is added first, since a rate
/// that is a whole number may be stored a hair below it.
pub fn cut(value: f64) -> u64 {
    (value.max(0.0) * (1.0 + 1e-12) + 1e-9) as u64
}

/// C's `%.{digits}g`.
pub fn general(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let digits = digits.max(1);
    let scientific = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", bare(mantissa), exponent.abs());
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    bare(&format!("{value:.decimals$}")).to_owned()
}

/// Without the zeros at the end.
fn bare(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

/// A size in the largest binary unit that has it whole: `4M`, `16K`, `512`.
pub fn whole_unit(bytes: u64, units: &[&'static str]) -> String {
    let mut size = bytes;
    let mut unit = 0;
    while size > 0 && size.is_multiple_of(1024) && unit + 1 < units.len() {
        size /= 1024;
        unit += 1;
    }
    format!("{size}{}", units.get(unit).copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn general_is_cs() {
        for (value, digits, text) in [
            (281.52, 6, "281.52"),
            (54.0, 6, "54"),
            (39.690_2, 6, "39.6902"),
            (0.000_123_456_7, 6, "0.000123457"),
            (0.000_012_345, 6, "1.2345e-05"),
            (1_234_567.0, 6, "1.23457e+06"),
            (999_999.6, 6, "1e+06"),
            (78.125, 5, "78.125"),
            (1.457_88, 5, "1.4579"),
            (156.296_875, 5, "156.3"),
            (62.5, 5, "62.5"),
            (0.0, 5, "0"),
        ] {
            assert_eq!(general(value, digits), text);
        }
    }

    #[test]
    fn cut_forgives_a_hair() {
        assert_eq!(cut(92_821.999_999_999_99), 92_822);
        assert_eq!(cut(92_821.999), 92_821);
        assert_eq!(cut(-1.0), 0);
        assert_eq!(cut(f64::NAN), 0);
    }
}
