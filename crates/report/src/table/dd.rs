//! dd's three lines, as coreutils prints them: records in and out, bytes in powers of 1000 and of
//! 1024, seconds, and a rate in powers of 1000.

use std::fmt::Write;

use record::Run;

use super::layout::Misfit;
use super::shape;
use crate::figures::StreamOfCell;

const SI: [&str; 7] = ["", "kB", "MB", "GB", "TB", "PB", "EB"];
const IEC: [&str; 7] = ["", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

pub fn print(run: &Run) -> Result<String, Misfit> {
    let mut out = String::new();
    for stream in shape::single(run)? {
        shape::one_at_a_time(&stream, "dd")?;
        for visit in shape::visit_by_visit(&stream) {
            if !out.is_empty() {
                out.push('\n');
            }
            let lines = lines(&visit).ok_or_else(|| {
                Misfit::new(format!(
                    "how many bytes its phase {} moved in how many seconds is not known",
                    crate::text::plain(&stream.cell.phase)
                ))
            })?;
            // Writing to a string cannot fail.
            let _ = write!(out, "{}:\n{lines}", shape::place(&stream));
        }
    }
    Ok(out)
}

/// Of one visit.
fn lines(visit: &StreamOfCell) -> Option<String> {
    let did = |op: &str| visit.op_names().contains(&op);
    // What is read goes out, and what is written came in, once: only a copy does both itself.
    let (input, output) = match (did("read"), did("write")) {
        (true, false) => ("read", "read"),
        (false, true) => ("write", "write"),
        (true, true) => ("read", "write"),
        (false, false) => {
            let other = visit.op_names().into_iter().find(|op| !shape::is_sync(op))?;
            (other, other)
        }
    };
    let (input, output) = (visit.figures_of(|op| op == input), visit.figures_of(|op| op == output));
    let bytes = output.bytes_known()?;
    let elapsed = shape::elapsed_ns(visit)?;
    Some(format!(
        "{}+{} records in\n{}+{} records out\n{}\n",
        input.requests_known()?,
        input.short,
        output.requests_known()?,
        output.short,
        copied(bytes, elapsed)
    ))
}

/// `42949672960 bytes (43 GB, 40 GiB) copied, 281.52 s, 153 MB/s`.
fn copied(bytes: u64, elapsed_ns: u64) -> String {
    let si = human(u128::from(bytes), 1, 1000, SI);
    let iec = human(u128::from(bytes), 1, 1024, IEC);
    let amounts = match bytes {
        1 => "1 byte copied".to_owned(),
        0..1000 => format!("{bytes} bytes copied"),
        1000..1024 => format!("{bytes} bytes ({si}) copied"),
        _ => format!("{bytes} bytes ({si}, {iec}) copied"),
    };
    let seconds = shape::general(elapsed_ns as f64 / 1e9, 6);
    let rate = human(u128::from(bytes) * 1_000_000_000, u128::from(elapsed_ns.max(1)), 1000, SI);
    let rate = if rate.ends_with('B') { rate } else { format!("{rate} B") };
    format!("{amounts}, {seconds} s, {rate}/s")
}

/// A quotient in the unit in which it is below `base`: one decimal below ten, none above, the
/// nearest, halves to even.
fn human(dividend: u128, divisor: u128, base: u128, units: [&str; 7]) -> String {
    let mut scale = divisor.max(1);
    let mut unit = 0;
    while dividend >= scale.saturating_mul(base) && unit + 1 < units.len() {
        scale = scale.saturating_mul(base);
        unit += 1;
    }
    // Rounding may reach the next unit.
    if unit + 1 < units.len() && nearest(dividend, scale) >= base {
        scale = scale.saturating_mul(base);
        unit += 1;
    }
    let tenths = nearest(dividend.saturating_mul(10), scale);
    let number = if unit > 0 && tenths < 100 {
        format!("{}.{}", tenths / 10, tenths % 10)
    } else {
        nearest(dividend, scale).to_string()
    };
    match units.get(unit).copied().unwrap_or_default() {
        "" => number,
        unit => format!("{number} {unit}"),
    }
}

fn nearest(dividend: u128, divisor: u128) -> u128 {
    let divisor = divisor.max(1);
    let (whole, rest) = (dividend / divisor, dividend % divisor);
    match (rest * 2).cmp(&divisor) {
        std::cmp::Ordering::Less => whole,
        std::cmp::Ordering::Greater => whole + 1,
        std::cmp::Ordering::Equal => whole + whole % 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines that dd printed, of people's logs.
    #[test]
    fn lines_of_dd() {
        for (bytes, elapsed_ns, line) in [
            (
                42_949_672_960,
                281_520_000_000,
                "42949672960 bytes (43 GB, 40 GiB) copied, 281.52 s, 153 MB/s",
            ),
            (
                42_949_672_960,
                261_264_000_000,
                "42949672960 bytes (43 GB, 40 GiB) copied, 261.264 s, 164 MB/s",
            ),
            (
                10_737_418_240,
                39_690_200_000,
                "10737418240 bytes (11 GB, 10 GiB) copied, 39.6902 s, 271 MB/s",
            ),
            (
                43_232_788_480,
                96_300_000_000,
                "43232788480 bytes (43 GB, 40 GiB) copied, 96.3 s, 449 MB/s",
            ),
            (512, 120_000, "512 bytes copied, 0.00012 s, 4.3 MB/s"),
            (1, 1_000_000_000, "1 byte copied, 1 s, 1 B/s"),
            (0, 1_000_000_000, "0 bytes copied, 1 s, 0 B/s"),
            (1000, 1_000_000_000, "1000 bytes (1.0 kB) copied, 1 s, 1.0 kB/s"),
            (
                4_294_967_296,
                1_000_000_000,
                "4294967296 bytes (4.3 GB, 4.0 GiB) copied, 1 s, 4.3 GB/s",
            ),
        ] {
            assert_eq!(copied(bytes, elapsed_ns), line);
        }
        // The ends of the range do not overflow.
        copied(u64::MAX, 1);
        copied(u64::MAX, u64::MAX);
    }

    #[test]
    fn rounding_reaches_the_next_unit() {
        assert_eq!(human(999_499, 1, 1000, SI), "999 kB");
        assert_eq!(human(999_501, 1, 1000, SI), "1.0 MB");
        assert_eq!(human(9_949, 1, 1000, SI), "9.9 kB");
        assert_eq!(human(9_951, 1, 1000, SI), "10 kB");
        assert_eq!(human(2_500_000, 1_000_000, 1000, SI), "2");
    }
}
