//! The two published bm-flash tables: 12 disks as RAID 0 and 4 as RAID 5, one controller of 4 GiB
//! cache, one file of 4 GiB.

use record::*;
use stats::LatencyHistogram;

pub const RAID0: &str = include_str!("../data/bm-flash-raid0-12.txt");
pub const RAID5: &str = include_str!("../data/bm-flash-raid5-4.txt");

const THREADS: [u32; 3] = [1, 10, 40];
const SECONDS: u64 = 10;

/// A table as an imported run: one visit a cell, rows left to right, blanks without a visit.
pub fn run(id: &str, listing: &str) -> Run {
    let mut run = Run { header: header(id), cells: Vec::new(), visits: Vec::new() };
    fill(&mut run);
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
        let mut parts = parts.take(THREADS.len());
        for threads in THREADS {
            let text = parts.next().unwrap_or("");
            let iops = text.split_whitespace().next().and_then(|n| n.parse().ok());
            add(&mut run, op, label, threads, iops);
        }
    }
    run
}

fn add(run: &mut Run, op: &str, label: &str, threads: u32, iops: Option<u64>) {
    let index = run.cells.len() as u32;
    let block_bytes = bytes(label);
    run.cells.push(CellRecord {
        index,
        phase: op.to_owned(),
        coordinates: vec![
            ("block_size".to_owned(), units::Bytes::new(block_bytes).to_string()),
            ("threads".to_owned(), threads.to_string()),
        ],
        streams: vec![StreamPlan {
            name: op.to_owned(),
            op: op.to_owned(),
            block_bytes: Some(block_bytes),
            threads,
            queue_depth: 1,
        }],
        impossible: None,
    });
    if let Some(iops) = iops {
        let requests = iops * SECONDS;
        run.visits.push(visit(index, run.visits.len() as u32, op, requests, block_bytes, SECONDS));
    }
}

fn fill(run: &mut Run) {
    let stream = StreamPlan {
        name: "fill".to_owned(),
        op: "write".to_owned(),
        block_bytes: Some(1 << 20),
        threads: 1,
        queue_depth: 1,
    };
    run.cells.push(CellRecord {
        index: 0,
        phase: "fill".to_owned(),
        coordinates: Vec::new(),
        streams: vec![stream],
        impossible: None,
    });
    run.visits.push(visit(0, 0, "write", 4096, 1 << 20, 3));
}

fn bytes(label: &str) -> u64 {
    let (digits, unit) = label.split_at(label.len() - 1);
    let shift = match unit {
        "K" => 10,
        "M" => 20,
        _ => 0,
    };
    digits.parse::<u64>().unwrap() << shift
}

pub fn visit(cell: u32, order: u32, op: &str, requests: u64, block: u64, secs: u64) -> VisitRecord {
    VisitRecord {
        cell,
        repeat: 0,
        order,
        started_unix_ns: 0,
        elapsed_ns: secs * 1_000_000_000,
        load_ns: None,
        end: VisitEnd::Complete,
        purpose: Purpose::Measure,
        ramp_ns: 0,
        waited_ns: 0,
        quiet: None,
        resident_before: None,
        resident_after: None,
        streams: vec![StreamRecord {
            name: op.to_owned(),
            backend: BackendRecord::default(),
            ops: vec![OpRecord {
                op: op.to_owned(),
                requests,
                bytes: requests * block,
                errors: Vec::new(),
                short: 0,
                latency: LatencyHistogram::new(),
                latency_ns_min: 0,
                latency_ns_max: 0,
                latency_ns_sum: 0,
                series: Series::default(),
                slow: Vec::new(),
                slow_dropped: 0,
                late_requests: 0,
                late_bytes: 0,
                reported: None,
            }],
            workers: Vec::new(),
            ramp_requests: 0,
            backlog: 0,
        }],
        completions: Bitmap::default(),
        counters: Vec::new(),
        ledger: Vec::new(),
        host_stalls: Vec::new(),
        warnings: Vec::new(),
    }
}

pub fn header(id: &str) -> RunHeader {
    RunHeader {
        id: id.to_owned(),
        version: VERSION,
        suite: "bm-flash".to_owned(),
        suite_text: String::new(),
        target: TargetRecord {
            given: "/ssd/test.dat".to_owned(),
            resolved: "/ssd/test.dat".to_owned(),
            kind: TargetKind::File,
            size_bytes: 4 << 30,
            files: 1,
            file_system: Some("jfs".to_owned()),
            mount: None,
            devices: Vec::new(),
            direct_alignment: None,
            link: None,
            cache_bytes: Some(4 << 30),
            model: None,
            remarks: Vec::new(),
        },
        seed: 1,
        command_line: Vec::new(),
        program: "bm-flash".to_owned(),
        stack: None,
        machine: Machine {
            host: "host".to_owned(),
            kernel: "2.6.26".to_owned(),
            architecture: "x86_64".to_owned(),
            processor: "unknown".to_owned(),
            processors: 8,
            memory_bytes: 32 << 30,
        },
        started_unix_ns: 0,
        state: RunState::Complete,
        visits_planned: 84,
        blocks: None,
        targets: Vec::new(),
        part: None,
        imported: None,
        warnings: Vec::new(),
    }
}
