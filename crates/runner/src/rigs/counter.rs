//! `count:`, for tests alone: something that is no storage, and counts to a million.

use meter::{Done, OpId};
use suite::model::Cell;
use units::Bytes;

use crate::RunError;
use crate::find::Found;
use crate::rig::{Entering, Kind, Rig, Seat, Site, Stage};
use crate::turn::{Part, SessionPart, Turn};

pub(crate) const KIND: Kind = Kind {
    name: "count",
    rest: |rest| Ok(rest.to_owned()),
    find: |_, _, _| Ok(Found::twin(Box::new(Million), "count:", Bytes::ZERO)),
    own_clock: |_| false,
};

#[derive(Debug)]
struct Million;

impl Site for Million {
    fn enter(self: Box<Self>, _entry: &Entering<'_>) -> Result<Box<dyn Rig>, RunError> {
        Ok(self)
    }
}

impl Rig for Million {
    fn operations(&self) -> &'static [&'static str] {
        &["number"]
    }

    fn stage(&mut self, cell: &Cell, _seed: u64) -> Result<Option<Stage>, RunError> {
        let workers = cell.streams.iter().map(|stream| stream.threads).sum();
        let seat = |_| Box::new(Self) as Box<dyn Seat>;
        Ok(Some(Stage::Each((0u32..workers).map(seat).collect())))
    }
}

impl Seat for Million {
    fn play(&mut self, turn: &Turn) -> Result<Option<Part>, RunError> {
        Ok(turn.on_session("counter", &[OpId(0)], self))
    }
}

impl SessionPart for Million {
    fn next(&mut self) -> OpId {
        OpId(0)
    }

    fn play(&mut self, _op: OpId) -> Done {
        Done::Whole { bytes: 0 }
    }
}

#[test]
fn it_is_measured_as_storage_is() {
    let suite = "schema = 1\nname = \"t\"\nmethod = \"classic\"\n[[phase]]\nname = \"main\"\n\
                 block_size = \"4KiB\"\noperations = 1000000\n";
    let directory = std::env::temp_dir().join(format!("plimsoll-count-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let settings = crate::Settings {
        consent: stack::Consent::default(),
        verify: false,
        keep: false,
        cpus: Vec::new(),
        hang_limit: units::Nanos::secs(1),
        failures: 0,
        cache: None,
        command_line: Vec::new(),
        program: String::new(),
        store_path: directory.join("s.db"),
    };
    let order = crate::Order {
        source: suite::parse(suite, "t").unwrap(),
        targets: vec![crate::TargetName::parse("count:".as_ref()).unwrap()],
        seed: Some(1),
        size_given: false,
        settings,
    };
    let mut store = store::Store::open(&directory.join("s.db")).unwrap();
    let prepared = crate::prepare(&order).unwrap();
    let mut watcher = |_: crate::Event<'_>| {};
    let outcome = prepared.run(&mut store, &mut watcher, &crate::Interrupt::default()).unwrap();
    let run = store.load(&outcome.run).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    let op = &run.visits[0].streams[0].ops[0];
    assert_eq!((op.op.as_str(), op.requests), ("number", 1_000_000));
    assert!(report::csv(&run).contains(",number,"));
}
