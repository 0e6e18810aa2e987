//! Decides everything, changes nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use plan::Schedule;
use record::{
    Blocks, CellRecord, PartOf, RunHeader, RunState, StackTree, StreamPlan, TargetKind,
    TargetRecord, Warning,
};
use stack::{Action, Consent, Host, Own, PathKind, Permit, Target};
use suite::model::{
    CacheStep, Cell, Data, Last, Method, Operation, Precondition, StartFile, Stream, Suite,
};
use units::{Bytes, Nanos};

use crate::clock::{TurnClock, unix_now};
use crate::doubts::doubts;
use crate::fill::{self, Pass};
use crate::find::{Found, checked, find_paths};
use crate::rig::Site;
use crate::rigs::files::{in_flight, twin_buffer};
use crate::run::room;
use crate::{Order, RunError, Settings, TargetName, directory};

/// Name of a scratch file: always the same, so that one left behind by a kill is used again and
/// not joined by another. That of a volume ends so.
pub(crate) const SCRATCH: &str = "plimsoll-scratch.dat";
/// Sizes that are up to us are whole multiples of this, so that direct I/O reaches a file's end.
pub(crate) const SIZE_UNIT: u64 = 4096;

/// Whether a path has the name of a scratch file.
pub(crate) fn is_scratch(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.ends_with(SCRATCH))
}

/// A run that has only to be started.
#[derive(Debug)]
pub struct Prepared {
    pub(crate) header: RunHeader,
    pub(crate) cells: Vec<CellRecord>,
    pub(crate) suite: Suite,
    pub(crate) site: Box<dyn Site>,
    /// Fill and preconditioning, before the first phase.
    pub(crate) passes: Vec<Pass>,
    /// What is to be said beforehand besides, and is no doubt.
    pub(crate) remarks: Vec<String>,
    pub(crate) settings: Settings,
    /// The run in the store that this goes on with.
    pub(crate) resumes: Option<crate::resume::Resumed>,
    /// The clock of a comparison's sides.
    pub(crate) turns: Option<TurnClock>,
}

/// Real files or a device, judged.
#[derive(Debug)]
pub(crate) struct Paths {
    /// Of several targets the first, with what lies below all of them.
    pub target: Target,
    /// Each of several targets by itself; empty where there is one.
    pub each: Vec<Target>,
    pub permits: Vec<Permit>,
    /// What the operator said, and where our own files are: for the last look.
    pub consent: Consent,
    pub own: Own,
    /// Writes are allowed and needed.
    pub writes: bool,
    /// Removed after the run, with a number behind each if a target has several files.
    pub scratch: Vec<PathBuf>,
    /// Scratch files that killed runs left beside those, each with the number of its run.
    pub stale: Vec<(PathBuf, u64)>,
    /// A character device: no size, no cache, read only.
    pub character: bool,
    /// Another side of the same comparison makes, fills, holds and removes the files.
    pub shared: bool,
}

/// Everything below targets.
pub(crate) fn below(host: &Host, targets: &[Target]) -> StackTree {
    stack::stack_tree(host, targets, stack::Serials::Hashed)
}

impl Prepared {
    /// What will be stored of it; the id comes with the store.
    pub fn header(&self) -> &RunHeader {
        &self.header
    }

    /// How long its visits take at least; filling files comes on top.
    pub fn least_duration(&self) -> Nanos {
        self.schedule().left(&[]).time
    }

    /// Whether anything outside of this process is written.
    pub fn writes(&self) -> bool {
        self.site.paths().map_or_else(|| self.site.describe().is_some(), |paths| paths.writes)
    }

    /// Makes it a side of a comparison that is measured in blocks. Sides of one comparison take
    /// turns and have the same seed, so that their schedules agree.
    ///
    /// * `clock`: of all its sides.
    pub fn as_side(&mut self, blocks: Blocks, clock: TurnClock) {
        self.header.blocks = Some(blocks);
        self.turns = Some(clock);
    }

    /// It was ended on purpose before its first visit, only to go on: nothing was broken off.
    pub fn was_put_off(&mut self) {
        if let Some(resumed) = &mut self.resumes {
            resumed.broken = None;
        }
    }

    /// Makes it one of the runs of a list of suites.
    pub fn as_part(&mut self, part: PartOf) {
        self.header.part = Some(part);
    }

    /// Time that its visits take at least, as its plan expects; what the device decides is not
    /// in it, nor are fills and flushes.
    pub fn least_time(&self) -> Nanos {
        self.schedule().left(&[]).time
    }

    /// What will be played: sizes as the target has them.
    pub fn suite(&self) -> &Suite {
        &self.suite
    }

