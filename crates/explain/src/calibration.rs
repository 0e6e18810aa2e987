//! What a machine's own noise is: a configuration measured against itself.
//!
//! Two visits of a cell that follow each other are a block; a coin says which of them is A and
//! which is B. Nothing differs between the two, so whatever they differ by is noise: of the
//! device, of the host, of ourselves. A comparison that finds no more than that has found nothing.
//! See `docs/calibrate.md`.

mod words;

use std::collections::BTreeMap;

use finding::{Code, Finding};
use record::{Run, RunHeader, TargetKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::Random;
use stats::random::derive_seed;

use crate::compare::{ClassName, Floor};
use crate::differ::kind_name;
use crate::drift::drift;
use crate::freeze::{Freeze, freezes};
use crate::interval::Standstills;
use crate::view::{CellView, View};

/// The name of the contract that [`Calibration`] is written by.
pub const SCHEMA: &str = "plimsoll.calibration/1";
/// Version of what is stored.
pub const VERSION: u32 = 1;
/// So many blocks make one value: as many as a comparison has if nobody says otherwise. The floor
/// is then a statement about comparisons as they are made.
pub const GROUP: usize = 10;
/// A class with fewer values has no floor of its own: one value that happens to be small would let
/// noise through.
pub const VALUES_MIN: usize = 20;
/// The share of values that a floor is not below.
const QUANTILE: f64 = 0.95;
/// Keeps the coins apart from everything else that a run's seed decides.
const COIN: u64 = 0x41_41;
/// Of the rate of stalls.
const CONFIDENCE: f64 = 0.95;

/// A machine measured against itself. Shares: 0.03 is 3 %. Unknown is null; fields may be added
/// within version 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "plimsoll.calibration/1")]
pub struct Calibration {
    /// Always `plimsoll.calibration/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: String,
    /// Wall clock at the start, ns since 1970.
    pub started_unix_ns: i64,
    /// The run with the visits.
    pub run: String,
    /// Where.
    pub place: Place,
    /// Blocks of every cell that both visits were made of: the fewest of any cell.
    pub blocks: u32,
    /// Blocks that one value of a floor is the mean of.
    pub group: u32,
    /// By class.
    pub classes: Vec<ClassNoise>,
    /// Over all cells.
    pub overall: Noise,
    /// What a request costs us, against a target that costs nothing.
    pub overhead: Vec<Overhead>,
    /// The clock; null if nobody looked.
    pub clock: Option<ClockFacts>,
    /// Times in which this process did not run.
    pub stalls: HostStalls,
    /// What its own visits saw that is no noise, a sentence each: changes of level, standstills of a
    /// good part of a visit. The floor has them in it as if they were. None in records of before.
    #[serde(default)]
    pub events: Vec<String>,
}

/// What a calibration holds for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// The host's name.
    pub host: String,
    /// As `uname -r` says.
    pub kernel: String,
    /// Version of the program.
    pub program: String,
    /// The target as the user named it.
    pub target: String,
    /// The block devices below it, top first.
    pub devices: Vec<String>,
    /// What kind of target: `file`, `block device`, `simulated`; null in old records.
    #[serde(default)]
    pub kind: Option<String>,
}

/// How far two measurements of the same lie apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Noise {
    /// Cells it is from.
    pub cells: u32,
    /// Values it is from: for every cell one for each group of blocks.
    pub values: u32,
    /// 95 of 100 of the values are no larger, as a share; the largest where there are fewer than
    /// 20. Null when there is none.
    pub floor: Option<f64>,
    /// Coefficient of variation of single visits' rates, pooled over the cells; slow changes over
    /// the whole time are in it.
    pub cv: Option<f64>,
}

/// The noise of a class of cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassNoise {
    /// Which cells.
    pub class: ClassName,
    /// Their noise.
    pub noise: Noise,
}

/// What a request costs us.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overhead {
    /// Workers.
    pub threads: u32,
    /// Requests in flight per worker.
    pub queue_depth: u32,
    /// Requests per second against a target that completes at once.
    pub requests_per_second: f64,
    /// Time per request and worker.
    pub ns_per_request: f64,
}

/// What the clock is good for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockFacts {
    /// Shortest time between two readings that differ.
    pub resolution_ns: u64,
    /// What one reading takes.
    pub reading_ns: f64,
}

/// Times of 50 ms and more in which this process did not run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostStalls {
    /// How many.
    pub count: u32,
    /// The longest; 0 if there were none.
    pub longest_ns: u64,
    /// For how long somebody looked; 0 where nobody can, on a simulated device's clock.
    pub watched_ns: u64,
    /// By the hour, with its exact 95 % interval; null when nobody looked.
    pub per_hour: Option<PerHour>,
}

/// A rate with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PerHour {
    /// Events per hour.
    pub rate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end; with nothing seen, about three by the hours.
    pub high: f64,
}

/// A cell's blocks: differences of ln rates, B less A.
struct Cell {
    class: Option<ClassName>,
    differences: Vec<f64>,
    ln_rates: Vec<f64>,
}

