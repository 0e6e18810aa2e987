//! The one thread that reads the store: it looks for changes while somebody watches, and makes pages,
//! one at a time.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use record::{Run, RunState, RunSummary};
use report::page::{self, LIVE_SCHEMA, Live, LiveRun, Trouble};
use report::table::Listed;
use store::{Outside, Store, StoreError};
use tokio::sync::{oneshot, watch};

use crate::Makers;
use crate::ids::Ids;

/// How often the store is looked at while somebody watches. A look without a change asks the kernel
/// about two files, and opens neither.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How much longer than something took to make there is rest: what watching may cost a core of
/// the machine that is being measured is one part of so many and one.
const REST: u32 = 25;
/// Rest that may be owed: who opens a page has it at once, until so much was made at once.
const OWED_MAX: Duration = Duration::from_secs(100);
const REST_MIN: Duration = Duration::from_millis(900);
/// Asked of the kernel: whoever measures goes first.
const NICENESS: i32 = 10;
/// Questions that wait for their turn; who comes then is sent away.
const WAITING_MAX: usize = 32;
/// Pages that are kept, one for each who may listen, and their bytes together.
const PAGES_MAX: usize = 32;
const PAGES_BYTES_MAX: usize = 64 << 20;

/// Why nothing came of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failed {
    /// There is no such run.
    NoRun(Trouble),
    /// The store cannot be read, or what is in it not be drawn.
    Trouble(Trouble),
    /// Too many ask at once.
    Busy,
}

/// A page as it is sent.
#[derive(Clone, Debug)]
pub struct Made {
    /// `plimsoll.page/1`.
    pub json: Bytes,
    /// As of which [`Live::version`].
    pub version: u64,
    /// When it may be made again, if something has changed since.
    pub fresh_in: Option<Duration>,
}

/// What is known of the store.
#[derive(Clone, Debug)]
pub struct Snapshot {
    version: u64,
    /// Who knows less than this version knows nothing.
    whole_since: u64,
    trouble: Option<Trouble>,
    runs: Arc<Vec<LiveRun>>,
    store: Arc<str>,
}

impl Snapshot {
    fn new(store: &Path) -> Self {
        let store = Arc::from(store.display().to_string());
        Self { version: 0, whole_since: 0, trouble: None, runs: Arc::default(), store }
    }

    /// Rises with every change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// What is new to one who knows that version; everything to one who knows none.
    pub fn since(&self, known: Option<u64>) -> Live {
        let known = known.filter(|known| *known >= self.whole_since);
        let is_new = |run: &&LiveRun| known.is_none_or(|known| run.version > known);
        Live {
            schema: LIVE_SCHEMA.to_owned(),
            program: env!("CARGO_PKG_VERSION").to_owned(),
            store: self.store.to_string(),
            version: self.version,
            whole: known.is_none(),
            trouble: self.trouble.clone(),
            runs: self.runs.iter().filter(is_new).cloned().collect(),
        }
    }
}

enum Ask {
    Look(oneshot::Sender<Arc<Snapshot>>),
    Page(Ids, oneshot::Sender<Result<Made, Failed>>),
    /// Somebody will ask for that page.
    Ahead(Ids),
    Tables(Ids, oneshot::Sender<Result<Vec<(String, String)>, Failed>>),
}

impl Ask {
    /// Whether whoever asked has gone.
    fn is_given_up(&self) -> bool {
        match self {
            Self::Look(answer) => answer.is_closed(),
            Self::Page(_, answer) => answer.is_closed(),
            Self::Tables(_, answer) => answer.is_closed(),
            Self::Ahead(_) => false,
        }
    }
}

/// Where questions to the keeper are handed in.
#[derive(Clone, Debug)]
pub struct Desk {
    asks: SyncSender<Ask>,
    news: Arc<watch::Sender<Arc<Snapshot>>>,
}

impl Desk {
    /// The store as it is now.
    pub async fn look(&self) -> Result<Arc<Snapshot>, Failed> {
        self.ask(Ask::Look).await
    }

    /// The page of some runs.
    pub async fn page(&self, ids: Ids) -> Result<Made, Failed> {
        self.ask(|answer| Ask::Page(ids, answer)).await?
    }

