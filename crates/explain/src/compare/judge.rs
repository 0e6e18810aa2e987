//! From differences to verdicts, for one comparison or a family of them.

use stats::interval::Interval;
use stats::multiple::holm;
use stats::outlier;
use stats::paired::{
    self, BLOCKS_MIN, Contrast, blocks_needed, equivalence_confidence, hodges_lehmann,
    signed_rank_p,
};

use super::{CONFIDENCE, Direction, Doubt, MarginFrom, Method, Outcome, Ratio, Verdict};

/// From this many blocks on the ranks decide: they keep their level whatever the noise is.
const BLOCKS_FOR_RANKS: usize = 10;
/// With more cells the smallest p that ten blocks can give does not survive Holm.
const CELLS_FOR_RANKS: usize = 25;
/// Mean and median this many standard errors apart tell different stories. In normal noise
/// their distance has a standard deviation of a fifth of one.
const DISAGREE_ERRORS: f64 = 2.0;
/// If that is this share of the margin at least.
const DISAGREE_MARGIN: f64 = 0.25;
/// From the median absolute deviation of normal noise to its standard deviation.
const MAD_TO_DEVIATION: f64 = 1.4826;
/// Counts that are still worth naming as a next step.
const MORE_MAX: usize = 1_000;

/// What there is to judge by. All logarithms.
#[derive(Clone, Debug)]
pub(super) struct Evidence {
    /// One difference a block; empty where the sides were measured apart.
    pub blocks: Vec<f64>,
    /// By Student's t: of the blocks' mean, or of two means.
    pub contrast: Option<Contrast>,
    /// Standard deviation of one block's difference, or of one visit on each side.
    pub deviation: Option<f64>,
    /// The difference where there is no contrast.
    pub bare: Option<f64>,
    /// Blocks, or visits of the side with fewer.
    pub count: usize,
    /// Nothing completed on a side.
    pub nothing: bool,
    /// By how much the start and the end of visits may move the difference, however many they are.
    pub offset: f64,
}

impl Evidence {
    /// Of differences by block; `mean` is theirs, its variance perhaps moderated.
    pub fn of_blocks(blocks: Vec<f64>, mean: Option<Interval>) -> Self {
        let count = blocks.len();
        let bare = (count > 0).then(|| blocks.iter().sum::<f64>() / count as f64);
        Self {
            contrast: mean.as_ref().map(Contrast::of_mean),
            deviation: mean.map(|mean| mean.variance.sqrt()),
            bare,
            count,
            nothing: count == 0,
            offset: 0.0,
            blocks,
        }
    }

    /// Of two means measured apart.
    pub fn of_means(a: &Side, b: &Side) -> Self {
        let both = a.mean.as_ref().zip(b.mean.as_ref());
        Self {
            blocks: Vec::new(),
            contrast: both.map(|(a, b)| paired::welch(a, b)),
            deviation: both.map(|(a, b)| (a.variance + b.variance).sqrt()),
            bare: a.bare.zip(b.bare).map(|(a, b)| b - a),
            count: a.count.min(b.count),
            nothing: a.bare.is_none() || b.bare.is_none(),
            offset: 0.0,
        }
    }

    /// The same about another middle, which more visits tell than the scatter is from.
    pub fn about(self, middle: f64) -> Self {
        let contrast = self.contrast.map(|contrast| Contrast { middle, ..contrast });
        Self { contrast, bare: self.bare.map(|_| middle), ..self }
    }

    /// The same where the start and the end of visits may move the difference by so much.
    pub fn off_by(self, offset: f64) -> Self {
        Self { contrast: self.contrast.map(|contrast| contrast.off_by(offset)), offset, ..self }
    }

    /// The difference by whatever there is.
    pub fn middle(&self) -> Option<f64> {
        self.contrast.map(|c| c.middle).or(self.bare)
    }

    fn is_blocks(&self) -> bool {
        !self.blocks.is_empty()
    }

    fn is_odd(&self) -> bool {
        let verdict = outlier::alone(&self.blocks, 0.0);
        matches!(verdict, outlier::Verdict::Flagged { .. })
    }
}

/// A side's mean, and its plain mean where there is no interval.
pub(super) struct Side {
    pub mean: Option<Interval>,
    pub bare: Option<f64>,
    pub count: usize,
}

