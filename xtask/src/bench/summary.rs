//! What the visits of a row say: medians with their range, ratios with the range of the pairs.

use std::fmt;

use serde::Serialize;

use super::rows::{Figure, Row, Want};
use super::visit::Visit;

/// A row, measured.
#[derive(Debug, Serialize)]
pub struct Summary {
    name: &'static str,
    title: String,
    figure: Figure,
    contenders: Vec<Line>,
    wants: Vec<Judged>,
    notes: Vec<String>,
}

/// One contender.
#[derive(Debug, Serialize)]
struct Line {
    name: String,
    command: String,
    figure: Option<Range>,
    user_ns: Option<Range>,
    system_ns: Option<Range>,
    /// Ours over theirs.
    ratio: Option<Range>,
    /// Visits dropped because others were busy.
    dropped: usize,
    visits: Vec<Option<Visit>>,
}

/// A median and the lowest and highest it came from. For ratios the middle is the ratio of the
/// medians, and the range that of the pairs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Range {
    median: f64,
    low: f64,
    high: f64,
    count: usize,
}

#[derive(Debug, Serialize)]
struct Judged {
    wanted: String,
    /// `None` when it could not be measured.
    seen: Option<f64>,
    met: Option<bool>,
}

impl Summary {
    /// `visits[round][contender]`; the first contender is ours.
    pub fn new(
        row: Row,
        visits: Vec<Vec<Option<Visit>>>,
        dropped: Vec<usize>,
        notes: Vec<String>,
    ) -> Self {
        let of = |n: usize| visits.iter().map(|round| round[n]).collect::<Vec<_>>();
        let has_ours = row.contenders.first().is_some_and(|first| first.name == "plimsoll");
        let ours = if has_ours && !visits.is_empty() { of(0) } else { Vec::new() };
        let contenders = row
            .contenders
            .iter()
            .enumerate()
            .map(|(n, contender)| {
                let visits = if visits.is_empty() { Vec::new() } else { of(n) };
                Line {
                    name: contender.name.clone(),
                    command: contender.command.join(" "),
                    figure: Range::of(visits.iter().flatten().map(|visit| visit.figure)),
                    user_ns: Range::of(visits.iter().flatten().filter_map(|visit| visit.user_ns)),
                    system_ns: Range::of(
                        visits.iter().flatten().filter_map(|visit| visit.system_ns),
                    ),
                    ratio: if n == 0 { None } else { ratio(&ours, &visits) },
                    dropped: dropped.get(n).copied().unwrap_or(0),
                    visits,
                }
            })
            .collect::<Vec<_>>();
        let wants = row.wants.iter().map(|want| judge(*want, &contenders)).collect();
        Self { name: row.name, title: row.title, figure: row.figure, contenders, wants, notes }
    }
}

impl Range {
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let values: Vec<_> = values.collect();
        Some(Self {
            median: median(&values)?,
            low: values.iter().copied().fold(f64::INFINITY, f64::min),
            high: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            count: values.len(),
        })
    }
}

/// The middle value, or the mean of the two in the middle; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let high = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 { Some(high) } else { Some((sorted[middle - 1] + high) / 2.0) }
}

/// Ours over theirs, from the rounds in which both were undisturbed.
fn ratio(ours: &[Option<Visit>], theirs: &[Option<Visit>]) -> Option<Range> {
    let pairs: Vec<_> = ours.iter().zip(theirs).filter_map(|(a, b)| Some(((*a)?, (*b)?))).collect();
    let mut range = Range::of(pairs.iter().map(|(a, b)| a.figure / b.figure))?;
    let median_of =
        |pick: fn(&(Visit, Visit)) -> f64| median(&pairs.iter().map(pick).collect::<Vec<_>>());
    range.median = median_of(|pair| pair.0.figure)? / median_of(|pair| pair.1.figure)?;
    Some(range)
}

fn judge(want: Want, lines: &[Line]) -> Judged {
    let ours = lines.iter().find(|line| line.name == "plimsoll");
    let figure = ours.and_then(|line| line.figure).map(|range| range.median);
    let ratio_to = |peer: &str| {
        lines.iter().find(|line| line.name == peer).and_then(|line| line.ratio).map(|r| r.median)
    };
    let user_ns = ours.and_then(|line| line.user_ns).map(|range| range.median);
    let (wanted, seen, met) = match want {
        Want::RatioAtLeast(peer, x) => {
            let seen = ratio_to(peer);
            (format!("at least {x} x {peer}"), seen, seen.map(|seen| seen >= x))
        }
        Want::RatioAtMost(peer, x) => {
            let seen = ratio_to(peer);
            (format!("at most {x} x {peer}"), seen, seen.map(|seen| seen <= x))
        }
        Want::UserNsAtMost(x) => {
            let wanted = format!("at most {x} ns of user time per I/O");
            (wanted, user_ns, user_ns.map(|seen| seen <= x))
        }
        Want::FigureAtLeast(x) => {
            (format!("at least {}", scaled(x)), figure, figure.map(|seen| seen >= x))
        }
        Want::FigureAtMost(x) => {
            (format!("at most {}", scaled(x)), figure, figure.map(|seen| seen <= x))
        }
    };
    Judged { wanted, seen, met }
}