    /// Has a page begun that will be asked for, if nobody waits for another.
    pub fn ahead(&self, ids: Ids) {
        let _ = self.asks.try_send(Ask::Ahead(ids));
    }

    /// Titles with tables of some runs.
    pub async fn tables(&self, ids: Ids) -> Result<Vec<(String, String)>, Failed> {
        self.ask(|answer| Ask::Tables(ids, answer)).await?
    }

    /// Hears of every change from now on; the keeper looks for them while somebody does.
    pub fn watch(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.news.subscribe()
    }

    async fn ask<T>(&self, ask: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Result<T, Failed> {
        let (answer, answered) = oneshot::channel();
        match self.asks.try_send(ask(answer)) {
            Ok(()) => answered.await.map_err(|_| Failed::Busy),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => Err(Failed::Busy),
        }
    }
}

/// Starts the keeper of a store; it ends when nobody has its desk any more.
pub fn start(
    path: PathBuf,
    makers: Makers,
) -> Result<(Desk, thread::JoinHandle<()>), std::io::Error> {
    let (asks, asked) = sync_channel(WAITING_MAX);
    let news = Arc::new(watch::Sender::new(Arc::new(Snapshot::new(&path))));
    let desk = Desk { asks, news: Arc::clone(&news) };
    let work = move || {
        // Where it is not granted, it costs more of a busy machine and no more.
        let _ = rustix::process::nice(NICENESS);
        let snapshot = Snapshot::new(&path);
        let rests_until = Instant::now();
        let budget = Budget::new(rests_until);
        let (pages, later) = (VecDeque::new(), VecDeque::new());
        let seen = None;
        Keeper { path, makers, news, snapshot, seen, rests_until, budget, pages, later }
            .work(&asked);
    };
    Ok((desk, thread::Builder::new().name("keeper".to_owned()).spawn(work)?))
}

struct Keeper {
    path: PathBuf,
    makers: Makers,
    news: Arc<watch::Sender<Arc<Snapshot>>>,
    snapshot: Snapshot,
    /// What the store was when its runs were listed, and those runs. It is open only while it is
    /// read: whoever writes or removes it meets nobody.
    seen: Option<Seen>,
    /// Not listed again before: a list of thousands of runs takes its time.
    rests_until: Instant,
    /// For all that is made, whoever asks for it.
    budget: Budget,
    pages: VecDeque<Kept>,
    /// What waits until it may be made.
    later: VecDeque<Ask>,
}

/// What this thread takes of a core. Who waits for somebody's lock takes nothing of it, and is to see
/// soon that the store is free.
struct Work(Duration);

impl Work {
    fn begin() -> Self {
        Self(Self::so_far())
    }

    fn done(&self) -> Duration {
        Self::so_far().saturating_sub(self.0)
    }

    fn so_far() -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
    }
}

/// The rest that is owed for what was made.
#[derive(Clone, Copy, Debug)]
struct Budget {
    owed_until: Instant,
}

impl Budget {
    fn new(now: Instant) -> Self {
        Self { owed_until: now }
    }

    /// * `began`: when it was begun that took so long; that time is no rest of what is owed for others.
    fn spend(&mut self, began: Instant, cost: Duration) {
        self.owed_until = self.owed_until.max(began) + cost * (REST + 1);
    }

    /// Until all of it has been had: newer data wait for that.
    fn rests(&self, now: Instant) -> Duration {
        self.owed_until.saturating_duration_since(now)
    }

    /// Until something that is not there yet may be made.
    fn waits(&self, now: Instant) -> Duration {
        self.rests(now).saturating_sub(OWED_MAX)
    }
}

struct Seen {
    outside: Outside,
    /// Whether what was stored right afterwards would show.
    is_settled: bool,
    runs: Vec<Listed>,
}

/// A page that was made, and what it cost.
struct Kept {
    ids: Ids,
    made: Made,
    at: Instant,
    cost: Duration,
}

impl Kept {
    fn rests(&self) -> Duration {
        (self.cost * REST).max(REST_MIN).saturating_sub(self.at.elapsed())
    }
}

