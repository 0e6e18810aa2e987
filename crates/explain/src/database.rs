//! A database's commits beside those of the place that it is on: how many, and what ends their rate.

use finding::{Code, Finding, Number, Question, Section, Value};
use record::RunState;
use schemars::JsonSchema;
use serde::Serialize;

use crate::compare::{Against, Ratio, Terms, compare};
use crate::explanation;
use crate::findings::Findings;
use crate::view::{CellView, View, whole};
use crate::which::disturbed;

/// The name of the contract.
pub const SCHEMA: &str = "plimsoll.database/1";
/// The suite that is played on both.
pub const SUITE: &str = "commits";

/// Counter: how long was counted, in us.
pub const TIME: &str = "time";
/// Counter: processor time of the server's processes, in us.
pub const SERVER_CPU: &str = "server processor time";
/// Counter: what the database takes, log included, after the visit.
pub const SIZE: &str = "database size";
/// Counter: tries of transactions that the engine ended for another's sake.
pub const REPEATED: &str = "repeated transactions";
/// Counter: time of all sessions from begin to end of their transactions, in us.
pub const TRANSACTION_TIME: &str = "transaction time";
/// Counter: the part of it that sessions waited for commits, in us.
pub const COMMIT_TIME: &str = "commit time";
/// Counter: time of all reads of the devices below, in queue and device, in us.
pub const READ_TIME: &str = "device read time";
/// Counter: time that sessions waited for what others had locked, in us.
pub const LOCK_TIME: &str = "lock wait time";
/// Counter: flushes of the log.
pub const LOG_FLUSHES: &str = "log syncs";
/// Counter: flushes of log and data together, where a server does not tell them apart.
pub const FILE_FLUSHES: &str = "file syncs";
/// Counter: bytes that were written to the log.
pub const LOG_BYTES: &str = "log bytes";

/// Warning: the data are not what transactions must leave.
pub const INCONSISTENT: &str = "inconsistent";
/// Warning: whether they are is not known.
pub const UNCHECKED: &str = "consistency-unknown";

/// From this share of what the place carries on, the flush decides.
const OF_PLACE: f64 = 0.75;
/// Below it the flush is not the larger part of a commit's time.
const OF_PLACE_MIN: f64 = 0.4;
/// The same of the processors that so many sessions can keep busy.
const BUSY_MIN: f64 = 0.4;

/// An interval with ends that are further apart does not tell on which side of a bound a ratio is.
const VAGUE: f64 = 2.0;

/// What ends the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CommitLimit {
    /// The flush of the log: the place by itself carries hardly more.
    Log,
    /// The place carries much more, and the processors were busy.
    Processor,
    /// A good part of a commit's time is the flush, another the processors.
    Both,
    /// Neither: the server waits for something of its own.
    Inside,
    /// Too little is known of the ratio, or nothing was counted.
    Unknown,
}

/// A database on a place.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DatabaseCommits {
    /// Always `plimsoll.database/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: String,
    /// `PostgreSQL 15.18`.
    pub engine: String,
    /// As the user named it.
    pub place: String,
    /// The run on the database.
    pub run: String,
    /// The run on the place by itself.
    pub place_run: String,
    /// Processors of the machine.
    pub processors: u32,
    /// By number of sessions.
    pub figures: Vec<SessionFigure>,
    /// The answer.
    pub answer: Section,
}

/// What a number of sessions did.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SessionFigure {
    /// How many.
    pub sessions: u32,
    /// Commits per second of the database.
    pub commits: Number,
    /// Those of the place by itself.
    pub place: Option<Number>,
    /// The former by the latter.
    pub ratio: Option<Number>,
    /// What ends the rate.
    pub limit: CommitLimit,
    /// Processors that server and clients kept busy.
    pub busy: Option<f64>,
    /// Of that, the server's.
    pub server_busy: Option<f64>,
    /// Commits that shared a flush, by the server's counters; MariaDB counts those of data, too.
    pub commits_per_flush: Option<f64>,
    /// Bytes of log of a commit, likewise.
    pub log_bytes_per_commit: Option<f64>,
}