impl Side {
    pub fn of(values: &[f64], mean: Option<Interval>) -> Self {
        let count = values.len();
        let bare = (count > 0).then(|| values.iter().sum::<f64>() / count as f64);
        Self { mean, bare, count }
    }

    /// No surer than its visits have something in common: as the run's own interval.
    pub fn no_narrower(&self, share: Option<f64>) -> Self {
        Self { mean: self.mean.map(|mean| mean.no_narrower(share)), ..*self }
    }

    /// Of one visit.
    pub fn deviation(&self) -> Option<f64> {
        self.mean.map(|mean| mean.variance.sqrt())
    }
}

/// Verdicts on a family of comparisons, Holm's correction over all of them.
///
/// * `margins`: aligned; logarithm and where it is from.
pub(super) fn judge(
    family: &[Evidence],
    margins: &[(f64, MarginFrom)],
    confidence: f64,
) -> Vec<Outcome> {
    let tested = family.iter().filter(|e| e.contrast.is_some()).count();
    let readings: Vec<_> = family
        .iter()
        .zip(margins)
        .map(|(evidence, (margin, _))| Reading::of(evidence, *margin, confidence, tested))
        .collect();
    // What has no p is no test and must not cost the others anything.
    let corrected = |of: fn(&Reading) -> Option<f64>| {
        let known: Vec<f64> = readings.iter().filter_map(of).collect();
        let mut corrected = holm(&known).into_iter();
        readings.iter().map(|r| of(r).and_then(|_| corrected.next())).collect::<Vec<_>>()
    };
    let (p, p_beyond) = (corrected(|r| r.p), corrected(|r| r.p_beyond));
    let tests = p.into_iter().zip(p_beyond);
    family
        .iter()
        .zip(margins)
        .zip(readings.iter().zip(tests))
        .map(|((evidence, margin), (reading, tests))| {
            outcome(evidence, *margin, reading, tests, confidence)
        })
        .collect()
}

/// One comparison before its p is corrected.
struct Reading {
    method: Method,
    ratio: Option<paired::Estimate>,
    twin: Option<paired::Estimate>,
    /// The interval for "the same".
    narrow: Option<paired::Estimate>,
    p: Option<f64>,
    p_beyond: Option<f64>,
    odd: bool,
}

impl Reading {
    fn of(evidence: &Evidence, margin: f64, confidence: f64, tested: usize) -> Self {
        let narrow = equivalence_confidence(confidence);
        let t = |confidence| evidence.contrast.and_then(|c| c.interval(confidence));
        let rank = |confidence| {
            Some(hodges_lehmann(&evidence.blocks, confidence)?.off_by(evidence.offset))
        };
        let odd = evidence.is_odd();
        let by_rank = decided_by_ranks(evidence.count, tested, odd)
            && rank(confidence).is_some()
            && rank(narrow).is_some();
        let method = match (evidence.is_blocks(), by_rank) {
            _ if evidence.contrast.is_none() => Method::None,
            (false, _) => Method::Welch,
            (true, true) => Method::SignedRank,
            (true, false) => Method::PairedT,
        };
        let contrast = evidence.contrast;
        let (p, p_beyond) = if method == Method::SignedRank {
            let far = further(&evidence.blocks, evidence.offset, confidence);
            let p = |margin| rank_p_beyond(&evidence.blocks, margin + far, confidence);
            (p(0.0), p(margin))
        } else {
            (contrast.map(|c| c.p_beyond(0.0)), contrast.map(|c| c.p_beyond(margin)))
        };
        let ranks = method == Method::SignedRank;
        let pick = |confidence| if ranks { rank(confidence) } else { t(confidence) };
        Self {
            method,
            ratio: pick(confidence),
            twin: if ranks { t(confidence) } else { rank(confidence) },
            narrow: pick(narrow),
            p,
            p_beyond,
            odd,
        }
    }

    /// Whether median and mean tell different stories: further apart than noise without bad
    /// runs would ever bring them, and enough to matter.
    ///
    /// Not held against the intervals: one bad run of ten widens both until they cover all.
    fn disagrees(&self, blocks: &[f64], margin: f64) -> bool {
        let (Some(one), Some(other)) = (self.ratio, self.twin) else { return false };
        let apart = (one.middle - other.middle).abs();
        let usual = usual_deviation(blocks) / (blocks.len() as f64).sqrt();
        apart > DISAGREE_ERRORS * usual && apart > margin * DISAGREE_MARGIN
    }
}

