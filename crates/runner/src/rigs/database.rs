//! `postgres:DIRECTORY`, `mariadb:DIRECTORY`, `sqlite:DIRECTORY`: a database that is made in a
//! directory for the run, and removed with it. It plays commits, where a session inserts a row and waits
//! until that is durable, or transactions on tables that are loaded before. `,log=DIRECTORY` has the log
//! elsewhere, `,memory=SIZE` sets its cache. Behind `postgres:` or `mariadb:` may also be the `//...` of a
//! URL: then a database is made on that server, and dropped at the end.

mod clients;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant as WallInstant};

use db::{Engine, Plan, Ready, Server, ServerUrl};
use record::{Counter, LedgerEntry, RunHeader, TargetKind, TargetRecord, Warning};
use stack::{DeviceCounters, Host, Ledger, Target};
use stats::random::derive_seed;
use suite::model::{Cell, Suite, Transactions, Work};
use tpcc::Workload;
use units::Bytes;

use self::clients::{CommitSeat, SessionTimes, TransactionSeat};

use crate::find::Found;
use crate::quiet::Level;
use crate::rig::{Entering, Kind, Rig, Seat, Site, Stage};
use crate::rigs::files::{counted, levels};
use crate::{Order, RunError, directory};

pub(crate) const POSTGRES: Kind = Kind {
    name: "postgres",
    rest: |rest| stored(Engine::Postgres, rest),
    find: |rest, order, source| find(Engine::Postgres, rest, order, source),
    own_clock: |_| false,
};

pub(crate) const MARIADB: Kind = Kind {
    name: "mariadb",
    rest: |rest| stored(Engine::Mariadb, rest),
    find: |rest, order, source| find(Engine::Mariadb, rest, order, source),
    own_clock: |_| false,
};

pub(crate) const SQLITE: Kind = Kind {
    name: "sqlite",
    rest: |rest| stored(Engine::Sqlite, rest),
    find: |rest, order, source| find(Engine::Sqlite, rest, order, source),
    own_clock: |_| false,
};

/// What each engine comes with.
const MEMORY: Bytes = Bytes::mib(128);

/// A database as it is named.
#[derive(Clone, Debug, PartialEq, Eq)]
enum NamedDatabase {
    /// In a directory.
    Made(MadeDatabase),
    /// On a server that is there.
    Server(ServerUrl),
}

impl NamedDatabase {
    /// From what is behind the colon.
    fn parse(engine: Engine, rest: &str) -> Result<Self, String> {
        match rest.starts_with("//") {
            true => ServerUrl::parse(engine, rest).map(Self::Server),
            false => MadeDatabase::parse(engine, rest).map(Self::Made),
        }
    }

    const fn engine(&self) -> Engine {
        match self {
            Self::Made(made) => made.engine,
            Self::Server(url) => url.engine,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Made(made) => made.text(),
            Self::Server(url) => url.rest().to_owned(),
        }
    }

    /// With paths that say the same wherever they are read.
    fn resolved(&self) -> String {
        match self {
            Self::Made(made) => made.resolved().text(),
            Self::Server(_) => self.text(),
        }
    }

    fn places(&self) -> impl Iterator<Item = &PathBuf> {
        let made = match self {
            Self::Made(made) => Some(made),
            Self::Server(_) => None,
        };
        made.into_iter().flat_map(|made| std::iter::once(&made.on).chain(&made.log_on))
    }

    /// Looks whether it can be made. Changes nothing.
    fn look(&self, data: Bytes, key: u64) -> Result<Ready, db::DbError> {
        match self.clone() {
            Self::Made(MadeDatabase { engine, on, log_on, memory }) => {
                db::look(&Plan { engine, on, log_on, memory, data, key })
            }
            Self::Server(url) => db::look_at_server(&url, key),
        }
    }
}

/// A database that is made in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct MadeDatabase {
    engine: Engine,
    on: PathBuf,
    log_on: Option<PathBuf>,
    memory: Bytes,
}

