//! The sentences of comparisons.

use super::{
    Against, CellComparison, Comparison, Design, Direction, Doubt, Floor, LevelChange, MarginFrom,
    Method, Outcome, Ratio, Stalls, StreamComparison, Verdict,
};
use crate::words::{self, count, iops, list, percent, seconds};

/// Streams that a sentence names beside the one that decides.
const STREAMS_MAX: usize = 4;
/// Cells that a sentence names one by one.
const NAMED_MAX: usize = 5;
/// Up to this a share is as good as a ratio, down and up: 1/1.1 is 0.91.
const SMALL_MARGIN: f64 = 0.1;

impl Comparison {
    /// Plain English for every side held against the reference: verdict, evidence, what next.
    pub fn sentences(&self) -> Vec<String> {
        self.against.iter().flat_map(|against| against.sentences(self)).collect()
    }
}

impl Against {
    /// Plain English: the verdict, on what evidence, what to do next.
    pub fn sentences(&self, of: &Comparison) -> Vec<String> {
        let mut out = vec![self.headline()];
        if self.bracket {
            out.extend(self.remarks());
            return out;
        }
        out.extend(self.differences.sentences());
        out.extend(self.evidence(of));
        out
    }

    /// What the verdict rests on, and what to do next: for who has shown the verdict and what
    /// differs already.
    pub fn evidence(&self, of: &Comparison) -> Vec<String> {
        let mut out = Vec::new();
        if self.cells.is_empty() {
            // Nothing was compared: neither how it was measured nor a margin matters.
            out.extend(self.remarks());
            out.extend(self.unmatched());
            return out;
        }
        out.extend(self.remarks());
        out.extend(self.schedules());
        out.extend(self.of_one_request());
        out.extend(self.not_reached());
        out.extend(self.cells_counted(of.confidence));
        out.extend(self.contrary());
        out.push(self.measured());
        out.extend(self.changed_meanwhile(of));
        out.extend(self.control.iter().flat_map(|control| control.sentences(&self.label)));
        out.extend(self.looked_twice(of.confidence));
        let imported = !self.differences.imported.is_empty();
        out.push(margin_told(&self.overall, of.floor.as_ref(), "this comparison", imported));
        out.extend(self.floor_of_few(of.floor.as_ref()));
        out.extend(self.few_odd_runs());
        out.extend(self.unmatched());
        out.extend(self.next());
        out
    }

    fn remarks(&self) -> Vec<String> {
        let mut out = self.reference_whole.sentences("A");
        out.extend(self.other_whole.sentences(&self.label));
        out
    }

    /// That cells of few visits have a wider margin than the floor itself.
    fn floor_of_few(&self, floor: Option<&Floor>) -> Option<String> {
        let floor = floor.filter(|floor| floor.blocks > 0)?;
        let few = |of: &Outcome| {
            of.margin_from == MarginFrom::Floor && (1..floor.blocks).contains(&of.count)
        };
        let few: Vec<&Outcome> =
            self.cells.iter().map(|row| &row.outcome).filter(|of| few(of)).collect();
        let least = few.iter().map(|of| of.count).min()?;
        let widest = few.iter().map(|of| of.margin).reduce(f64::max)?;
        // Of an only cell the sentence before says it.
        (self.cells.len() > 1).then(|| {
            format!(
                "The floor is of means of {} blocks; cells of fewer visits ({least} at least) lie \
                 further apart by chance, by the square root, so in those up to {} counts for \
                 nothing.",
                floor.blocks,
                share(widest)
            )
        })
    }