impl Keeper {
    fn work(mut self, asked: &Receiver<Ask>) {
        let mut looked = Instant::now();
        loop {
            let look = match self.news.receiver_count() {
                0 => None,
                _ => Some(LOOK_EVERY.saturating_sub(looked.elapsed())),
            };
            let turn = match self.later.is_empty() {
                true => None,
                false => Some(self.budget.waits(Instant::now())),
            };
            let ask = match look.into_iter().chain(turn).min() {
                None => asked.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(wait) => asked.recv_timeout(wait),
            };
            match ask {
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => self.look(),
                Ok(ask) => {
                    self.look();
                    self.answer(ask);
                }
            }
            looked = Instant::now();
            self.later.retain(|ask| !ask.is_given_up());
            if self.budget.waits(Instant::now()).is_zero()
                && let Some(ask) = self.later.pop_front()
            {
                self.answer(ask);
            }
        }
    }

    /// Whoever asked and is gone loses nothing by an answer that cannot be sent.
    fn answer(&mut self, ask: Ask) {
        if self.makes(&ask) && !self.budget.waits(Instant::now()).is_zero() {
            // Nobody waits for what is made ahead; of the others no more than may wait.
            if self.later.len() < WAITING_MAX && !matches!(ask, Ask::Ahead(_)) {
                self.later.push_back(ask);
            }
            return;
        }
        match ask {
            Ask::Look(answer) => {
                let _ = answer.send(Arc::new(self.snapshot.clone()));
            }
            // Not made for one who has gone already.
            Ask::Page(_, answer) if answer.is_closed() => {}
            Ask::Page(ids, answer) => {
                let _ = answer.send(self.page(&ids));
            }
            Ask::Ahead(ids) => {
                let _ = self.page(&ids);
            }
            Ask::Tables(ids, answer) => {
                let _ = answer.send(self.tables(&ids));
            }
        }
    }

    /// Whether there is something to be made for an answer.
    fn makes(&self, ask: &Ask) -> bool {
        match ask {
            Ask::Look(_) => false,
            Ask::Page(ids, _) | Ask::Ahead(ids) => self.pages.iter().all(|kept| kept.ids != *ids),
            Ask::Tables(..) => true,
        }
    }

    /// Looks whether something has changed, and tells whoever watches.
    fn look(&mut self) {
        let outside = Outside::of(&self.path);
        if !outside.is_there() {
            self.seen = None;
            let missing = self.missing();
            self.put(None, Some(missing));
            return;
        }
        if !self.is_news(&outside) || Instant::now() < self.rests_until {
            return;
        }
        let is_settled = outside.is_settled();
        let (began, work) = (Instant::now(), Work::begin());
        let is_same = self.seen.as_ref().is_some_and(|s| s.outside.is_same_file(&outside));
        let listed =
            Store::open_read_only(&self.path).and_then(|store| self.listed(&store, is_same));
        let cost = work.done();
        self.budget.spend(began, cost);
        let least = if listed.is_err() { REST_MIN } else { Duration::ZERO };
        self.rests_until = Instant::now() + (cost * REST).max(least);
        match listed {
            Ok(runs) => {
                if !is_same {
                    // What was made is of another store, for all that is known.
                    self.pages.clear();
                }
                let lines = self.lines(&runs, is_same);
                self.seen = Some(Seen { outside, is_settled, runs });
                self.put(Some(lines), None);
            }
            Err(error) => {
                // What is known of it may not hold any more.
                self.seen = None;
                self.put(None, Some(trouble(&error)));
            }
        }
    }

    /// Whether there may be something that was not seen.
    fn is_news(&self, outside: &Outside) -> bool {
        let Some(seen) = &self.seen else { return true };
        // Who is killed stores nothing any more.
        let holds = |run: &RunSummary| run.live == store::is_live(&self.path, &run.id);
        let unfinished = |run: &&RunSummary| run.live || run.state == RunState::Running;
        let runs = seen.runs.iter().map(|listed| &listed.run);
        let same = seen.outside == *outside && seen.is_settled;
        !(same && runs.filter(unfinished).all(holds))
    }

    fn missing(&self) -> Trouble {
        let path = self.path.display();
        match self.snapshot.runs.is_empty() {
            true => Trouble {
                error: format!("there is no store {path} yet"),
                hint: Some("`plimsoll run` makes it".to_owned()),
            },
            false => Trouble {
                error: format!("the store {path} is gone"),
                hint: Some(
                    "what is shown was read before; it is read again once it is back".to_owned(),
                ),
            },
        }
    }

