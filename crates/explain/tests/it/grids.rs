//! Gaps and barriers of the published grids.

use explain::View;
use explain::barrier::{self, Barrier, Generator, Seat};
use explain::factor::{self, Observation};
use explain::gap::{self, FlaggedCell, Gaps, Kind};

use crate::published::{RAID0, RAID5, run};

fn gaps_of(listing: &str) -> Gaps {
    let mut run = run("r1", listing);
    // A blank of another tool's table is a value that is not there.
    run.header.imported = Some(record::Imported {
        tool: "bm-flash".to_owned(),
        version: None,
        file: String::new(),
        bytes: 0,
        xxh3: String::new(),
        settings: vec![],
        remarks: vec![],
    });
    gap::gaps(&View::new(&run))
}

/// `read 512 1` of the flagged cells, with the ratio in thousandths; -1 for one without a value.
fn flags(gaps: &Gaps) -> Vec<(String, i64)> {
    let name = |c: &FlaggedCell| {
        let ratio = if c.missing { -1 } else { (c.ratio * 1000.0).round() as i64 };
        (format!("{} {} {}", c.op, c.block_bytes, c.threads), ratio)
    };
    gaps.flagged.iter().map(name).collect()
}

#[test]
fn raid0_has_its_first_cell_flagged_and_nothing_else() {
    let gaps = gaps_of(RAID0);
    assert_eq!(flags(&gaps), [("read 512 1".to_owned(), 388)]);
    assert_eq!(gaps.judged, 84);
    assert!(gaps.regions.is_empty());
    let [event] = gaps.events.as_slice() else { panic!("{:?}", gaps.events) };
    assert!(event.first_of_run && !event.confirmed);
    assert_eq!(event.fill.map(|fill| fill.bytes), Some(4 << 30));
}

#[test]
fn raid5_has_two_reads_eight_writes_and_the_four_blanks() {
    let gaps = gaps_of(RAID5);
    let seen = flags(&gaps);
    assert_eq!(seen[..2], [("read 512 1".to_owned(), 1), ("read 512 10".to_owned(), 439)]);
    let names: Vec<&str> = seen.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "read 512 1",
            "read 512 10",
            "write 65536 1",
            "write 65536 10",
            "write 65536 40",
            "write 131072 10",
            "write 131072 40",
            "write 262144 10",
            "write 262144 40",
            "write 524288 1",
            "write 524288 10",
            "write 524288 40",
            "write 1048576 10",
            "write 1048576 40",
        ]
    );
    assert_eq!(seen.iter().filter(|(_, ratio)| *ratio == -1).count(), 4);
    let [event] = gaps.events.as_slice() else { panic!("{:?}", gaps.events) };
    assert_eq!(event.visits.len(), 2);
    assert_eq!(event.fill.map(|fill| fill.bytes), Some(4 << 30));
    assert!(gaps.regions.iter().all(|region| region.kind == Kind::Unconfirmed));
    assert_eq!(gaps.regions[0].full_cache.map(|full| full.cache_bytes), Some(4 << 30));
}

#[test]
fn the_gaps_in_words() {
    insta::assert_snapshot!("gaps_raid0", finding::texts(&gaps_of(RAID0).findings()).join("\n"));
    insta::assert_snapshot!("gaps_raid5", finding::texts(&gaps_of(RAID5).findings()).join("\n"));
}

fn barrier_of(listing: &str, group: &str) -> Barrier {
    let run = run("r1", listing);
    let found = barrier::barriers(&View::new(&run), None).barriers;
    found.into_iter().find(|barrier| barrier.group == group).unwrap()
}

#[test]
fn both_read_tables_end_at_the_same_two_caps() {
    const MIB: f64 = 1_048_576.0;
    for (listing, iops, mib) in [(RAID0, 63_113.0, 1736.0), (RAID5, 63_243.0, 1737.0)] {
        let barrier = barrier_of(listing, "read");
        let fit = barrier.fit.unwrap();
        let off = |seen: f64, wanted: f64| (seen / wanted - 1.0).abs();
        assert!(off(fit.law.iops, iops) < 0.01, "{fit:?}");
        assert!(off(fit.law.bandwidth, mib * MIB) < 0.01, "{fit:?}");
        // One thread alone pipelines what is beyond 512 KiB: there the law is off by 18 %.
        assert!(fit.error_mean < 0.025 && fit.error_max < 0.2, "{fit:?}");
        assert!(barrier.iops.unwrap().reached && barrier.bandwidth.unwrap().reached);
        assert!(off(barrier.knee_bytes.unwrap() as f64, 28.8 * 1024.0) < 0.03);
        assert!(off(barrier.knee_in_flight.unwrap(), 2.1) < 0.1, "{:?}", barrier.knee_in_flight);
    }
}