/// Standard deviation of the usual ones, by the median absolute deviation.
fn usual_deviation(values: &[f64]) -> f64 {
    let middle = outlier::median(values).unwrap_or(0.0);
    let far: Vec<f64> = values.iter().map(|v| (v - middle).abs()).collect();
    MAD_TO_DEVIATION * outlier::median(&far).unwrap_or(0.0)
}

/// Fewer than ten blocks: the t test has clearly more power, but one odd block ruins it. Many
/// cells: no signed-rank p is small enough.
fn decided_by_ranks(blocks: usize, tested: usize, odd: bool) -> bool {
    let many = tested > CELLS_FOR_RANKS;
    blocks >= BLOCKS_MIN && !many && (odd || blocks >= BLOCKS_FOR_RANKS)
}

/// The signed-rank test of "no more than the margin": the differences moved towards zero by it.
fn rank_p_beyond(blocks: &[f64], margin: f64, confidence: f64) -> Option<f64> {
    if margin == 0.0 {
        return signed_rank_p(blocks);
    }
    let middle = hodges_lehmann(blocks, confidence)?.middle;
    if middle.abs() <= margin {
        return Some(1.0);
    }
    let towards = margin.copysign(middle);
    signed_rank_p(&blocks.iter().map(|d| d - towards).collect::<Vec<_>>())
}

/// How much further an interval by ranks reaches, towards zero, for what the ends of visits may do.
fn further(blocks: &[f64], offset: f64, confidence: f64) -> f64 {
    let Some(own) = hodges_lehmann(blocks, confidence) else { return offset };
    let reach = if own.middle > 0.0 { own.middle - own.low } else { own.high - own.middle };
    reach.hypot(offset) - reach
}

fn outcome(
    evidence: &Evidence,
    (margin, margin_from): (f64, MarginFrom),
    reading: &Reading,
    (p, p_beyond): (Option<f64>, Option<f64>),
    confidence: f64,
) -> Outcome {
    let level = 1.0 - confidence;
    let few = evidence.is_blocks() && evidence.count < BLOCKS_MIN;
    let claims = !few;
    // As much drift as a difference can hide a difference as well as make one.
    let drifts = matches!(margin_from, MarginFrom::Drift | MarginFrom::Control);
    let (p, p_beyond) = (p.filter(|_| claims), p_beyond.filter(|_| claims));
    let is_beyond = reading.ratio.is_some_and(|r| r.is_beyond(margin));
    // A hair more: levels that are met exactly are not lost to rounding. A share of the level, so
    // that a level of next to nothing is one.
    let below = |p: Option<f64>| p.is_some_and(|p| p <= level * (1.0 + 1e-5));
    let verdict = if claims && is_beyond && below(p_beyond) {
        Verdict::Different
    } else if claims && !drifts && reading.narrow.is_some_and(|r| r.is_within(margin)) {
        Verdict::Same
    } else {
        Verdict::Inconclusive
    };
    let middle = reading.ratio.map(|r| r.middle).or_else(|| evidence.middle());
    let hidden = drifts && verdict != Verdict::Different;
    let more = more(evidence, reading, margin, confidence);
    let more = more.filter(|_| verdict == Verdict::Inconclusive && !hidden);
    // At the usual confidence it would be settled: the confidence is what it lacks.
    let usual =
        confidence > CONFIDENCE && needed_at(evidence, reading, margin, CONFIDENCE).is_some();
    let direction = middle.filter(|_| below(p) && !hidden).map(|middle| match middle > 0.0 {
        true => Direction::Faster,
        false => Direction::Slower,
    });
    let mut doubts = Vec::new();
    let mut doubt = |doubt, applies: bool| doubts.extend(applies.then_some(doubt));
    doubt(Doubt::NothingCompleted, evidence.nothing);
    doubt(Doubt::Single, !evidence.nothing && evidence.contrast.is_none());
    doubt(Doubt::FewBlocks, few && evidence.contrast.is_some());
    doubt(Doubt::FewBadRuns, reading.disagrees(&evidence.blocks, margin));
    doubt(Doubt::OddBlock, reading.odd);
    let open = verdict == Verdict::Inconclusive;
    let settled_never = open && claims && more.is_none() && evidence.contrast.is_some();
    let within = |from| hidden && margin_from == from && evidence.middle().is_some();
    doubt(Doubt::WithinDrift, within(MarginFrom::Drift));
    doubt(Doubt::WithinControl, within(MarginFrom::Control));
    let ends = settled_never && !hidden && is_of_ends(evidence, reading, margin);
    doubt(Doubt::FewRequests, ends);
    doubt(Doubt::FewForConfidence, settled_never && !hidden && !ends && usual);
    doubt(Doubt::AtTheMargin, settled_never && !hidden && !ends && !usual);
    Outcome {
        method: reading.method,
        count: u32::try_from(evidence.count).unwrap_or(u32::MAX),
        ratio: reading.ratio.map(Ratio::of).or_else(|| middle.map(Ratio::bare)),
        same_ratio: reading.narrow.map(Ratio::of),
        same_confidence: equivalence_confidence(confidence),
        twin: reading.twin.map(Ratio::of),
        margin: margin.exp_m1(),
        margin_from,
        p,
        p_beyond,
        verdict,
        direction,
        more,
        doubts,
    }
}

