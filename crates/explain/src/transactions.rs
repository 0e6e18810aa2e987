//! What a database carries of a load, how long its users wait, and what it asks of the storage.

use finding::{Code, Finding, Number, Question, Section, Value};
use record::RunState;
use schemars::JsonSchema;
use serde::Serialize;
use stats::LatencyHistogram;
use suite::model::TransactionLoad;

use crate::database::{
    COMMIT_TIME, CounterSums, INCONSISTENT, LOCK_TIME, READ_TIME, REPEATED, SIZE, TRANSACTION_TIME,
    UNCHECKED, sessions,
};
use crate::explanation;
use crate::findings::Findings;
use crate::view::{CellView, View};
use crate::which::disturbed;

/// The name of the contract.
pub const SCHEMA: &str = "plimsoll.transactions/1";

/// The transaction of TPC-C whose number a minute is its figure.
const NEW_ORDER: &str = "new-order";
/// Fewer reads of the device for each transaction: the data are in memory.
const READS_MIN: f64 = 0.1;
/// Values above a percentile that is told.
const ABOVE_MIN: u64 = 10;

/// Busier processors than this share of them are the limit, whatever else takes time: all waits are
/// longer then.
const BUSY_FULL: f64 = 0.85;
/// Less of the processors that so many sessions can keep busy, and they are not what takes the time.
const BUSY_MIN: f64 = 0.5;
/// What takes this share of the time, and so many times the next one's, is the limit.
const LIMIT_MIN: f64 = 0.5;
const LIMIT_LEAD: f64 = 1.5;

/// What a database carries.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DatabaseTransactions {
    /// Always `plimsoll.transactions/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: String,
    /// `PostgreSQL 15.18`.
    pub engine: String,
    /// As the user named it.
    pub target: String,
    /// The run.
    pub run: String,
    /// Which load; null where the run's suite cannot be read.
    pub load: Option<TransactionLoad>,
    /// How large the database is: warehouses of TPC-C, branches of TPC-B.
    pub scale: u32,
    /// What it took at the end, log included, bytes.
    pub size: Option<u64>,
    /// Processors of the machine.
    pub processors: u32,
    /// Whether all consistency conditions held at the end; null where that is not known.
    pub consistent: Option<bool>,
    /// By number of sessions.
    pub figures: Vec<TransactionFigure>,
    /// The answer.
    pub answer: Section,
}

/// What a number of sessions did.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TransactionFigure {
    /// How many.
    pub sessions: u32,
    /// Committed New-Orders a minute (NOTPM): without keying and think times, so no tpmC; null of other
    /// loads than TPC-C.
    pub new_orders: Option<Number>,
    /// Transactions of all kinds a second.
    pub transactions: Number,
    /// By kind.
    pub kinds: Vec<KindFigure>,
    /// Tries that the engine ended for another's sake, for each transaction.
    pub repeated: Option<f64>,
    /// Transactions that failed.
    pub failed: u64,
    /// Processors that server and clients kept busy.
    pub busy: Option<f64>,
    /// Where the time of a transaction goes; null where the run did not count it.
    pub time: Option<TimeShares>,
    /// What limits the rate.
    pub limit: TransactionLimit,
    /// What the devices did for each transaction; null where none is known.
    pub device: Option<DeviceFigure>,
}

/// A kind of transaction.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct KindFigure {
    /// `new-order`, `payment`, ...; `rolled-back` for orders that end so on purpose.
    pub kind: String,
    /// Its share of all.
    pub share: f64,
    /// Percentiles of its response time and their values, ns; those with too little behind them are left
    /// out.
    pub response_ns: Vec<(f64, u64)>,
}

/// Where the time of transactions goes: shares, 1 together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TimeShares {
    /// Commits: the log's flush, and the turn of those before.
    pub commits: f64,
    /// Waiting for what other sessions had locked; null where that is not seen, as in the next.
    pub locks: Option<f64>,
    /// Reads of the device.
    pub reads: Option<f64>,
    /// The rest: processors, the way between client and server, waits inside the server.
    pub other: f64,
}

/// What limits the rate of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TransactionLimit {
    /// The processors are busy.
    Processor,
    /// Commits: what the log's device takes to flush.
    Log,
    /// Reads of the data.
    Reads,
    /// Rows that other sessions have locked, while these do neither of the above.
    Locks,
    /// Something inside the server: neither of the above, and processors are free.
    Inside,
    /// No single one.
    Mixed,
    /// The run did not count it.
    Unknown,
}

