//! `plimsoll run` of a list of suites: part after part, each a run of its own.

use std::time::{Duration, Instant};

use record::{PartOf, RunState};
use runner::{Order, Outcome, Prepared, TargetName};
use serde::Serialize;
use stats::random::derive_seed;
use store::Store;
use units::Nanos;

use crate::args::Common;
use crate::commands::run::{self, RunArgs};
use crate::commands::suites::{at_least, counted, duration};
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::order;
use crate::output::{Output, json};
use crate::parts::{Item, List};
use crate::progress::Later;
use crate::signals::SignalWatch;

/// How often a pause looks whether it is to end.
const LOOK: Duration = Duration::from_millis(50);

/// A sequence under way.
struct Sequence<'a> {
    args: &'a RunArgs,
    list: &'a List,
    store_path: std::path::PathBuf,
    seed: u64,
    group: String,
    output: Output,
    /// Wall time of the runs of each part that came to their end, and how many those were.
    took: Vec<(Nanos, u32)>,
    /// What each part takes at least.
    least: Vec<Nanos>,
    done: Vec<Done>,
}

/// A run of the sequence that is in the store.
#[derive(Clone, Debug, Serialize)]
struct Done {
    number: u32,
    suite: String,
    repeat: u32,
    repeats: u32,
    run: String,
    state: &'static str,
    exit_code: u8,
    #[serde(skip)]
    code: ExitCode,
}

/// Why a sequence has no further part.
enum End {
    /// It was the last.
    Last,
    /// The user wants to stop; where to begin the next time.
    Stopped { next: u32 },
    /// This part did not go well.
    Broken { number: u32, why: Option<Failure> },
}

/// Plays a list of suites.
pub fn run(
    args: &RunArgs,
    list: &List,
    common: &Common,
    output: Output,
) -> Result<ExitCode, Failure> {
    let store_path = order::store_path(common)?;
    let items = list.items();
    let of = items.len() as u32;
    let first = args.from_part.unwrap_or(1);
    if first > of {
        let message = format!("--from-part {first}, but `{}` has {of} parts", list.name());
        let hint = format!("`plimsoll suite show {}` shows them", list.name());
        return Err(Failure::new(ExitCode::Usage, message).hint(hint));
    }
    let seed = args.seed.unwrap_or_else(drawn);
    let mut sequence = Sequence {
        args,
        list,
        store_path,
        seed,
        group: format!("{:08x}", derive_seed(seed, &[drawn()]) >> 32),
        output,
        took: vec![(Nanos::ZERO, 0); items.iter().map(|item| item.part + 1).max().unwrap_or(0)],
        least: Vec::new(),
        done: Vec::new(),
    };
    for (at, item) in items.iter().enumerate() {
        if items.iter().take(at).all(|before| before.part != item.part) {
            order::tell_doubts(item.source, &output);
        }
    }
    let left: Vec<Item<'_>> = items.into_iter().filter(|item| item.number >= first).collect();
    let prepared = sequence.prepare_all(&left)?;
    if let Some(group) = &args.group {
        sequence.join(group, common, of)?;
    }
    if args.dry_run {
        return sequence.describe(&left, &prepared).map(|()| ExitCode::Ok);
    }
    drop(prepared);
    sequence.play(&left)
}

/// Of the time: different for every call.
pub fn drawn() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = since.unwrap_or_default().as_nanos() as u64;
    derive_seed(nanos, &[u64::from(std::process::id())]) >> 16
}

