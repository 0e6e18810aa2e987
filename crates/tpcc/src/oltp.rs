//! The transactions of sysbench's `oltp_*` scripts, as version 1.0 plays them on one table.
//!
//! Numbers of rows are drawn as `--rand-type` says; 1.0.20 draws `special`, whose hot rows are three
//! quarters of the hundredth that it promises: one number chooses and places.
//!
//! Source: sysbench 1.0.20, `src/lua/oltp_common.lua` and `src/sb_rand.c`, by their behaviour.

use stats::Random;
use stats::random::derive_seed;

use crate::conditions::Condition;
use crate::dialect::{Dialect, Statement, queries};
use crate::execute::repeat;
use crate::random::within;
use crate::schema::TableText;
use crate::session::{Intent, Session};
use crate::value::{Datum, Fields, Seconds, fields};
use crate::work::{Calls, Tried};
use crate::workload::{PlayedTransaction, Player, REPEATS, Workload};

/// Rows of a unit of its scale.
const ROWS: u32 = 100_000;
/// Rows of a range.
const RANGE: u32 = 100;
const POINT_SELECTS: usize = 10;

const TABLE: TableText = TableText {
    name: "sbtest1",
    columns: "id int, k int, c char(120), pad char(60)",
    key: "id",
    index: "k",
};

queries! { Step, QUERIES:
    ReadRow = "select c from sbtest1 where id = ?", [Text];
    ReadRange = "select c from sbtest1 where id between ? and ?", [Text];
    SumRange = "select sum(k) from sbtest1 where id between ? and ?", [Int];
    OrderRange = "select c from sbtest1 where id between ? and ? order by c", [Text];
    DistinctRange = "select distinct c from sbtest1 where id between ? and ? order by c", [Text];
    ChangeIndexed = "update sbtest1 set k = k + 1 where id = ?", [];
    ChangeOther = "update sbtest1 set c = ? where id = ?", [];
    DeleteRow = "delete from sbtest1 where id = ?", [];
    InsertRow = "insert into sbtest1 (id, k, c, pad) values (?, ?, ?, ?)", [];
}

/// Which of the scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OltpScript {
    /// `oltp_read_write`: 14 reads, 4 writes.
    ReadWrite,
    /// `oltp_read_only`: the reads.
    ReadOnly,
    /// `oltp_write_only`: the writes.
    WriteOnly,
    /// `oltp_point_select`: one row, in no transaction.
    PointSelect,
}

/// How numbers of rows are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowLaw {
    /// `special`: three quarters of all draws go to the middle three quarters of a hundredth.
    Special,
    /// `uniform`.
    Uniform,
}

/// A script on a table.
#[derive(Clone, Copy, Debug)]
pub struct Oltp {
    rows: u32,
    script: OltpScript,
    law: RowLaw,
    seed: u64,
}

impl Oltp {
    /// * `scale`: in 100 000 rows.
    pub const fn new(scale: u32, script: OltpScript, law: RowLaw, seed: u64) -> Self {
        Self { rows: scale.saturating_mul(ROWS), script, law, seed }
    }

    /// With so many rows, for tests.
    #[must_use]
    pub const fn with_rows(self, rows: u32) -> Self {
        Self { rows, ..self }
    }

    /// A row's number, from 1.
    fn draw(&self, random: &mut Random) -> u32 {
        match self.law {
            RowLaw::Uniform => within(random, 1..=self.rows),
            RowLaw::Special => 1 + special(random, self.rows),
        }
    }
}

/// A number below `n`: with a chance of a quarter the mean of twelve uniform ones, else one of the middle,
/// placed by the number that made the choice.
fn special(random: &mut Random, n: u32) -> u32 {
    let t = f64::from(n);
    let u = unit(random);
    let place = if 4.0 * u < 1.0 {
        t * (0..12).map(|_| unit(random)).sum::<f64>() / 12.0
    } else {
        t / 2.0 - t / 200.0 + u * (t / 100.0 + 1.0)
    };
    (place as u32).min(n.saturating_sub(1))
}

/// Uniform in `0.0..1.0`.
fn unit(random: &mut Random) -> f64 {
    random.below(1 << 53) as f64 / (1u64 << 53) as f64
}

/// So many groups of eleven digits, joined.
fn groups(random: &mut Random, count: usize) -> String {
    let group = |random: &mut Random| format!("{:011}", random.below(100_000_000_000));
    (0..count).map(|_| group(random)).collect::<Vec<_>>().join("-")
}

