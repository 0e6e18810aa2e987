//! The published tables come out of the formatter to the letter.

use record::{Run, VisitRecord};
use report::table;

use crate::sample;

const RAID0: &str = include_str!("../data/bm-flash-raid0-12.txt");
const RAID5: &str = include_str!("../data/bm-flash-raid5-4.txt");
const THREADS: [u32; 3] = [1, 10, 40];

/// A printed cell.
#[derive(Debug)]
struct Printed {
    op: &'static str,
    block: u64,
    threads: u32,
    iops: u64,
    /// Tenths of KiB/s or MiB/s.
    tenths: u64,
    unit: u64,
}

fn block(label: &str) -> u64 {
    let (digits, unit) = label.split_at(label.len() - 1);
    digits.parse::<u64>().unwrap()
        << match unit {
            "B" => 0,
            "K" => 10,
            "M" => 20,
            _ => panic!("{label}"),
        }
}

fn parse(listing: &str) -> Vec<Printed> {
    let mut cells = Vec::new();
    let mut op = "";
    for line in listing.lines() {
        op = match line.trim() {
            "Read Tests:" => "read",
            "Write Tests:" => "write",
            _ => op,
        };
        let mut parts = line.split('|').map(str::trim);
        let Some(label) = parts.next().filter(|l| l.starts_with(|c: char| c.is_ascii_digit()))
        else {
            continue;
        };
        for (threads, text) in THREADS.into_iter().zip(parts) {
            let (iops, bandwidth) = text.split_once(' ').unwrap();
            let bandwidth = bandwidth.trim();
            let (number, unit) = bandwidth.split_at(bandwidth.len() - 1);
            cells.push(Printed {
                op,
                block: block(label),
                threads,
                iops: iops.parse().unwrap(),
                tenths: number.replace('.', "").parse().unwrap(),
                unit: if unit == "K" { 1 << 10 } else { 1 << 20 },
            });
        }
    }
    cells
}

impl Printed {
    /// Rates in bytes per second that print as this cell, if bandwidth is truncated (`shift` 0)
    /// or rounded (`shift` 0.5 tenths): from, to.
    fn rates(&self, shift: f64) -> (f64, f64) {
        let tenth = self.unit as f64 / 10.0;
        let block = self.block as f64;
        let low = (self.iops as f64 * block).max((self.tenths as f64 - shift) * tenth);
        let high = ((self.iops + 1) as f64 * block).min((self.tenths as f64 + 1.0 - shift) * tenth);
        (low, high)
    }

    /// A visit of so long and so many requests that its rate lies in the middle of what prints
    /// as this.
    fn visit(&self, cell: u32, order: u32) -> VisitRecord {
        let (low, high) = self.rates(0.0);
        let rate = (low + high) / 2.0 / self.block as f64;
        let requests = (rate * 10.0).ceil() as u64;
        let elapsed_ns = (requests as f64 / rate * 1e9) as u64;
        let mut op = sample::op(self.op, 0, self.block);
        op.requests = requests;
        op.bytes = requests * self.block;
        sample::visit(cell, order, elapsed_ns, vec![sample::record("main", vec![op])])
    }
}

/// A run that measured what a listing says.
fn run(listing: &str) -> Run {
    let printed = parse(listing);
    let mut run = Run { header: sample::header("bm-flash"), cells: vec![], visits: vec![] };
    run.cells.push(sample::cell(
        0,
        "fill",
        &[],
        vec![sample::stream("fill", "write", Some(1 << 20), 1)],
    ));
    let filled = sample::record("fill", vec![sample::op("write", 4096, 1 << 20)]);
    run.visits.push(sample::visit(0, 0, 3_200_000_000, vec![filled]));
    for op in ["read", "write"] {
        for shift in 0..14 {
            for threads in THREADS {
                let index = run.cells.len() as u32;
                let plan = vec![sample::stream("main", op, Some(512 << shift), threads)];
                run.cells.push(sample::cell(index, op, &[], plan));
                let found = printed
                    .iter()
                    .find(|p| (p.op, p.block, p.threads) == (op, 512 << shift, threads));
                let order = run.visits.len() as u32;
                // What the listing leaves blank was visited, and nothing came of it.
                let visit = match found {
                    Some(p) => p.visit(index, order),
                    None => sample::visit(
                        index,
                        order,
                        10_000_000_000,
                        vec![sample::record("main", vec![sample::op(op, 0, 512)])],
                    ),
                };
                run.visits.push(visit);
            }
        }
    }
    run
}

#[test]
fn the_published_tables_are_printed_to_the_letter() {
    // The last cell of the first listing lost its blank where the text goes on.
    assert_eq!(table::bm_flash(&run(RAID0)).trim_end(), RAID0.trim_end());
    let trimmed: Vec<_> =
        table::bm_flash(&run(RAID5)).lines().map(|l| l.trim_end().to_owned()).collect();
    assert_eq!(trimmed, RAID5.lines().collect::<Vec<_>>());
}

#[test]
fn bandwidth_was_truncated_and_not_rounded() {
    let cells: Vec<_> = [RAID0, RAID5].into_iter().flat_map(parse).collect();
    assert_eq!(cells.len(), 164);
    for cell in &cells {
        let (low, high) = cell.rates(0.0);
        assert!(low < high, "{cell:?}");
    }
    let impossible = cells.iter().filter(|c| {
        let (low, high) = c.rates(0.5);
        low >= high
    });
    let n = impossible.count();
    assert!(n > 20, "{n} cells contradict rounding");
}

#[test]
fn every_published_cell_passes_the_formatter() {
    for cell in [RAID0, RAID5].into_iter().flat_map(parse) {
        let (low, high) = cell.rates(0.0);
        for share in [0.001, 0.5, 0.999] {
            let rate = low + (high - low) * share;
            let unit = if cell.unit == 1 << 10 { 'K' } else { 'M' };
            let bandwidth = format!("{}.{}{unit}", cell.tenths / 10, cell.tenths % 10);
            assert_eq!(table::bandwidth(rate), bandwidth, "{cell:?}");
            assert_eq!(table::iops(rate / cell.block as f64), cell.iops.to_string(), "{cell:?}");
        }
    }
}

#[test]
fn a_blank_between_cells_keeps_its_place_and_large_numbers_theirs() {
    let mut run = run(RAID0);
    // 512B with 10 threads: nothing; with 40 threads: two million a second.
    run.visits[2].streams[0].ops.clear();
    let op = &mut run.visits[3].streams[0].ops[0];
    (op.requests, op.bytes) = (20_000_000, 20_000_000 * 512);
    run.visits[3].elapsed_ns = 10_000_000_000;
    let text = table::bm_flash(&run);
    let lines: Vec<_> = text.lines().skip(4).take(4).collect();
    assert_eq!(
        lines,
        [
            "Block |    1 thread     |   10 threads    |   40 threads    ",
            " Size |    IOPS    BW   |    IOPS    BW   |    IOPS    BW   ",
            "      |                 |                 |                 ",
            " 512B |   11307    5.5M |                 | 2000000  976.5M ",
        ]
    );
}

#[test]
fn nothing_measured_is_no_panic() {
    let mut run = run(RAID0);
    run.visits.clear();
    let text = table::bm_flash(&run);
    assert!(text.starts_with("Read Tests:\n"));
    assert!(text.contains("\n   4M \n"));
    run.cells.clear();
    assert_eq!(table::bm_flash(&run), "");
}