    /// Has it take turns with `first` on the files that both write: `first` makes them, fills them,
    /// holds them against everybody else, and removes them if they are to go. To be said before
    /// [`Self::begin`], which comes after that of `first`.
    ///
    /// What one side leaves behind the other meets, so neither may expect its own data: an error,
    /// as words, where they verify, or where they do not see the same files.
    pub fn share(&mut self, first: &Self) -> Result<(), &'static str> {
        if self.header.target.is_layer() || first.header.target.is_layer() {
            return Err("the layer would find what the other side wrote");
        }
        let (Some(ours), Some(theirs)) = (self.site.paths_mut(), first.site.paths()) else {
            return Ok(());
        };
        if !(ours.writes && theirs.writes) {
            return Err("one side writes what the other reads");
        }
        if begins_empty(&self.suite) || begins_empty(&first.suite) {
            return Err("one side empties the files that the other has open");
        }
        if verifies(&self.suite) || verifies(&first.suite) {
            return Err("a side that verifies would find what the other wrote");
        }
        let files = |suite: &Suite| (suite.files.count, suite.files.size);
        if files(&self.suite) != files(&first.suite) || self.passes.len() != first.passes.len() {
            return Err("their files are not of one size, or not filled alike");
        }
        ours.shared = true;
        let fills = self.passes.len();
        self.passes.clear();
        self.cells.truncate(self.cells.len().saturating_sub(fills));
        self.header.visits_planned = self.header.visits_planned.saturating_sub(fills as u32);
        Ok(())
    }

    /// Its cells, those impossible here included; fill and preconditioning last.
    pub fn cells(&self) -> &[CellRecord] {
        &self.cells
    }

    /// What will be read, written, created and removed, and how long it takes: a sentence each.
    pub fn describe(&self) -> Vec<String> {
        let mut said = self.describe_effects();
        said.extend(self.describe_visits());
        for cell in self.cells.iter().filter(|c| c.impossible.is_some()) {
            let place: Vec<String> =
                cell.coordinates.iter().map(|(field, value)| format!("{field}={value}")).collect();
            let why = cell.impossible.as_deref().unwrap_or_default();
            said.push(format!("Leaves out {} {}: {why}.", cell.phase, place.join(" ")));
        }
        said
    }

    /// Files that are made and stay.
    pub fn stays(&self) -> Vec<&Path> {
        let Some(paths) = self.site.paths() else { return Vec::new() };
        let is_named = |p: &&Permit| {
            p.action == Action::Create && (self.settings.keep || !paths.is_scratch(&p.path))
        };
        paths.permits.iter().filter(is_named).map(|permit| permit.path.as_path()).collect()
    }

    /// The same without the visits.
    pub fn describe_effects(&self) -> Vec<String> {
        let mut said = Vec::new();
        match self.site.paths() {
            Some(paths) if paths.shared => {
                let name = paths.target.path.resolved.display();
                said.push(format!("Takes turns on {name} with a side before it, as said there."));
            }
            Some(paths) => {
                let each = (paths.permits.len() / paths.targets().len().max(1)).max(1);
                for permits in paths.permits.chunks(each) {
                    said.extend(stack::describe_all(permits));
                }
                for (path, _) in &paths.stale {
                    let path = path.display();
                    said.push(format!("Removes {path}, which a killed run left, if none uses it."));
                }
                for base in &paths.scratch {
                    let after = if self.settings.keep { "Keeps" } else { "Removes" };
                    let ours = paths.permits.iter().map(|permit| permit.path.as_path());
                    let ours: Vec<&Path> = ours.filter(|path| is_of(path, base)).collect();
                    said.push(format!("{after} {} afterwards.", stack::row_of(&ours)));
                }
            }
            None => {
                said.extend(self.site.describe().unwrap_or_else(|| {
                    let name = &self.header.target.given;
                    vec![format!("Touches nothing outside this process: {name} is a twin.")]
                }));
            }
        }
        if let Some(paths) = self.site.paths() {
            said.extend(directory::describe(paths, &self.suite));
        }
        for pass in &self.passes {
            said.push(pass.describe(&self.suite));
        }
        said.extend(self.remarks.iter().cloned());
        said.extend(self.header.warnings.iter().map(|warning| sentence(&warning.text)));
        said.extend(self.describe_beginnings());
        said
    }
}

