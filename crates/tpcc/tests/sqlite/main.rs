//! The transactions and the conditions on a real engine, SQLite in memory.
#![allow(clippy::unwrap_used, clippy::panic)]

mod faults;
mod runs;
mod session;

use rusqlite::Connection;
use tpcc::{
    Dialect, Ending, Execution, KITS, Population, Repeats, Scale, Seconds, Terminal, conditions,
    execute, prepare_conditions,
};

use crate::session::{Sqlite, load};

const LOADED: Seconds = Seconds(1_700_000_000);
const NOW: Seconds = Seconds(1_800_000_000);

/// Small enough that a test takes well under a second.
fn small(warehouses: u32) -> Population {
    let scale =
        Scale::new(warehouses).unwrap().with_items(500).unwrap().with_customers(60).unwrap();
    Population::new(scale, 11, LOADED)
}

fn loaded(population: Population) -> Sqlite {
    let connection = Connection::open_in_memory().unwrap();
    load(&connection, population);
    Sqlite::new(connection)
}

/// Names of the conditions that do not hold.
fn violated(database: &Sqlite, scale: Scale) -> Vec<&'static str> {
    for sql in prepare_conditions(Dialect::Sqlite) {
        database.connection.execute_batch(&sql).unwrap();
    }
    let conditions = conditions(Dialect::Sqlite, scale);
    conditions.iter().filter(|one| database.count(&one.sql) > 0).map(|one| one.name).collect()
}

/// Plays so many inputs, the terminals in turn.
fn run(database: &mut Sqlite, population: Population, seed: u64, count: usize) -> Vec<Execution> {
    let scale = population.scale();
    let skews = population.skews().at_run(seed);
    let mut terminals: Vec<_> =
        scale.districts().map(|home| Terminal::new(scale, skews, KITS[1], home, seed)).collect();
    let all = terminals.len();
    (0..count)
        .map(|turn| {
            let turn = terminals[turn % all].next().unwrap();
            execute(database, &turn.input, NOW, Repeats(3))
        })
        .collect()
}

fn failures(played: &[Execution]) -> Vec<&Ending> {
    let endings = played.iter().map(|played| &played.ending);
    endings.filter(|ending| matches!(ending, Ending::Failed(_))).collect()
}
