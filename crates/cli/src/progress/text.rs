//! Words and numbers of the progress lines.

use record::{CellRecord, RunHeader};
use runner::{Left, Round, RoundOf, Tick, Waiting};
use units::{Bytes, Nanos};

use super::time::{Later, TimeLeft};
use crate::commands::suites::{at_least, counted, duration};

/// At most `width` characters.
pub fn cut(text: &str, width: usize) -> String {
    text.chars().take(width).collect()
}

/// Three digits and a thousand's letter: `13.2k`.
pub fn count(value: f64) -> String {
    let (value, letter) = match value {
        1e9.. => (value / 1e9, "G"),
        1e6.. => (value / 1e6, "M"),
        1e4.. => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let digits = if value >= 99.95 || value == 0.0 { 0 } else { 1 };
    format!("{value:.digits$}{letter}")
}

/// A rate with its interval: `17.9k ±11%`; of a wide one the ends, low to high: `9.1k-35.2k`.
///
/// * `half_width`: half the interval in ln rate.
pub fn known_to(rate: f64, half_width: f64) -> String {
    match half_width.exp_m1() * 100.0 {
        share @ ..9.95 => format!("{} ±{share:.1}%", count(rate)),
        share @ ..50.0 => format!("{} ±{share:.0}%", count(rate)),
        share if share.is_finite() => {
            let factor = half_width.exp();
            format!("{}-{}", count(rate / factor), count(rate * factor))
        }
        _ => format!("{} ±?", count(rate)),
    }
}

/// Rates one after the other, the largest of them full height.
pub fn sparkline(rates: impl Iterator<Item = f64> + Clone) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = rates.clone().fold(0.0, f64::max);
    let height = |rate: f64| {
        let step = if most > 0.0 { rate / most * (HEIGHTS.len() - 1) as f64 } else { 0.0 };
        HEIGHTS[(step.round().max(0.0) as usize).min(HEIGHTS.len() - 1)]
    };
    rates.map(height).collect()
}

/// What is about to be measured.
pub fn begin(header: &RunHeader, done: usize, left: Left) -> String {
    let resumed =
        if done > 0 { format!("{} done, ", counted(done as u64, "visit")) } else { String::new() };
    let visits = match (left.visits, left.visits_most) {
        (least, most) if least == most => counted(u64::from(most), "visit"),
        (least, most) => format!("{least} to {most} visits"),
    };
    let clock = if header.target.model.is_some() { " on its own clock" } else { "" };
    let mut text = format!(
        "{} {} on {}, {resumed}{visits} to make, {}{clock}",
        report::plain(&header.id),
        report::plain(&header.suite),
        report::plain(&header.target.resolved),
        match left.ends_by_time {
            true => format!("about {}, and then its time is up", duration(left.time)),
            false => at_least(left.time),
        },
    );
    for remark in &header.target.remarks {
        text.push_str("\n  ");
        text.push_str(&report::plain(remark));
    }
    text
}

/// A round that begins; nothing where each cell has its turn in the suite's own order.
///
/// * `left`: of the whole run.
pub fn round(phase: &str, round: Round, left: Option<Nanos>) -> Option<String> {
    let phase = report::plain(phase);
    let left = left.map_or(String::new(), |left| format!(", about {} left", clock(left)));
    Some(match round.of {
        RoundOf::Classic => return None,
        RoundOf::Pilots => format!("{phase}: watching how long it takes to come up to speed{left}"),
        RoundOf::Steady if round.number > 1 => return None,
        RoundOf::Steady => format!("{phase}: in rounds until it is steady{left}"),
        RoundOf::Visits => format!(
            "{phase}: round {}, {} of {} open{left}",
            round.number,
            round.open,
            counted(u64::from(round.cells), "cell")
        ),
    })
}

/// A cell by its place on the grid.
pub fn cell(cell: &CellRecord) -> String {
    let place = cell.coordinates.iter().map(|(field, value)| format!(" {field}={value}"));
    report::plain(&format!("{}{}", cell.phase, place.collect::<String>()))
}