impl MadeDatabase {
    fn parse(engine: Engine, rest: &str) -> Result<Self, String> {
        let (mut on, mut log_on, mut memory) = (rest, None, MEMORY);
        // From the end: a directory's name may have commas.
        while let Some((before, option)) = on.rsplit_once(',') {
            match option.split_once('=') {
                Some(("log", path)) if !path.is_empty() => log_on = Some(PathBuf::from(path)),
                Some(("memory", size)) => memory = size.parse().map_err(|e| format!("{e}"))?,
                _ => break,
            }
            on = before;
        }
        if on.is_empty() {
            return Err(format!("`{}:` needs a directory after the colon", engine.name()));
        }
        Ok(Self { engine, on: on.into(), log_on, memory })
    }

    fn text(&self) -> String {
        let log = self.log_on.as_ref().map(|log| format!(",log={}", log.display()));
        let memory = (self.memory != MEMORY).then(|| format!(",memory={}", self.memory.exact()));
        let (log, memory) = (log.unwrap_or_default(), memory.unwrap_or_default());
        format!("{}{log}{memory}", self.on.display())
    }

    fn resolved(&self) -> Self {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let log_on = self.log_on.as_deref().map(real);
        Self { on: real(&self.on), log_on, ..self.clone() }
    }
}

fn stored(engine: Engine, rest: &str) -> Result<String, String> {
    NamedDatabase::parse(engine, rest).map(|named| named.text())
}

/// A run's directories that it did not remove, since it was killed.
pub(crate) fn left_behind(header: &RunHeader) -> Vec<db::LeftDatabase> {
    let Some((name, rest)) = header.target.resolved.split_once(':') else { return Vec::new() };
    let named = Engine::parse(name).and_then(|engine| NamedDatabase::parse(engine, rest).ok());
    let key = directory::key(header);
    let all = named.iter().flat_map(NamedDatabase::places).flat_map(|place| db::left_behind(place));
    all.filter(|left| left.key == key).collect()
}

fn find(
    engine: Engine,
    rest: &str,
    _: &Order,
    source: &mut suite::SuiteSource,
) -> Result<Found, RunError> {
    let parsed = NamedDatabase::parse(engine, rest);
    let named = parsed.map_err(|why| RunError::TargetName { text: rest.to_owned(), why })?;
    let suite = crate::find::checked(source, None)?;
    let asked = asked(&suite, engine)?;
    // The run's number is not known yet: what is looked at is the same for all.
    let ready = named.look(asked.data(), 0)?;
    let host = Host::this();
    let targets = named.places().map(|place| Ok(stack::inspect(&host, place)?));
    let targets: Vec<Target> = targets.collect::<Result<_, RunError>>()?;
    let stale = named.places().flat_map(|place| db::left_behind(place)).collect();
    let record = record(&named, &targets, &ready);
    let site = Box::new(Database { named, ready, targets, stale, asked });
    Ok(Found {
        site,
        record,
        records: Vec::new(),
        capacity: None,
        unit: None,
        as_it_is: false,
        asked: None,
        shorter: None,
    })
}

fn record(named: &NamedDatabase, targets: &[Target], ready: &Ready) -> TargetRecord {
    let name = named.engine().name();
    let first = targets.first().and_then(|target| target.mount.as_ref());
    let devices = targets.iter().flat_map(|target| &target.devices);
    let mut names: Vec<String> = Vec::new();
    for device in devices.filter(|device| device.name.len() < 256) {
        if !names.contains(&device.name) {
            names.push(device.name.clone());
        }
    }
    let mut remarks = ready.remarks.clone();
    if matches!(named, NamedDatabase::Server(_)) {
        let program = &ready.program;
        let seen = "a server that was there: its devices and processors are not seen";
        remarks.insert(0, format!("{program}, {seen}"));
    }
    remarks.extend(ready.left.iter().cloned());
    if !targets.is_empty() && targets.iter().all(|target| target.devices.is_empty()) {
        remarks.push("no block device is known below: what ends the rate is not seen".to_owned());
    }
    TargetRecord {
        given: format!("{name}:{}", named.text()),
        resolved: format!("{name}:{}", named.resolved()),
        kind: TargetKind::Database,
        size_bytes: 0,
        files: 0,
        file_system: first.map(|mount| mount.file_system.clone()),
        mount: first.map(ToString::to_string),
        devices: names,
        direct_alignment: None,
        link: None,
        cache_bytes: None,
        model: None,
        remarks,
    }
}