impl Prepared {
    fn describe_visits(&self) -> Vec<String> {
        let schedule = self.schedule();
        let left = schedule.left(&[]);
        let grid = self.cells.iter().take(self.suite.cell_count());
        let cells = counted(grid.filter(|c| c.impossible.is_none()).count(), "cell");
        let files =
            if self.passes.is_empty() { "" } else { " and the time to write the files first" };
        let mut said = Vec::new();
        if self.suite.method == Method::Classic {
            let visits = counted(left.visits as usize, "visit");
            said.push(format!(
                "Makes {visits} to {cells}, which takes {}{files}.",
                at_least(left.time)
            ));
        } else if self.suite.phases.iter().all(|phase| phase.steady.is_some()) {
            let (least, most) = (self.suite.visits_least(), left.visits_most);
            said.push(format!(
                "Makes {} to {most} visits to {cells}, one right after the other.",
                least.min(most)
            ));
            said.push(format!("Takes {}{files}.", at_least(left.time)));
        } else {
            self.describe_rounds(&schedule, files, &cells, &mut said);
        }
        for phase in &self.suite.phases {
            let Some(steady) = phase.steady else { continue };
            let each = match phase.cells.len() {
                1 => steady.round.to_string(),
                cells => format!("{cells} visits of {}", steady.round),
            };
            said.push(format!(
                "Phase {} goes on in rounds of {each} until it is steady, {} at most.",
                phase.name,
                counted(steady.rounds_max as usize, "round"),
            ));
        }
        said
    }

    /// The visits of a plan that ends a cell when it is known well enough.
    ///
    /// * `files`: what the time to write them is called; `cells`: how many there are.
    fn describe_rounds(
        &self,
        schedule: &Schedule,
        files: &str,
        cells: &str,
        said: &mut Vec<String>,
    ) {
        let left = schedule.left(&[]);
        let rounds = &self.suite.rounds;
        let pilots: usize =
            self.suite.phases.iter().map(|phase| self.suite.pilots(phase).len()).sum();
        let least = self.suite.visits_least().min(left.visits_most);
        let visits = match left.visits_most {
            most if most == least => counted(most as usize, "visit"),
            most => format!("{least} to {most} visits"),
        };
        let fixed = rounds.visits_min == rounds.visits_max;
        said.push(if fixed {
            format!(
                "Makes {visits} to {cells} in rounds of random order, {} to each.",
                rounds.visits_max
            )
        } else {
            format!(
                "Makes {visits} to {cells} in rounds of random order: each cell until its rate \
                     is known to {}, {} visits at least and {} at most.",
                percent(rounds.precision),
                rounds.visits_min,
                rounds.visits_max,
            )
        });
        if pilots > 0 {
            said.push(format!(
                "Watches {} for {} each first, to see how long they take to come up to speed.",
                counted(pilots, "cell"),
                suite::PILOT,
            ));
        }
        let least = format!("Takes {}{files}", at_least(left.time));
        // A limit that far away is none.
        let unlimited = fixed && rounds.time_max.get() / 20 > left.time.get();
        let most = span(rounds.time_max);
        let short = schedule.short();
        said.push(match short {
            Some(_) => {
                format!("Its rounds take about {most}{files}; none begins that would end later.")
            }
            None if unlimited => {
                format!("{least}; longer on a slow device, or one that is long in becoming idle.")
            }
            None => format!(
                "{least}; begins no round that would end more than {most} after the first visit."
            ),
        });
        said.extend(short.map(|short| room::describe(&short, rounds)));
    }

    /// What is done before each visit of a phase to the files and with them.
    fn describe_beginnings(&self) -> Vec<String> {
        let mut said = Vec::new();
        let has_files = self.site.paths().is_some();
        for phase in &self.suite.phases {
            let name = &phase.name;
            let how = phase.cells.iter().map(Cell::start_file).max().unwrap_or_default();
            match how {
                StartFile::Truncate if has_files => said.push(format!(
                    "Cuts the files to nothing before each visit of phase {name}, whose writes \
                     extend them."
                )),
                StartFile::Remove if has_files => said.push(format!(
                    "Removes the files before each visit of phase {name} and makes them anew."
                )),
                _ => {}
            }
            if phase.cells.iter().any(|cell| cell.before.is_some()) {
                said.push(format!(
                    "Plays a stream before each visit of phase {name} that is not counted."
                ));
            }
        }
        said
    }

    /// What is to be done to the cells that are possible as far as is known now.
    pub(crate) fn schedule(&self) -> Schedule {
        Schedule::new(&self.suite, self.header.seed, &impossible_cells(&self.cells))
            .in_blocks(self.header.blocks.as_ref())
    }
}

/// Cells that cannot be measured here.
pub(crate) fn impossible_cells(cells: &[CellRecord]) -> BTreeSet<u32> {
    cells.iter().filter(|cell| cell.impossible.is_some()).map(|cell| cell.index).collect()
}

