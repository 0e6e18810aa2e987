//! What an array that nobody has built would do under a suite, and which part would limit it.

mod choose;
mod failure;
mod fit;
mod load;
mod measured;
mod vary;

use array::{Addressing, Answer, ArrayDesign, Component, Fill, Load, Model};
use finding::{Code, Finding, Number, Question, Section, Value};
use serde::Serialize;
use suite::model::Suite;

pub use choose::{ArrayChoice, Candidate, ChooseError, Goal, GoalError, Refused, choose};
pub use failure::FitFailure;
pub use fit::{DriveFit, fit};
pub use measured::{ComparedCell, PredictionCheck, compare};
pub use vary::{Variation, Variations, Varied, VaryError, vary};

use crate::load::load;

/// The name of the contract.
pub const SCHEMA: &str = "plimsoll.prediction/1";

/// A suite's cells on an array.
#[derive(Clone, Debug, Serialize)]
pub struct Prediction {
    schema: &'static str,
    /// Its name.
    pub array: String,
    /// What it is.
    pub why: String,
    /// The suite's name.
    pub suite: String,
    /// In the suite's order.
    pub cells: Vec<PredictedCell>,
    /// What there is to say.
    pub answer: Section,
}

/// One cell.
#[derive(Clone, Debug, Serialize)]
pub struct PredictedCell {
    /// Of the suite.
    pub phase: String,
    /// Its coordinates.
    pub cell: String,
    /// What it asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
    /// What the array does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// Why neither is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
}

impl PredictedCell {
    fn name(&self) -> String {
        match self.cell.is_empty() {
            true => self.phase.clone(),
            false => format!("{} {}", self.phase, self.cell),
        }
    }
}

/// A part, in words.
pub fn part(component: Component) -> &'static str {
    match component {
        Component::Host => "the host",
        Component::FileLock => "the lock of the file",
        Component::Link => "the link",
        Component::Controller => "the controller",
        Component::Drives => "the drives",
    }
}

/// Predicts every cell of a suite that is a closed loop of reads and writes around the page cache.
///
/// * `name`: the array's, as it was named.
/// * `cache`: whether there is room in the controllers' write caches.
pub fn predict(name: &str, design: ArrayDesign, suite: &Suite, cache: Fill) -> Prediction {
    let model = Model::new(design);
    let all =
        suite.phases.iter().flat_map(|phase| phase.cells.iter().map(move |cell| (phase, cell)));
    let cells: Vec<PredictedCell> = all
        .map(|(phase, cell)| {
            let load = load(suite, cell, cache);
            let answered = load.and_then(|load| {
                let holds = model.design().capacity();
                if load.size > holds {
                    return Err(format!(
                        "{} are more than the {holds} that the array holds",
                        load.size
                    ));
                }
                let answer = model.answer(&load).map_err(|error| error.to_string())?;
                Ok((load, answer))
            });
            let (answered, left_out) = match answered {
                Ok(answered) => (Some(answered), None),
                Err(why) => (None, Some(why)),
            };
            let (load, answer) = answered.unzip();
            let (phase, cell) = (phase.name.clone(), phase.place_text(cell));
            PredictedCell { phase, cell, load, answer, left_out }
        })
        .collect();
    let findings = findings(name, model.design(), &suite.name, &cells);
    Prediction {
        schema: SCHEMA,
        array: name.to_owned(),
        why: model.design().why.clone(),
        suite: suite.name.clone(),
        cells,
        answer: Section { question: Question::Answer, findings },
    }
}

fn findings(
    array: &str,
    design: &ArrayDesign,
    suite: &str,
    cells: &[PredictedCell],
) -> Vec<Finding> {
    let answered: Vec<(&PredictedCell, &Answer)> =
        cells.iter().filter_map(|cell| Some((cell, cell.answer.as_ref()?))).collect();
    let most = |of: fn(&Answer) -> f64| {
        answered.iter().max_by(|one, other| of(one.1).total_cmp(&of(other.1)))
    };
    let mut found = Vec::new();
    let bandwidth = |answer: &Answer| answer.bandwidth.0.get() as f64;
    if let (Some((at_rate, fast)), Some((at_bandwidth, wide))) =
        (most(|answer| answer.rate), most(bandwidth))
    {
        found.push(
            Finding::new(Code::PredictRates)
                .with("array", Value::words(array))
                .with("rate", Number::iops(fast.rate))
                .with("at_rate", Value::name(at_rate.name()))
                .with("bandwidth", Number::bandwidth(bandwidth(wide)))
                .with("at_bandwidth", Value::name(at_bandwidth.name()))
                .with("suite", Value::name(suite)),
        );
    }
    found.extend(binds(&answered, cells.len()));
    found.extend(parity_writes(design, cells.iter().filter_map(|cell| cell.load.as_ref())));
    found.extend(rests(answered.iter().map(|(_, answer)| *answer)));
    let reasons = cells.iter().filter_map(|cell| cell.left_out.clone());
    found.extend(left_out(reasons.collect(), cells.len()));
    found
}