/// What the devices right below the file systems did for a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DeviceFigure {
    /// Read requests.
    pub reads: f64,
    /// Write requests.
    pub writes: f64,
    /// Flushes.
    pub flushes: f64,
    /// Bytes read.
    pub read_bytes: f64,
    /// Bytes written.
    pub write_bytes: f64,
}

/// * `view`: a run of transactions.
pub fn transactions(view: &View<'_>) -> DatabaseTransactions {
    let header = &view.run.header;
    let findings = Findings::of(view);
    let mut figures: Vec<TransactionFigure> =
        view.grid_rows().filter_map(|row| figure(view, &findings, row)).collect();
    figures.sort_by_key(|figure| figure.sessions);
    let remark = header.target.remarks.first().cloned().unwrap_or_default();
    let engine = remark.split(',').next().unwrap_or_default().to_owned();
    let loaded = view.suite().and_then(|suite| {
        suite.cells().flat_map(|cell| &cell.streams).find_map(|stream| stream.transactions())
    });
    let visits = || view.grid_rows().flat_map(|row| &row.visits);
    let sizes = visits().flat_map(|visit| &visit.visit.counters);
    let size = sizes.filter(|counter| counter.name == SIZE).map(|counter| counter.value).max();
    let warned = |code: &str| header.warnings.iter().any(|warning| warning.code == code);
    let is_over = header.state == RunState::Complete && !warned(UNCHECKED);
    let mut found = DatabaseTransactions {
        schema: SCHEMA.to_owned(),
        engine,
        target: header.target.given.clone(),
        run: header.id.clone(),
        load: loaded.map(|loaded| loaded.load),
        scale: loaded.map_or(0, |loaded| loaded.scale),
        size,
        processors: header.machine.processors,
        consistent: if warned(INCONSISTENT) { Some(false) } else { is_over.then_some(true) },
        figures,
        answer: Section { question: Question::Answer, findings: Vec::new() },
    };
    found.answer.findings = answer(&found, view);
    found
}

/// Whether a run played transactions.
pub(crate) fn plays_transactions(view: &View<'_>) -> bool {
    view.suite().is_some_and(|suite| {
        suite.cells().flat_map(|cell| &cell.streams).any(|stream| stream.transactions().is_some())
    })
}

/// The answer of a run of transactions; `None` of any other, and where nothing was measured.
pub(crate) fn of(view: &View<'_>) -> Option<Vec<Finding>> {
    let found = plays_transactions(view).then(|| transactions(view))?;
    (!found.figures.is_empty()).then_some(found.answer.findings)
}

fn figure(view: &View<'_>, findings: &Findings, row: &CellView<'_>) -> Option<TransactionFigure> {
    let known = findings.interval_of(view, row)?;
    let mut kinds: Vec<(String, u64, LatencyHistogram)> = Vec::new();
    let mut failed = 0;
    for op in row.visits.iter().flat_map(|visit| &visit.visit.streams).flat_map(|s| &s.ops) {
        failed += op.errors.iter().map(|(_, count)| count).sum::<u64>();
        match kinds.iter_mut().find(|(name, ..)| *name == op.op) {
            Some((_, requests, latency)) => {
                *requests += op.requests;
                latency.merge(&op.latency);
            }
            None => kinds.push((op.op.clone(), op.requests, op.latency.clone())),
        }
    }
    let all: u64 = kinds.iter().map(|(_, requests, _)| requests).sum();
    let share = |requests: u64| requests as f64 / all.max(1) as f64;
    let new_orders = kinds.iter().find(|(name, ..)| name == NEW_ORDER);
    let a_minute = new_orders.map(|(_, requests, _)| 60.0 * share(*requests));
    let counted = CounterSums::of(row);
    let each = |sum: u64| sum as f64 / counted.commits.max(1) as f64;
    let sessions = row.plans().first()?.queue_depth;
    let time = time_shares(&counted);
    let busy = counted.busy().map(|(all, _)| all);
    // A session and its server's process take turns.
    let at_most = f64::from(view.run.header.machine.processors.min(sessions).max(1));
    Some(TransactionFigure {
        sessions,
        new_orders: a_minute.map(|each| {
            Number::plain(known.mean * each).within(known.low * each, known.high * each)
        }),
        transactions: Number::iops(known.mean).within(known.low, known.high),
        kinds: kinds
            .into_iter()
            .map(|(kind, requests, latency)| {
                let told = |percentile: f64| {
                    let time = latency.quantile_with(percentile / 100.0, ABOVE_MIN)?;
                    Some((percentile, time.get()))
                };
                let response_ns = [50.0, 90.0, 95.0, 99.0, 99.9].into_iter().filter_map(told);
                KindFigure { kind, share: share(requests), response_ns: response_ns.collect() }
            })
            .collect(),
        repeated: counted.sum(REPEATED).map(each),
        failed,
        busy,
        time,
        limit: limit_of(time, busy.map(|busy| busy / at_most)),
        device: device(row, &each),
    })
}