/// Three digits and a unit that suits.
fn scaled(value: f64) -> String {
    match value.abs() {
        v if v >= 1e6 => format!("{:.2} M", value / 1e6),
        v if v >= 1e4 => format!("{:.1} K", value / 1e3),
        v if v >= 100.0 => format!("{value:.0}"),
        _ => format!("{value:.1}"),
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.name, self.title)?;
        writeln!(
            f,
            "  {:12} {:>9} {:>21} {:>8} {:>8} {:>22} {:>7} {:>7}",
            "",
            "median",
            "lowest .. highest",
            "user ns",
            "sys ns",
            "ours / theirs",
            "visits",
            "dropped"
        )?;
        for line in &self.contenders {
            writeln!(f, "  {line}")?;
        }
        for judged in &self.wants {
            let seen = judged.seen.map_or("not measured".to_owned(), |seen| format!("{seen:.3}"));
            let verdict = match judged.met {
                Some(true) => "met",
                Some(false) => "MISSED",
                None => "open",
            };
            writeln!(f, "  wanted {}: {seen}, {verdict}", judged.wanted)?;
        }
        for note in &self.notes {
            writeln!(f, "  note: {note}")?;
        }
        for line in &self.contenders {
            writeln!(f, "  $ {}", line.command)?;
        }
        Ok(())
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let middle =
            |range: Option<Range>| range.map_or("-".to_owned(), |r| format!("{:.0}", r.median));
        let figure = self.figure.map_or("-".to_owned(), |range| scaled(range.median));
        let spread = self.figure.map_or(String::new(), |range| {
            format!("{} .. {}", scaled(range.low), scaled(range.high))
        });
        let ratio = self.ratio.map_or(String::new(), |range| {
            format!("{:.2} ({:.2} .. {:.2})", range.median, range.low, range.high)
        });
        write!(
            f,
            "{:12} {figure:>9} {spread:>21} {:>8} {:>8} {ratio:>22} {:>7} {:>7}",
            self.name,
            middle(self.user_ns),
            middle(self.system_ns),
            self.figure.map_or(0, |range| range.count),
            self.dropped
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::contender::{Contender, Prints};
    use crate::bench::rows::Cpus;

    fn visit(figure: f64) -> Option<Visit> {
        Some(Visit { figure, user_ns: Some(40.0), system_ns: Some(300.0), others_share: 0.0 })
    }

    fn row() -> Row {
        let contender = |name: &str| Contender {
            name: name.into(),
            command: vec![name.into()],
            idle: None,
            prints: Prints::Bare,
        };
        Row {
            name: "null-32",
            title: "t".into(),
            figure: Figure::Iops { seconds: 1.0 },
            cpus: Cpus::Pinned,
            contenders: vec![contender("plimsoll"), contender("fio best")],
            wants: vec![
                Want::RatioAtLeast("fio best", 1.4),
                Want::RatioAtLeast("elbencho", 1.0),
                Want::UserNsAtMost(30.0),
            ],
            warm: None,
            rounds: None,
            skipped: None,
            notes: Vec::new(),
        }
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn ratios_come_from_undisturbed_pairs() {
        let visits = vec![
            vec![visit(30.0), visit(20.0)],
            vec![visit(33.0), visit(22.0)],
            vec![visit(99.0), None],
            vec![None, visit(1.0)],
        ];
        let summary = Summary::new(row(), visits, vec![1, 1], Vec::new());
        let ratio = summary.contenders[1].ratio.unwrap();
        assert_eq!((ratio.median, ratio.count), (1.5, 2));
        assert_eq!(summary.contenders[0].figure.unwrap().count, 3);
    }

    #[test]
    fn wants_are_judged() {
        let visits = vec![vec![visit(30.0), visit(20.0)]];
        let summary = Summary::new(row(), visits, vec![0, 0], Vec::new());
        let met: Vec<_> = summary.wants.iter().map(|judged| judged.met).collect();
        assert_eq!(met, [Some(true), None, Some(false)]);
        let shown = summary.to_string();
        assert!(shown.contains("MISSED") && shown.contains("open"), "{shown}");
    }

    #[test]
    fn a_skipped_row_can_be_shown() {
        let summary = Summary::new(row(), Vec::new(), Vec::new(), vec!["skipped: x".into()]);
        assert!(summary.to_string().contains("skipped: x"));
    }
}
