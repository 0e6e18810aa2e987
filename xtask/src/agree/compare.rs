//! What the blocks say: ratios with intervals, and whether they are more than nothing.

use std::fmt::Write as _;

use serde::Serialize;
use stats::paired::{self, Estimate};

use super::figures::{Figure, Kind};

/// A ratio closer to one than this is called none, as its logarithm.
const MARGIN: f64 = 0.03;

/// A pattern, measured.
#[derive(Debug, Serialize)]
pub struct Row {
    pub name: &'static str,
    pub title: &'static str,
    pub figures: Vec<Compared>,
}

/// One figure of a pattern. Ratios are natural logarithms here and ratios when shown.
#[derive(Debug, Serialize)]
pub struct Compared {
    pub figure: Figure,
    pub peer: Option<Spread>,
    pub fio_batched: Option<Spread>,
    pub ours: Option<Spread>,
    /// Ours over the other's.
    pub against_peer: Option<Ratio>,
    /// Ours over fio's with batches like ours.
    pub against_batched: Option<Ratio>,
    /// Ours again over ours.
    pub against_itself: Option<Ratio>,
}

/// What a program gave over the blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    pub median: f64,
    /// Standard deviation of the logarithms: about the coefficient of variation.
    pub deviation: f64,
}

/// Logarithm of a ratio, estimated from one difference per block.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Ratio {
    /// Hodges and Lehmann, 95 %.
    pub rank: Estimate,
    /// The same, 90 %: for the claim that there is no difference.
    pub rank_90: Estimate,
    /// Mean and Student's t, 95 %.
    pub student: Estimate,
    pub blocks: usize,
}

/// What may be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The 90 % interval lies within the margin.
    Same,
    /// The 95 % interval lies beyond it, and beyond what we differ from ourselves.
    Differs,
    /// Neither; about as many blocks would tell.
    Open { blocks: u32 },
}

impl Compared {
    /// `values[side][block]`, sides as in `Side::ALL`; `None` where a program gave none.
    pub fn new(figure: Figure, values: &[Vec<Option<f64>>; 4]) -> Self {
        let [peer, batched, ours, again] = values;
        Self {
            figure,
            peer: Spread::of(peer),
            fio_batched: Spread::of(batched),
            ours: Spread::of(ours),
            against_peer: Ratio::of(peer, ours),
            against_batched: Ratio::of(batched, ours),
            against_itself: Ratio::of(ours, again),
        }
    }
}

impl Compared {
    fn own_reach(&self) -> f64 {
        self.against_itself.map_or(0.0, |ratio| ratio.reach())
    }
}

impl Spread {
    fn of(values: &[Option<f64>]) -> Option<Self> {
        let mut values: Vec<f64> = values.iter().copied().collect::<Option<_>>()?;
        values.sort_by(f64::total_cmp);
        let last = values.len().checked_sub(1)?;
        let median = f64::midpoint(values[last / 2], values[last.div_ceil(2)]);
        let mean = values.iter().map(|v| v.ln()).sum::<f64>() / values.len() as f64;
        let squares: f64 = values.iter().map(|v| (v.ln() - mean).powi(2)).sum();
        Some(Self { median, deviation: (squares / last.max(1) as f64).sqrt() })
    }
}

impl Ratio {
    /// Of `b` to `a`; `None` when a block has but one of them.
    fn of(a: &[Option<f64>], b: &[Option<f64>]) -> Option<Self> {
        let differences: Vec<f64> =
            a.iter().zip(b).map(|(a, b)| Some((*b)?.ln() - (*a)?.ln())).collect::<Option<_>>()?;
        Some(Self {
            rank: paired::hodges_lehmann(&differences, 0.95)?,
            rank_90: paired::hodges_lehmann(&differences, 0.90)?,
            student: paired::paired_t(&differences, 0.95)?,
            blocks: differences.len(),
        })
    }

    /// * `floor`: what a program differs from itself, [`Self::reach`] of A and A. It makes it
    ///   harder to find a difference and never easier to find none.
    pub fn verdict(&self, floor: f64) -> Verdict {
        if self.rank.is_beyond(floor.max(MARGIN)) {
            Verdict::Differs
        } else if self.rank_90.is_within(MARGIN) {
            Verdict::Same
        } else {
            let more = (self.student.half_width() / MARGIN).powi(2).max(1.0);
            Verdict::Open { blocks: (self.blocks as f64 * more).ceil() as u32 }
        }
    }