fn time_shares(counted: &CounterSums) -> Option<TimeShares> {
    let all = counted.sum(TRANSACTION_TIME).filter(|all| *all > 0)?;
    // Reads that no session waits for, and waits that end in another visit, are counted too: the time
    // that is left bounds each.
    let mut left = 1.0;
    let mut share = |name: &str| {
        let share = (counted.sum(name)? as f64 / all as f64).min(left);
        left -= share;
        Some(share)
    };
    let (commits, locks, reads) = (share(COMMIT_TIME)?, share(LOCK_TIME), share(READ_TIME));
    Some(TimeShares { commits, locks, reads, other: left })
}

/// * `busy`: of the processors that so many sessions can keep busy.
fn limit_of(time: Option<TimeShares>, busy: Option<f64>) -> TransactionLimit {
    let (Some(time), Some(busy)) = (time, busy) else { return TransactionLimit::Unknown };
    if busy >= BUSY_FULL {
        return TransactionLimit::Processor;
    }
    let (locks, reads) = (time.locks.unwrap_or(0.0), time.reads.unwrap_or(0.0));
    let other = match () {
        () if locks >= LIMIT_MIN => TransactionLimit::Locks,
        () if busy >= BUSY_MIN => TransactionLimit::Processor,
        () => TransactionLimit::Inside,
    };
    // Who waits for a lock waits for what its holder does.
    let of_holders = (1.0 - locks).max(f64::EPSILON);
    let mut shares = [
        (time.commits / of_holders, TransactionLimit::Log),
        (reads / of_holders, TransactionLimit::Reads),
        (time.other / of_holders, other),
    ];
    shares.sort_by(|(one, _), (next, _)| next.total_cmp(one));
    let [(first, limit), (second, _), _] = shares;
    match first >= LIMIT_MIN && first >= LIMIT_LEAD * second {
        true => limit,
        false => TransactionLimit::Mixed,
    }
}

fn device(row: &CellView<'_>, each: &dyn Fn(u64) -> f64) -> Option<DeviceFigure> {
    let entries = || {
        let all = row.visits.iter().flat_map(|visit| &visit.visit.ledger);
        all.filter(|entry| entry.depth == 0)
    };
    entries().next()?;
    let sum = |of: fn(&record::LedgerEntry) -> u64| each(entries().map(of).sum());
    Some(DeviceFigure {
        reads: sum(|entry| entry.reads),
        writes: sum(|entry| entry.writes),
        flushes: sum(|entry| entry.flushes),
        read_bytes: sum(|entry| entry.read_bytes),
        write_bytes: sum(|entry| entry.write_bytes),
    })
}