    /// Whose rate the suite sets: of all, or the streams by name.
    fn schedules(&self) -> Option<String> {
        let mut streams: Vec<String> = Vec::new();
        let set: Vec<_> = self.cells.iter().filter(|row| !row.is_of_storage()).collect();
        if set.is_empty() && !self.cells.is_empty() {
            return None;
        }
        for stream in set.iter().map(|row| &row.stream) {
            let Some(stream) = stream.as_ref().map(|name| format!("`{name}`")) else { continue };
            if !streams.contains(&stream) {
                streams.push(stream);
            }
        }
        let some = set.len() < self.cells.len();
        let some_not = self.cells.iter().any(|row| row.scheduled && row.is_of_storage());
        let reached = if some_not { ", and was reached in some cells" } else { "" };
        let told = if some && !streams.is_empty() {
            format!(
                "The rate of {} is set by the suite{reached}: that ratio compares what was \
                 offered, not what the storage can do, and is not in the ratio over all. Look at \
                 the latencies (`--cells`).",
                list(&streams)
            )
        } else {
            "The rate was set by a schedule: the ratio compares what was offered, not what the \
             storage can do. Look at the latencies."
                .to_owned()
        };
        self.scheduled.then_some(told)
    }

    /// Rows that a single request decides.
    fn of_one_request(&self) -> Option<String> {
        let left_out = |row: &&super::CellComparison| {
            !row.counts && row.is_of_storage() && row.outcome.ratio.is_some()
        };
        let names: Vec<String> =
            self.cells.iter().filter(left_out).map(|row| format!("`{}`", row.cell)).collect();
        (!names.is_empty()).then(|| {
            format!(
                "A single request or burst more or less would be a good part of the rate of {}: not in the \
                 ratio over all.",
                words::some(&names, 4)
            )
        })
    }

    /// Cells in which a side took less than it was offered: one sentence for each way.
    fn not_reached(&self) -> Vec<String> {
        let label = &self.label;
        let ways = [
            (
                (true, false),
                format!(
                    "A did not reach the rate it was offered, {label} did: {label} may do more \
                     than that, so the ratio is a least one"
                ),
            ),
            (
                (false, true),
                format!(
                    "{label} did not reach the rate it was offered, A did: A may do more than \
                     that, so the ratio is a highest one"
                ),
            ),
            (
                (true, true),
                format!(
                    "Neither A nor {label} reached the rate that was offered: the ratio is of \
                     what the storage did, and what ran beside had less beside it than the suite \
                     asks for"
                ),
            ),
        ];
        let told = |(way, text): ((bool, bool), String)| {
            let of =
                |row: &&CellComparison| (row.reference_fell_behind, row.other_fell_behind) == way;
            let cells: Vec<_> = self.cells.iter().filter(of).collect();
            let named: Vec<_> =
                cells.iter().take(NAMED_MAX).map(|row| format!("`{}`", row.cell)).collect();
            let rest = match cells.len().saturating_sub(NAMED_MAX) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            (!cells.is_empty()).then(|| format!("In {}{rest}: {text}.", list(&named)))
        };
        ways.into_iter().filter_map(told).collect()
    }

    fn who_failed(&self) -> Option<String> {
        match (self.reference_whole.failed > 0, self.other_whole.failed > 0) {
            (true, true) => Some(format!("A and {}", self.label)),
            (true, false) => Some("A".to_owned()),
            (false, true) => Some(self.label.clone()),
            (false, false) => None,
        }
    }

    fn looked_twice(&self, confidence: f64) -> Option<String> {
        (self.looks > 1).then(|| {
            let ended = match self.overall.count {
                0..10 => "neither was reached, so this is a look that was not planned",
                10 => "it ended at the first",
                11..20 => "the second was not reached, so this is a look that was not planned",
                20.. => "both were taken",
            };
            format!(
                "Two looks were planned, after 10 and 20 blocks; {ended}: intervals are of {:.1} % \
                 each, so that both together keep what was asked (Pocock).",
                confidence * 100.0
            )
        })
    }

    /// The verdict over all cells in a sentence; in others the cells in which a side was not on one
    /// level, and the state of the arrays, where one was not whole: nobody is to read the first without.
    pub fn headline(&self) -> String {
        let verdict = match self.failing().filter(|_| !self.cells.is_empty()) {
            Some(failing) => format!("{failing} {}", lower(&self.verdict_told())),
            None => self.verdict_told(),
        };
        let more = [self.of_caches(), self.not_on_one_level(), self.arrays.clone()];
        [Some(verdict)].into_iter().chain(more).flatten().collect::<Vec<_>>().join(" ")
    }