/// * `database`, `place`: one suite, played on both in blocks.
pub fn commits(database: &View<'_>, place: &View<'_>, terms: &Terms) -> DatabaseCommits {
    let views = [place.clone(), database.clone()];
    let sections: Vec<Section> = views.iter().flat_map(explanation::sections).collect();
    let against = compare(&views, terms).against.into_iter().next();
    let figures = figures(database, place, against.as_ref());
    let header = &database.run.header;
    let remark = header.target.remarks.first().cloned().unwrap_or_default();
    let engine = remark.split(',').next().unwrap_or_default().to_owned();
    let named = place.run.header.target.given.clone();
    let unfinished = views.iter().any(|view| view.run.header.state != RunState::Complete);
    let processors = header.machine.processors;
    let mut found = Vec::new();
    if figures.is_empty() {
        found.push(
            Finding::new(Code::DatabaseNothing)
                .with("engine", Value::words(&engine))
                .with("place", Value::name(&named))
                .with("unfinished", unfinished),
        );
    } else {
        let rate = |figure: &SessionFigure| {
            let unit = if Some(figure) == figures.first() { " commits/s" } else { "" };
            let shown = finding::text::shown(&figure.commits);
            format!("{shown}{unit} by {}", sessions(figure.sessions))
        };
        let rates: Vec<String> = figures.iter().map(rate).collect();
        let rates = finding::numbers::list(&rates);
        found.push(
            Finding::new(Code::DatabaseCommits)
                .with("engine", Value::words(&engine))
                .with("place", Value::name(&named))
                .with("rates", Value::words(rates)),
        );
        let limits = [
            CommitLimit::Log,
            CommitLimit::Both,
            CommitLimit::Processor,
            CommitLimit::Inside,
            CommitLimit::Unknown,
        ];
        found.extend(limits.iter().filter_map(|&of| limit(of, &figures, &named, processors)));
        let visits = |view: &View<'_>| view.grid_rows().map(|row| row.visits.len()).min();
        found.push(
            Finding::new(Code::DatabaseSure)
                .with("blocks", visits(database).unwrap_or(0))
                .with("confidence", Number::share(terms.confidence))
                .with("unfinished", unfinished),
        );
        found.push(disturbed(&views, &sections));
    }
    DatabaseCommits {
        schema: SCHEMA.to_owned(),
        engine,
        place: named,
        run: header.id.clone(),
        place_run: place.run.header.id.clone(),
        processors,
        figures,
        answer: Section { question: Question::Answer, findings: found },
    }
}

pub(crate) fn sessions(n: u32) -> String {
    finding::numbers::count(n.into(), "session")
}

fn figures(database: &View<'_>, place: &View<'_>, against: Option<&Against>) -> Vec<SessionFigure> {
    let (ours, theirs) = (Findings::of(database), Findings::of(place));
    let rate = |findings: &Findings, view: &View<'_>, row: &CellView<'_>| {
        let known = findings.interval_of(view, row)?;
        Some(Number::iops(known.mean).within(known.low, known.high))
    };
    let figure = |row: &CellView<'_>| {
        let sessions = row.plans().first()?.queue_depth;
        let of_place = place.grid_rows().find(|other| other.name() == row.name());
        let compared = against.and_then(|all| all.cells.iter().find(|c| c.cell == row.name()));
        let ratio = compared.and_then(|cell| cell.outcome.ratio).map(number);
        let counted = CounterSums::of(row);
        let busy = counted.busy();
        let mut figure = SessionFigure {
            sessions,
            commits: rate(&ours, database, row)?,
            place: of_place.and_then(|other| rate(&theirs, place, other)),
            ratio,
            limit: CommitLimit::Unknown,
            busy: busy.map(|(all, _)| all),
            server_busy: busy.map(|(_, server)| server),
            commits_per_flush: counted
                .each(LOG_FLUSHES)
                .or_else(|| counted.each(FILE_FLUSHES))
                .map(|flushes| 1.0 / flushes),
            log_bytes_per_commit: counted.each(LOG_BYTES),
        };
        figure.limit = limit_of(&figure, database.run.header.machine.processors);
        Some(figure)
    };
    let mut all: Vec<SessionFigure> = database.grid_rows().filter_map(figure).collect();
    all.sort_by_key(|figure| figure.sessions);
    all
}

fn number(ratio: Ratio) -> Number {
    let plain = Number::ratio(ratio.ratio);
    ratio.low.zip(ratio.high).map_or(plain, |(low, high)| plain.within(low, high))
}

/// Whether it may well be on either side of a bound.
fn is_vague(ratio: &Number, bound: f64) -> bool {
    let ends = ratio.low.zip(ratio.high);
    ends.is_some_and(|(low, high)| high > VAGUE * low && (low..high).contains(&bound))
}

