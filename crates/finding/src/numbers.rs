//! Numbers as text. The same number is the same text everywhere.

use units::{Bytes, Nanos};

/// A rate of requests, three digits: `834`, `63.1 K`, `1.25 M`.
pub fn iops(per_second: f64) -> String {
    match per_second {
        x if !x.is_finite() => "unknown".to_owned(),
        x if x >= 999_500.0 => format!("{} M", digits(x / 1e6)),
        x if x >= 999.5 => format!("{} K", digits(x / 1e3)),
        x => digits(x),
    }
}

/// A rate of bytes: `15 MiB/s`, `1736 MiB/s`, `12.3 GiB/s`. Tables of the field are in MiB up to
/// some thousands, so no GiB before 10.
pub fn bandwidth(bytes_per_second: f64) -> String {
    const MIB: f64 = 1_048_576.0;
    let mib = bytes_per_second / MIB;
    match mib {
        x if !x.is_finite() => "unknown".to_owned(),
        x if x >= 10_240.0 => format!("{}/s", Bytes::new((x * MIB) as u64)),
        x if x >= 0.1 => format!("{} MiB/s", digits(x)),
        x => format!("{}/s", Bytes::new((x.max(0.0) * MIB) as u64)),
    }
}

/// What a rate of an operation counts.
pub fn unit(op: &str) -> &'static str {
    match op {
        "commit" => "commits/s",
        "transaction" => "transactions/s",
        _ => "requests/s",
    }
}

/// What waits for an operation: `64 sessions`, `64 in flight`.
pub fn waiting(op: &str, n: u64) -> String {
    match op {
        "commit" | "transaction" => count(n, "session"),
        _ => format!("{n} in flight"),
    }
}

/// A size.
pub fn size(bytes: u64) -> String {
    Bytes::new(bytes).to_string()
}

/// Two sizes so that a reader sees that they differ: `10.02 GiB` and `10.05 GiB`.
pub fn sizes_apart(low: u64, high: u64) -> (String, String) {
    const STEPS: [(u64, &str); 4] =
        [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let plain = (size(low), size(high));
    let unit = STEPS.into_iter().find(|(bytes, _)| low >= *bytes).unwrap_or((1, "B"));
    if plain.0 != plain.1 || low == high {
        return plain;
    }
    let with = |digits: usize| {
        let text = |bytes: u64| format!("{:.digits$} {}", bytes as f64 / unit.0 as f64, unit.1);
        (text(low), text(high))
    };
    (1..=9).map(with).find(|(low, high)| low != high).unwrap_or(plain)
}

/// A time in seconds.
pub fn seconds(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "unknown".to_owned();
    }
    Nanos::new((seconds.max(0.0) * 1e9).round() as u64).to_string()
}

/// A share: `39 %`, `0.1 %`, `>1000 %`; `<0.1 %` of what is not nothing.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    match value {
        x if share.is_finite() && x > 1000.0 => ">1000 %".to_owned(),
        x if !x.is_finite() => "unknown".to_owned(),
        x if x > 0.0 && x < 0.05 => "<0.1 %".to_owned(),
        x if x.abs() >= 9.95 => format!("{x:.0} %"),
        x if x.abs() < 0.05 => "0 %".to_owned(),
        x => format!("{x:.1} %"),
    }
}

/// By how much something changes: `+3.1 %`, `-12 %`, `0 %`.
pub fn change(share: f64) -> String {
    let text = percent(share.abs());
    match share {
        _ if text == "0 %" || text.starts_with('<') => "0 %".to_owned(),
        _ if text.starts_with('>') => text.replace('>', ">+"),
        x if x < 0.0 => format!("-{text}"),
        _ => format!("+{text}"),
    }
}

/// A share, or a change either way, with the digits that show that it is more than `most`: `10.04 %` of at
/// most 10 %.
pub fn change_over(seen: f64, most: f64) -> String {
    let (size, sign) = (seen.abs(), if seen < 0.0 { "-" } else { "+" });
    match size > most {
        true => format!("{sign}{}", percents_apart(size, most).0),
        false => change(seen),
    }
}

