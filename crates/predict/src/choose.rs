//! Which of many designs carries a load, and which does so for the least.

use std::cmp::Ordering;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::str::FromStr;

use array::{Answer, ArrayDesign, Component, Fill, Load, LoadError, Model, PerSecond};
use finding::{Code, Finding, Number, Question, Section, Value, numbers};
use serde::Serialize;
use suite::model::Suite;
use units::{Bytes, Nanos};

use crate::load::load;
use crate::vary::{Variation, Varied};
use crate::{parity_writes, part, rests};

/// More of a part that brings less than this share of the most is not worth it.
const KNEE: f64 = 0.05;

/// Rates that differ by less are the same.
const SAME: f64 = 0.001;

/// What an array must do; what is `None` is not asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Goal {
    /// Requests per second, at least.
    pub rate: Option<f64>,
    /// Bytes per second, at least.
    pub bandwidth: Option<PerSecond>,
    /// Mean response time, at most.
    pub response: Option<Nanos>,
    /// What the array holds, at least.
    pub capacity: Option<Bytes>,
}

/// A goal that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{0}` is no goal: wanted rate=20000, bandwidth=2GB/s or capacity=10TB, which are the least, or response=5ms, which is the most"
)]
pub struct GoalError(String);

impl FromStr for Goal {
    type Err = GoalError;

    fn from_str(text: &str) -> Result<Self, GoalError> {
        let mut goal = Self::default();
        let mut seen = HashSet::new();
        for word in text.split([' ', ',']).filter(|word| !word.is_empty()) {
            let wrong = || GoalError(word.to_owned());
            let (key, value) = word.split_once('=').ok_or_else(wrong)?;
            let key = key.trim_end_matches(if key.starts_with("response") { '<' } else { '>' });
            let is_bare = value.ends_with(|end: char| end.is_ascii_digit());
            if !seen.insert(key) || (is_bare && key != "rate") {
                return Err(wrong());
            }
            match key {
                "rate" => goal.rate = Some(rate(value).ok_or_else(wrong)?),
                "bandwidth" => goal.bandwidth = Some(value.parse().map_err(|_| wrong())?),
                "response" => goal.response = Some(value.parse().map_err(|_| wrong())?),
                "capacity" => goal.capacity = Some(value.parse().map_err(|_| wrong())?),
                _ => return Err(wrong()),
            }
        }
        Ok(goal)
    }
}

/// `300000`, `300K/s`: more than none.
fn rate(text: &str) -> Option<f64> {
    let text = text.trim_end_matches("/s");
    let scale = match text.chars().last()? {
        'k' | 'K' => 1e3,
        'M' => 1e6,
        _ => 1.0,
    };
    let number: f64 = text.trim_end_matches(['k', 'K', 'M']).parse().ok()?;
    Some(number * scale).filter(|rate| rate.is_finite() && *rate > 0.0)
}

/// Designs under one load, best first.
#[derive(Clone, Debug, Serialize)]
pub struct ArrayChoice {
    schema: &'static str,
    /// The array that all come from.
    pub array: String,
    /// The suite's name.
    pub suite: String,
    /// What was asked for.
    pub goal: Goal,
    /// The keys that differ.
    pub keys: Vec<String>,
    /// Those of them that change no rate.
    pub idle_keys: Vec<String>,
    /// Those that reach the goal before the others; then the cheaper, the fewer drives, the faster.
    pub arrays: Vec<Candidate>,
    /// Combinations that make no array.
    pub refused: Vec<Refused>,
    /// What there is to say.
    pub answer: Section,
}

/// One design.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// In the order of the keys.
    pub values: Vec<String>,
    /// How many drives.
    pub drives: u32,
    /// Of drives, links and controllers; `None` without the price of a drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<f64>,
    /// What it holds.
    pub capacity: Bytes,
    /// Requests per second.
    pub rate: f64,
    /// Bytes per second.
    pub bandwidth: PerSecond,
    /// Mean.
    pub response: Nanos,
    /// The part that limits it.
    pub limited_by: Component,
    /// What of the goal it does not reach; nothing if it does.
    pub short_of: Vec<String>,
}

/// A combination that makes no array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// In the order of the keys.
    pub values: Vec<String>,
    /// In words.
    pub why: String,
}

/// Why nothing can be chosen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChooseError {
    /// Arrays are compared by one number.
    #[error("the suite `{0}` has {1} cells, wanted one")]
    Cells(String, usize),
    /// Of that cell.
    #[error("its cell cannot be predicted: {0}")]
    Load(String),
    /// No combination makes an array.
    #[error("no combination makes an array: {0}")]
    NoArray(String),
}

