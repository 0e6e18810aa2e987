//! The published tables of study S1 against what the model says, cell by cell.
#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(clippy::print_stdout, reason = "a table of errors, for those who ask with --nocapture")]

use array::{Component, Fill, Load, Model, builtin};
use serde::Deserialize;
use units::Bytes;

const THREADS: [u32; 3] = [1, 10, 40];

/// bm-flash measures each cell for so many seconds.
const CELL_SECONDS: f64 = 10.0;

#[derive(Deserialize)]
struct Tables {
    table: Vec<Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    name: String,
    array: String,
    operation: String,
    cache: Fill,
    mean: f64,
    worst: f64,
    misses: Vec<(Bytes, u32, String)>,
    cells: Vec<(Bytes, f64, f64, f64, bool)>,
}

struct Cell {
    block: Bytes,
    threads: u32,
    published: f64,
    predicted: f64,
    binding: Component,
    is_fitted: bool,
    is_miss: bool,
}

impl Cell {
    fn error(&self) -> f64 {
        self.predicted / self.published - 1.0
    }
}

fn table(name: &str) -> Table {
    let all: Tables = toml::from_str(include_str!("data/bm-flash.toml")).unwrap();
    all.table.into_iter().find(|table| table.name == name).unwrap()
}

/// Cells that were printed, in the order in which they were measured.
fn cells(table: &Table) -> Vec<Cell> {
    let model = Model::new(builtin::design(&table.array).unwrap());
    let printed = table.cells.iter().flat_map(|&(block, one, ten, forty, is_fitted)| {
        let row = THREADS.into_iter().zip([one, ten, forty]);
        row.map(move |(threads, published)| (block, threads, published, is_fitted))
    });
    printed
        .filter(|(.., published, _)| *published >= 0.0)
        .map(|(block, threads, published, is_fitted)| {
            let load = Load {
                read_share: if table.operation == "read" { 1.0 } else { 0.0 },
                cache: table.cache,
                ..Load::random_reads(block, threads, Bytes::gib(4))
            };
            let answer = model.answer(&load).unwrap();
            let is_miss = table.misses.iter().any(|miss| (miss.0, miss.1) == (block, threads));
            let (predicted, binding) = (answer.rate, answer.binding);
            Cell { block, threads, published, predicted, binding, is_fitted, is_miss }
        })
        .collect()
}

/// The mean error is as promised, and the misses are the listed ones, no more and no fewer.
fn check(table: &Table, cells: &[Cell]) {
    let good: Vec<_> = cells.iter().filter(|cell| !cell.is_miss).collect();
    let mean = good.iter().map(|cell| cell.error().abs()).sum::<f64>() / good.len() as f64;
    let worst = good.iter().max_by(|a, b| a.error().abs().total_cmp(&b.error().abs())).unwrap();
    println!(
        "{} ({} fitted): {} cells, mean {:.2} % of {:.1} %, worst {:+.1} % ({} x {}); {} listed misses",
        table.name,
        good.iter().filter(|cell| cell.is_fitted).count(),
        good.len(),
        mean * 100.0,
        table.mean * 100.0,
        worst.error() * 100.0,
        worst.block.exact(),
        worst.threads,
        table.misses.len(),
    );
    for cell in cells {
        let Cell { block, threads, published, predicted, binding, .. } = cell;
        let error = cell.error() * 100.0;
        let line = format!(
            "{:>7} x {threads:>2}: {published:>6} {predicted:>8.0} {error:>+7.1} % {binding:?}",
            block.exact()
        );
        println!("{line}{}", if cell.is_miss { " MISS" } else { "" });
        assert_eq!(cell.error().abs() > table.worst, cell.is_miss, "{}: {line}", table.name);
    }
    assert!(mean <= table.mean, "{}: mean {mean}", table.name);
}

#[test]
fn r1_reads_of_table_a() {
    let table = table("A reads");
    check(&table, &cells(&table));
}

#[test]
fn r2_reads_of_table_b_which_nothing_was_fitted_to() {
    let table = table("B reads");
    let cells = cells(&table);
    assert!(cells.iter().all(|cell| !cell.is_fitted));
    check(&table, &cells);
}

#[test]
fn r4_writes_of_table_a() {
    let table = table("A writes");
    let cells = cells(&table);
    check(&table, &cells);
    // One lock for the file: threads change nothing.
    for row in cells.chunks(THREADS.len()) {
        assert!(row[0].binding != Component::FileLock, "one thread waits for nobody");
        assert!(row[1..].iter().all(|cell| cell.binding == Component::FileLock));
        assert!(row.iter().all(|cell| (cell.predicted / row[0].predicted - 1.0).abs() < 1e-9));
    }
}