    /// Rows in which caches answered: those without a ratio, and those whose ratio is of caches.
    fn of_caches(&self) -> Option<String> {
        const NAMED: usize = 3;
        let named = |ratio: bool| {
            let rows = self.cells.iter().filter(|row| row.whose_cache(&self.label).is_some());
            let rows = rows.filter(|row| row.outcome.is_of_cache() != ratio);
            let name = |row: &CellComparison| {
                let shares = [row.reference_cached, row.other_cached].into_iter().flatten();
                let most = percent(shares.fold(0.0, f64::max));
                let whose = row.whose_cache(&self.label).unwrap_or_default();
                format!("`{}` ({whose}, up to {most})", row.cell)
            };
            let rows: Vec<String> = rows.map(name).collect();
            (!rows.is_empty()).then(|| words::some(&rows, NAMED))
        };
        let not = named(false).map(|rows| {
            format!("A cache answered, so there is no ratio and no verdict, in {rows}.")
        });
        let alike = named(true).map(|rows| {
            format!("The comparison is of caches, which answered on both sides alike, in {rows}.")
        });
        let told: Vec<String> = not.into_iter().chain(alike).collect();
        (!told.is_empty()).then(|| told.join(" "))
    }

    /// Rows in which a side changed its level, each with its largest change.
    fn not_on_one_level(&self) -> Option<String> {
        const NAMED: usize = 3;
        let of_side = |label: &str, changes: fn(&CellComparison) -> &[LevelChange]| {
            let far = |change: &LevelChange| change.ratio.ln().abs();
            let named = self.cells.iter().filter_map(|row| {
                let most = changes(row).iter().max_by(|a, b| far(a).total_cmp(&far(b)))?;
                Some(format!("`{}` (to {})", row.cell, percent(most.ratio)))
            });
            let named: Vec<String> = named.collect();
            (!named.is_empty()).then(|| format!("{label} in {}", words::some(&named, NAMED)))
        };
        let sides = [
            of_side("A", |row| &row.reference_changes),
            of_side(&self.label, |row| &row.other_changes),
        ];
        let sides: Vec<String> = sides.into_iter().flatten().collect();
        (!sides.is_empty()).then(|| {
            format!(
                "Not on one level: {}. Rates there are mixtures of before and after, and a difference may be \
                 that change, or hidden by it: `explain` each run.",
                sides.join("; ")
            )
        })
    }

    fn verdict_told(&self) -> String {
        let label = &self.label;
        if let (true, Some(which)) = (self.cells.is_empty(), self.who_failed()) {
            return format!(
                "Unknown: visits failed in {which}, and no cell is left that both measured; nothing \
                 can be compared."
            );
        }
        if self.cells.is_empty() {
            return format!(
                "Unknown: A and {label} have no cell in common that both measured; nothing can \
                 be compared."
            );
        }
        if self.overall.is_of_cache() {
            return "Not comparable: in no cell are both figures of the devices.".to_owned();
        }
        if self.bracket {
            let ratio = told(self.overall.ratio);
            return format!(
                "{label} is A's configuration once more: {ratio} of A. That much is drift, and \
                 nothing smaller is claimed."
            );
        }
        if let Some(told) = self.by_stream() {
            return told;
        }
        let over = format!("over {}", self.rows_told());
        let of_whole = verdict(&self.overall, "A", label, &over);
        self.beside_the_whole(&over).unwrap_or(of_whole)
    }

    /// The verdict where streams are unlike, the stream that decides first.
    fn by_stream(&self) -> Option<String> {
        let (first, rest) = self.streams.split_first()?;
        let of = |one: &StreamComparison| {
            let StreamComparison { stream, cells, outcome } = one;
            let way = match (outcome.verdict, outcome.direction) {
                (Verdict::Different, Some(Direction::Faster)) => "faster",
                (Verdict::Different, Some(Direction::Slower)) => "slower",
                (Verdict::Different, None) => "different",
                (Verdict::Same, _) => "the same",
                (Verdict::Inconclusive, _) => "open",
            };
            let over = match cells {
                1 => String::new(),
                _ => format!(" over {}", count(u64::from(*cells), "cell")),
            };
            format!("`{stream}` is {way}, {}{over}", outcome.ratio_told())
        };
        let verdict = match self.verdict {
            Verdict::Different => "Different",
            Verdict::Same => "Same",
            Verdict::Inconclusive => "Inconclusive",
        };
        let rest: Vec<String> = rest.iter().map(of).collect();
        let rest = words::some(&rest, STREAMS_MAX);
        let label = &self.label;
        Some(format!("{verdict} by stream: of {label}, {}; {rest}.", of(first)))
    }