/// Predicts each design under the one cell of a suite and puts them in order.
///
/// * `name`: the array's, as it was named.
/// * `cache`: whether there is room in the controllers' write caches.
///
/// # Errors
///
/// More cells than one; one that cannot be predicted; no array among the designs.
pub fn choose(
    name: &str,
    variations: &[Variation],
    designs: Vec<Varied>,
    suite: &Suite,
    goal: Goal,
    cache: Fill,
) -> Result<ArrayChoice, ChooseError> {
    let count = suite.cells().count();
    let cell = suite.cells().next().filter(|_| count == 1);
    let cell = cell.ok_or_else(|| ChooseError::Cells(suite.name.clone(), count))?;
    let load = load(suite, cell, cache).map_err(ChooseError::Load)?;
    let (mut found, mut refused) = (Vec::new(), Vec::new());
    for Varied { values, design } in designs {
        let model = match design {
            Ok(design) => Model::without_ranges(design),
            Err(error) => {
                refused.push(Refused { values, why: error.to_string() });
                continue;
            }
        };
        let holds = model.design().capacity();
        if load.size > holds {
            let why = format!("{} are more than the {holds} that it holds", load.size);
            refused.push(Refused { values, why });
            continue;
        }
        let answer = match model.answer(&load) {
            Ok(answer) => answer,
            Err(error) => {
                refused.push(Refused { values, why: error.to_string() });
                continue;
            }
        };
        found.push((candidate(values, &model, &answer, goal), model.into_design()));
    }
    let asks = goal != Goal::default();
    found.sort_by(|one, other| order(&one.0, &other.0, asks));
    let Some((_, best)) = found.first() else {
        let why = refused.into_iter().next().map_or_else(String::new, |first| first.why);
        return Err(ChooseError::NoArray(why));
    };
    let sure =
        reservations(best.clone(), &load).map_err(|error| ChooseError::Load(error.to_string()))?;
    let arrays: Vec<Candidate> = found.into_iter().map(|(one, _)| one).collect();
    let keys: Vec<String> = variations.iter().map(|one| one.key.clone()).collect();
    let idle: Vec<usize> = (0..keys.len()).filter(|at| is_idle(&arrays, *at)).collect();
    let idle_keys: Vec<String> = idle.iter().map(|at| keys[*at].clone()).collect();
    let mut findings = findings(&keys, &idle_keys, &arrays, &refused, asks);
    findings.extend(sure);
    Ok(ArrayChoice {
        schema: "plimsoll.choice/1",
        array: name.to_owned(),
        suite: suite.name.clone(),
        goal,
        keys,
        idle_keys,
        arrays,
        refused,
        answer: Section { question: Question::Answer, findings },
    })
}

/// The better one first.
fn order(one: &Candidate, other: &Candidate, asks: bool) -> Ordering {
    // Nobody knows that what has no price is cheap.
    let price = |one: &Candidate| one.price.unwrap_or(f64::INFINITY);
    let by_cost = price(one).total_cmp(&price(other)).then(one.drives.cmp(&other.drives));
    let by_rate = other.rate.total_cmp(&one.rate);
    match (asks, one.short_of.len()) {
        (true, 0) => 0.cmp(&other.short_of.len()).then(by_cost).then(by_rate),
        (true, short) => short.cmp(&other.short_of.len()).then(by_rate).then(by_cost),
        (false, _) => by_rate.then(by_cost),
    }
}

/// What the best array's rate rests on.
fn reservations(best: ArrayDesign, load: &Load) -> Result<Vec<Finding>, LoadError> {
    let parity = parity_writes(&best, std::iter::once(load));
    let answer = Model::new(best).answer(load)?;
    Ok(parity.into_iter().chain(rests(std::iter::once(&answer))).collect())
}

fn candidate(values: Vec<String>, model: &Model, answer: &Answer, goal: Goal) -> Candidate {
    let design = model.design();
    let capacity = design.capacity();
    let mut short_of = Vec::new();
    let mut short = |is_short: bool, seen: String, wanted: String| {
        if is_short {
            short_of.push(format!("{seen} of {wanted}"));
        }
    };
    if let Some(rate) = goal.rate {
        short(answer.rate < rate, numbers::iops(answer.rate), numbers::iops(rate));
    }
    if let Some(wanted) = goal.bandwidth {
        short(answer.bandwidth < wanted, answer.bandwidth.to_string(), wanted.to_string());
    }
    if let Some(wanted) = goal.response {
        let [seen, wanted_text] =
            [answer.response, wanted].map(|one| numbers::seconds(one.as_secs_f64()));
        short(answer.response > wanted, seen, wanted_text);
    }
    if let Some(wanted) = goal.capacity {
        short(capacity < wanted, capacity.to_string(), wanted.to_string());
    }
    Candidate {
        values,
        drives: design.drives(),
        price: design.price(),
        capacity,
        rate: answer.rate,
        bandwidth: answer.bandwidth,
        response: answer.response,
        limited_by: answer.binding,
        short_of,
    }
}