/// How many more settle it: until the interval reaches from the estimate to the margin and no
/// further. The estimate may move by then, so this is a guess, and said to be one.
fn more(evidence: &Evidence, reading: &Reading, margin: f64, confidence: f64) -> Option<u32> {
    let least = if evidence.is_blocks() { BLOCKS_MIN } else { 2 };
    let needed = needed_at(evidence, reading, margin, confidence)?;
    // What there is was not enough, whatever the formula says.
    let more = needed.max(least).saturating_sub(evidence.count).max(1);
    u32::try_from(more).ok()
}

/// Whether it is the start and the end of visits that leave the margin open, so that no more of
/// them settle it.
fn is_of_ends(evidence: &Evidence, reading: &Reading, margin: f64) -> bool {
    let middle = reading.ratio.map(|r| r.middle).or_else(|| evidence.middle());
    middle.is_some_and(|middle| (middle.abs() - margin).abs() <= evidence.offset)
        && evidence.offset > 0.0
}

/// How many a confidence takes in all, if that is a sensible number.
fn needed_at(
    evidence: &Evidence,
    reading: &Reading,
    margin: f64,
    confidence: f64,
) -> Option<usize> {
    let estimate = reading.ratio.map(|r| r.middle).or(evidence.contrast.map(|c| c.middle));
    let middle = estimate?.abs();
    let confidence = if middle < margin { equivalence_confidence(confidence) } else { confidence };
    let distance = (middle - margin).abs();
    let distance = (distance * distance - evidence.offset * evidence.offset).max(0.0).sqrt();
    blocks_needed(evidence.deviation?, distance, confidence).filter(|needed| *needed <= MORE_MAX)
}

impl Ratio {
    pub(super) fn of(estimate: paired::Estimate) -> Self {
        let ratio = estimate.exp();
        Self { ratio: ratio.middle, low: Some(ratio.low), high: Some(ratio.high) }
    }

    pub(super) fn bare(ln: f64) -> Self {
        Self { ratio: ln.exp(), low: None, high: None }
    }

    /// The other way round: the reference's by the other side's.
    pub fn inverse(self) -> Self {
        Self {
            ratio: 1.0 / self.ratio,
            low: self.high.map(|high| 1.0 / high),
            high: self.low.map(|low| 1.0 / low),
        }
    }
}

impl Outcome {
    /// Nothing at all to judge by.
    pub(super) fn unknown() -> Self {
        Self {
            method: Method::None,
            count: 0,
            ratio: None,
            same_ratio: None,
            same_confidence: equivalence_confidence(CONFIDENCE),
            twin: None,
            margin: 0.0,
            margin_from: MarginFrom::Asked,
            p: None,
            p_beyond: None,
            verdict: Verdict::Inconclusive,
            direction: None,
            more: None,
            doubts: vec![Doubt::NothingCompleted],
        }
    }
}