impl Workload for Oltp {
    fn operations(&self) -> &'static [&'static str] {
        match self.script {
            OltpScript::ReadWrite => &["read-write"],
            OltpScript::ReadOnly => &["read-only"],
            OltpScript::WriteOnly => &["write-only"],
            OltpScript::PointSelect => &["point-select"],
        }
    }

    fn tables(&self) -> Vec<TableText> {
        vec![TABLE]
    }

    fn parts(&self) -> u32 {
        1
    }

    fn rows(&self, _table: usize, _part: u32) -> Box<dyn Iterator<Item = Fields> + '_> {
        let mut random = Random::new(derive_seed(self.seed, &[1]));
        Box::new((1..=self.rows).map(move |id| row(self, id, &mut random).into()))
    }

    fn count(&self) -> u64 {
        self.rows.into()
    }

    fn statements(&self, dialect: Dialect) -> Vec<Statement> {
        dialect.statements(QUERIES)
    }

    fn player(&self, _number: u32, seed: u64) -> Box<dyn Player> {
        Box::new(Client { load: *self, random: Random::new(seed), drawn: Vec::new() })
    }

    fn prepare_conditions(&self, _dialect: Dialect) -> Vec<String> {
        Vec::new()
    }

    fn conditions(&self, dialect: Dialect) -> Vec<Condition> {
        let rows = self.rows;
        let sql = dialect.text(&format!(
            "select abs(count(*) - {rows}) + count(*) - count(distinct id) from sbtest1"
        ));
        vec![Condition { name: "rows", demand: "what is deleted is inserted again", sql }]
    }
}

fn row(load: &Oltp, id: u32, random: &mut Random) -> [Datum; 4] {
    fields![id, load.draw(random), groups(random, 10), groups(random, 5)]
}

struct Client {
    load: Oltp,
    random: Random,
    /// The calls of the next transaction; the same if it is tried again.
    drawn: Vec<(Step, Fields)>,
}

impl Client {
    fn add<const N: usize>(&mut self, step: Step, fields: [Datum; N]) {
        self.drawn.push((step, fields.into()));
    }

    fn reads(&mut self) {
        for _ in 0..POINT_SELECTS {
            let id = self.load.draw(&mut self.random);
            self.add(Step::ReadRow, fields![id]);
        }
        for step in [Step::ReadRange, Step::SumRange, Step::OrderRange, Step::DistinctRange] {
            let first = self.load.draw(&mut self.random);
            self.add(step, fields![first, first + RANGE - 1]);
        }
    }

    fn writes(&mut self) {
        let (load, random) = (self.load, &mut self.random);
        let [indexed, other, gone] = [(); 3].map(|()| load.draw(random));
        let text = groups(random, 10);
        let inserted = row(&load, gone, random);
        self.add(Step::ChangeIndexed, fields![indexed]);
        self.add(Step::ChangeOther, fields![text, other]);
        self.add(Step::DeleteRow, fields![gone]);
        self.add(Step::InsertRow, inserted);
    }
}

impl Player for Client {
    fn draw(&mut self) -> usize {
        self.drawn.clear();
        match self.load.script {
            OltpScript::ReadWrite => {
                self.reads();
                self.writes();
            }
            OltpScript::ReadOnly => self.reads(),
            OltpScript::WriteOnly => self.writes(),
            OltpScript::PointSelect => {
                let id = self.load.draw(&mut self.random);
                self.add(Step::ReadRow, fields![id]);
            }
        }
        0
    }

    fn play(&mut self, session: &mut dyn Session, _now: Seconds) -> PlayedTransaction {
        let calls = |session: &mut dyn Session| -> Tried<Option<()>> {
            let mut calls = Calls::new(session, QUERIES);
            for (step, fields) in &self.drawn {
                calls.add_all(*step, fields);
            }
            calls.fly()?;
            Ok(Some(()))
        };
        let intent = match self.load.script {
            OltpScript::ReadOnly => Intent::Read,
            _ => Intent::Write,
        };
        let (ended, repeated) = match self.load.script {
            // By itself: no transaction is begun.
            OltpScript::PointSelect => (calls(session), Vec::new()),
            _ => repeat(session, intent, REPEATS, calls),
        };
        PlayedTransaction { repeated, failed: ended.err() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shares of the most drawn numbers, of 1.0.20's own draws.
    #[test]
    fn special_is_as_skewed_as_the_original() {
        let n = 100_000;
        let mut random = Random::new(1);
        let mut counts = vec![0u32; n as usize];
        let draws = 2_000_000;
        for _ in 0..draws {
            counts[special(&mut random, n) as usize] += 1;
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let top = |share: f64| {
            let sum: u32 = counts.iter().take((f64::from(n) * share) as usize).sum();
            f64::from(sum) / f64::from(draws)
        };
        for (share, wanted) in [(0.0075, 0.758), (0.01, 0.763), (0.1, 0.869), (0.2, 0.945)] {
            assert!((top(share) - wanted).abs() < 0.003, "{share}: {}", top(share));
        }
    }

    #[test]
    fn a_transaction_has_the_statements_of_its_script() {
        for (script, reads, writes) in [
            (OltpScript::ReadWrite, 14, 4),
            (OltpScript::ReadOnly, 14, 0),
            (OltpScript::WriteOnly, 0, 4),
            (OltpScript::PointSelect, 1, 0),
        ] {
            let load = Oltp::new(1, script, RowLaw::Uniform, 1);
            let mut client = Client { load, random: Random::new(2), drawn: Vec::new() };
            client.draw();
            let written = |step: Step| !QUERIES[usize::from(step)].text.starts_with("select");
            let count = client.drawn.iter().filter(|(step, _)| written(*step)).count();
            assert_eq!((client.drawn.len() - count, count), (reads, writes), "{script:?}");
        }
    }
}
