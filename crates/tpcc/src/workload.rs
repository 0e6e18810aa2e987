//! What a driver needs of any load: its tables, its sessions, and what must hold at rest.

use crate::conditions::{Condition, conditions, prepare_conditions};
use crate::dialect::{Dialect, Statement};
use crate::execute::{Ending, Execution, Repeats, execute, statements};
use crate::input::{Input, Terminal};
use crate::mix::{KITS, Transaction};
use crate::population::Population;
use crate::random::Skews;
use crate::scale::{DISTRICTS, DistrictId, Scale};
use crate::schema::{Table, TableText};
use crate::session::{ErrorClass, Session};
use crate::value::{Fields, Seconds};
use crate::work::TransactionError;

/// A load on a database.
pub trait Workload: std::fmt::Debug + Send + Sync {
    /// What its sessions count; the first is what its figure is about.
    fn operations(&self) -> &'static [&'static str];
    /// Its tables, in the order in which they are loaded.
    fn tables(&self) -> Vec<TableText>;
    /// In how many parts each is loaded.
    fn parts(&self) -> u32;
    /// The rows of a part, counted from 1, of the table at a place of [`Self::tables`].
    fn rows(&self, table: usize, part: u32) -> Box<dyn Iterator<Item = Fields> + '_>;
    /// How many rows all tables have.
    fn count(&self) -> u64;
    /// What sessions prepare.
    fn statements(&self, dialect: Dialect) -> Vec<Statement>;
    /// A session.
    ///
    /// * `number`: from 0, among those that play together.
    fn player(&self, number: u32, seed: u64) -> Box<dyn Player>;
    /// Statements before the conditions, on the same connection.
    fn prepare_conditions(&self, dialect: Dialect) -> Vec<String>;
    /// What must hold while no transaction is open.
    fn conditions(&self, dialect: Dialect) -> Vec<Condition>;
}

/// A session's transactions.
pub trait Player: Send {
    /// Draws the next one; its place in [`Workload::operations`].
    fn draw(&mut self) -> usize;
    /// Plays it.
    fn play(&mut self, session: &mut dyn Session, now: Seconds) -> PlayedTransaction;
}

/// What came of a transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlayedTransaction {
    /// The tries before the last, by why the engine wanted another.
    pub repeated: Vec<ErrorClass>,
    /// Why it neither was committed nor rolled back as it should be.
    pub failed: Option<TransactionError>,
}

/// So often is a transaction tried again that the engine ended for another's sake.
pub(crate) const REPEATS: Repeats = Repeats(10);
/// Sessions neither type nor think.
const SATURATING: usize = 1;
/// The five in their order, and orders that are rolled back on purpose.
const OPERATIONS: [&str; 6] =
    ["new-order", "payment", "order-status", "delivery", "stock-level", "rolled-back"];

/// TPC-C.
#[derive(Clone, Copy, Debug)]
pub struct Tpcc {
    population: Population,
    skews: Skews,
}

impl Tpcc {
    /// * `seed`: of rows and of the run's constants; `date`: of the rows.
    pub fn new(scale: Scale, seed: u64, date: Seconds) -> Self {
        let population = Population::new(scale, seed, date);
        Self { population, skews: population.skews().at_run(seed) }
    }
}

impl Workload for Tpcc {
    fn operations(&self) -> &'static [&'static str] {
        &OPERATIONS
    }

    fn tables(&self) -> Vec<TableText> {
        Table::ALL.iter().map(|table| table.text()).collect()
    }

    fn parts(&self) -> u32 {
        self.population.scale().warehouses()
    }

    fn rows(&self, table: usize, part: u32) -> Box<dyn Iterator<Item = Fields> + '_> {
        match Table::ALL.get(table) {
            Some(table) => self.population.rows(*table, part),
            None => Box::new(std::iter::empty()),
        }
    }

    fn count(&self) -> u64 {
        Table::ALL.iter().map(|table| self.population.count(*table)).sum()
    }

    fn statements(&self, dialect: Dialect) -> Vec<Statement> {
        statements(dialect)
    }

    fn player(&self, number: u32, seed: u64) -> Box<dyn Player> {
        // Sessions stand at terminals of different warehouses as long as there are some.
        let scale = self.population.scale();
        let at = number % (scale.warehouses() * DISTRICTS);
        let home = DistrictId {
            warehouse: 1 + at % scale.warehouses(),
            district: 1 + at / scale.warehouses(),
        };
        let terminal = Terminal::new(scale, self.skews, KITS[SATURATING], home, seed);
        Box::new(AtTerminal { scale, terminal, input: None })
    }

    fn prepare_conditions(&self, dialect: Dialect) -> Vec<String> {
        prepare_conditions(dialect)
    }

    fn conditions(&self, dialect: Dialect) -> Vec<Condition> {
        conditions(dialect, self.population.scale())
    }
}

struct AtTerminal {
    scale: Scale,
    terminal: Terminal,
    input: Option<Input>,
}

impl Player for AtTerminal {
    fn draw(&mut self) -> usize {
        self.input = self.terminal.next().map(|turn| turn.input);
        let Some(input) = &self.input else { return 0 };
        if input.is_to_fail(self.scale) {
            return OPERATIONS.len() - 1;
        }
        let transaction = input.transaction();
        Transaction::ALL.iter().position(|one| *one == transaction).unwrap_or(0)
    }

    fn play(&mut self, session: &mut dyn Session, now: Seconds) -> PlayedTransaction {
        let Some(input) = self.input.take() else { return PlayedTransaction::default() };
        let Execution { ending, repeated } = execute(session, &input, now, REPEATS);
        let failed = match ending {
            Ending::Committed(_) | Ending::RolledBack => None,
            Ending::Failed(error) => Some(error),
        };
        PlayedTransaction { repeated, failed }
    }
}