impl<'a> Sequence<'a> {
    /// Every part once, so that what is refused is refused before anything is touched.
    fn prepare_all(&mut self, items: &[Item<'a>]) -> Result<Vec<(usize, Prepared)>, Failure> {
        let mut prepared: Vec<(usize, Prepared)> = Vec::new();
        for item in items {
            if prepared.iter().all(|(part, _)| *part != item.part) {
                prepared.push((item.part, self.prepare(item)?));
            }
        }
        self.least = vec![Nanos::ZERO; self.took.len()];
        for (part, prepared) in &prepared {
            if let Some(least) = self.least.get_mut(*part) {
                *least = prepared.least_time();
            }
        }
        Ok(prepared)
    }

    fn prepare(&self, item: &Item<'_>) -> Result<Prepared, Failure> {
        let args = self.args;
        let seed = derive_seed(self.seed, &[u64::from(item.number)]) >> 16;
        runner::prepare(&Order {
            source: item.source.clone(),
            targets: run::targets(args)?,
            seed: Some(seed),
            size_given: order::size_given(&args.suite_options),
            settings: order::settings(&args.consent, &args.manner, self.store_path.clone()),
        })
        .map_err(|error| Failure::from(error).of(format!("{} cannot be played", item.title())))
    }

    fn describe(&self, items: &[Item<'_>], parts: &[(usize, Prepared)]) -> Result<(), Failure> {
        let mut lines = Vec::new();
        for (at, item) in items.iter().enumerate() {
            if at > 0 && item.pause > Nanos::ZERO {
                lines.push(format!("Pauses for {}.", duration(item.pause)));
            }
            lines.push(title_case(&item.title()) + ":");
            let before = at.checked_sub(1).and_then(|before| items.get(before));
            if before.is_some_and(|before| before.part == item.part) {
                lines.push("  The same again.".to_owned());
                continue;
            }
            let Some((_, prepared)) = parts.iter().find(|(part, _)| *part == item.part) else {
                continue;
            };
            lines.extend(prepared.describe().iter().map(|line| format!("  {line}")));
            let written = prepared.suite().bytes_written_least();
            if prepared.writes() {
                lines.push(format!("  Writes at least {written}."));
            }
        }
        let pauses = items.iter().skip(1).map(|item| item.pause);
        let least = items.iter().filter_map(|item| self.least.get(item.part).copied());
        let time = pauses.chain(least).fold(Nanos::ZERO, |sum, time| sum + time);
        lines.push(format!("Takes {} in all.", at_least(time)));
        self.output.print(&lines.iter().map(|line| report::plain(line) + "\n").collect::<String>())
    }

    /// Goes on with a sequence that has runs in the store.
    fn join(&mut self, group: &str, common: &Common, of: u32) -> Result<(), Failure> {
        let runs = order::readable(&order::store_to_read(common)?, &self.output)?;
        let mut parts = runs.iter().filter_map(|run| run.part.as_ref());
        let Some(found) = parts.find(|part| part.group == group) else {
            let message = format!("no run belongs to the group {group}");
            return Err(Failure::new(ExitCode::Usage, message).hint("`plimsoll list` shows them"));
        };
        if found.list != self.list.name() || found.of != of {
            let message = format!(
                "the group {group} has parts of `{}`, which has {}, not of `{}`",
                found.list,
                counted(found.of.into(), "part"),
                self.list.name()
            );
            let hint = "go on with the suite and the options that it began with";
            return Err(Failure::new(ExitCode::Usage, message).hint(hint));
        }
        group.clone_into(&mut self.group);
        Ok(())
    }

    fn play(mut self, items: &[Item<'a>]) -> Result<ExitCode, Failure> {
        let mut store = Store::open(&self.store_path)?;
        let signals = SignalWatch::start()?;
        let targets = run::targets(self.args)?;
        let simulated = targets.iter().any(TargetName::has_own_clock);
        let mut end = End::Last;
        for (at, item) in items.iter().enumerate() {
            // Each part has its model anew: no clock of one part goes on in the next.
            if at > 0 && item.pause > Nanos::ZERO && !simulated {
                self.output.note(&format!("pausing for {}", duration(item.pause)));
                pause(item.pause, &signals);
            }
            if signals.interrupt().stops() {
                end = End::Stopped { next: item.number };
                break;
            }
            let later = items.get(at + 1..).unwrap_or_default();
            match self.part(item, later, &mut store, &signals) {
                Ok(None) => {}
                Ok(Some(ended)) => {
                    end = ended;
                    break;
                }
                Err(why) => {
                    end = End::Broken { number: item.number, why: Some(why) };
                    break;
                }
            }
        }
        self.conclude(end, &store, &signals)
    }

    /// Plays one part; why the sequence ends with it, if it does.
    fn part(
        &mut self,
        item: &Item<'_>,
        later: &[Item<'_>],
        store: &mut Store,
        signals: &SignalWatch,
    ) -> Result<Option<End>, Failure> {
        let begun = Instant::now();
        self.output.note(&self.announcement(item, later));
        let mut prepared = self.prepare(item)?;
        prepared.as_part(PartOf {
            group: self.group.clone(),
            list: self.list.name().to_owned(),
            number: item.number,
            of: item.of,
            study: None,
        });
        let later = self.later(later);
        let measured = run::measure(prepared, store, &self.output, None, signals, later);
        let outcome = match measured {
            Ok(outcome) => outcome,
            Err(broken) => {
                if let Some(run) = broken.run {
                    let code = broken.failure.code();
                    self.done.push(done(item, &run, RunState::Failed, code));
                }
                return Err(broken.failure);
            }
        };
        let code = run::code(&outcome, signals.code());
        self.done.push(done(item, &outcome.run, outcome.state, code));
        if !self.args.talk.json {
            let shown = run::show(&outcome, store, &self.args.talk, &self.output);
            if signals.code() != Some(ExitCode::HungUp) {
                shown?;
            }
        }
        run::tell_trouble(&outcome, code, &self.output);
        self.count(item, &outcome, begun);
        Ok(match (outcome.state, code) {
            (RunState::Interrupted, _) => Some(End::Stopped { next: item.number + 1 }),
            (_, ExitCode::Ok | ExitCode::Incomplete) => None,
            _ => Some(End::Broken { number: item.number, why: None }),
        })
    }

    fn announcement(&self, item: &Item<'_>, later: &[Item<'_>]) -> String {
        match self.later(later) {
            Some(Later { time: Nanos::ZERO, .. }) => item.title(),
            Some(Later { time, is_least: true }) => {
                format!("{}; the parts after it take {} at least", item.title(), duration(time))
            }
            Some(Later { time, is_least: false }) => {
                format!("{}; the parts after it take about {}", item.title(), duration(time))
            }
            None => item.title(),
        }
    }

    /// What is to come: a part that was played takes as long again, one that was not takes what
    /// its plan asks for, or more.
    fn later(&self, items: &[Item<'_>]) -> Option<Later> {
        let mut later = Later { time: Nanos::ZERO, is_least: false };
        for item in items {
            let (took, times) = self.took.get(item.part).copied().unwrap_or_default();
            let least = self.least.get(item.part).copied().unwrap_or(Nanos::ZERO);
            later.time += item.pause;
            match times {
                0 => {
                    later.time += least;
                    later.is_least = true;
                }
                _ => later.time += Nanos::new(took.get() / u64::from(times)),
            }
        }
        (!items.is_empty()).then_some(later)
    }

    fn count(&mut self, item: &Item<'_>, outcome: &Outcome, begun: Instant) {
        if outcome.state == RunState::Complete
            && let Some((took, times)) = self.took.get_mut(item.part)
        {
            *took += Nanos::from_secs_f64(begun.elapsed().as_secs_f64());
            *times += 1;
        }
    }

    /// Says what came of it and how to go on; the worst of the parts' exit codes.
    fn conclude(
        &self,
        end: End,
        store: &Store,
        signals: &SignalWatch,
    ) -> Result<ExitCode, Failure> {
        let stop_code = match &end {
            End::Last => ExitCode::Ok,
            End::Stopped { .. } => signals.code().unwrap_or(ExitCode::Interrupted),
            End::Broken { why, .. } => why.as_ref().map_or(ExitCode::Ok, Failure::code),
        };
        let codes = self.done.iter().map(|done| done.code);
        let code = codes.chain([stop_code]).max_by_key(|code| badness(*code));
        let code = code.unwrap_or(ExitCode::Ok);
        let go_on = self.go_on(&end);
        let state = match &end {
            End::Last => RunState::Complete,
            End::Stopped { .. } => RunState::Interrupted,
            End::Broken { .. } => RunState::Failed,
        };
        let shown = self.show(store, state, code, &go_on);
        if signals.code() != Some(ExitCode::HungUp) {
            shown?;
        }
        if let End::Broken { why: Some(why), .. } = &end {
            why.tell(&self.output);
        }
        if state != RunState::Complete {
            let parts = format!("{} of {}", self.complete(), self.list.items().len());
            self.output.note(&format!("{} of {}: {parts} parts", state.name(), self.list.name()));
            for command in &go_on {
                self.output.hint(command);
            }
        }
        Ok(code)
    }

    fn complete(&self) -> usize {
        self.done.iter().filter(|done| done.state == RunState::Complete.name()).count()
    }

    fn show(
        &self,
        store: &Store,
        state: RunState,
        code: ExitCode,
        go_on: &[String],
    ) -> Result<(), Failure> {
        if self.args.talk.json {
            let runs = self.done.iter().map(|done| Ok(report::document(&store.load(&done.run)?)));
            let runs = runs.collect::<Result<_, Failure>>()?;
            return self.output.print(&json(&Document {
                schema: "plimsoll.sequence/1",
                list: self.list.name(),
                group: &self.group,
                of: self.list.items().len(),
                state: state.name(),
                exit_code: code.number(),
                parts: &self.done,
                go_on,
                runs,
            })?);
        }
        if self.done.is_empty() {
            return Ok(());
        }
        let mut text = format!("\n{}, group {}\n\n", report::plain(self.list.name()), self.group);
        for done in &self.done {
            let repeat = match done.repeats {
                1 => String::new(),
                repeats => format!(", {} of {repeats}", done.repeat),
            };
            let Done { number, suite, run, state, .. } = done;
            let suite = report::plain(suite);
            text.push_str(&format!("{number:>4}  {run:<6} {state:<12} {suite}{repeat}\n"));
        }
        self.output.print(&text)?;
        let runs: Vec<&str> = self.done.iter().map(|done| done.run.as_str()).collect();
        let (runs, group) = (runs.join(" "), &self.group);
        self.output.note(&format!("stored as {runs}: `plimsoll explain --group {group}`"));
        Ok(())
    }

    /// Commands that make what is missing.
    fn go_on(&self, end: &End) -> Vec<String> {
        let interrupted = RunState::Interrupted.name();
        let last = self.done.last().filter(|done| done.state == interrupted);
        let mut commands: Vec<String> = last
            .map(|done| format!("`plimsoll resume {}` finishes that part", done.run))
            .into_iter()
            .collect();
        let next = match end {
            End::Last => return commands,
            End::Stopped { next } => *next,
            End::Broken { number, .. } => *number,
        };
        if next as usize <= self.list.items().len() {
            let group = (!self.done.is_empty() || self.args.group.is_some()).then_some(&self.group);
            let words: Vec<String> =
                std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
            let command = continued(&words, next, group.map(String::as_str));
            commands.push(format!("`{command}` goes on with part {next}"));
        }
        commands
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    list: &'a str,
    group: &'a str,
    /// How many runs the whole sequence has.
    of: usize,
    state: &'static str,
    exit_code: u8,
    parts: &'a [Done],
    go_on: &'a [String],
    runs: Vec<report::Document>,
}

fn done(item: &Item<'_>, run: &str, state: RunState, code: ExitCode) -> Done {
    Done {
        number: item.number,
        suite: item.source.name().to_owned(),
        repeat: item.repeat,
        repeats: item.repeats,
        run: run.to_owned(),
        state: state.name(),
        exit_code: code.number(),
        code,
    }
}

/// Ends early if the user wants to stop.
fn pause(time: Nanos, signals: &SignalWatch) {
    let begun = Instant::now();
    while begun.elapsed() < time.as_std() && !signals.interrupt().stops() {
        std::thread::sleep(LOOK.min(time.as_std().saturating_sub(begun.elapsed())));
    }
}

/// Which of two codes says the worse: data that changed is worse than anything, and not having
/// come to the end is worse than visits that failed.
const fn badness(code: ExitCode) -> u8 {
    match code {
        ExitCode::Ok => 0,
        ExitCode::Slower | ExitCode::NothingCompared | ExitCode::CannotTell => 1,
        ExitCode::Incomplete => 2,
        ExitCode::HungUp | ExitCode::Interrupted | ExitCode::Terminated => 3,
        ExitCode::Usage | ExitCode::Refused => 4,
        ExitCode::Target => 5,
        ExitCode::Store => 6,
        ExitCode::Unexpected => 7,
        ExitCode::Mismatch => 8,
    }
}

/// The words of a command that began a sequence, so that it goes on with a part.
///
/// * `words`: the program first.
/// * `group`: of the runs that were made.
pub fn continued(words: &[String], next: u32, group: Option<&str>) -> String {
    let mut kept = vec!["plimsoll".to_owned()];
    let mut rest = words.iter().skip(1);
    while let Some(word) = rest.next() {
        let ours = |option: &str| word.strip_prefix(option);
        match (ours("--from-part"), ours("--group")) {
            // The value is the next word.
            (Some(""), _) | (_, Some("")) => drop(rest.next()),
            (Some(value), _) | (_, Some(value)) if value.starts_with('=') => {}
            _ => kept.push(layout::shell_word(word)),
        }
    }
    kept.extend(["--from-part".to_owned(), next.to_string()]);
    if let Some(group) = group {
        kept.extend(["--group".to_owned(), group.to_owned()]);
    }
    kept.join(" ")
}

fn title_case(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + chars.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_command_goes_on_where_it_ended() {
        let began = words("/usr/bin/plimsoll run studies.toml --target d/ --scale 0.01");
        let next = continued(&began, 3, Some("1f2e3d4c"));
        let wanted =
            "plimsoll run studies.toml --target d/ --scale 0.01 --from-part 3 --group 1f2e3d4c";
        assert_eq!(next, wanted);
        let again = words("plimsoll run --from-part 3 x --group=1f2e3d4c");
        assert_eq!(continued(&again, 5, None), "plimsoll run x --from-part 5");
        let odd = vec!["p".to_owned(), "run".to_owned(), "it's $x".to_owned(), String::new()];
        assert_eq!(continued(&odd, 1, None), r"plimsoll run 'it'\''s $x' '' --from-part 1");
    }

    #[test]
    fn lost_data_is_the_worst() {
        let worst = [ExitCode::Target, ExitCode::Mismatch, ExitCode::Interrupted, ExitCode::Ok]
            .into_iter()
            .max_by_key(|code| badness(*code));
        assert_eq!(worst, Some(ExitCode::Mismatch));
    }
}