/// A warning's text as a sentence.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(['.']).collect()
}

/// `5 %`, `2.5 %`.
fn percent(share: f64) -> String {
    format!("{} %", (share * 1e4).round() / 1e2)
}

/// Minutes where seconds would be many.
pub(crate) fn span(span: Nanos) -> String {
    let seconds = span.get() / 1_000_000_000;
    match (seconds / 60, seconds % 60) {
        (0, _) => span.to_string(),
        (minutes, 0) => format!("{minutes} min"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

/// What visits take that end by time; 0 where nothing does would be no answer.
fn at_least(time: Nanos) -> String {
    match time {
        Nanos::ZERO => "as long as the target needs for it".to_owned(),
        time => format!("at least {}", span(time)),
    }
}

/// Decides how the order is carried out, or why it is not. Changes nothing.
pub fn prepare(order: &Order) -> Result<Prepared, RunError> {
    let host = Host::this();
    let mut source = order.source.clone();
    processors_exist(&order.settings.cpus)?;
    if order.settings.verify {
        // Part of the suite like any other choice: stored with it, and resumed with it.
        source.set("data=self-describing")?;
    }
    let found = match order.targets.as_slice() {
        [] => find_paths(&host, order, (&[PathBuf::from(".")], SCRATCH), &mut source)?,
        [TargetName::Kind { kind, rest }] => (kind.find)(rest, order, &mut source)?,
        several => find_paths(&host, order, (&real(several)?, SCRATCH), &mut source)?,
    };
    let suite = checked(&source, found.capacity)?;
    let asks = suite.cells().flat_map(Cell::all_streams).any(|s| s.transactions().is_some());
    if asks && found.record.kind != TargetKind::Database {
        return Err(RunError::NeedsDatabase { suite: suite.name, target: found.record.given });
    }
    let suite_text = suite::resolved_text(&source)?;
    let laps = suite::laps(&source, &suite);
    let mut prepared = finish(order, &host, found, suite, suite_text)?;
    let warn = |text| Warning::new("size-alone", text);
    prepared.header.warnings.extend(laps.into_iter().map(warn));
    Ok(prepared)
}

/// Paths, of which there may be several; a twin is measured alone.
fn real(targets: &[TargetName]) -> Result<Vec<PathBuf>, RunError> {
    let path = |name: &TargetName| match name {
        TargetName::Path(path) => Ok(path.clone()),
        twin @ TargetName::Kind { .. } => {
            Err(RunError::Alone { target: twin.text(), kind: "twin" })
        }
    };
    targets.iter().map(path).collect()
}

/// Whether reads are held against what the data says of itself.
pub(crate) fn verifies(suite: &Suite) -> bool {
    suite.files.data == Data::SelfDescribing
}

/// Whether files are cut to nothing or made anew before visits.
pub(crate) fn begins_empty(suite: &Suite) -> bool {
    suite.cells().any(|cell| cell.start_file() != StartFile::Keep)
}

fn finish(
    order: &Order,
    host: &Host,
    mut found: Found,
    suite: Suite,
    suite_text: String,
) -> Result<Prepared, RunError> {
    if found.record.kind != TargetKind::Database {
        found.record.size_bytes = suite.files.size.get();
        found.record.files = suite.files.count;
    }
    found.record.cache_bytes = order.settings.cache.map(Bytes::get);
    let buffered = found.site.paths().is_some_and(|paths| paths.character);
    let mut cells = cells_of(&suite, found.unit.filter(|_| !buffered));
    some_possible(&cells, &found.record)?;
    let mut passes = fill::passes(&suite);
    let machine = stack::machine(host);
    // What is simulated has no page cache.
    let memory = found.site.paths().map_or(0, |_| machine.memory_bytes);
    let mut warnings = doubts(&suite, Bytes::new(memory));
    warnings.extend(found.asked.map(|asked| smaller(asked, suite.files.size)));
    warnings.extend(found.shorter.map(|wanted| shorter(wanted, suite.files.size)));
    let mut remarks = Vec::new();
    cut_of(&suite, &mut warnings, &mut remarks);
    leave_out(&found, &mut passes, &mut warnings, &mut remarks);
    let first = cells.len() as u32;
    cells.extend((first..).zip(&passes).map(|(index, pass)| pass.cell(index)));
    if verifies(&suite) {
        can_verify(&suite)?;
    }
    found.site.fits(&suite, &passes, host.memory_available())?;
    if let Some(paths) = found.site.paths() {
        can_handle_caches(paths, &suite)?;
        can_make_files(paths, &suite)?;
    }
    let header = RunHeader {
        id: String::new(),
        version: record::VERSION,
        suite: suite.name.clone(),
        suite_text,
        target: found.record,
        targets: found.records,
        seed: order.seed.unwrap_or_else(drawn_seed),
        command_line: order.settings.command_line.clone(),
        program: order.settings.program.clone(),
        stack: Some(found.site.targets()).filter(|all| !all.is_empty()).map(|all| below(host, all)),
        machine,
        started_unix_ns: unix_now(),
        state: RunState::Running,
        visits_planned: 0,
        blocks: None,
        part: None,
        imported: None,
        warnings,
    };
    let mut prepared = Prepared {
        header,
        cells,
        suite,
        site: found.site,
        passes,
        remarks,
        settings: order.settings.clone(),
        resumes: None,
        turns: None,
    };
    let most = prepared.schedule().left(&[]).visits_most;
    prepared.header.visits_planned = most.saturating_add(prepared.passes.len() as u32);
    Ok(prepared)
}

/// Seeds that people copy by hand and JSON readers take as a double.
fn drawn_seed() -> u64 {
    stats::random::derive_seed(unix_now() as u64, &[u64::from(std::process::id())]) >> 16
}

/// Drops passes that the target does not need, or that may not be made there.
fn leave_out(
    found: &Found,
    passes: &mut Vec<Pass>,
    warnings: &mut Vec<Warning>,
    remarks: &mut Vec<String>,
) {
    if !found.site.holds_data() {
        // Nothing has to be there to be read; what was written may be remembered.
        passes.retain(|pass| !pass.is_fill());
        if !found.site.remembers_writes() {
            remarks.extend(without_effect(passes, &found.record));
            passes.clear();
        }
    } else if found.as_it_is {
        warnings.extend(not_prepared(passes, &found.record));
        passes.clear();
    }
}

/// * `unit`: the smallest of direct I/O, where that is to be had.
fn cells_of(suite: &Suite, unit: Option<Bytes>) -> Vec<CellRecord> {
    let cells = suite.phases.iter().flat_map(|phase| phase.cells.iter().map(move |c| (phase, c)));
    let record = |((phase, cell), index): ((&suite::model::Phase, &Cell), u32)| CellRecord {
        index,
        phase: phase.name.clone(),
        coordinates: phase
            .place_of(cell)
            .map(|(field, value)| (field.into(), value.into()))
            .collect(),
        streams: cell.streams.iter().map(stream_plan).collect(),
        impossible: unit.and_then(|unit| impossible(cell, unit)),
    };
    cells.zip(0..).map(record).collect()
}

fn some_possible(cells: &[CellRecord], target: &TargetRecord) -> Result<(), RunError> {
    match cells.iter().any(|cell| cell.impossible.is_none()) {
        true => Ok(()),
        false => Err(RunError::NothingPossible {
            cells: cells.len(),
            target: target.given.clone(),
            why: cells.first().and_then(|c| c.impossible.clone()).unwrap_or_default(),
        }),
    }
}

/// That the files are shorter than asked for, to fit what is done to them.
fn cut_of(suite: &Suite, warnings: &mut Vec<Warning>, remarks: &mut Vec<String>) {
    let Some(cut) = suite.files.cut() else { return };
    // Who asks for a last request that is short means to reach the end.
    let mut streams = suite.cells().flat_map(Cell::all_streams);
    match streams.any(|stream| stream.stop.last == Last::Short) {
        true => warnings.push(Warning::new("file-cut", cut)),
        false => remarks.push(sentence(&cut)),
    }
}

/// That preconditioning which the suite asks for is left out, since nothing may be changed.
fn not_prepared(passes: &[Pass], target: &TargetRecord) -> Option<Warning> {
    let what = preconditioning(passes)?;
    let text = format!(
        "not prepared as the suite wants it ({what}): {} is there already and the suite only reads \
         it, so it is read as it is",
        target.given
    );
    Some(Warning::new("not-preconditioned", text))
}

/// The same of a twin that answers alike whatever was written to it: no doubt, but no effect either.
fn without_effect(passes: &[Pass], target: &TargetRecord) -> Option<String> {
    let what = preconditioning(passes)?;
    Some(format!(
        "Leaves out what the suite does before ({what}): it would change nothing, since {} has no \
         state that writes change.",
        target.given
    ))
}

fn preconditioning(passes: &[Pass]) -> Option<String> {
    let what: Vec<String> = passes.iter().filter(|p| !p.is_fill()).map(Pass::name).collect();
    (!what.is_empty()).then(|| what.join(", "))
}

/// What tables and exports need to know of a stream.
pub(crate) fn stream_plan(stream: &Stream) -> StreamPlan {
    let mut ops: Vec<Operation> = stream.mix.classes.iter().map(|c| c.op).collect();
    ops.dedup();
    let op = match ops.as_slice() {
        [one] => one.name(),
        _ => "mixed",
    };
    StreamPlan {
        name: stream.name.clone(),
        op: op.to_owned(),
        block_bytes: stream.mix.block_size().map(Bytes::get),
        threads: stream.threads,
        queue_depth: stream.queue_depth,
    }
}

/// Why direct I/O in multiples of `unit` cannot do the cell, if so.
pub(crate) fn impossible(cell: &Cell, unit: Bytes) -> Option<String> {
    let direct = cell.all_streams().filter(|s| s.direct);
    for stream in direct {
        let sizes = stream.mix.classes.iter().map(|c| c.block_size).filter(|&b| b > Bytes::ZERO);
        let odd = sizes
            .chain([stream.align, stream.region.start])
            .find(|b| *b > Bytes::ZERO && !b.is_multiple_of(unit));
        if let Some(odd) = odd {
            return Some(format!(
                "direct I/O of {} on a device whose smallest unit is {}",
                odd.exact(),
                unit.exact()
            ));
        }
    }
    None
}

/// `1 visit`, `2 visits`.
pub(crate) fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn processors_exist(wanted: &[uring::Cpu]) -> Result<(), RunError> {
    let Ok(allowed) = uring::affinity() else { return Ok(()) };
    match wanted.iter().find(|cpu| !allowed.contains(cpu)) {
        None => Ok(()),
        Some(cpu) => {
            let names: Vec<String> = allowed.iter().map(|cpu| cpu.0.to_string()).collect();
            Err(RunError::Processor { cpu: cpu.0, allowed: names.join(", ") })
        }
    }
}

/// What all requests in flight take in buffers, of what needs most: how many there are, and the
/// bytes of all.
///
/// * `alike`: one device for all streams, whose buffers are as long as the longest of them needs.
pub(crate) fn buffers(suite: &Suite, passes: &[Pass], alike: bool) -> (u64, Bytes) {
    let of = |streams: &[Stream]| {
        let requests = in_flight(streams);
        let bytes = match alike {
            true => requests.saturating_mul(twin_buffer(streams).get()),
            false => streams.iter().fold(0u64, |bytes, stream| {
                let own = in_flight(std::slice::from_ref(stream));
                bytes.saturating_add(own.saturating_mul(stream.block_size_max().get()))
            }),
        };
        (requests, bytes)
    };
    // What is played before a visit has the device for itself.
    let cells = suite.cells().flat_map(|cell| [of(&cell.streams), of(cell.before.as_slice())]);
    let passes = passes.iter().map(|pass| of(std::slice::from_ref(&pass.stream)));
    let (requests, bytes) = cells.chain(passes).max_by_key(|&(_, bytes)| bytes).unwrap_or_default();
    (requests, Bytes::new(bytes))
}

/// Every request in flight has a buffer: better refused than killed for want of memory. What they
/// take is given back.
pub(crate) fn buffers_fit(
    (requests, needed): (u64, Bytes),
    available: Option<Bytes>,
) -> Result<Bytes, RunError> {
    match available {
        Some(available) if needed > usable(available) => {
            Err(RunError::Memory { requests, needed, available })
        }
        _ => Ok(needed),
    }
}

/// A fifth of the memory stays for everybody else.
pub(crate) const fn usable(available: Bytes) -> Bytes {
    Bytes::new(available.get() / 5 * 4)
}

/// Whether the memory twin may be filled: what is not there is not asked for, since the kernel
/// gives it and then ends whom it likes.
///
/// * `buffers`: of the requests in flight, which are there beside its files.
pub(crate) fn twin_fits(
    target: &str,
    files: Bytes,
    buffers: Bytes,
    available: Option<Bytes>,
) -> Result<(), RunError> {
    match available {
        Some(available)
            if Bytes::new(files.get().saturating_add(buffers.get())) > usable(available) =>
        {
            Err(RunError::TwinMemory { target: target.to_owned(), files, buffers, available })
        }
        _ => Ok(()),
    }
}

/// What needs root, or cannot be at all, is said before a file is made.
fn can_handle_caches(paths: &Paths, suite: &Suite) -> Result<(), RunError> {
    let no = |step: &'static str, why: &str| Err(RunError::Caches { step, why: why.to_owned() });
    let root = rustix::process::geteuid().is_root();
    let has = |step| suite.phases.iter().any(|phase| phase.caches.contains(&step));
    if has(CacheStep::Drop) && !root {
        return no("dropping the machine's caches", "it needs root");
    }
    if !has(CacheStep::Remount) {
        return Ok(());
    }
    for target in paths.targets() {
        match &target.mount {
            _ if !root => return no("mounting anew", "it needs root"),
            None => return no("mounting anew", "the target is not on a mounted file system"),
            Some(mount) if mount.point == Path::new("/") => {
                return no("mounting anew", "the root file system cannot be unmounted");
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Whether requests of the stream are copies that the kernel makes.
pub(crate) fn copies_in_kernel(stream: &Stream) -> bool {
    stream.mix.classes.iter().any(|class| class.op == Operation::CopyRange)
}

/// What is done to the file as often as it was meant for a larger one is done to less.
fn smaller(asked: Bytes, size: Bytes) -> Warning {
    let text = format!(
        "the scratch file has {size} instead of {asked}: there is no more room. Amounts that the \
         suite gives in bytes or requests stay as they are, and a cache may hold more of it"
    );
    Warning::new("scratch-smaller", text)
}

/// A file that is there is taken as whole, and may have been cut by another run.
fn shorter(wanted: Bytes, size: Bytes) -> Warning {
    let text = format!(
        "what is read has {size}, the suite asks for {wanted}: a cache may hold more of it. Name a \
         longer file, or one that is not there, which is made and filled"
    );
    Warning::new("target-short", text)
}

/// Whether there is a file system where one is needed, with room for the files that are made.
fn can_make_files(paths: &Paths, suite: &Suite) -> Result<(), RunError> {
    let copies = suite.cells().flat_map(|cell| &cell.streams).any(copies_in_kernel);
    let needs = directory::needs(suite);
    let does = match (&needs, copies) {
        (Some(_), _) => "makes files in a directory beside the target",
        (None, true) => "has the kernel copy from file to file",
        (None, false) => return Ok(()),
    };
    for target in paths.targets() {
        let kind = match target.path.kind {
            PathKind::BlockDevice { .. } => "block device",
            PathKind::CharacterDevice { .. } => "character device",
            _ => continue,
        };
        let target = target.path.given.display().to_string();
        let suite = suite.name.clone();
        return Err(RunError::NeedsFileSystem { suite, does, target, kind });
    }
    let Some((bytes, files)) = needs else { return Ok(()) };
    if !paths.each.is_empty() {
        let target = format!("what suite `{}` needs", suite.name);
        return Err(RunError::Alone { target, kind: "directory of one target" });
    }
    let target = paths.target.path.given.display().to_string();
    if let Some(free) = directory::inodes_left(&paths.target.path.resolved)
        && free < files
    {
        return Err(RunError::NoInodes { target, wanted: files, free });
    }
    let Some(space) = paths.target.path.space.filter(|s| s.total > Bytes::ZERO) else {
        return Ok(());
    };
    // What the target's own files have not taken yet they may take.
    let there = match paths.target.path.kind {
        PathKind::File { allocated, .. } => {
            let shared = paths.target.shared_within(suite.files.total());
            Bytes::new(allocated.get().saturating_sub(shared.get()))
        }
        _ => Bytes::ZERO,
    };
    let own = if paths.writes { suite.files.total().get() } else { 0 };
    let free = Bytes::new(space.free.get().saturating_sub(own.saturating_sub(there.get())));
    let reserve = stack::space_reserve(space.total);
    if free.get() < bytes.get().saturating_add(reserve.get()) {
        return Err(RunError::NoRoomForFiles { target, wanted: bytes, free, reserve });
    }
    Ok(())
}

fn can_verify(suite: &Suite) -> Result<(), RunError> {
    let bad = |why: String| Err(RunError::Verify { why });
    let sector = Bytes::new(engine::verify::SECTOR as u64);
    let units = suite.files.total().get() / smallest_unit(suite).get().max(1);
    if begins_empty(suite) {
        return bad("files that begin empty have nothing to be held against".to_owned());
    }
    let passes = suite.phases.iter().flat_map(|phase| &phase.precondition);
    if suite.files.precondition.iter().chain(passes).any(|pass| *pass == Precondition::Trim) {
        return bad("a pass that trims takes away what would be verified".to_owned());
    }
    for stream in suite.cells().flat_map(Cell::all_streams) {
        let trims = stream.mix.classes.iter().any(|c| c.op == Operation::Trim);
        if trims && units > engine::verify::UNITS_MAX {
            return bad(format!(
                "stream `{}` discards, and {units} blocks are more than the {} that can be told \
                 discarded from lost",
                stream.name,
                engine::verify::UNITS_MAX
            ));
        }
        let sizes = stream.mix.classes.iter().map(|c| c.block_size);
        for size in sizes.chain([stream.align]).filter(|&b| b > Bytes::ZERO) {
            if !size.is_multiple_of(sector) {
                return bad(format!(
                    "stream `{}` has blocks of {}, wanted multiples of {}",
                    stream.name,
                    size.exact(),
                    sector.exact()
                ));
            }
        }
    }
    Ok(())
}

/// Whether a file is `base`, or one of several that begin with its name.
pub(crate) fn is_of(path: &Path, base: &Path) -> bool {
    let (path, base) = (path.as_os_str().as_encoded_bytes(), base.as_os_str().as_encoded_bytes());
    path.strip_prefix(base).is_some_and(|rest| {
        rest.is_empty()
            || rest.strip_prefix(b".").is_some_and(|number| number.iter().all(u8::is_ascii_digit))
    })
}

impl Paths {
    /// Every target by itself.
    pub(crate) fn targets(&self) -> &[Target] {
        if self.each.is_empty() { std::slice::from_ref(&self.target) } else { &self.each }
    }

    /// Whether a file of the run goes with its end.
    pub(crate) fn is_scratch(&self, path: &Path) -> bool {
        self.scratch.iter().any(|base| is_of(path, base))
    }

    /// Whether files are made or given their length by this run.
    pub(crate) fn makes_files(&self) -> bool {
        self.permits
            .iter()
            .any(|p| matches!(p.action, Action::Create | Action::Overwrite | Action::ScratchInside))
    }
}

/// The smallest unit in which anything is written: verification keeps a number for each.
pub(crate) fn smallest_unit(suite: &Suite) -> Bytes {
    let streams = suite.cells().flat_map(Cell::all_streams);
    let sizes = streams.flat_map(|stream| {
        let blocks = stream.mix.classes.iter().map(|c| c.block_size);
        blocks.chain([stream.align]).collect::<Vec<_>>()
    });
    let unit = sizes.filter(|&b| b > Bytes::ZERO).map(Bytes::get).reduce(gcd);
    Bytes::new(unit.unwrap_or(SIZE_UNIT))
}

const fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// How long a visit takes, ramp included, if time ends it; what stretches it left out.
pub(crate) fn planned(cell: &Cell) -> Option<Nanos> {
    let ends = cell.streams.iter().map(|s| Some(s.stop.time? + s.stop.ramp));
    ends.collect::<Option<Vec<_>>>()?.into_iter().max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn a_twin_larger_than_the_memory_is_refused_before_it_is_filled() {
        let fits =
            |files, buffers, available| twin_fits("memory:100TiB", files, buffers, available);
        let no = Bytes::ZERO;
        assert!(fits(Bytes::gib(8), no, Some(Bytes::gib(10))).is_ok());
        assert!(fits(Bytes::new(u64::MAX), Bytes::gib(1), None).is_ok(), "nobody knows");
        let error = fits(Bytes::gib(100 << 10), no, Some(Bytes::gib(10))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        let text = error.to_string();
        assert!(text.contains("100 TiB") && text.contains("10 GiB"), "{text}");
        assert!(error.hint().unwrap().ends_with("at most 8GiB"), "{:?}", error.hint());
        assert!(fits(Bytes::new((8 << 30) + 1), no, Some(Bytes::gib(10))).is_err());
        // Buffers are in the same memory.
        let error = fits(Bytes::gib(7), Bytes::gib(2), Some(Bytes::gib(10))).unwrap_err();
        assert!(error.to_string().contains("2 GiB for its requests in flight"), "{error}");
        assert!(error.hint().unwrap().ends_with("at most 6GiB"), "{:?}", error.hint());
    }

    #[test]
    fn the_memory_twin_has_one_length_of_buffers_for_all_streams() {
        let text = r#"
            schema = 1
            name = "t"
            [[phase]]
            name = "main"
            time = "1s"
            [phase.before]
            block_size = "4MiB"
            bytes = "4MiB"
            [[phase.stream]]
            name = "deep"
            block_size = "4KiB"
            queue_depth = 1000
            [[phase.stream]]
            name = "long"
            block_size = "1MiB"
        "#;
        let source = suite::parse(text, "t.toml").unwrap();
        let suite = suite::check(&source, &suite::CheckContext::default()).unwrap();
        let (requests, apart) = buffers(&suite, &[], false);
        assert_eq!((requests, apart.get()), (1001, (4000 << 10) + (1 << 20)));
        let (requests, alike) = buffers(&suite, &[], true);
        assert_eq!((requests, alike.get()), (1001, 1001 << 20));
        let error = buffers_fit((requests, alike), Some(Bytes::gib(1))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains("1001 requests in flight"), "{error}");
    }
}