/// Two shares so that a reader sees that they differ: `5.02 %` and `5 %`.
pub fn percents_apart(seen: f64, other: f64) -> (String, String) {
    let same = |digits: usize| {
        let text = |share: f64| trimmed(format!("{:.digits$}", share * 100.0));
        (text(seen), text(other))
    };
    let plain = (percent(seen), percent(other));
    let told = |text: &str| !text.starts_with("0 ") && !text.starts_with('<');
    if plain.0 != plain.1 && told(&plain.0) && told(&plain.1) || seen == other {
        return plain;
    }
    let pair = (2..=12).map(same).find(|(a, b)| a != b && a != "0" && b != "0");
    pair.map_or(plain, |(a, b)| (format!("{a} %"), format!("{b} %")))
}

fn trimmed(text: String) -> String {
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Intervals of rates that reach further than this are told by their ends: no rate is below 0, and
/// `+-60 %` would say other ends than there are.
pub const SIDES_ALIKE: f64 = 0.5;

/// How far an interval reaches to either side: `+-1.2 %`; beyond [`SIDES_ALIKE`] as a factor, which
/// its sides share: `within a factor of 6.1`. No interval is said to be nothing: narrower than what is
/// printed is `within 0.1 %`.
pub fn reach(share: f64) -> String {
    match share {
        x if x < 0.0005 => "within 0.1 %".to_owned(),
        x if x <= SIDES_ALIKE => format!("+-{}", percent(x)),
        x if x > 1000.0 => "within a factor of over 1000".to_owned(),
        x => format!("within a factor of {}", digits(1.0 + x)),
    }
}

/// How far two of a kind lie apart at most: `up to 3.1 %`, `less than 0.1 %`.
pub fn up_to(share: f64) -> String {
    if share < 0.0005 { "less than 0.1 %".to_owned() } else { format!("up to {}", percent(share)) }
}

/// A ratio with the ends of its interval: `x1.92 [1.73, 2.13]`, `x0.0031`, `x1.005 [0.998, 1.012]`.
/// Always significant digits; beyond a thousand either way only that is said.
pub fn ratio(middle: f64, ends: Option<(f64, f64)>) -> String {
    let narrow = ends.is_some_and(|(low, high)| high - low < 0.05);
    let near = (0.5..2.0).contains(&middle);
    let digits = if narrow && near { 3 } else { 2 };
    let number = |value: f64| match value {
        x if !x.is_finite() && x.is_nan() => "unknown".to_owned(),
        x if x > 1000.0 => ">1000".to_owned(),
        x if x < 0.001 => "<0.001".to_owned(),
        x if x >= 99.95 => format!("{x:.0}"),
        x if x >= 9.995 => format!("{x:.1}"),
        x if x < 0.009_95 => format!("{x:.4}"),
        x if x < 0.099_5 => format!("{x:.3}"),
        x => format!("{x:.digits$}"),
    };
    match ends {
        Some((low, high)) => format!("x{} [{}, {}]", number(middle), number(low), number(high)),
        None => format!("x{}", number(middle)),
    }
}

/// The ratios that a margin counts for nothing, `0.03` being 3 %: it is as far down as up in
/// logarithms, so of a large one both edges have to be said.
pub fn margin(share: f64) -> String {
    let (low, high) = (1.0 / (1.0 + share), 1.0 + share);
    let digits = if share < 0.1 { 3 } else { 2 };
    format!("x{low:.digits$} and x{high:.digits$}")
}

/// `1 thread`, `10 threads`.
pub fn count(n: u64, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// `a`, `a and b`, `a, b and c`.
pub fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// [`list`] of the first so many, and how many more there are.
pub fn some(items: &[String], most: usize) -> String {
    let mut named = items.iter().take(most).cloned().collect::<Vec<_>>();
    if items.len() > most {
        named.push(format!("{} more", items.len() - most));
    }
    list(&named)
}

/// With a capital letter.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A p value: `0.013`, `0.0004`, `<0.0001`.
pub fn chance(p: f64) -> String {
    match p {
        p if p < 1e-4 => "<0.0001".to_owned(),
        p if p < 1e-3 => format!("{p:.4}"),
        p => format!("{p:.3}"),
    }
}

/// Three significant digits.
pub fn digits(value: f64) -> String {
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
    fn sizes_that_differ_look_different() {
        let mib = |n: u64| n << 20;
        let told = |low: u64, high: u64| {
            let (low, high) = sizes_apart(low, high);
            format!("{low} {high}")
        };
        assert_eq!(told(mib(10_240), mib(10_250)), "10.00 GiB 10.01 GiB");
        assert_eq!(told(mib(777), mib(779)), "777 MiB 779 MiB");
        assert_eq!(told(mib(10_240), mib(10_240)), "10 GiB 10 GiB");
    }

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
    fn ratios_have_significant_digits() {
        assert_eq!(ratio(0.0031, None), "x0.0031");
        assert_eq!(ratio(0.000_31, Some((0.0, 0.012))), "x<0.001 [<0.001, 0.012]");
        assert_eq!(ratio(1.92, Some((1.73, 2.13))), "x1.92 [1.73, 2.13]");
        assert_eq!(ratio(1.005, Some((0.998, 1.012))), "x1.005 [0.998, 1.012]");
        assert_eq!(ratio(12.34, Some((1.0, 1e240))), "x12.3 [1.00, >1000]");
        assert_eq!(ratio(2.0, Some((0.5, f64::INFINITY))), "x2.00 [0.50, >1000]");
        assert_eq!(percent(1e200), ">1000 %");
        assert_eq!(reach(5.14), "within a factor of 6.14");
        assert_eq!(reach(0.012), "+-1.2 %");
        assert_eq!((reach(0.5), reach(0.65)), ("+-50 %".into(), "within a factor of 1.65".into()));
        assert_eq!(margin(0.7), "x0.59 and x1.70");
        assert_eq!(margin(0.03), "x0.971 and x1.030");
    }

    #[test]
    fn shares_that_differ_are_told_apart() {
        let apart = |a, b| percents_apart(a, b);
        assert_eq!(apart(0.0502, 0.05), ("5.02 %".to_owned(), "5 %".to_owned()));
        assert_eq!(apart(0.08, 0.05), ("8.0 %".to_owned(), "5.0 %".to_owned()));
        assert_eq!(apart(0.02, 1e-11).1, "0.000000001 %");
    }

    #[test]
    fn what_is_more_by_a_hair_shows_the_hair() {
        assert_eq!(change_over(-0.1004, 0.10), "-10.04 %");
        assert_eq!(
            (change_over(0.10, 0.10), change_over(-0.3, 0.10)),
            ("+10 %".into(), "-30 %".into())
        );
        assert_eq!((change_over(0.0, 0.10), change(-0.049)), ("0 %".into(), "-4.9 %".into()));
    }

    #[test]
    fn next_to_nothing_is_not_called_nothing() {
        // `known to +-0.0 %`, `differs by up to 0.0 %`.
        assert_eq!((percent(0.000_4), percent(0.000_6)), ("<0.1 %".to_owned(), "0.1 %".to_owned()));
        assert_eq!((percent(0.0), percent(-0.0)), ("0 %".to_owned(), "0 %".to_owned()));
        assert_eq!((reach(0.0), reach(0.000_4)), (reach(0.000_1), "within 0.1 %".to_owned()));
        assert_eq!((up_to(0.0), up_to(0.031)), ("less than 0.1 %".into(), "up to 3.1 %".into()));
        let (seen, wanted) = percents_apart(0.000_3, 0.000_1);
        assert_eq!((seen.as_str(), wanted.as_str()), ("0.03 %", "0.01 %"));
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