/// What a run asks a database for: one thing, since it has one database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Commits,
    Transactions(Transactions),
}

impl Asked {
    /// What is loaded for it.
    const fn data(self) -> Bytes {
        match self {
            Self::Commits => Bytes::ZERO,
            // And as much again for what all units share.
            Self::Transactions(Transactions { load, scale }) => {
                Bytes::new(load.unit_bytes().get() * (scale as u64 + 1))
            }
        }
    }
}

fn asked(suite: &Suite, engine: Engine) -> Result<Asked, RunError> {
    let mut asked = None;
    for stream in suite.cells().flat_map(Cell::all_streams) {
        let of_stream = match stream.work {
            Work::Transactions(transactions) => Some(Asked::Transactions(transactions)),
            Work::Blocks | Work::Files(_) => stream.commits().then_some(Asked::Commits),
        };
        if of_stream.is_none() || asked.is_some_and(|asked| Some(asked) != of_stream) {
            return Err(RunError::NotOfDatabases {
                suite: suite.name.clone(),
                stream: stream.name.clone(),
                engine: engine.name(),
            });
        }
        asked = of_stream;
    }
    Ok(asked.unwrap_or(Asked::Commits))
}

#[derive(Debug)]
struct Database {
    named: NamedDatabase,
    ready: Ready,
    targets: Vec<Target>,
    /// What killed runs left there.
    stale: Vec<db::LeftDatabase>,
    asked: Asked,
}

impl Site for Database {
    fn targets(&self) -> &[Target] {
        &self.targets
    }

    fn describe(&self) -> Option<Vec<String>> {
        let stale = self
            .stale
            .iter()
            .map(|left| format!("Removes {}, which a killed run left.", left.path.display()));
        // Its number is drawn with the run.
        let says =
            self.ready.says.iter().map(|said| said.replace(&format!("{:016x}", 0), "NUMBER"));
        let loads = match self.asked {
            Asked::Commits => None,
            Asked::Transactions(Transactions { load, scale }) => {
                Some(format!("loads {} into it, about {}", load.units(scale), self.asked.data()))
            }
        };
        Some(says.chain(loads).chain(stale).collect())
    }

    fn enter(self: Box<Self>, entry: &Entering<'_>) -> Result<Box<dyn Rig>, RunError> {
        // Nothing depends on it, and whoever removes that run is told.
        self.stale.iter().for_each(|left| drop(db::remove(left)));
        let ready = self.named.look(self.asked.data(), entry.key)?;
        let sessions = entry.cells.iter().map(|cell| {
            cell.streams.iter().map(|stream| stream.threads * stream.queue_depth).sum()
        });
        let sessions: u32 = sessions.max().unwrap_or(1);
        let devices: Vec<_> =
            self.targets.iter().flat_map(|target| target.devices.clone()).collect();
        let ledger = Ledger::new(&Host::this(), &devices);
        let server = ready.start(sessions, entry.stops)?;
        let Some(server) = server else { return Err(RunError::Stopped) };
        let before = ledger.snapshot();
        let name = self.named.engine().name();
        Ok(Box::new(RunningDatabase {
            name,
            server: Some(server),
            ledger,
            before,
            counted: None,
            asked: self.asked,
            workload: match self.asked {
                Asked::Commits => None,
                Asked::Transactions(wanted) => Some(clients::workload(wanted, entry.seed)?),
            },
            is_loaded: false,
            witness: Arc::default(),
        }))
    }
}