    /// The verdict where cells differ and the ratio over all does not say so: cells of which many
    /// stayed as they were, or which go both ways, are lost in a mean.
    fn beside_the_whole(&self, over: &str) -> Option<String> {
        let label = &self.label;
        let (overall, ratio) = (&self.overall, self.overall.ratio_told());
        let ways = [(self.slower, "slower"), (self.faster, "faster")];
        let against = match (overall.verdict, overall.direction) {
            (Verdict::Different, Some(Direction::Faster)) => Some(ways[0]),
            (Verdict::Different, Some(Direction::Slower)) => Some(ways[1]),
            (Verdict::Different, None) => None,
            _ => {
                let ways: Vec<_> = ways.into_iter().filter(|(n, _)| *n > 0).collect();
                let cells = match ways.as_slice() {
                    [] => return None,
                    [(n, way)] => format!("{way} than A in {n}"),
                    [(n, way), (more, other), ..] => {
                        format!("{way} than A in {n} and {other} in {more}")
                    }
                };
                let whole = match overall.verdict == Verdict::Same {
                    true if overall.margin > SMALL_MARGIN => {
                        format!("the same, between {}, {ratio}.", within(overall.margin))
                    }
                    true => format!("the same within {}, {ratio}.", within(overall.margin)),
                    false => format!("inconclusive, {ratio}. {}", open(overall, "A", label)),
                };
                let all = self.rows_told();
                return Some(format!(
                    "Different: {label} is {cells} of {all}; {over} together {whole}"
                ));
            }
        };
        let (n, way) = against.filter(|(n, _)| *n > 0)?;
        let whole = verdict(overall, "A", label, over);
        Some(format!("{}, but {way} in {n} of them.", whole.trim_end_matches('.')))
    }

    /// `4 cells`, and `14 streams` where a cell has several: those in the ratio over all.
    fn rows_told(&self) -> String {
        let counted = self.cells.iter().filter(|row| row.counts).count();
        count(counted as u64, if self.has_streams() { "stream" } else { "cell" })
    }

    fn has_streams(&self) -> bool {
        self.cells.iter().any(|cell| cell.stream.is_some())
    }

    fn cells_counted(&self, confidence: f64) -> Option<String> {
        if self.cells.len() < 2 {
            return None;
        }
        let n = |wanted: &dyn Fn(&Outcome) -> bool| {
            self.cells.iter().filter(|cell| wanted(&cell.outcome)).count() as u64
        };
        let different = |way| n(&|o| o.verdict == Verdict::Different && o.direction == Some(way));
        let (faster, slower) = (different(Direction::Faster), different(Direction::Slower));
        Some(format!(
            "{} {} is faster in {faster}, slower in {slower}, the same in {}; {} of {} \
             are inconclusive. Looked at together, the chance of even one false difference among \
             them is at most {} (Holm).",
            if self.has_streams() { "Stream by stream" } else { "Cell by cell" },
            self.label,
            n(&|o| o.verdict == Verdict::Same),
            n(&|o| o.verdict == Verdict::Inconclusive),
            self.cells.len(),
            share(1.0 - confidence),
        ))
    }