/// The authors have no explanation for the gap that begins with blocks of 64 KiB.
#[test]
fn r5_the_gap_begins_when_the_cache_is_full() {
    let mut table = table("B writes");
    let cache = builtin::design(&table.array).unwrap().controller.part.cache.value;
    let mut cells = cells(&table);
    let mut dirty = 0.0;
    let full = cells.iter().position(|cell| {
        dirty += cell.published * cell.block.get() as f64 * CELL_SECONDS;
        dirty > cache.get() as f64
    });
    let row = full.unwrap() / THREADS.len() * THREADS.len();
    let after = cells.split_off(row);
    assert_eq!(after[0].block, Bytes::kib(64));
    // What drains meanwhile is little: the drives make 200 such writes per second. Before the gap the
    // cache takes several times of what the drives do; then these bind.
    for cell in &cells {
        assert!(cell.published > 5.0 * cell.predicted, "{}", cell.block);
        assert_eq!(cell.binding, Component::Drives);
    }
    table.name += " of a full cache";
    check(&table, &after);
}

/// S1 concludes that the controller, its driver or the drives hold reads at 65 000 per second.
#[test]
fn r8_the_barrier_is_the_lock_of_the_file() {
    let answer = |name: &str, threads, files| {
        let load = Load { files, ..Load::random_reads(Bytes::kib(4), threads, Bytes::gib(4)) };
        Model::new(builtin::design(name).unwrap()).answer(&load).unwrap()
    };
    // From the third thread on one waits for the other; alone nobody does.
    assert!(answer("areca-raid0x12", 1, 1).binding != Component::FileLock);
    assert_eq!(answer("areca-raid0x12", 3, 1).binding, Component::FileLock);
    for threads in [10, 40] {
        let one = answer("areca-raid0x12", threads, 1);
        assert_eq!(one.binding, Component::FileLock);
        // Neither more drives, nor another level, nor a second controller change it: not even
        // twice as fast a link does.
        for name in ["areca-raid5x4", "two-areca-raid0x4", "two-areca-raid0x8", "two-areca-raid5x8"]
        {
            let other = answer(name, threads, 1);
            assert_eq!(other.binding, Component::FileLock, "{name}");
            assert!((other.rate / one.rate - 1.0).abs() < 0.1, "{name}: {}", other.rate);
            let gains = other.parts.iter().filter(|part| part.component != Component::FileLock);
            assert!(
                gains.filter(|p| p.component != Component::Host).all(|p| p.gain < 1.02),
                "{name}"
            );
            assert!(other.parts.iter().all(|part| part.component != Component::Drives), "{name}");
        }
        let gain =
            one.parts.iter().find(|part| part.component == Component::FileLock).unwrap().gain;
        assert!(gain > 1.5, "{gain}");
    }
    // The knee is at two threads.
    let rate = |threads| answer("areca-raid0x12", threads, 1).rate;
    assert!(rate(2) > 1.4 * rate(1) && rate(40) < 1.3 * rate(3));
}

/// S5: xfs more than doubles it, and from there on neither drives nor the level matter.
#[test]
fn r12_another_file_system_or_more_files_break_it() {
    let rate = |name: &str, files| {
        let load = Load { files, ..Load::random_reads(Bytes::kib(4), 40, Bytes::gib(4)) };
        let answer = Model::new(builtin::design(name).unwrap()).answer(&load).unwrap();
        assert!(answer.binding != Component::Drives);
        // How far it goes without the lock depends on a controller of which that is not known.
        let keys: Vec<_> = answer.rests_on.iter().map(|one| one.assumption.key).collect();
        let is_locked = answer.binding == Component::FileLock;
        assert_eq!(keys.contains(&"request_time"), !is_locked, "{name}");
        println!("{name}, {files} files: {:.0} requests/s, {:?}", answer.rate, answer.rests_on);
        answer.rate
    };
    let jfs = rate("two-areca-raid0x4", 1);
    assert!(rate("two-areca-raid6x6-xfs", 1) > (2.0 * jfs).max(100_000.0));
    assert!(rate("two-areca-raid0x4", 40) > (2.0 * jfs).max(100_000.0));
}

/// All cells of a grid: how long that takes is printed, and nothing else is made of it.
#[test]
fn a_grid_of_84_cells() {
    let tables = ["A reads", "B writes"].map(table);
    let begun = std::time::Instant::now();
    let models = tables.each_ref().map(|t| Model::new(builtin::design(&t.array).unwrap()));
    let mut answers = Vec::new();
    for (table, model) in tables.iter().zip(&models) {
        for (block, threads) in
            table.cells.iter().flat_map(|row| THREADS.map(|threads| (row.0, threads)))
        {
            let read_share = if table.operation == "read" { 1.0 } else { 0.0 };
            let reads = Load::random_reads(block, threads, Bytes::gib(4));
            answers.push(model.answer(&Load { read_share, ..reads }).unwrap());
        }
    }
    println!("{} cells in {:?}", answers.len(), begun.elapsed());
    assert_eq!(answers.len(), 84);
}