fn answer(of: &DatabaseTransactions, view: &View<'_>) -> Vec<Finding> {
    let unfinished = view.run.header.state != RunState::Complete;
    let named = |code| {
        Finding::new(code)
            .with("engine", Value::words(&of.engine))
            .with("target", Value::name(&of.target))
    };
    let Some(last) = of.figures.last() else {
        return vec![named(Code::TransactionsNothing).with("unfinished", unfinished)];
    };
    let list = |one: &dyn Fn(&TransactionFigure) -> String| {
        Value::words(finding::numbers::list(&of.figures.iter().map(one).collect::<Vec<_>>()))
    };
    let rates = list(&|figure| {
        let (rate, unit) = match &figure.new_orders {
            // As a rate is written, whatever its unit.
            Some(of) => (Number { unit: figure.transactions.unit, ..*of }, " New-Orders/min"),
            None => (figure.transactions, " transactions/s"),
        };
        let unit = if Some(figure) == of.figures.first() { unit } else { "" };
        let shown = finding::text::shown(&rate);
        format!("{shown}{unit} with {}", sessions(figure.sessions))
    });
    let mut found = vec![
        named(Code::TransactionsRate)
            .with("rates", rates)
            .with("units", Value::words(of.load.map_or_else(String::new, |l| l.units(of.scale))))
            .with("size", Value::words(of.size.map_or("?".to_owned(), finding::numbers::size))),
    ];
    let wait = |figure: &TransactionFigure| {
        let kind = figure.kinds.first()?;
        kind.response_ns.iter().find(|(percentile, _)| *percentile == 90.0).map(|(_, ns)| *ns)
    };
    if of.figures.iter().all(|figure| wait(figure).is_some()) {
        let times = list(&|figure| {
            let wait = finding::numbers::seconds(wait(figure).unwrap_or(0) as f64 / 1e9);
            format!("{wait} with {}", sessions(figure.sessions))
        });
        let kind = last.kinds.first().map_or("", |kind| kind.kind.as_str());
        found.push(
            Finding::new(Code::TransactionsWait)
                .with("kind", Value::words(kind))
                .with("times", times),
        );
    }
    found.extend(of.figures.iter().enumerate().filter_map(|(at, figure)| {
        let is_first = of.figures[..at].iter().all(|before| before.limit != figure.limit);
        is_first.then(|| limited(of, figure.limit)).flatten()
    }));
    found.extend(in_memory(last));
    if of.consistent == Some(false) {
        let warnings = view.run.header.warnings.iter();
        let first = warnings.filter(|warning| warning.code == INCONSISTENT).map(|w| &w.text).next();
        let said = first.cloned().unwrap_or_default();
        found.push(Finding::new(Code::TransactionsInconsistent).with("said", Value::words(said)));
    }
    let visits = view.grid_rows().map(|row| row.visits.len()).min();
    found.push(
        Finding::new(Code::TransactionsSure)
            .with("visits", visits.unwrap_or(0))
            .with("unfinished", unfinished)
            .with("consistent", of.consistent == Some(true))
            .with("tpcc", of.load == Some(TransactionLoad::Tpcc)),
    );
    let disturbed = disturbed(std::slice::from_ref(view), &explanation::sections(view));
    found.extend(Some(disturbed).filter(|one| one.code != Code::AnswerUndisturbed));
    found
}

/// What is said of the numbers of sessions that one thing limits.
fn limited(of: &DatabaseTransactions, limit: TransactionLimit) -> Option<Finding> {
    let code = match limit {
        TransactionLimit::Processor => Code::TransactionsProcessor,
        TransactionLimit::Log => Code::TransactionsLog,
        TransactionLimit::Reads => Code::TransactionsReads,
        TransactionLimit::Locks => Code::TransactionsLocks,
        TransactionLimit::Inside => Code::TransactionsInside,
        TransactionLimit::Mixed => Code::TransactionsMixed,
        TransactionLimit::Unknown => return None,
    };
    let these: Vec<_> = of.figures.iter().filter(|figure| figure.limit == limit).collect();
    let list = |one: &dyn Fn(&TransactionFigure) -> String| {
        let all: Vec<String> = these.iter().map(|figure| one(figure)).collect();
        Value::words(finding::numbers::list(&all))
    };
    let (last, before) = these.split_last()?;
    let mut counts: Vec<_> = before.iter().map(|figure| figure.sessions.to_string()).collect();
    counts.push(sessions(last.sessions));
    let shares = |share: fn(&TimeShares) -> Option<f64>| {
        let share = |figure: &TransactionFigure| figure.time.as_ref().and_then(share);
        list(&|figure| share(figure).map_or("?".into(), finding::numbers::percent))
    };
    let waits = these.iter().any(|one| one.time.and_then(|time| time.locks) >= Some(LIMIT_MIN));
    Some(
        Finding::new(code)
            .with("sessions", Value::words(finding::numbers::list(&counts)))
            .with("commits", shares(|time| Some(time.commits)))
            .with("locks", shares(|time| time.locks))
            .with("reads", shares(|time| time.reads))
            .with("other", shares(|time| Some(time.other)))
            .with("busy", list(&|figure| figure.busy.map_or("?".into(), |b| format!("{b:.1}"))))
            .with("processors", of.processors)
            .with("waits", waits)
            .with("few", last.sessions < of.processors),
    )
}

/// That the device is hardly read.
fn in_memory(figure: &TransactionFigure) -> Option<Finding> {
    let reads = figure.device.as_ref()?.reads;
    let number = Value::words(finding::numbers::digits(reads));
    (reads < READS_MIN).then(|| Finding::new(Code::TransactionsCached).with("reads", number))
}

#[cfg(test)]
mod tests {
    use record::{LedgerEntry, TargetKind, Warning};

    use super::*;
    use crate::freeze::tests::{run, visit};