    /// Cells that go the other way than the whole.
    fn contrary(&self) -> Option<String> {
        let way = self.overall.direction?;
        let against = |cell: &&CellComparison| {
            let o = &cell.outcome;
            o.verdict == Verdict::Different && o.direction.is_some_and(|d| d != way)
        };
        let cells: Vec<_> = self.cells.iter().filter(against).collect();
        let named: Vec<String> = cells
            .iter()
            .take(NAMED_MAX)
            .map(|c| format!("{} ({})", c.cell, told(c.outcome.ratio)))
            .collect();
        let more = cells.len().saturating_sub(NAMED_MAX);
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!cells.is_empty()).then(|| format!("It is the other way in {}{rest}.", list(&named)))
    }

    fn measured(&self) -> String {
        let n = u64::from(self.overall.count);
        match self.design {
            Design::Blocks => format!(
                "Measured in {}, both sides in each and in random order: what drifts falls on \
                 both alike.",
                count(n, "block")
            ),
            Design::Apart => format!(
                "Measured one after the other ({}): drift between them cannot be told from a \
                 difference.",
                self.rounds_told()
            ),
        }
    }

    /// That a run itself shows that rates did not stay what they were: its explanation tells when.
    fn changed_meanwhile(&self, of: &Comparison) -> Option<String> {
        let sides = of.sides.iter().enumerate();
        let sides = sides.filter(|(at, side)| *at == 0 || side.label == self.label);
        let told: Vec<String> = sides
            .filter_map(|(_, side)| {
                let step = side.steps.first()?;
                let more = match side.steps.len() {
                    1 => "",
                    _ => ", and again later",
                };
                let (when, ratio) = (step.when(""), words::percent(step.ratio()));
                Some(format!("those of {} {when} into the run to {ratio}{more}", side.label))
            })
            .collect();
        (self.design == Design::Apart && !told.is_empty()).then(|| {
            format!(
                "The rates of all cells changed together while they were measured: {}. So a rate is a \
                 mixture of before and after, and a difference may be that change: `explain` each run, \
                 and measure both in blocks (`compare --live`).",
                list(&told)
            )
        })
    }

    /// How often each side was visited, as far as the verdict over all cells is from it.
    fn rounds_told(&self) -> String {
        let n = u64::from(self.overall.count);
        let visits = |of: fn(&CellComparison) -> u32| {
            let each = || self.cells.iter().map(of);
            (each().min().unwrap_or(0), each().max().unwrap_or(0))
        };
        let (a, b) = (visits(|c| c.reference.visits), visits(|c| c.other.visits));
        let label = &self.label;
        match self.cells.len() {
            _ if a == b && a.0 == a.1 => format!("{} each", count(a.0.into(), "round")),
            1 => format!("{} of A, {} of {label}", count(a.0.into(), "visit"), b.0),
            _ => format!("over all cells {} that both have", count(n, "round")),
        }
    }

    fn few_odd_runs(&self) -> Option<String> {
        let carried = |o: &Outcome| o.doubts.contains(&Doubt::FewBadRuns);
        let cells: Vec<_> = self.cells.iter().filter(|c| carried(&c.outcome)).collect();
        if cells.is_empty() && !carried(&self.overall) {
            return None;
        }
        let sum = |of: fn(&CellComparison) -> Stalls| {
            self.cells.iter().map(of).fold(Stalls::default(), Stalls::plus)
        };
        let (a, b) = (sum(|c| c.reference.stalls), sum(|c| c.other.stalls));
        let named: Vec<_> = cells.iter().take(NAMED_MAX).map(|c| format!("`{}`", c.cell)).collect();
        let place = if cells.is_empty() { "over all".to_owned() } else { list(&named) };
        let more = match cells.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!(
            "Carried by a few odd runs: mean and median of the blocks disagree ({place}{more}). \
             The median does not show how odd the few are, worse or better, and that may be the whole story. \
             {} {}",
            stalled("A", a),
            stalled(&self.label, b),
        ))
    }

    fn unmatched(&self) -> Vec<String> {
        let mut out = Vec::new();
        for (side, cells) in [("A", &self.only_reference), (&self.label, &self.only_other)] {
            if cells.is_empty() {
                continue;
            }
            let named: Vec<String> = cells.iter().take(NAMED_MAX).cloned().collect();
            let more = cells.len().saturating_sub(NAMED_MAX);
            let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
            out.push(format!(
                "Measured on {side} only, and excluded from all ratios: {}{rest}.",
                named.join("; ")
            ));
        }
        let unlike = self.cells.iter().filter(|c| !c.same_load).count() as u64;
        if unlike > 0 {
            out.push(format!(
                "In {} the two asked for different loads in the same place of the grid.",
                count(unlike, "cell")
            ));
        }
        let nothing =
            self.cells.iter().filter(|c| c.outcome.doubts.contains(&Doubt::NothingCompleted));
        let names: Vec<String> = nothing.map(|c| c.cell.clone()).collect();
        if !names.is_empty() {
            let named = names.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>();
            out.push(format!(
                "Visits in which nothing completed are in no ratio: see {}.",
                list(&named)
            ));
        }
        out
    }

    fn next(&self) -> Option<String> {
        if self.design == Design::Apart && !self.bracket && self.drift.is_none() {
            if !self.differences.imported.is_empty() {
                return Some(
                    "To rule drift out, measure in turn (A, B, A, B, ...) with one tool, and \
                     compare those."
                        .to_owned(),
                );
            }
            return Some(
                "To rule drift out, measure both in blocks (`plimsoll compare --live`), or A \
                 again after B and compare all three."
                    .to_owned(),
            );
        }
        None
    }
}