    /// The runs as every listing has them. What is told of one takes more than its line in the
    /// store, so it is read again only when that line is another one.
    ///
    /// * `is_same`: the store is the one that was seen before.
    fn listed(&self, store: &Store, is_same: bool) -> Result<Vec<Listed>, StoreError> {
        let seen = self.seen.iter().filter(|_| is_same).flat_map(|seen| &seen.runs);
        let known: HashMap<&str, &Listed> =
            seen.map(|listed| (listed.run.id.as_str(), listed)).collect();
        let read = |run: RunSummary| match known.get(run.id.as_str()) {
            Some(listed) if listed.run == run => Ok((*listed).clone()),
            _ => match store.outline(&run.id) {
                Ok(outline) => Ok(Listed::new(run, &outline)),
                // That passes, and then more can be read.
                Err(error @ StoreError::Locked { .. }) => Err(error),
                // One that is damaged hides no other.
                Err(_) => Ok(Listed::unread(run)),
            },
        };
        let line = |(id, line)| match line {
            Ok(run) => read(run),
            // Why is said to whoever opens it.
            Err(_) => Ok(Listed::damaged(id)),
        };
        store.lines()?.into_iter().map(line).collect()
    }

    /// The runs as they are told, each with the version that it changed with.
    ///
    /// * `is_same`: the store is the one that was seen before; of another all is new.
    fn lines(&self, runs: &[Listed], is_same: bool) -> Vec<LiveRun> {
        let next = self.snapshot.version + 1;
        let known = &self.snapshot.runs;
        let line = |(at, run): (usize, &Listed)| {
            let fresh = LiveRun::new(run, next);
            let old = known.get(at).filter(|old| is_same && old.id == fresh.id);
            match old {
                Some(old) if LiveRun::new(run, old.version) == *old => old.clone(),
                _ => fresh,
            }
        };
        runs.iter().enumerate().map(line).collect()
    }

    /// Puts up what is known now, if it is other than what was.
    ///
    /// * `lines`: `None` leaves the runs as they were known last.
    fn put(&mut self, lines: Option<Vec<LiveRun>>, trouble: Option<Trouble>) {
        let next = self.snapshot.version + 1;
        let is_change = lines.as_ref().is_some_and(|lines| *lines != *self.snapshot.runs);
        if !is_change && trouble == self.snapshot.trouble && self.snapshot.version > 0 {
            return;
        }
        if let Some(lines) = lines {
            // Runs are only added at the end, unless one was removed or the store is another one.
            let is_more = lines.len() >= self.snapshot.runs.len()
                && self.snapshot.runs.iter().zip(&lines).all(|(old, new)| old.id == new.id);
            if !is_more {
                self.snapshot.whole_since = next;
            }
            self.snapshot.runs = Arc::new(lines);
        }
        self.snapshot.trouble = trouble;
        self.snapshot.version = next;
        self.news.send_replace(Arc::new(self.snapshot.clone()));
    }

    /// When the newest of some runs changed.
    fn changed(&self, ids: &Ids) -> Result<u64, Failed> {
        if let Some(trouble) = &self.snapshot.trouble {
            return Err(Failed::Trouble(trouble.clone()));
        }
        let version = |id: &String| {
            let found = self.snapshot.runs.iter().find(|run| run.id == *id);
            found.map(|run| run.version).ok_or_else(|| Failed::NoRun(self.no_run(id)))
        };
        let versions: Vec<u64> =
            ids.as_slice().iter().map(version).collect::<Result<_, Failed>>()?;
        Ok(versions.into_iter().max().unwrap_or(0))
    }

    fn no_run(&self, id: &str) -> Trouble {
        let hint = match self.snapshot.runs.as_slice() {
            [] => "the store is empty; `plimsoll run` adds the first run".to_owned(),
            [only] => format!("the only run is {}", only.id),
            [first, .., last] => {
                format!("the oldest run is {}, the newest {}", first.id, last.id)
            }
        };
        Trouble { error: format!("no run {id} in the store"), hint: Some(hint) }
    }

