//! Arbitrary bytes: no parser panics, hangs or makes much of little, and what comes out of one goes
//! through everything that is done with runs.
//!
//! `PLIMSOLL_FUZZ=100000 cargo test --release -p plimsoll-import --test it fuzz` is the long form;
//! `PLIMSOLL_FUZZ_SEED` plays another sequence. A failure names its seed and round.

use explain::compare::{Terms, compare};
use explain::explanation::{Context, Explanation};
use explain::view::View;
use import::{Origin, Tool, read};
use record::Run;
use stats::Random;

use super::{sample, samples};

fn number(variable: &str, otherwise: u64) -> u64 {
    let text = std::env::var(variable).ok();
    text.map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{variable}={text}")))
}

/// A place in `len` bytes, its end included.
fn place(random: &mut Random, len: usize) -> usize {
    random.below(len as u64 + 1) as usize
}

fn range(random: &mut Random, len: usize, most: u64) -> std::ops::Range<usize> {
    let from = place(random, len);
    let to = from + random.below(most) as usize;
    from..to.min(len)
}

/// Numbers at the ends of what types hold, and what looks like numbers.
const ODD: [&str; 14] = [
    "0",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775808",
    "4294967296",
    "1e308",
    "1e-400",
    "-1",
    "NaN",
    "99999999999999999999999999999999",
    "0.000000000000000000001",
    "1.7976931348623157e308",
    "+++++",
    "",
];

fn replace_a_number(random: &mut Random, bytes: &mut Vec<u8>) {
    let at = place(random, bytes.len());
    let digit = |b: &u8| b.is_ascii_digit();
    let Some(start) = bytes[at..].iter().position(digit).map(|k| at + k) else { return };
    let end = bytes[start..].iter().position(|b| !digit(b)).map_or(bytes.len(), |k| start + k);
    let odd = ODD[random.below(ODD.len() as u64) as usize];
    bytes.splice(start..end, odd.bytes());
}

fn bend(random: &mut Random, bytes: &mut Vec<u8>, all: &[Vec<u8>]) {
    match random.below(8) {
        0 => bytes.truncate(place(random, bytes.len())),
        1 if !bytes.is_empty() => {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.below(256) as u8;
        }
        2 => drop(bytes.drain(range(random, bytes.len(), 200))),
        3 => {
            // Some of it again, elsewhere.
            let part = bytes[range(random, bytes.len(), 400)].to_vec();
            let at = place(random, bytes.len());
            bytes.splice(at..at, part.repeat(1 + random.below(3) as usize));
        }
        4 => {
            // One sample's head and another's tail.
            let other = &all[random.below(all.len() as u64) as usize];
            bytes.truncate(place(random, bytes.len()));
            bytes.extend_from_slice(&other[place(random, other.len())..]);
        }
        5 => {
            let noise: Vec<u8> = (0..random.below(20)).map(|_| random.below(256) as u8).collect();
            let at = place(random, bytes.len());
            bytes.splice(at..at, noise);
        }
        _ => replace_a_number(random, bytes),
    }
}

/// What later commands do with a run.
fn use_up(run: &Run) {
    let text = serde_json::to_string(&report::document(run)).unwrap();
    assert!(!text.is_empty());
    for stream in report::figures::streams_of(run) {
        let of = stream.figures_of(|_| true);
        for rate in [of.iops(), of.bytes_per_second(), of.latency_ns_mean()] {
            assert!(rate.is_none_or(|rate| rate.is_finite() && rate >= 0.0), "{rate:?}");
        }
    }
    let tables = [report::csv(run), report::table::grid(run), report::table::bm_flash(run)];
    assert!(tables.iter().any(|table| !table.is_empty()));
    let _ = report::table::matrix(run);
    for layout in &report::table::LAYOUTS {
        let _ = layout.print(run);
    }
    let _ = report::hlog(run);
    report::parquet(run).unwrap();
    let mut other = run.clone();
    other.header.id = "other".to_owned();
    let views = [View::new(run), View::new(&other)];
    let explanation = Explanation::of(&views, &Context::default());
    assert!(serde_json::to_string(&explanation).is_ok());
    let terms = Terms { margin: 0.03, floor: None, confidence: 0.95 };
    assert!(serde_json::to_string(&compare(&views, &terms)).is_ok());
}