/// Verdict first, then ratio, then what is open.
fn verdict(outcome: &Outcome, a: &str, b: &str, over: &str) -> String {
    let ratio = outcome.ratio_told();
    let margin = within(outcome.margin);
    let faster = match outcome.direction {
        Some(Direction::Faster) => "faster",
        Some(Direction::Slower) => "slower",
        None => "different",
    };
    match outcome.verdict {
        Verdict::Different => format!("Different: {b} is {faster} than {a}, {ratio} {over}."),
        Verdict::Same if outcome.margin > SMALL_MARGIN => {
            format!("Same: {b} is between {margin} of {a}, {ratio} {over}.")
        }
        Verdict::Same => format!("Same: {a} and {b} are within {margin}, {ratio} {over}."),
        Verdict::Inconclusive if outcome.doubts.contains(&Doubt::Single) => {
            format!("No verdict from single values: {ratio} {over}. {}", open(outcome, a, b))
        }
        Verdict::Inconclusive => format!("Inconclusive: {ratio} {over}. {}", open(outcome, a, b)),
    }
}

/// Why nothing is claimed, and what it would take.
fn open(outcome: &Outcome, a: &str, b: &str) -> String {
    let blocks = matches!(outcome.method, Method::SignedRank | Method::PairedT);
    let unit = if blocks { "block" } else { "visit" };
    let on_each = if blocks { "" } else { " on each side" };
    let has = |doubt| outcome.doubts.contains(&doubt);
    let margin = within(outcome.margin);
    let open = match outcome.margin > SMALL_MARGIN {
        true => format!("beyond {margin} is open"),
        false => format!("by more than {margin} is open"),
    };
    let more = outcome.more.map(|n| {
        let plural = if n == 1 { "" } else { "s" };
        format!("about {n} more {unit}{plural}{on_each}")
    });
    if has(Doubt::WithinDrift) {
        return format!(
            "The same configuration measured again lies as far from itself ({}): drift can have made \
             the difference, or hidden one. Measure both at once (`plimsoll compare --live`).",
            share(outcome.margin)
        );
    }
    if has(Doubt::WithinControl) {
        return format!(
            "A against itself lies as far apart ({}) in the blocks made to check this: whatever \
             did that can have made the difference, or hidden one.",
            share(outcome.margin)
        );
    }
    if outcome.ratio.is_none() {
        return "Nothing completed on a side.".to_owned();
    }
    if has(Doubt::Standstills) {
        return "Nothing came back for a good part of a visit, and how often that happens is not \
                known from so few: each side's rate lies within what that leaves open of the \
                other's. Measure longer visits (--set time=...)."
            .to_owned();
    }
    if has(Doubt::Levels) {
        return format!(
            "A device changed its speed within a run, and how long it keeps which is not known: {a} and \
             {b} may be as far apart by that alone. Measure both in blocks (`plimsoll compare --live`) \
             for many times as long as it stays at one speed, or rule out what changes it \
             (throttling, neighbours, burst credits)."
        );
    }
    if has(Doubt::Single) {
        return single_told(outcome, a, b);
    }
    if has(Doubt::FewBlocks) {
        let more = more.unwrap_or_else(|| "more".to_owned());
        return format!("Fewer than 6 blocks allow no claim: measure {more}.");
    }
    if has(Doubt::FewRequests) {
        return "A visit has few requests, and its start and end alone may make as much of a \
                difference: more visits do not tell, longer ones do (--set time=...)."
            .to_owned();
    }
    if has(Doubt::FewForConfidence) {
        return format!(
            "There are too few {unit}s for that confidence: ask for less (95 % is usual), or \
             measure many more."
        );
    }
    let known = match outcome.direction {
        Some(Direction::Faster) => {
            format!("{b} is faster than {a}, but whether {open}. ")
        }
        Some(Direction::Slower) => {
            format!("{b} is slower than {a}, but whether {open}. ")
        }
        None => String::new(),
    };
    let next = match more {
        Some(more) => format!("It takes {more} to say more."),
        None => format!(
            "The ratio lies too near the margin ({margin}) for any sensible number of {unit}s to settle it."
        ),
    };
    known + &next
}