    fn page(&mut self, ids: &Ids) -> Result<Made, Failed> {
        let version = self.changed(ids)?;
        if let Some(kept) = self.pages.iter().find(|kept| kept.ids == *ids) {
            if kept.made.version >= version {
                return Ok(kept.made.clone());
            }
            let rests = kept.rests().max(self.budget.rests(Instant::now()));
            if !rests.is_zero() {
                return Ok(Made { fresh_in: Some(rests), ..kept.made.clone() });
            }
        }
        let (began, work) = (Instant::now(), Work::begin());
        let json = self.draw(ids);
        let cost = work.done();
        self.budget.spend(began, cost);
        let json = json?;
        let made = Made { json: Bytes::from(json), version, fresh_in: None };
        self.keep(Kept { ids: ids.clone(), made: made.clone(), at: Instant::now(), cost });
        Ok(made)
    }

    fn keep(&mut self, kept: Kept) {
        self.pages.retain(|page| page.ids != kept.ids);
        self.pages.push_back(kept);
        let bytes = |pages: &VecDeque<Kept>| pages.iter().map(|p| p.made.json.len()).sum::<usize>();
        while self.pages.len() > PAGES_MAX
            || (self.pages.len() > 1 && bytes(&self.pages) > PAGES_BYTES_MAX)
        {
            self.pages.pop_front();
        }
    }

    fn draw(&self, ids: &Ids) -> Result<Vec<u8>, Failed> {
        let (store, runs) = self.load(ids)?;
        let terms = (self.makers.terms)(&store, &runs).map_err(Failed::Trouble)?;
        serde_json::to_vec(&page::page(&runs, &terms)).map_err(|error| {
            let error = format!("the page cannot be written as JSON: {error}");
            Failed::Trouble(Trouble { error, hint: None })
        })
    }

    fn tables(&mut self, ids: &Ids) -> Result<Vec<(String, String)>, Failed> {
        self.changed(ids)?;
        let (began, work) = (Instant::now(), Work::begin());
        let made = self.tabled(ids);
        self.budget.spend(began, work.done());
        made
    }

    fn tabled(&self, ids: &Ids) -> Result<Vec<(String, String)>, Failed> {
        let (_, runs) = self.load(ids)?;
        let one = |run: &Run| {
            let header = &run.header;
            let title = [header.id.as_str(), &header.suite, &header.target.given].join(" ");
            (report::plain(title.trim_end()), (self.makers.tables)(run))
        };
        Ok(runs.iter().map(one).collect())
    }

    fn load(&self, ids: &Ids) -> Result<(Store, Vec<Run>), Failed> {
        let opened = Store::open_read_only(&self.path);
        let store = opened.map_err(|error| Failed::Trouble(trouble(&error)))?;
        let load = |id: &String| {
            store.load(id).map_err(|error| match error {
                // Removed since it was looked for.
                StoreError::NoSuchRun { .. } => Failed::NoRun(self.no_run(id)),
                other => Failed::Trouble(trouble(&other)),
            })
        };
        let runs = ids.as_slice().iter().map(load).collect::<Result<_, _>>()?;
        Ok((store, runs))
    }
}

/// What is wrong with the store, causes included.
fn trouble(error: &StoreError) -> Trouble {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(found) = cause {
        text = format!("{text}: {found}");
        cause = found.source();
    }
    Trouble { error: text, hint: error.hint() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays an hour in which something is asked for every millisecond; how long was spent on it.
    fn spent(cost: Duration, may: impl Fn(&Budget, Instant) -> bool) -> Duration {
        let start = Instant::now();
        let mut budget = Budget::new(start);
        let (mut now, mut spent) = (start, Duration::ZERO);
        while now < start + HOUR {
            if may(&budget, now) {
                budget.spend(now, cost);
                now += cost;
                spent += cost;
            } else {
                now += Duration::from_millis(1);
            }
        }
        spent
    }

    const HOUR: Duration = Duration::from_secs(3_600);

    #[test]
    fn however_many_ask_no_more_is_spent() {
        for cost in [3, 200, 2_000].map(Duration::from_millis) {
            let share = HOUR / (REST + 1);
            let fresh = spent(cost, |budget, now| budget.rests(now).is_zero());
            assert!(fresh <= share + cost, "{cost:?} each: {fresh:?} of {share:?}");
            let new = spent(cost, |budget, now| budget.waits(now).is_zero());
            let at_once = OWED_MAX / REST;
            assert!(new > share, "what is opened comes at once");
            assert!(new <= share + at_once + cost * 2, "{cost:?} each: {new:?} of {share:?}");
        }
    }
}