#[test]
fn what_limits_begins_with_the_limit() {
    let mut read = barrier_of(RAID0, "read");
    read.few_requests = 3;
    let said = finding::texts(&read.findings());
    assert!(said[0].starts_with("read: requests per second end at"), "{said:?}");
    assert!(said.iter().any(|one| one.contains("3 cells are excluded")), "{said:?}");
    // A limit that was reached before one that was not.
    read.iops = read.iops.map(|cap| barrier::Cap { reached: false, ..cap });
    assert!(
        finding::texts(&read.findings())[0].starts_with("read: bandwidth ends at"),
        "{:?}",
        finding::texts(&read.findings())
    );
    // The generator's own before any.
    read.generator = Generator::Busy { share: 0.97 };
    assert!(finding::texts(&read.findings())[0].contains("limited by the load generator"));
    read.generator = Generator::RuledOut { null_rate: 9e5 };
    assert!(finding::texts(&read.findings())[0].starts_with("read: bandwidth ends at"));
    // What is known before what is not.
    let mut unknown = barrier_of(RAID0, "write");
    (unknown.fit, unknown.withheld, unknown.few_requests) = (None, Some(0.2), 2);
    assert_eq!(unknown.findings()[0].code, finding::Code::LimitModelUnfit);
    let both = finding::texts(&barrier::Barriers { barriers: vec![unknown, read] }.findings());
    assert!(both[0].starts_with("read: bandwidth ends at"), "{both:?}");
}

#[test]
fn the_barrier_is_not_the_disks() {
    let (many, few) = (run("r1", RAID0), run("r2", RAID5));
    let views = [&View::new(&many), &View::new(&few)];
    let found = barrier::across(&views, &[("disks".to_owned(), vec![12.0, 4.0])], None);
    for verdict in found.verdicts.iter().filter(|verdict| verdict.group == "read") {
        let slope = verdict.elasticities[0].slope.unwrap();
        assert!(slope.value.abs() < 0.02, "{slope:?}");
        assert_eq!(verdict.seat, Seat::NoneOf(vec!["disks".to_owned()]));
    }
    insta::assert_snapshot!("barriers_across", finding::texts(&found.findings()).join("\n"));
}

#[test]
fn the_barriers_in_words() {
    for (name, listing) in [("barriers_raid0", RAID0), ("barriers_raid5", RAID5)] {
        let run = run("r1", listing);
        let found = barrier::barriers(&View::new(&run), Some(900_000.0));
        insta::assert_snapshot!(name, finding::texts(&found.findings()).join("\n"));
    }
}

/// The study's figure 4: what changed between the two curves.
#[test]
fn file_system_and_scheduler_changed_together_and_are_refused() {
    let observe = |fs: &str, scheduler: &str, controller: &str, iops: f64| Observation {
        levels: [("file system", fs), ("scheduler", scheduler), ("controller", controller)]
            .map(|(factor, level)| (factor.to_owned(), level.to_owned()))
            .to_vec(),
        block: None,
        ln_value: iops.ln(),
    };
    let design = [
        observe("jfs", "cfq", "dual 1680", 63_000.0),
        observe("xfs", "noop", "dual 1231", 140_000.0),
    ];
    let found = factor::factors(&design);
    assert!(found.effects.is_empty());
    insta::assert_snapshot!("factors_figure_4", finding::texts(&found.findings()).join("\n"));
}

/// Six factors in sixteen runs, the base as every fifth; what each comes to is exact but for a
/// ripple of 1 %.
fn fractional(mean: impl Fn(&[usize]) -> f64) -> Vec<Observation> {
    let names = ["file system", "scheduler", "read-ahead", "chunk", "mount", "depth"];
    let plan = stats::design::Fraction::resolution_iv(6).unwrap().planned(1);
    let mut random = stats::Random::new(3);
    let observe = |run: &stats::design::Planned| Observation {
        levels: names
            .iter()
            .zip(&run.levels)
            .map(|(name, level)| ((*name).to_owned(), ["1", "2"][*level].to_owned()))
            .collect(),
        block: None,
        ln_value: 9.0 + mean(&run.levels) + 0.01 * random.normal(),
    };
    plan.iter().map(observe).collect()
}

#[test]
fn a_fraction_tells_factors_and_names_pairs_that_are_mixed_up() {
    let together = |levels: &[usize]| if levels[0] == levels[3] { 0.3 } else { 0.0 };
    let found = factor::factors(&fractional(|levels| 0.2 * levels[1] as f64 + together(levels)));
    assert!(found.refused.is_empty() && found.effects.is_empty(), "{found:?}");
    let fraction = found.fraction.as_ref().unwrap();
    assert_eq!((fraction.factors, fraction.combinations, fraction.resolution), (6, 16, 4));
    let matters: Vec<_> = fraction.effects.iter().filter(|effect| effect.matters).collect();
    let [pairs, scheduler] = matters.as_slice() else { panic!("{matters:?}") };
    let named = ("file system".to_owned(), "chunk".to_owned());
    assert!(pairs.factors.is_empty() && pairs.pairs.contains(&named) && pairs.pairs.len() >= 2);
    assert_eq!(scheduler.factors, ["scheduler"]);
    assert!(scheduler.pairs.is_empty() && (scheduler.ratio - 0.2f64.exp()).abs() < 0.03);
    insta::assert_snapshot!("factors_fraction", finding::texts(&found.findings()).join("\n"));
}

#[test]
fn a_fraction_with_a_run_missing_is_none_and_credits_nobody() {
    let mut design = fractional(|levels| 0.5 * levels[1] as f64);
    let at = design.iter().position(|o| o.levels.iter().any(|(_, level)| level == "2")).unwrap();
    design.remove(at);
    let found = factor::factors(&design);
    assert!(found.fraction.is_none() && found.effects.is_empty(), "{found:?}");
    assert_eq!(found.refused.len(), 6, "each is unknown: {:?}", found.refused);
}