/// Cells of which nothing can be said, and why.
pub(crate) fn left_out(mut reasons: Vec<String>, of: usize) -> Option<Finding> {
    let count = reasons.len();
    reasons.sort_unstable();
    reasons.dedup();
    (count > 0).then(|| {
        Finding::new(Code::PredictLeftOut)
            .with("count", count)
            .with("of", of)
            .with("why", Value::words(reasons.join("; ")))
    })
}

/// Writes that wait for each other's parity: md gathers them and starts them together, of which the
/// model knows nothing.
pub(crate) fn parity_writes<'a>(
    design: &ArrayDesign,
    loads: impl Iterator<Item = &'a Load>,
) -> Option<Finding> {
    let waits = design.array.level().parity() > 0 && !design.controller.part.write_back.value;
    let those = loads.filter(|load| {
        let is_random = load.access == Addressing::Random;
        waits && is_random && load.read_share < 1.0 && load.threads.saturating_mul(load.depth) > 1
    });
    let count = those.count();
    (count > 0).then(|| Finding::new(Code::PredictParity).with("count", count))
}

/// The part that limits most cells.
fn binds(answered: &[(&PredictedCell, &Answer)], of: usize) -> Option<Finding> {
    let limited = |part: Component| answered.iter().filter(move |(_, one)| one.binding == part);
    let mut counts = Component::ALL.map(|part| (limited(part).count(), part));
    counts.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let [(count, first), others @ ..] = counts;
    let others: Vec<String> = others
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, other)| format!("{} in {count}", part(*other)))
        .collect();
    let gains = limited(first).filter_map(|(_, answer)| {
        answer.parts.iter().find(|part| part.component == first).map(|part| part.gain)
    });
    let (low, high) =
        gains.fold((f64::INFINITY, 0.0f64), |(low, high), gain| (low.min(gain), high.max(gain)));
    (count > 0).then(|| {
        let ends = match high - low < 0.01 {
            true => finding::numbers::ratio(high, None),
            false => format!(
                "{} to {}",
                finding::numbers::ratio(low, None),
                finding::numbers::ratio(high, None)
            ),
        };
        // What has nothing to wait for is limited by its own times, and by how much is in flight.
        let idle = answered.iter().filter(|(_, one)| one.parts.iter().all(|part| part.busy < 0.5));
        let idle = idle.count();
        Finding::new(Code::PredictBinds)
            .with_some("idle", (idle > 0).then_some(Value::Count(idle as u64)))
            .with("part", Value::words(part(first)))
            .with("count", count)
            .with("of", of)
            .with_some(
                "others",
                (!others.is_empty()).then(|| Value::words(finding::numbers::list(&others))),
            )
            .with("gain", Value::words(ends))
    })
}

/// The assumed value that moves a rate most.
pub(crate) fn rests<'a>(answers: impl Iterator<Item = &'a Answer>) -> Option<Finding> {
    let answers: Vec<&Answer> = answers.collect();
    let share = |answer: &Answer, one: &array::Dependence| {
        let ends = [one.rate_low / answer.rate, one.rate_high / answer.rate];
        (ends[0].min(ends[1]), ends[0].max(ends[1]))
    };
    let all = answers.iter().flat_map(|answer| {
        answer.rests_on.iter().map(move |one| (&one.assumption, share(answer, one)))
    });
    let all: Vec<_> = all.collect();
    let width = |(low, high): (f64, f64)| high.max(1.0) - low.min(1.0);
    let most = all.iter().max_by(|one, other| width(one.1).total_cmp(&width(other.1)));
    let Some((parameter, _)) = most else {
        return (!answers.is_empty()).then(|| Finding::new(Code::PredictKnown));
    };
    let those = || all.iter().filter(|(other, _)| other == parameter).map(|(_, ends)| ends);
    let low = those().map(|ends| ends.0).fold(f64::INFINITY, f64::min);
    let high = those().map(|ends| ends.1).fold(0.0, f64::max);
    Some(
        Finding::new(Code::PredictRests)
            .with("parameter", Value::name(format!("{}.{}", parameter.part, parameter.key)))
            .with("moved", those().count())
            .with("low", Number::share(low))
            .with("high", Number::share(high)),
    )
}