fn limit_of(figure: &SessionFigure, processors: u32) -> CommitLimit {
    let Some(ratio) = &figure.ratio else { return CommitLimit::Unknown };
    // A session and its server's process take turns.
    let at_most = f64::from(processors.min(figure.sessions).max(1));
    match figure.busy.map(|busy| busy / at_most) {
        _ if is_vague(ratio, OF_PLACE) || is_vague(ratio, OF_PLACE_MIN) => CommitLimit::Unknown,
        _ if ratio.value >= OF_PLACE => CommitLimit::Log,
        None => CommitLimit::Unknown,
        // It may be the flush all the same.
        Some(busy) if busy < BUSY_MIN && ratio.high.is_none_or(|high| high >= OF_PLACE) => {
            CommitLimit::Unknown
        }
        Some(busy) if busy < BUSY_MIN => CommitLimit::Inside,
        Some(_) if ratio.value < OF_PLACE_MIN => CommitLimit::Processor,
        Some(_) => CommitLimit::Both,
    }
}

/// What is said of the sessions whose rate is ended by one thing.
fn limit(
    of: CommitLimit,
    figures: &[SessionFigure],
    place: &str,
    processors: u32,
) -> Option<Finding> {
    let these: Vec<&SessionFigure> = figures.iter().filter(|one| one.limit == of).collect();
    let code = match of {
        _ if these.is_empty() => return None,
        CommitLimit::Log => Code::DatabaseLog,
        CommitLimit::Processor => Code::DatabaseProcessor,
        CommitLimit::Both => Code::DatabaseBoth,
        CommitLimit::Inside => Code::DatabaseInside,
        CommitLimit::Unknown => Code::DatabaseUnknown,
    };
    let list = |of: &dyn Fn(&SessionFigure) -> Option<String>| {
        let all: Vec<String> = these.iter().filter_map(|one| of(one)).collect();
        Value::words(finding::numbers::list(&all))
    };
    let shown = |number: &Option<Number>| number.as_ref().map(finding::text::shown);
    let last = these.last().map_or(0, |one| one.sessions);
    let mut counts: Vec<String> = these.iter().map(|one| one.sessions.to_string()).collect();
    counts.pop();
    counts.push(sessions(last));
    Some(
        Finding::new(code)
            .with("sessions", Value::words(finding::numbers::list(&counts)))
            .with("place", Value::name(place))
            .with("rates", list(&|one| Some(format!("{}/s", shown(&one.place)?))))
            .with("shares", list(&|one| Some(finding::numbers::percent(one.ratio.as_ref()?.value))))
            .with("ratios", list(&|one| shown(&one.ratio)))
            .with("busy", list(&|one| Some(format!("{:.1}", one.busy?))))
            .with("server", list(&|one| Some(format!("{:.1}", one.server_busy?))))
            .with("processors", processors),
    )
}

/// The sums of a row's counters.
pub(crate) struct CounterSums {
    server: Vec<(String, u64)>,
    clients_ns: u64,
    /// Commits, or transactions of any kind.
    pub commits: u64,
    measured_ns: u64,
}

impl CounterSums {
    pub fn of(row: &CellView<'_>) -> Self {
        let mut all = Self { server: Vec::new(), clients_ns: 0, commits: 0, measured_ns: 0 };
        for visit in row.visits.iter().map(|visit| visit.visit) {
            for counter in &visit.counters {
                match all.server.iter_mut().find(|(name, _)| *name == counter.name) {
                    Some((_, sum)) => *sum = sum.saturating_add(counter.value),
                    None => all.server.push((counter.name.clone(), counter.value)),
                }
            }
            all.measured_ns = all.measured_ns.saturating_add(visit.elapsed_ns);
            let workers = visit.streams.iter().flat_map(|stream| &stream.workers);
            for worker in workers {
                let used = worker.cpu_user_ns.zip(worker.cpu_system_ns);
                all.clients_ns += used.map_or(0, |(user, system)| user.saturating_add(system));
            }
            for stream in &visit.streams {
                let commits = whole(&stream.ops);
                // The server counts through the ramp, too.
                all.commits += commits.map(|op| op.requests).sum::<u64>() + stream.ramp_requests;
            }
        }
        all
    }

    pub fn sum(&self, name: &str) -> Option<u64> {
        self.server.iter().find(|(known, _)| known == name).map(|(_, sum)| *sum)
    }

    /// Of a commit; `None` where it was not counted.
    fn each(&self, name: &str) -> Option<f64> {
        let sum = self.sum(name).filter(|sum| *sum > 0)?;
        (self.commits > 0).then(|| sum as f64 / self.commits as f64)
    }