/// Repeats that a side takes at least.
const REPEATS_MIN: usize = 3;

/// What single values say, and what it would take to say more.
fn single_told(outcome: &Outcome, a: &str, b: &str) -> String {
    let why = "A single value on a side has no interval: repeat both, at least 3 times each.";
    let Some(ratio) = outcome.ratio.map(|ratio| ratio.ratio).filter(|ratio| *ratio > 0.0) else {
        return why.to_owned();
    };
    let beyond = ratio.ln().abs() > outcome.margin.ln_1p();
    let apart = (ratio.ln().abs() - outcome.margin.ln_1p()).abs();
    // The reach of a difference of two means, as Welch's t has it where both scatter alike.
    let degrees = 2.0 * (REPEATS_MIN as f64 - 1.0);
    let confidence = if beyond { 0.975 } else { 0.95 };
    let Some(t) = stats::interval::student_quantile(confidence, degrees) else {
        return why.to_owned();
    };
    let scatter = apart / (t * (2.0 / REPEATS_MIN as f64).sqrt());
    let (way, what) = match (ratio < 1.0, beyond) {
        (true, true) => (percent(1.0 - ratio) + " slower than", "such a difference is shown"),
        (false, true) => (percent(ratio - 1.0) + " faster than", "such a difference is shown"),
        (_, false) => ("within the margin of".to_owned(), "that they are the same is shown"),
    };
    format!(
        "By these values {b} is {way} {a}, but {}{} With {REPEATS_MIN} values on each side {what} if \
         repeats of one side scatter by less than {} (standard deviation).",
        why.chars().next().map_or('a', |c| c.to_ascii_lowercase()),
        why.get(1..).unwrap_or_default(),
        scattered(scatter),
    )
}

/// A standard deviation of logarithms: `12.0 %`; a large one as a factor.
fn scattered(deviation: f64) -> String {
    match deviation.exp() {
        factor if factor < 2.0 => share(factor - 1.0),
        factor => format!("a factor of {factor:.1}"),
    }
}

fn margin_told(outcome: &Outcome, floor: Option<&Floor>, what: &str, imported: bool) -> String {
    let between = match outcome.margin > 0.0 {
        true => format!("Ratios between {} count for nothing", words::margin(outcome.margin)),
        false => "Every difference counts".to_owned(),
    };
    match (outcome.margin_from, floor) {
        (MarginFrom::Floor, Some(floor)) => format!(
            "{between} in {what}: that is the machine's own A/A floor of {} ({}).",
            share(outcome.margin),
            floor.from
        ),
        (MarginFrom::Drift, _) => {
            format!(
                "{between} in {what}: one configuration measured again lies that far from itself."
            )
        }
        (MarginFrom::Control, _) => {
            format!("{between} in {what}: A lies that far from itself in the blocks that check it.")
        }
        (_, Some(floor)) => format!(
            "{between}; the machine's own A/A floor is lower ({}: {}).",
            floor.from,
            share(floor.overall)
        ),
        (_, None) if imported => {
            format!("{between}; how far what was imported differs from itself is not known.")
        }
        (_, None) => format!(
            "{between}; how far this machine differs from itself is not known: \
             `plimsoll calibrate` measures it."
        ),
    }
}