    /// The end of the interval that is further from no difference.
    pub fn reach(&self) -> f64 {
        self.rank.low.abs().max(self.rank.high.abs())
    }

    /// Whether mean and median tell different stories: a few bad visits carry the mean.
    pub fn is_carried_by_few(&self) -> bool {
        (self.student.middle - self.rank.middle).abs() > self.rank.half_width()
    }
}

/// How far we disagree with ourselves on this machine: the 95th percentile over the patterns
/// (nearest rank) of the ratio's logarithm, without its sign.
pub fn floor(rows: &[Row], kind: Kind) -> Option<f64> {
    let figures = rows.iter().flat_map(|row| &row.figures).filter(|c| c.figure.kind == kind);
    let ratios = figures.filter_map(|compared| compared.against_itself);
    let mut sizes: Vec<f64> = ratios.map(|ratio| ratio.rank.middle.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let rank = (sizes.len() as f64 * 0.95).ceil() as usize;
    sizes.get(rank.checked_sub(1)?).copied()
}

/// Markdown, and fit for a terminal.
pub fn table(rows: &[Row]) -> String {
    let title = [
        "pattern",
        "figure",
        "the other",
        "Plimsoll",
        "Plimsoll / other",
        "verdict",
        "by the mean",
        "Plimsoll / batched fio",
        "verdict",
        "A / A",
    ];
    let mut lines = vec![title.map(str::to_owned)];
    for row in rows {
        for (n, compared) in row.figures.iter().enumerate() {
            let pattern = if n == 0 { row.title } else { "" };
            lines.push(cells(pattern, compared));
        }
    }
    let mut text = align(&lines);
    let floors = Kind::ALL
        .iter()
        .filter_map(|&kind| floor(rows, kind).map(|floor| format!("{kind} {} %", percent(floor))));
    let _ = writeln!(text, "\nA/A floor: {}.", floors.collect::<Vec<_>>().join(", "));
    text
}

fn cells(pattern: &str, compared: &Compared) -> [String; 10] {
    let kind = compared.figure.kind;
    let none = || "-".to_owned();
    let spread = |spread: Option<Spread>| spread.map_or_else(none, |s| s.show(kind));
    let ratio = |ratio: Option<Ratio>| ratio.map_or_else(none, |r| show(r.rank));
    let verdict = |ratio: Option<Ratio>| ratio.map_or_else(none, |r| r.words(compared.own_reach()));
    [
        pattern.to_owned(),
        compared.figure.to_string(),
        spread(compared.peer),
        spread(compared.ours),
        ratio(compared.against_peer),
        verdict(compared.against_peer),
        compared.against_peer.map_or_else(none, |r| show(r.student)),
        ratio(compared.against_batched),
        verdict(compared.against_batched),
        ratio(compared.against_itself),
    ]
}

impl Spread {
    fn show(self, kind: Kind) -> String {
        let deviation = percent(self.deviation);
        match kind {
            Kind::Iops | Kind::Syncs => format!("{:.0} ± {deviation} %", self.median),
            Kind::P50 | Kind::P99 | Kind::Mean => {
                format!("{:.1} µs ± {deviation} %", self.median / 1e3)
            }
        }
    }
}

impl Ratio {
    fn words(&self, floor: f64) -> String {
        let verdict = match self.verdict(floor) {
            Verdict::Same => "same".to_owned(),
            Verdict::Differs => "**differs**".to_owned(),
            Verdict::Open { blocks } => format!("open ({blocks})"),
        };
        let few = if self.is_carried_by_few() { ", few carry the mean" } else { "" };
        verdict + few
    }
}

fn show(estimate: Estimate) -> String {
    let Estimate { middle, low, high, .. } = estimate.exp();
    format!("{middle:.3} [{low:.3}, {high:.3}]")
}

fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

fn align<const N: usize>(lines: &[[String; N]]) -> String {
    let width = |column: usize| lines.iter().map(|l| l[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for (n, line) in lines.iter().enumerate() {
        for (cell, width) in line.iter().zip(widths) {
            let _ = write!(text, "| {cell:width$} ");
        }
        text.push_str("|\n");
        if n == 0 {
            for width in widths {
                let _ = write!(text, "|{}", "-".repeat(width + 2));
            }
            text.push_str("|\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const IOPS: Figure = Figure { kind: Kind::Iops, operation: "" };

    fn values(base: f64, noise: &[f64]) -> Vec<Option<f64>> {
        noise.iter().map(|n| Some(base * (1.0 + n / 100.0))).collect()
    }

    const NOISE: [f64; 10] = [0.5, -0.4, 0.1, 0.9, -0.8, 0.2, -0.1, 0.3, -0.6, 0.7];
    const OTHER: [f64; 10] = [-0.2, 0.6, -0.5, 0.4, 0.1, -0.7, 0.8, -0.3, 0.5, -0.9];

    fn compared(theirs: f64, ours: f64) -> Compared {
        let again: Vec<f64> = NOISE.iter().rev().copied().collect();
        let (fio, again) = (values(theirs, &NOISE), values(ours, &again));
        Compared::new(IOPS, &[fio.clone(), fio, values(ours, &OTHER), again])
    }

    #[test]
    fn a_planted_ratio_is_found_and_ours_is_on_top() {
        let ratio = compared(100.0, 110.0).against_peer.unwrap();
        assert!((ratio.rank.middle.exp() - 1.10).abs() < 0.01, "{ratio:?}");
        assert!((ratio.student.middle.exp() - 1.10).abs() < 0.01, "{ratio:?}");
        assert_eq!(ratio.verdict(0.0), Verdict::Differs);
        assert_eq!(compared(100.0, 100.0).against_peer.unwrap().verdict(0.0), Verdict::Same);
        // On the margin itself nothing can be said.
        let on = compared(100.0, 103.0).against_peer.unwrap();
        assert!(matches!(on.verdict(0.0), Verdict::Open { blocks: 10.. }), "{on:?}");
    }

    #[test]
    fn one_bad_visit_is_said_to_carry_the_mean() {
        let mut ours = values(100.0, &OTHER);
        ours[4] = Some(10.0);
        let ratio = Ratio::of(&values(100.0, &NOISE), &ours).unwrap();
        let calm = compared(100.0, 100.0).against_peer.unwrap();
        assert!(!calm.is_carried_by_few());
        assert!((ratio.rank.middle - calm.rank.middle).abs() < 0.01, "{ratio:?}");
        assert!(ratio.student.middle < -0.2, "{ratio:?}");
    }

    #[test]
    fn a_block_without_a_value_leaves_the_figure_out() {
        let mut ours = values(100.0, &OTHER);
        ours[3] = None;
        let fio = values(100.0, &NOISE);
        let compared = Compared::new(IOPS, &[fio, vec![None; 10], ours.clone(), ours]);
        assert!(compared.against_peer.is_none() && compared.ours.is_none());
        assert!(compared.peer.is_some());
        assert!(cells("x", &compared).contains(&"-".to_owned()));
    }

    #[test]
    fn noise_of_our_own_hides_a_difference_and_makes_nothing_equal() {
        let ratio = compared(100.0, 110.0).against_peer.unwrap();
        assert!(matches!(ratio.verdict(0.2), Verdict::Open { .. }));
        let small = compared(100.0, 105.0).against_peer.unwrap();
        assert!(matches!(small.verdict(0.2), Verdict::Open { .. }));
    }

    #[test]
    fn the_floor_is_the_largest_of_a_few() {
        let of = |again: f64| Compared {
            against_itself: Ratio::of(&values(100.0, &NOISE), &values(again, &NOISE)),
            ..compared(100.0, 100.0)
        };
        let rows = [Row { name: "x", title: "X", figures: vec![of(101.0), of(80.0)] }];
        assert!((floor(&rows, Kind::Iops).unwrap() + 0.8_f64.ln()).abs() < 1e-9);
        assert!((rows[0].figures[1].own_reach() + 0.8_f64.ln()).abs() < 1e-9);
        assert_eq!(floor(&rows, Kind::P99), None);
    }

    #[test]
    fn the_table_is_markdown() {
        let rows = [Row { name: "x", title: "X", figures: vec![compared(100.0, 110.0)] }];
        let text = table(&rows);
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].starts_with("| pattern | figure | the other "), "{text}");
        assert!(lines[1].starts_with("|---"), "{text}");
        assert!(
            lines[2].starts_with("| X       | IOPS   | 100 ± 0.6 % | 110 ± 0.6 % | 1.1"),
            "{text}"
        );
        assert_eq!(lines[2].matches("| **differs** ").count(), 2, "{text}");
        assert!(text.contains("A/A floor: IOPS "), "{text}");
    }
}