/// Whether arrays that differ in this key alone make the same.
fn is_idle(arrays: &[Candidate], at: usize) -> bool {
    let mut first: HashMap<Vec<&String>, f64> = HashMap::new();
    let mut has_pairs = false;
    arrays.iter().all(|one| {
        let others = one.values.iter().enumerate().filter(|(place, _)| *place != at);
        let others: Vec<&String> = others.map(|(_, value)| value).collect();
        match first.entry(others) {
            Entry::Occupied(seen) => {
                has_pairs = true;
                (one.rate / seen.get() - 1.0).abs() < SAME
            }
            Entry::Vacant(place) => {
                place.insert(one.rate);
                true
            }
        }
    }) && has_pairs
}

fn findings(
    keys: &[String],
    idle: &[String],
    arrays: &[Candidate],
    refused: &[Refused],
    asks: bool,
) -> Vec<Finding> {
    let Some(best) = arrays.first() else { return Vec::new() };
    let reached = arrays.iter().filter(|one| one.short_of.is_empty()).count();
    let code = match (asks, reached) {
        (false, _) => Code::ChoiceFastest,
        (true, 0) => Code::ChoiceNone,
        (true, _) => Code::ChoiceCheapest,
    };
    let drives = numbers::count(best.drives.into(), "drive");
    let cost = match best.price {
        Some(price) => format!("{drives} for {price:.0}"),
        None => drives,
    };
    let mut found = vec![
        Finding::new(code)
            .with("count", arrays.len())
            .with("reached", reached)
            .with("which", Value::words(place(keys, &best.values)))
            .with("rate", Number::iops(best.rate))
            .with("response", Number::seconds(best.response.as_secs_f64()))
            .with("cost", Value::words(cost))
            .with("part", Value::words(part(best.limited_by)))
            .with("short", Value::words(numbers::list(&best.short_of))),
    ];
    found.extend((0..keys.len()).filter_map(|at| knee(keys, arrays, best, at)));
    if !idle.is_empty() {
        let keys = Value::words(numbers::list(idle));
        found.push(Finding::new(Code::ChoiceIdle).with("keys", keys));
    }
    if let Some(first) = refused.first() {
        found.push(
            Finding::new(Code::ChoiceRefused)
                .with("count", refused.len())
                .with("of", refused.len() + arrays.len())
                .with("which", Value::words(place(keys, &first.values)))
                .with("why", Value::words(&first.why)),
        );
    }
    found
}

/// `members=8, level=raid10`.
fn place(keys: &[String], values: &[String]) -> String {
    let all: Vec<String> =
        keys.iter().zip(values).map(|(key, value)| format!("{key}={value}")).collect();
    if all.is_empty() { "the array as it is".to_owned() } else { all.join(", ") }
}

/// From which value of a number on more of it brings little, all else as in the best design.
fn knee(keys: &[String], arrays: &[Candidate], best: &Candidate, at: usize) -> Option<Finding> {
    let like_best = arrays.iter().filter(|one| {
        let mut others = one.values.iter().zip(&best.values).enumerate();
        others.all(|(place, (own, other))| place == at || own == other)
    });
    let mut line: Vec<(u32, &Candidate)> =
        like_best.filter_map(|one| Some((one.values.get(at)?.parse().ok()?, one))).collect();
    line.sort_by_key(|(value, _)| *value);
    let most = line.iter().map(|(_, one)| one.rate).fold(0.0, f64::max);
    let enough = line.iter().find(|(_, one)| one.rate >= most * (1.0 - KNEE));
    let ((first, _), (last, _)) = (line.first()?, line.last()?);
    let (value, one) = enough?;
    // A line that grows to its end, or never, has no knee.
    (first != value && last != value).then(|| {
        Finding::new(Code::ChoiceKnee)
            .with("key", Value::words(&keys[at]))
            .with("value", Value::words(value.to_string()))
            .with("last", Value::words(last.to_string()))
            .with("part", Value::words(part(one.limited_by)))
    })
}