    #[test]
    fn new_orders_a_minute_are_those_that_were_committed() {
        let mut one = visit(0, NEW_ORDER, &[]);
        let mut other = one.streams[0].ops[0].clone();
        other.op = "payment".to_owned();
        one.streams[0].ops.push(other);
        one.ledger = vec![LedgerEntry { reads: 4 * one.streams[0].ops[0].requests, ..entry() }];
        let mut next = one.clone();
        (next.order, next.repeat) = (1, 1);
        let mut run = run(TargetKind::Database, vec![one, next]);
        let found = transactions(&View::new(&run));
        let [figure] = found.figures.as_slice() else { panic!("{found:?}") };
        let expected = 30.0 * figure.transactions.value;
        let new_orders = figure.new_orders.as_ref().unwrap().value;
        assert!((new_orders / expected - 1.0).abs() < 1e-9, "{figure:?}");
        let reads = figure.device.map(|device| device.reads);
        assert_eq!(reads, Some(2.0), "of both kinds, twice");
        assert_eq!(found.consistent, Some(true));
        run.header.warnings.push(Warning::new(INCONSISTENT, "rows"));
        let view = View::new(&run);
        let found = transactions(&view);
        assert_eq!(found.consistent, Some(false));
        let codes = |code| found.answer.findings.iter().filter(|one| one.code == code).count();
        assert_eq!(codes(Code::TransactionsInconsistent), 1);
    }

    fn shares(commits: f64, locks: f64, reads: f64) -> TimeShares {
        let other = 1.0 - commits - locks - reads;
        TimeShares { commits, locks: Some(locks), reads: Some(reads), other }
    }

    #[test]
    fn the_limit_takes_most_of_the_time_or_the_processors() {
        for (time, busy, limit) in [
            (shares(0.9, 0.0, 0.0), 0.2, TransactionLimit::Log),
            // All waits are longer with processors that are full.
            (shares(0.7, 0.0, 0.0), 0.9, TransactionLimit::Processor),
            (shares(0.2, 0.0, 0.1), 0.6, TransactionLimit::Processor),
            (shares(0.1, 0.0, 0.1), 0.3, TransactionLimit::Inside),
            (shares(0.2, 0.0, 0.7), 0.3, TransactionLimit::Reads),
            // Behind rows whose holders wait for the log, or for nothing of the storage.
            (shares(0.2, 0.7, 0.0), 0.3, TransactionLimit::Log),
            (shares(0.05, 0.7, 0.05), 0.6, TransactionLimit::Locks),
            (shares(0.45, 0.0, 0.4), 0.3, TransactionLimit::Mixed),
            (shares(0.3, 0.0, 0.3), 0.3, TransactionLimit::Mixed),
        ] {
            assert_eq!(limit_of(Some(time), Some(busy)), limit, "{time:?} {busy}");
        }
        assert_eq!(limit_of(None, Some(0.1)), TransactionLimit::Unknown);
    }

    #[test]
    fn the_time_of_a_transaction_is_shared_out() {
        let mut one = visit(0, NEW_ORDER, &[]);
        let counter = |name: &str, value| record::Counter {
            name: name.to_owned(),
            unit: "us".to_owned(),
            value,
        };
        one.counters = vec![
            counter(crate::database::TIME, 1_000_000),
            counter(crate::database::SERVER_CPU, 100_000),
            counter(TRANSACTION_TIME, 8_000_000),
            counter(COMMIT_TIME, 6_000_000),
            // More than is left.
            counter(READ_TIME, 7_000_000),
        ];
        let mut next = one.clone();
        (next.order, next.repeat) = (1, 1);
        let run = run(TargetKind::Database, vec![one, next]);
        let view = View::new(&run);
        let found = transactions(&view);
        let figure = &found.figures[0];
        assert_eq!(figure.time, Some(TimeShares { locks: None, ..shares(0.75, 0.0, 0.25) }));
        assert_eq!(figure.limit, TransactionLimit::Log);
        let said = found.answer.findings.iter().find(|one| one.code == Code::TransactionsLog);
        assert_eq!(
            said.unwrap().text(),
            "With 1 session the log limits it: 75 % of a transaction's time passes in its commit."
        );
    }

    fn entry() -> LedgerEntry {
        LedgerEntry {
            device: "sda".to_owned(),
            depth: 0,
            reads: 0,
            read_bytes: 0,
            writes: 0,
            write_bytes: 0,
            discards: 0,
            discard_bytes: 0,
            flushes: 0,
            queue_ms: 0,
            in_flight_end: 0,
        }
    }
}