#[test]
fn bent_spliced_and_noisy_outputs_do_no_harm() {
    let all: Vec<Vec<u8>> = samples().iter().map(|name| sample(name)).collect();
    let (seed, rounds) = (number("PLIMSOLL_FUZZ_SEED", 7), number("PLIMSOLL_FUZZ", 8_000));
    let mut taken = 0;
    for round in 0..rounds {
        // Each round by itself, so that a failure can be played alone.
        let mut random = Random::new(stats::random::derive_seed(seed, &[round]));
        let mut bytes = all[random.below(all.len() as u64) as usize].clone();
        for _ in 0..=random.below(4) {
            bend(&mut random, &mut bytes, &all);
        }
        let tool = match random.below(4) {
            0 => Some(Tool::ALL[random.below(Tool::ALL.len() as u64) as usize]),
            _ => None,
        };
        let guard = Guard { seed, round };
        let origin = Origin { file: "bent".to_owned(), ..Origin::default() };
        match read(&bytes, tool, &origin) {
            Ok(runs) => {
                let cells: usize = runs.iter().map(|run| run.cells.len()).sum();
                assert!(cells <= bytes.len(), "{cells} cells of {} bytes", bytes.len());
                taken += 1;
                if taken % 4 == 0 {
                    runs.iter().take(2).for_each(use_up);
                }
            }
            Err(error) => {
                let told = error.to_string();
                assert!(told.starts_with("bent:") && told.len() < 1_000, "{told}");
                assert!(!told.contains(|c: char| c.is_control()), "{told:?}");
            }
        }
        std::mem::forget(guard);
    }
    // Were nothing taken any more, nothing would be tested.
    assert!(taken > rounds / 25, "{taken} of {rounds} were taken");
}

/// Says where it was when a panic comes through.
struct Guard {
    seed: u64,
    round: u64,
}

impl Drop for Guard {
    fn drop(&mut self) {
        let Self { seed, round } = self;
        println!("PLIMSOLL_FUZZ_SEED={seed}, round {round}");
    }
}

#[test]
fn every_sample_goes_through_every_report() {
    for name in samples() {
        println!("{name}");
        super::import(&name).iter().for_each(use_up);
    }
}

/// What is made of a run is work by what is in it, not by the time that it says it took.
#[test]
fn a_run_of_centuries_goes_through_every_report() {
    let text = String::from_utf8(sample("pgbench-15.txt")).unwrap();
    let text = text.replace("duration: 3 s", "duration: 9000000000 s");
    let runs = super::try_import("pgbench", text.as_bytes()).unwrap();
    assert_eq!(runs[0].visits[0].elapsed_ns, 9_000_000_000 * 1_000_000_000);
    runs.iter().for_each(use_up);
}

#[test]
fn much_of_nothing_is_refused_before_it_takes_room() {
    let told = |bytes: &[u8]| super::try_import("x", bytes).unwrap_err().to_string();
    let too_long = vec![b'x'; import::BYTES_MAX as usize + 1];
    assert!(told(&too_long).contains("more than 32 MiB"), "{}", told(&too_long));
    let lines = "sysbench 1.0\n".repeat((1 << 20) + 1);
    let told_of = |tool| {
        let origin = Origin { file: "x".to_owned(), ..Origin::default() };
        read(lines.as_bytes(), Some(tool), &origin).unwrap_err().to_string()
    };
    assert_eq!(
        told_of(Tool::SysbenchFileio),
        "x:1048577: more than 1048576 lines, which is more than is read of one output"
    );
    let line = "x".repeat((1 << 20) + 1) + " Read Tests: ";
    assert!(told(line.as_bytes()).contains("x:1: a line of more than 1 MiB"));
    // A hundred thousand repeats of a line.
    let row = String::from_utf8(sample("bonnie-1.03.csv")).unwrap();
    // Copies are no repeats, so each has a figure of its own.
    let (head, tail) = row.split_once(',').unwrap();
    let rows: String = (0..100_000).map(|k| format!("{head}{k},{tail}")).collect();
    assert!(told(rows.as_bytes()).contains("more than 10000 cells"));
    // Marks that were once looked for from everywhere to the end.
    for mark in ["<a", "&", "| ", "Read Tests: ", "--- ", "COMBINED ", "{", "[", "\"jobs\""] {
        let _ = super::try_import("x", mark.repeat(1 << 20).as_bytes());
    }
}