    /// Processors that all, and that the server kept busy.
    pub fn busy(&self) -> Option<(f64, f64)> {
        let clients = self.clients_ns as f64 / self.measured_ns.max(1) as f64;
        let time = self.sum(TIME).filter(|time| *time > 0)?;
        // Of a server elsewhere it is not known.
        let server = self.sum(SERVER_CPU)? as f64 / time as f64;
        Some((clients + server, server))
    }
}

#[cfg(test)]
mod tests {
    use record::{Counter, TargetKind, WorkerRecord};

    use super::*;
    use crate::freeze::tests::{run, visit};

    fn figure(sessions: u32, ratio: f64, busy: Option<f64>) -> SessionFigure {
        let mut figure = SessionFigure {
            sessions,
            commits: Number::iops(100.0 * ratio),
            place: Some(Number::iops(100.0)),
            ratio: Some(Number::ratio(ratio).within(ratio - 0.1, ratio + 0.1)),
            limit: CommitLimit::Unknown,
            busy,
            server_busy: busy.map(|busy| busy / 2.0),
            commits_per_flush: None,
            log_bytes_per_commit: None,
        };
        figure.limit = limit_of(&figure, 4);
        figure
    }

    #[test]
    fn the_limit_is_what_takes_the_time() {
        for (sessions, ratio, busy, limit) in [
            (1, 0.9, Some(0.1), CommitLimit::Log),
            // Busy or not: the place itself carries hardly more.
            (64, 0.8, Some(3.9), CommitLimit::Log),
            (64, 0.1, Some(3.0), CommitLimit::Processor),
            (1, 0.55, Some(0.45), CommitLimit::Both),
            // One session keeps one of four processors busy at most.
            (1, 0.2, Some(0.8), CommitLimit::Processor),
            (8, 0.2, Some(0.8), CommitLimit::Inside),
            (8, 0.2, None, CommitLimit::Unknown),
            // Up to 0.8 by its interval.
            (8, 0.7, Some(0.1), CommitLimit::Unknown),
        ] {
            assert_eq!(figure(sessions, ratio, busy).limit, limit, "{sessions} {ratio} {busy:?}");
        }
        for (value, low, high) in [(1.51, 0.66, 3.45), (0.2, 0.08, 0.49)] {
            let mut vague = figure(64, value, Some(3.0));
            vague.ratio = Some(Number::ratio(value).within(low, high));
            assert_eq!(limit_of(&vague, 4), CommitLimit::Unknown, "{value} [{low}, {high}]");
        }
        let of_log = [figure(1, 0.9, Some(0.1)), figure(8, 0.8, Some(0.5)), figure(64, 0.1, None)];
        let said = limit(CommitLimit::Log, &of_log, "/ssd", 4).unwrap().text();
        assert_eq!(
            said,
            "The flush of its log limits it with 1 and 8 sessions: `/ssd` by itself carries 100/s \
             and 100/s, and the database makes 90 % and 80 % of that."
        );
        assert_eq!(limit(CommitLimit::Inside, &of_log, "/ssd", 4), None);
    }

    #[test]
    fn counters_are_summed_over_visits() {
        let mut one = visit(0, "commit", &[]);
        let counter = |name: &str, unit: &str, value| Counter {
            name: name.to_owned(),
            unit: unit.to_owned(),
            value,
        };
        one.counters = vec![
            counter(TIME, "us", 10_000_000),
            counter(SERVER_CPU, "us", 5_000_000),
            counter(LOG_FLUSHES, "", 2_500),
        ];
        let worker = WorkerRecord {
            cpu_user_ns: Some(1_000_000_000),
            cpu_system_ns: Some(1_500_000_000),
            ..WorkerRecord::default()
        };
        one.streams[0].workers = vec![worker];
        let mut other = one.clone();
        (other.order, other.repeat) = (1, 1);
        let run = run(TargetKind::Database, vec![one, other]);
        let view = View::new(&run);
        let row = view.grid_rows().find(|row| !row.visits.is_empty()).unwrap();
        let counted = CounterSums::of(row);
        let commits = 10_000.0;
        assert_eq!(counted.busy(), Some((0.75, 0.5)));
        assert_eq!(counted.each(LOG_FLUSHES), Some(2_500.0 / commits));
        assert_eq!(counted.each(LOG_BYTES), None, "what is not counted is not 0");
    }
}