struct RunningDatabase {
    name: &'static str,
    /// Until it is left.
    server: Option<Server>,
    ledger: Ledger,
    before: Vec<DeviceCounters>,
    /// What the server had counted before the visit, and when.
    counted: Option<(WallInstant, Vec<db::ServerCounter>)>,
    asked: Asked,
    /// What transactions are played on.
    workload: Option<Box<dyn Workload>>,
    is_loaded: bool,
    witness: Arc<SessionTimes>,
}

impl Rig for RunningDatabase {
    fn operations(&self) -> &'static [&'static str] {
        self.workload.as_ref().map_or(clients::COMMIT, |workload| workload.operations())
    }

    /// A session is a thread with a connection of its own.
    fn as_played(&self, mut cell: Cell) -> Cell {
        for stream in &mut cell.streams {
            (stream.threads, stream.queue_depth) = (stream.threads * stream.queue_depth, 1);
        }
        cell
    }

    fn stage(&mut self, cell: &Cell, seed: u64) -> Result<Option<Stage>, RunError> {
        let name = self.name;
        let Some(server) = &mut self.server else { return Ok(None) };
        if !server.is_alive() {
            return Err(RunError::DatabaseEnded { name, words: server.last_words() });
        }
        let sessions: u32 = cell.streams.iter().map(|stream| stream.threads).sum();
        let seat = |number: u32| -> Result<Box<dyn Seat>, RunError> {
            Ok(match &self.workload {
                None => Box::new(CommitSeat { name, session: server.session()? }),
                Some(workload) => {
                    let player = workload.player(number, derive_seed(seed, &[u64::from(number)]));
                    let (client, witness) = (server.client()?, Arc::clone(&self.witness));
                    Box::new(TransactionSeat::new(
                        name,
                        client,
                        workload.as_ref(),
                        player,
                        witness,
                    )?)
                }
            })
        };
        let seats = (0..sessions).map(seat).collect::<Result<_, RunError>>()?;
        Ok(Some(Stage::Each(seats)))
    }

    fn make_ready(
        &mut self,
        _cell: &Cell,
        stops: &dyn Fn() -> bool,
        tell: &mut dyn FnMut(&str),
    ) -> Result<bool, RunError> {
        let (Asked::Transactions(wanted), Some(workload), Some(server), false) =
            (self.asked, &self.workload, &self.server, self.is_loaded)
        else {
            return Ok(true);
        };
        let units = wanted.load.units(wanted.scale);
        let begin = WallInstant::now();
        let mut progress = |done: u64, all: u64| {
            let share = done as f64 / all.max(1) as f64;
            let left = begin.elapsed().as_secs_f64() * (1.0 / share.max(1e-9) - 1.0);
            tell(&format!("loading {units}: {:.0} %, {left:.0} s left", 100.0 * share));
            !stops()
        };
        if !server.load(workload.as_ref(), &mut progress)? {
            return Ok(false);
        }
        tell("checking the consistency of what was loaded");
        if let Some(first) = server.violations(workload.as_ref())?.first() {
            return Err(RunError::Loading(clients::violated(first)));
        }
        self.is_loaded = true;
        Ok(!stops())
    }

    fn is_twin(&self) -> bool {
        false
    }

    fn mark_before(&mut self) {
        let found = self.server.as_mut().and_then(|server| server.counters().ok());
        self.counted = found.map(|found| (WallInstant::now(), found));
        self.before = self.ledger.snapshot();
    }

    fn ledger(&self) -> (Vec<LedgerEntry>, Vec<Warning>) {
        counted(&self.ledger, &self.before)
    }

    fn counters(&mut self) -> Vec<Counter> {
        let Some((begin, before)) = self.counted.take() else { return Vec::new() };
        let after = self.server.as_mut().and_then(|server| server.counters().ok());
        let Some(after) = after else { return Vec::new() };
        let size = self.server.as_mut().map_or(0, |server| server.size().get());
        let took = u64::try_from(begin.elapsed().as_micros()).unwrap_or(u64::MAX);
        let grown = after.iter().filter_map(|now| {
            let then = before.iter().find(|then| then.name == now.name)?;
            Some(counter(now.name, now.unit, now.value.saturating_sub(then.value)))
        });
        let mut own = vec![
            counter(explain::database::TIME, "us", took),
            counter(explain::database::SIZE, "B", size),
        ];
        if self.workload.is_some() {
            let seen = self.witness.take();
            let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
            own.extend([
                counter(explain::database::REPEATED, "", seen.repeated),
                counter(explain::database::TRANSACTION_TIME, "us", us(seen.transactions)),
                counter(explain::database::COMMIT_TIME, "us", us(seen.commits)),
            ]);
            let read_ms = stack::read_ms(&self.before, &self.ledger.snapshot());
            own.extend(read_ms.map(|ms| counter(explain::database::READ_TIME, "us", 1000 * ms)));
        }
        own.into_iter().chain(grown).collect()
    }

    fn leave(&mut self) -> Vec<Warning> {
        let mut warnings = self.check();
        let left = self.server.take().map_or(Ok(()), Server::stop);
        warnings.extend(left.err().map(|e| Warning::new("left-behind", e.to_string())));
        warnings
    }

    fn levels(&self) -> Option<Vec<Level>> {
        levels(&self.ledger)
    }
}

