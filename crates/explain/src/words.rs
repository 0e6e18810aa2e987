//! Numbers as sentences show them. The same number is the same text everywhere.

use units::{Bytes, Nanos};

/// A rate of requests, three digits: `834`, `63.1 K`, `1.25 M`.
pub(crate) fn iops(per_second: f64) -> String {
    match per_second {
        x if !x.is_finite() => "unknown".to_owned(),
        x if x >= 999_500.0 => format!("{} M", digits(x / 1e6)),
        x if x >= 999.5 => format!("{} K", digits(x / 1e3)),
        x => digits(x),
    }
}

/// A rate of bytes: `15 MiB/s`, `1736 MiB/s`, `12.3 GiB/s`. Tables of the field are in MiB up to
/// some thousands, so no GiB before 10.
pub(crate) fn bandwidth(bytes_per_second: f64) -> String {
    const MIB: f64 = 1_048_576.0;
    let mib = bytes_per_second / MIB;
    match mib {
        x if !x.is_finite() => "unknown".to_owned(),
        x if x >= 10_240.0 => format!("{}/s", Bytes::new((x * MIB) as u64)),
        x if x >= 0.1 => format!("{} MiB/s", digits(x)),
        x => format!("{}/s", Bytes::new((x.max(0.0) * MIB) as u64)),
    }
}

/// A size.
pub(crate) fn size(bytes: u64) -> String {
    Bytes::new(bytes).to_string()
}

/// A time in seconds.
pub(crate) fn seconds(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "unknown".to_owned();
    }
    Nanos::new((seconds.max(0.0) * 1e9).round() as u64).to_string()
}

/// A share: `39 %`, `0.1 %`.
pub(crate) fn percent(share: f64) -> String {
    let value = share * 100.0;
    match value {
        x if !x.is_finite() => "unknown".to_owned(),
        x if x.abs() >= 9.95 || x == 0.0 => format!("{x:.0} %"),
        x => format!("{x:.1} %"),
    }
}

/// `1 thread`, `10 threads`.
pub(crate) fn count(n: u64, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

fn digits(value: f64) -> String {
    match value {
        x if x >= 99.95 => format!("{x:.0}"),
        x if x >= 9.995 => format!("{x:.1}"),
        x => {
            let text = format!("{x:.2}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_the_fields_units() {
        assert_eq!(iops(63_113.0), "63.1 K");
        assert_eq!(iops(834.2), "834");
        assert_eq!(iops(1_250_000.0), "1.25 M");
        assert_eq!(iops(0.0), "0");
        assert_eq!(bandwidth(1736.4 * 1_048_576.0), "1736 MiB/s");
        assert_eq!(bandwidth(12.3 * 1_073_741_824.0), "12.3 GiB/s");
        assert_eq!(bandwidth(12_288.0), "12 KiB/s");
        assert_eq!(percent(0.394), "39 %");
        assert_eq!(percent(0.000_8), "0.1 %");
        assert_eq!(seconds(5.61), "5.61 s");
    }

    #[test]
    fn odd_numbers_are_unknown() {
        for text in [iops, bandwidth, seconds, percent].map(|words| words(f64::NAN)) {
            assert_eq!(text, "unknown");
        }
        assert_eq!(seconds(-1.0), "0 ns");
        assert!(!bandwidth(1e300).is_empty());
    }
}
