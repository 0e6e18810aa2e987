//! Files of fio whose jobs have names of their own, as nearly all have: one grid all the same.

use std::fmt::Write as _;

use explain::{View, barrier, gap, interval};
use record::Run;
use stats::Random;

const SIZES_KIB: [u32; 8] = [4, 8, 16, 32, 64, 128, 256, 512];
const DEPTHS: [u32; 3] = [1, 8, 32];
/// 24 cells of three repeats with 3 % of noise, each job of its own name.
struct Planted {
    seed: u64,
    /// Size and depth of a cell that does a third of what it should.
    gap: Option<(u32, u32)>,
    repeats: u32,
    /// All of one name, as few do.
    one_name: bool,
}

impl Planted {
    fn run(&self) -> Run {
        let mut random = Random::new(self.seed);
        let texts = (0..self.repeats).map(|repeat| self.text(repeat, &mut random));
        let runs = texts.flat_map(|text| super::try_import("f", text.as_bytes()).unwrap());
        import::together(runs.collect()).unwrap()
    }

    fn text(&self, repeat: u32, random: &mut Random) -> String {
        let mut jobs = Vec::new();
        for (group, (kib, depth)) in (0..).zip(cells()) {
            let bytes = f64::from(kib) * 1024.0;
            let served = f64::from(depth) / (100e-6 + bytes / 2e9);
            let mut rate = served.min(80_000.0).min(2e9 / bytes) * (0.03 * random.normal()).exp();
            if self.gap == Some((kib, depth)) {
                rate /= 3.0;
            }
            let (name, ios) = (self.name(kib, depth), (rate * 10.0) as u64);
            let mut job = String::new();
            write!(
                job,
                r#"{{"jobname":"{name}","groupid":{group},"error":0,
                "job options":{{"name":"{name}","bs":"{kib}k","iodepth":"{depth}","stonewall":""}},
                "read":{{"io_bytes":{},"bw":{},"bw_bytes":{},"iops":{rate},"runtime":10000,"total_ios":{ios}}}}}"#,
                ios * u64::from(kib) * 1024,
                rate * bytes / 1024.0,
                rate * bytes,
            )
            .unwrap();
            jobs.push(job);
        }
        format!(
            r#"{{"fio version":"fio-3.33","timestamp":{},
            "global options":{{"rw":"randread","ioengine":"libaio","direct":"1","filename":"/dev/x"}},
            "jobs":[{}]}}"#,
            1_700_000_000 + 1000 * repeat,
            jobs.join(",")
        )
    }

    fn name(&self, kib: u32, depth: u32) -> String {
        if self.one_name { "j".to_owned() } else { format!("rr.{kib}k-d{depth}") }
    }
}

fn cells() -> impl Iterator<Item = (u32, u32)> {
    SIZES_KIB.into_iter().flat_map(|kib| DEPTHS.into_iter().map(move |depth| (kib, depth)))
}

#[test]
fn gaps_are_found_whatever_the_jobs_are_called() {
    let mut random = Random::new(7);
    for seed in 0..20 {
        let place = cells().nth(random.below(24) as usize).filter(|(kib, _)| *kib < 256);
        for one_name in [true, false] {
            let run = Planted { seed, gap: place, repeats: 3, one_name }.run();
            assert_eq!((run.cells.len(), run.visits.len()), (24, 72));
            let found = gap::gaps(&View::new(&run));
            let flagged = found.flagged.iter().map(|cell| {
                (u32::try_from(cell.block_bytes >> 10).unwrap(), cell.in_flight as u32)
            });
            let flagged: Vec<_> = flagged.collect();
            assert_eq!(flagged, place.into_iter().collect::<Vec<_>>(), "{seed} {one_name}");
            assert_eq!(found.unjudged, 0);
        }
    }
}

#[test]
fn the_barrier_is_of_all_jobs_whatever_they_are_called() {
    let of = |one_name| {
        let run = Planted { seed: 3, gap: None, repeats: 3, one_name }.run();
        barrier::barriers(&View::new(&run), None).barriers
    };
    let (own, one) = (of(false), of(true));
    assert_eq!((own.len(), one.len()), (1, 1), "{own:?}");
    assert_eq!(own[0].group, "random read");
    assert_eq!(own[0].iops, one[0].iops);
    assert!(own[0].iops.is_some(), "{:?}", own[0]);
}

#[test]
fn clean_repeats_have_no_outlier_whatever_the_jobs_are_called() {
    for repeats in [3, 5] {
        let odd = (0..40).filter(|&seed| {
            let run = Planted { seed: 100 + seed, gap: None, repeats, one_name: false }.run();
            let found = interval::cells(&View::new(&run));
            found.iter().flatten().any(|cell| !cell.outliers.is_empty())
        });
        let odd = odd.count();
        assert!(odd <= 2, "{odd} of 40 files of {repeats} repeats");
    }
}

/// Another file, or another engine, is another grid; so is the second of two jobs that ask for the
/// same.
#[test]
fn jobs_that_ask_for_something_else_are_no_grid() {
    let planted = Planted { seed: 1, gap: None, repeats: 1, one_name: false };
    let text = planted.text(0, &mut Random::new(1));
    let groups = |text: &str| -> Vec<String> {
        let run = super::try_import("f", text.as_bytes()).unwrap().remove(0);
        let found = barrier::barriers(&View::new(&run), None).barriers;
        found.into_iter().map(|barrier| barrier.group).collect()
    };
    assert_eq!(groups(&text), ["random read"]);
    let other = text.replacen(r#""bs":"4k""#, r#""filename":"/dev/y","bs":"4k""#, 3);
    assert_eq!(groups(&other).len(), 2, "{:?}", groups(&other));
    let twice = text.replace(r#""bs":"8k""#, r#""bs":"4k""#);
    assert_eq!(groups(&twice), ["random read", "random read as `rr.8k-d1`"]);
}