impl RunningDatabase {
    /// What does not hold of the data when all is over.
    fn check(&self) -> Vec<Warning> {
        let (Some(workload), Some(server), true) = (&self.workload, &self.server, self.is_loaded)
        else {
            return Vec::new();
        };
        match server.violations(workload.as_ref()) {
            Ok(found) => found
                .iter()
                .map(|one| Warning::new(explain::database::INCONSISTENT, clients::violated(one)))
                .collect(),
            Err(error) => {
                let text = format!("whether the data are consistent is not known: {error}");
                vec![Warning::new(explain::database::UNCHECKED, text)]
            }
        }
    }
}

fn counter(name: &str, unit: &str, value: u64) -> Counter {
    Counter { name: name.to_owned(), unit: unit.to_owned(), value }
}

impl std::fmt::Debug for RunningDatabase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunningDatabase").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_stand_behind_a_directory_that_may_have_commas() {
        let read = |rest| MadeDatabase::parse(Engine::Postgres, rest).unwrap();
        assert_eq!(read("/a,b").on, PathBuf::from("/a,b"));
        let full = read("/a,b,log=/nvme,memory=1GiB");
        assert_eq!((full.on.to_str(), full.memory), (Some("/a,b"), Bytes::gib(1)));
        assert_eq!(full.log_on, Some(PathBuf::from("/nvme")));
        assert_eq!(full.text(), "/a,b,log=/nvme,memory=1GiB");
        assert_eq!(read("/a,memory=128MiB").text(), "/a", "what it has anyway is not told");
        for bad in ["", ",log=/x", "/a,memory=much"] {
            assert!(NamedDatabase::parse(Engine::Sqlite, bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_server_is_named_by_its_url_without_a_password() {
        for (engine, rest) in [
            (Engine::Postgres, "//joe@db1:5433/app?sslmode=disable"),
            (Engine::Postgres, "//joe@/app?host=/run/pg"),
            (Engine::Mariadb, "//joe@db1/app"),
        ] {
            assert_eq!(NamedDatabase::parse(engine, rest).unwrap().text(), rest);
        }
        for (engine, rest, part) in [
            (Engine::Postgres, "//joe:secret@db1/app", "PGPASSWORD"),
            (Engine::Postgres, "//joe@db1/app?password=secret", "PGPASSWORD"),
            (Engine::Mariadb, "//joe:secret@db1/app", "MYSQL_PWD"),
            (Engine::Sqlite, "//joe@db1/app", "has no server"),
        ] {
            let said = NamedDatabase::parse(engine, rest).unwrap_err();
            assert!(said.contains(part) && !said.contains("secret"), "{said}");
        }
    }
}