/// How a visit stands, most important first: narrow terminals cut the end off.
///
/// * `course`: the visit's rates so far, drawn.
pub fn status(tick: &Tick<'_>, time: &TimeLeft, left: Option<Nanos>, course: &str) -> String {
    let mean = tick.bytes.get().checked_div(tick.operations).unwrap_or(0);
    let rate = Bytes::new((tick.iops * mean as f64) as u64);
    let left = left.map_or(String::new(), |left| eta(left, time.later()));
    format!(
        "{}/{}  {left}{} IOPS, {rate}/s  {course}{}  {}",
        time.visit(),
        time.visits(),
        count(tick.iops),
        cell(tick.cell),
        clock(tick.elapsed),
    )
}

fn eta(left: Nanos, later: Option<Later>) -> String {
    let of_all = |later: Later| {
        let least = if later.is_least { " at least" } else { "" };
        format!(", of all parts {}{least}", clock(left + later.time))
    };
    format!("ETA {}{}  ", clock(left), later.map_or(String::new(), of_all))
}

/// Whole seconds: more would only flicker.
fn clock(span: Nanos) -> String {
    duration(Nanos::secs(span.get().div_ceil(1_000_000_000)))
}

/// What does not come back.
pub fn waiting(waiting: &[Waiting]) -> Option<String> {
    let longest = waiting.first()?;
    let others = match waiting.len() {
        1 => String::new(),
        n => format!(", and {} more", n - 1),
    };
    Some(format!(
        "{} has not come back for {:.1} s ({}){others}",
        longest.what,
        longest.age.as_secs_f64(),
        report::plain(&longest.worker),
    ))
}

#[cfg(test)]
mod tests {
    use super::{Later, count, eta, known_to, sparkline, waiting};
    use runner::Waiting;
    use units::Nanos;

    #[test]
    fn what_hangs_is_named() {
        let worker = "read 3".to_owned();
        let what = "read at byte 4096".to_owned();
        let stuck = Waiting { worker, what, age: Nanos::millis(5_240) };
        let line = "read at byte 4096 has not come back for 5.2 s (read 3)";
        assert_eq!(waiting(std::slice::from_ref(&stuck)).unwrap(), line);
        assert_eq!(waiting(&[stuck.clone(), stuck]).unwrap(), format!("{line}, and 1 more"));
        assert_eq!(waiting(&[]), None);
    }

    #[test]
    fn what_comes_later_is_counted() {
        let minute = Nanos::secs(60);
        assert_eq!(eta(minute, None), "ETA 1 min  ");
        let later = |is_least| Some(Later { time: Nanos::secs(120), is_least });
        assert_eq!(eta(minute, later(false)), "ETA 1 min, of all parts 3 min  ");
        assert_eq!(eta(minute, later(true)), "ETA 1 min, of all parts 3 min at least  ");
    }

    #[test]
    fn rates_are_drawn_against_the_largest() {
        let line = |rates: &[f64]| sparkline(rates.iter().copied());
        assert_eq!(line(&[0.0, 50.0, 100.0, 99.0, 1.0]), "▁▅██▁");
        assert_eq!(line(&[0.0, 0.0]), "▁▁");
        assert_eq!(line(&[f64::NAN, 3.0]), "▁█");
        assert_eq!(line(&[]), "");
    }

    #[test]
    fn half_an_interval_is_a_share() {
        let halves = [0.0123, 0.0952, 0.3, 2.2, f64::INFINITY, f64::NAN];
        let texts = halves.map(|half| known_to(1000.0, half));
        let [mean, none] = [count(1000.0), count(111.0)];
        assert_eq!(
            texts[..3],
            [format!("{mean} ±1.2%"), format!("{mean} ±10%"), format!("{mean} ±35%")]
        );
        assert_eq!(
            texts[3],
            format!("{none}-{}", count(9025.0)),
            "never below 0, as ±803% would be"
        );
        assert_eq!(texts[4..], [format!("{mean} ±?"), format!("{mean} ±?")]);
    }

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (3.12, "3.1"),
            (999.6, "1000"),
            (9999.0, "9999"),
            (13_249.0, "13.2k"),
            (181_000.0, "181k"),
            (2_345_678.0, "2.3M"),
        ] {
            assert_eq!(count(value), text);
        }
    }
}