impl Calibration {
    /// From the visits of a run of which nothing differed.
    ///
    /// * `run`: visits `2 k` and `2 k + 1` of a cell are block `k`; its seed tossed the coins.
    /// * `null`: one against a target that costs nothing, if there was one.
    pub fn of(run: &Run, null: Option<&Run>, clock: Option<ClockFacts>) -> Self {
        let view = View::new(run);
        let cells: Vec<Cell> = view.grid().map(|cell| blocks(cell, run.header.seed)).collect();
        let fewest = cells.iter().map(|cell| cell.differences.len()).min().unwrap_or(0);
        let mut by_class: BTreeMap<&ClassName, Vec<&Cell>> = BTreeMap::new();
        for cell in &cells {
            if let Some(class) = &cell.class {
                by_class.entry(class).or_default().push(cell);
            }
        }
        let classes = by_class
            .into_iter()
            .map(|(class, cells)| ClassNoise { class: class.clone(), noise: noise(&cells) });
        let classes = classes.collect();
        let header = &run.header;
        Self {
            schema: SCHEMA.to_owned(),
            started_unix_ns: header.started_unix_ns,
            run: header.id.clone(),
            place: Place::of(header),
            blocks: count(fewest),
            group: count(fewest.min(GROUP)),
            classes,
            overall: noise(&cells.iter().collect::<Vec<_>>()),
            overhead: null.map(overhead).unwrap_or_default(),
            clock,
            stalls: HostStalls::of(run, null),
            events: events(&view),
        }
    }

    /// What comparisons on this machine may not be finer than; `None` when nothing was found.
    ///
    /// * `of`: what is to be compared: where it was measured otherwise, that is said.
    ///
    /// Classes of fewer than 20 values count as all others do.
    pub fn floor(&self, of: &RunHeader) -> Option<Floor> {
        let overall = self.overall.floor?;
        let known = self.classes.iter().filter(|c| c.noise.values as usize >= VALUES_MIN);
        let classes = known.filter_map(|c| Some((c.class.clone(), c.noise.floor?))).collect();
        let place = &self.place;
        let mut from = format!("calibrate of {} on {}, {}", self.day(), place.host, place.target);
        from.push_str(&match self.group {
            1 => ", of single blocks".to_owned(),
            blocks => format!(", of means of {blocks} blocks"),
        });
        let doubts = self.place.doubts(&Place::of(of));
        if !doubts.is_empty() {
            from.push_str(&format!(", measured {}", doubts.join(" and ")));
        }
        if !self.events.is_empty() {
            from.push_str(", with more than noise in it: calibrate again");
        }
        Some(Floor { classes, overall, blocks: self.group, from })
    }

    /// Requests per second against a target that costs nothing: the most that was reached.
    pub fn null_rate(&self) -> Option<f64> {
        let rates = self.overhead.iter().map(|overhead| overhead.requests_per_second);
        rates.filter(|rate| *rate > 0.0).reduce(f64::max)
    }
}

/// What came once is in one of the differences that the floor is made of, as if it came every time.
/// Where all cells changed, each of them did.
fn events(view: &View<'_>) -> Vec<String> {
    let levels = drift(view).findings();
    let of = |wanted: &[Code]| -> Vec<Finding> {
        levels.iter().filter(|found| wanted.contains(&found.code)).cloned().collect()
    };
    let mut found = of(&[Code::RunChangedLevel]);
    if found.is_empty() {
        found = of(&[Code::CellChangedLevel, Code::CellsChangedLevelMore]);
    }
    let large = |event: &&Freeze| {
        let visit = view.run.visits.iter().find(|visit| visit.order == event.order);
        let rated_ns = visit.map_or(0, record::VisitRecord::rated_ns);
        event.length_ns as f64 >= Standstills::SHARE_MIN * rated_ns as f64
    };
    found.extend(freezes(view).events.iter().filter(large).map(Freeze::finding));
    found.iter().map(Finding::text).collect()
}

impl Place {
    fn of(header: &RunHeader) -> Self {
        Self {
            host: header.machine.host.clone(),
            kernel: header.machine.kernel.clone(),
            program: header.program.clone(),
            target: header.target.given.clone(),
            devices: header.target.devices.clone(),
            kind: Some(kind_name(header.target.kind).to_owned()),
        }
    }

    /// In what this one differs from where it is to be used.
    fn doubts(&self, now: &Self) -> Vec<String> {
        let mut doubts = Vec::new();
        if self.kernel != now.kernel {
            doubts.push(format!("with kernel {}", self.kernel));
        }
        if self.program != now.program {
            doubts.push(format!("with version {} of the program", self.program));
        }
        // Two files of one disk are one place. Where no device is known, names have to do.
        let unknown = self.devices.is_empty() && now.devices.is_empty();
        let here = if unknown { self.target == now.target } else { self.devices == now.devices };
        if !here {
            doubts.push("on another target".to_owned());
        }
        match (&self.kind, &now.kind) {
            (Some(then), Some(now)) if then != now => {
                doubts.push(format!("on a {then}, not a {now}"))
            }
            _ => {}
        }
        doubts
    }
}

