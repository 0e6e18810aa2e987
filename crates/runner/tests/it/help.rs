//! What the tests share.

use std::path::{Path, PathBuf};

use record::Run;
use runner::{Event, Interrupt, Order, Outcome, RunError, Settings, TargetName, prepare};
use units::Nanos;

/// A directory of its own for each test, on the disk that cargo builds on: not tmpfs.
pub struct Place(PathBuf);

impl Place {
    pub fn new(name: &str) -> Self {
        let base = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let path = base.join(format!("runner-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The suite in its own order: for tests that are about something else than rounds.
pub fn order(place: &Place, suite: &str, target: &str, sets: &[&str]) -> Order {
    let mut order = order_in_rounds(place, suite, target, sets);
    order.source.set_classic().unwrap();
    order
}

pub fn order_in_rounds(place: &Place, suite: &str, target: &str, sets: &[&str]) -> Order {
    let text = suite::find_builtin(suite).map_or(suite, |b| b.text);
    let mut source = suite::parse(text, "test").unwrap();
    for set in sets {
        source.set(set).unwrap();
    }
    Order {
        source,
        targets: vec![TargetName::parse(target.as_ref()).unwrap()],
        seed: Some(42),
        size_given: sets.iter().any(|s| s.starts_with("file_size")),
        settings: settings(place),
    }
}

pub fn settings(place: &Place) -> Settings {
    Settings {
        consent: stack::Consent::default(),
        verify: false,
        keep: false,
        cpus: Vec::new(),
        hang_limit: Nanos::secs(1),
        failures: 0,
        cache: None,
        command_line: vec!["test".to_owned()],
        program: "0".to_owned(),
        store_path: place.join("store.db"),
    }
}

pub fn go(place: &Place, order: &Order) -> Result<(Outcome, Run), RunError> {
    go_with(place, order, &Interrupt::default(), &mut |_: Event<'_>| {})
}

pub fn go_with(
    place: &Place,
    order: &Order,
    interrupt: &Interrupt,
    watcher: &mut impl FnMut(Event<'_>),
) -> Result<(Outcome, Run), RunError> {
    let mut store = store::Store::open(&place.join("store.db"))?;
    let prepared = prepare(order)?;
    let outcome = prepared.run(&mut store, watcher, interrupt)?;
    let run = store.load(&outcome.run)?;
    Ok((outcome, run))
}