/// A margin in a sentence about two sides: `3 %`; of a large one both edges.
fn within(margin: f64) -> String {
    match margin {
        m if m <= SMALL_MARGIN => share(m),
        m => words::margin(m),
    }
}

/// `3 %`, `8.8 %`.
fn share(share: f64) -> String {
    percent(share).replace(".0 %", " %")
}

fn stalled(label: &str, stalls: Stalls) -> String {
    let measured = seconds(stalls.measured_ns as f64 / 1e9);
    if stalls.measured_ns == 0 {
        return format!("Whether {label} ever stood still is unknown.");
    }
    if stalls.count == 0 {
        return format!("{label} had no stall of 100 ms in {measured}.");
    }
    format!(
        "{label} had {} in {measured}, the longest {}, together {}.",
        count(stalls.count.into(), "stall"),
        seconds(stalls.longest_ns as f64 / 1e9),
        seconds(stalls.lost_ns as f64 / 1e9),
    )
}

/// `x1.92 [1.73, 2.13]`.
pub(super) fn told(ratio: Option<Ratio>) -> String {
    ratio.map_or_else(|| "unknown".to_owned(), |ratio| ratio.text())
}

impl Ratio {
    /// `x1.92 [1.73, 2.13]`; three decimals where the interval is narrow.
    pub fn text(&self) -> String {
        words::ratio(self.ratio, self.low.zip(self.high))
    }
}

impl Outcome {
    /// The ratio with the interval that decided: `x1.92 [1.73, 2.13]`, and of two that are the same
    /// the narrower one of two one-sided tests: `x1.000 [0.981, 1.019 at 90 %]`.
    pub fn ratio_told(&self) -> String {
        match (self.verdict, self.same_ratio) {
            (Verdict::Same, Some(Ratio { ratio, low: Some(low), high: Some(high) })) => {
                // As many digits as the margin has, so that it is seen to lie within.
                let digits = if self.margin < SMALL_MARGIN { 3 } else { 2 };
                let of = share(self.same_confidence);
                format!("x{ratio:.digits$} [{low:.digits$}, {high:.digits$} at {of}]")
            }
            _ => told(self.ratio),
        }
    }
}

impl CellComparison {
    /// Whose figure is a cache's, at least in part: `B`, `A and B`.
    ///
    /// * `label`: of the side that is not the reference.
    pub fn whose_cache(&self, label: &str) -> Option<String> {
        let sides = [("A", self.reference_cached), (label, self.other_cached)];
        let whose = sides.into_iter().filter(|(_, share)| share.is_some());
        let whose: Vec<String> = whose.map(|(label, _)| label.to_owned()).collect();
        (!whose.is_empty()).then(|| list(&whose))
    }

    /// Who was not on one level here: `A`, `A and B`; `None` where nobody is known to have changed.
    ///
    /// * `label`: of the side that is not the reference.
    pub fn not_on_one_level(&self, label: &str) -> Option<String> {
        let sides = [("A", &self.reference_changes), (label, &self.other_changes)];
        let moved = sides.iter().filter(|(_, changes)| !changes.is_empty());
        let moved: Vec<String> = moved.map(|(label, _)| (*label).to_owned()).collect();
        (!moved.is_empty()).then(|| list(&moved))
    }
}

impl super::Rate {
    /// `63.1 K +-1.2 %`; the larger side of the interval, and of a wide one both ends.
    pub fn text(&self) -> String {
        let Some(rate) = self.per_second else { return "nothing".to_owned() };
        let reach = self.low.zip(self.high).map(|(low, high)| match high / rate - 1.0 {
            up if up > words::SIDES_ALIKE => format!(" [{}, {}]", iops(low), iops(high)),
            up => format!(" {}", words::reach(up.max(1.0 - low / rate))),
        });
        format!("{}{}", iops(rate), reach.unwrap_or_default())
    }
}

fn lower(sentence: &str) -> String {
    let mut chars = sentence.chars();
    let first = chars.next().map(|c| c.to_ascii_lowercase());
    first.into_iter().chain(chars).collect()
}