/// Which machine a calibration of this run holds for, as a name to store it by. Twins have names of
/// their own, each kind and each model: what one simulated device does says nothing about a real
/// one, nor about another. Memory is in GiB, since kernels keep a few MiB more or less for
/// themselves.
pub fn machine_key(header: &RunHeader) -> String {
    let machine = &header.machine;
    let memory = machine.memory_bytes.div_ceil(1 << 30);
    let twin = match header.target.kind {
        TargetKind::Twin => format!(" twin {}", twin_of(&header.target.given)),
        _ => String::new(),
    };
    format!("{} {} {memory} GiB {}{twin}", machine.host, machine.architecture, machine.processor)
}

/// `memory` whatever its size, `null`; others by all of their name, as a model by its file.
fn twin_of(given: &str) -> &str {
    match given.split_once(':') {
        Some((kind @ ("memory" | "null"), _)) => kind,
        _ => given,
    }
}

fn blocks(cell: &CellView<'_>, seed: u64) -> Cell {
    let rates: BTreeMap<u32, f64> = cell
        .visits
        .iter()
        .filter(|visit| visit.requests_per_second > 0.0)
        .map(|visit| (visit.visit.repeat, visit.requests_per_second.ln()))
        .collect();
    let both = |(&repeat, &first): (&u32, &f64)| {
        let second = *rates.get(&repeat.checked_add(1)?)?;
        (repeat % 2 == 0).then(|| {
            let coin = derive_seed(seed, &[COIN, u64::from(cell.cell.index), u64::from(repeat)]);
            let swapped = Random::new(coin).below(2) == 1;
            if swapped { first - second } else { second - first }
        })
    };
    Cell {
        class: cell.load().as_ref().map(ClassName::of),
        differences: rates.iter().filter_map(both).collect(),
        ln_rates: rates.values().copied().collect(),
    }
}

fn noise(cells: &[&Cell]) -> Noise {
    let mut values: Vec<f64> = cells.iter().flat_map(|cell| means(&cell.differences)).collect();
    values.sort_by(f64::total_cmp);
    let rank = (values.len() as f64 * QUANTILE).ceil() as usize;
    let floor = rank.checked_sub(1).and_then(|at| values.get(at)).map(|far| far.exp_m1());
    Noise { cells: count(cells.len()), values: count(values.len()), floor, cv: cv(cells) }
}

/// How far each whole group's mean lies from 0; of too few blocks for one group, that of all.
fn means(differences: &[f64]) -> Vec<f64> {
    let group = differences.len().min(GROUP);
    if group == 0 {
        return Vec::new();
    }
    let mean = |blocks: &[f64]| (blocks.iter().sum::<f64>() / blocks.len() as f64).abs();
    differences.chunks_exact(group).map(mean).collect()
}

/// Pooled over the cells: of ln rates, which for few percent is that of rates.
fn cv(cells: &[&Cell]) -> Option<f64> {
    let (mut squares, mut degrees) = (0.0, 0usize);
    for cell in cells.iter().filter(|cell| cell.ln_rates.len() > 1) {
        let mean = cell.ln_rates.iter().sum::<f64>() / cell.ln_rates.len() as f64;
        squares += cell.ln_rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>();
        degrees += cell.ln_rates.len() - 1;
    }
    (degrees > 0).then(|| (squares / degrees as f64).sqrt())
}

fn overhead(null: &Run) -> Vec<Overhead> {
    let view = View::new(null);
    let cell = |cell: &CellView<'_>| {
        let [stream] = cell.cell.streams.as_slice() else { return None };
        let rates = cell.ln_rates();
        let rate =
            (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)?.exp();
        Some(Overhead {
            threads: stream.threads,
            queue_depth: stream.queue_depth,
            requests_per_second: rate,
            ns_per_request: f64::from(stream.threads) * 1e9 / rate,
        })
    };
    view.grid().filter_map(cell).collect()
}

impl HostStalls {
    /// Of all visits that were made on our clock.
    fn of(run: &Run, null: Option<&Run>) -> Self {
        // Of all twins only the null one keeps our time and nothing else.
        let real = |run: &&Run| {
            run.header.target.kind != TargetKind::Twin || run.header.target.given == "null:"
        };
        let visits =
            || [Some(run), null].into_iter().flatten().filter(real).flat_map(|r| &r.visits);
        let watched_ns = visits().map(|v| v.elapsed_ns).fold(0u64, u64::saturating_add);
        let stalls = || visits().flat_map(|visit| &visit.host_stalls);
        let seen = stalls().count();
        let hours = watched_ns as f64 / 3.6e12;
        let per_hour = stats::poisson::rate(seen as u64, hours, CONFIDENCE);
        Self {
            count: count(seen),
            longest_ns: stalls().map(|stall| stall.length_ns).max().unwrap_or(0),
            watched_ns,
            per_hour: per_hour.map(|r| PerHour { rate: r.rate, low: r.low, high: r.high }),
        }
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
