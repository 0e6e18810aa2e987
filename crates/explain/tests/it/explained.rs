//! The whole of what is said, and the contract for programs.

use explain::explanation::{Context, Explanation, SCHEMA, schema};
use explain::view::View;
use finding::Code;

use crate::published::{RAID0, RAID5, run};

fn explanation() -> Explanation {
    let runs = [run("r12", RAID0), run("r4", RAID5)];
    let views: Vec<View<'_>> = runs.iter().map(View::new).collect();
    let disks = ("disks".to_owned(), vec!["12".to_owned(), "4".to_owned()]);
    Explanation::of(&views, &Context { factors: vec![disks], ..Context::default() })
}

fn text(sections: &[finding::Section]) -> String {
    let section =
        |s: &finding::Section| format!("{}\n{}\n", s.question.title(), s.sentences().join("\n"));
    sections.iter().map(section).collect::<Vec<_>>().join("\n")
}

#[test]
fn both_published_grids_together() {
    let found = explanation();
    let together = found.together.as_ref().unwrap();
    insta::assert_snapshot!(text(&together.sections));
    assert_eq!(found.runs.len(), 2);
    assert_eq!(found.schema, SCHEMA);
}

#[test]
fn a_level_that_changed_at_a_run_is_found_there() {
    let grid = RAID0;
    let slower = |id: &str| {
        let mut found = run(id, grid);
        for op in found.visits.iter_mut().flat_map(|v| &mut v.streams).flat_map(|s| &mut s.ops) {
            op.requests = op.requests * 8 / 10;
        }
        found.header.program = "plimsoll 0.2.0".to_owned();
        found
    };
    let runs: Vec<record::Run> = (1..=9)
        .map(|n| {
            let id = format!("r{n}");
            let mut found = if n < 5 { run(&id, grid) } else { slower(&id) };
            found.header.started_unix_ns = n * 86_400_000_000_000;
            found
        })
        .collect();
    let of = |order: &[usize]| {
        let views: Vec<View<'_>> = order.iter().map(|&n| View::new(&runs[n])).collect();
        Explanation::of(&views, &Context::default()).together.unwrap().history
    };
    let found = of(&[0, 1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    let shared = found.changes.iter().find(|change| change.cell.is_none()).unwrap();
    assert_eq!((shared.last_before.as_str(), shared.first_after.as_str()), ("r4", "r5"));
    assert_eq!(shared.runs_after, 5);
    let said = found.findings();
    assert_eq!((said[0].code, said[1].code), (Code::LevelChanged, Code::LevelChangedWith));
    assert!(said[0].text().contains("x0.80") && said[1].text().contains("version"), "{said:?}");
    // In whatever order they are named, time orders them.
    assert_eq!(of(&[8, 3, 1, 0, 2, 7, 4, 6, 5]).unwrap(), found);
    let same = of(&[0, 1, 2, 3]);
    assert_eq!(same, None);
}

#[test]
fn runs_of_several_suites_are_said_not_to_be_compared() {
    let mut other = run("r3", RAID5);
    other.header.suite = "other".to_owned();
    let runs = [run("r1", RAID0), run("r2", RAID5), other];
    let views: Vec<View<'_>> = runs.iter().map(View::new).collect();
    let apart = |views: &[View<'_>], context| Explanation::of(views, &context).apart;
    let said = apart(&views, Context::default()).unwrap().findings.remove(0);
    assert_eq!(said.code, Code::SuitesNotCompared);
    let text = said.text();
    assert!(text.contains(" (r1 and r2); other (r3)."), "{text}");
    assert_eq!(apart(&views[..2], Context::default()), None);
    // Who names what they differ in has them judged together.
    let levels = ["1", "2", "3"].map(str::to_owned).to_vec();
    let factors = vec![("disks".to_owned(), levels)];
    assert_eq!(apart(&views, Context { factors, ..Context::default() }), None);
}

#[test]
fn what_is_missing_of_the_run_itself_is_said_first() {
    let mut broken = run("r12", RAID0);
    let of = |run: &record::Run| {
        let views = [View::new(run)];
        Explanation::of(&views, &Context::default()).runs.remove(0)
    };
    let titles = |found: &explain::explanation::OfRun| {
        found.sections.iter().map(|section| section.question.title()).collect::<Vec<_>>()
    };
    let planned = broken.visits.len() as u32;
    broken.header.visits_planned = planned;
    assert!(!titles(&of(&broken)).contains(&"The run itself"), "nothing is missing");
    let failed = &mut broken.visits[7];
    failed.end = record::VisitEnd::Failed;
    let why = "stream `s`, worker 0: read of 4096 bytes at byte 0 of file 0 failed: EIO";
    failed.warnings.push(record::Warning::new("io-error", why));
    broken.header.visits_planned += 4;
    let found = of(&broken);
    assert_eq!(titles(&found)[..2], ["The answer", "The run itself"]);
    let said = text(&found.sections[1..2]);
    assert!(said.contains(&format!("1 of {planned} visits of r12 failed: EIO")), "{said}");
    assert!(said.contains("r12 says that it is complete, yet"), "{said}");
    let visits = found.visits;
    assert_eq!((visits.planned, visits.made, visits.missed), (planned + 4, planned - 1, 5));
    assert_eq!(found.state, "complete");
}

#[test]
fn a_recorded_factor_is_judged_only_where_nothing_else_changed_with_it() {
    let with = |id: &str, processors: u32, kernel: &str| {
        let mut found = run(id, RAID0);
        found.header.machine.processors = processors;
        found.header.machine.kernel = kernel.to_owned();
        found
    };
    let judged = |b: &record::Run| {
        let runs = [with("r1", 4, "6.1.0"), b.clone()];
        let views: Vec<View<'_>> = runs.iter().map(View::new).collect();
        Explanation::of(&views, &Context::default()).together.unwrap()
    };
    let alone = judged(&with("r2", 8, "6.1.0"));
    let of = |found: &explain::explanation::Together| {
        let verdicts = found.elasticities.verdicts.clone();
        verdicts.into_iter().find(|v| v.elasticities.iter().any(|e| e.slope.is_some())).unwrap()
    };
    let verdict = of(&alone);
    assert_eq!(verdict.elasticities[0].factor, "processors");
    assert!(verdict.elasticities[0].alone);
    assert_eq!(verdict.acquitted, ["processors"], "twice as many, and the cap stays");
    let codes = |found: &explain::explanation::Together| -> Vec<Code> {
        found.sections.iter().flat_map(|one| &one.findings).map(|finding| finding.code).collect()
    };
    assert!(codes(&alone).contains(&Code::ElasticityNone));
    let both = judged(&with("r2", 8, "6.8.0"));
    let verdict = of(&both);
    assert!(!verdict.elasticities[0].alone);
    assert_eq!(verdict.acquitted, Vec::<String>::new());
    assert_eq!(verdict.seat, explain::barrier::Seat::Unknown);
    assert!(codes(&both).contains(&Code::ElasticityNotAlone), "{:?}", codes(&both));
    assert!(!codes(&both).contains(&Code::ElasticityNone), "{:?}", codes(&both));
}

#[test]
fn the_same_records_are_explained_alike() {
    let json = |e: &Explanation| serde_json::to_string(e).unwrap();
    assert_eq!(json(&explanation()), json(&explanation()));
}

#[test]
fn the_sick_cells_are_marked() {
    let run = run("r4", RAID5);
    let view = View::new(&run);
    let marks = explain::Findings::of(&view).marks(&view);
    let first = marks.iter().find(|m| m.code.name() == "gap").unwrap();
    let cell = view.cells.iter().find(|c| c.cell.index == first.cell).unwrap();
    assert_eq!(cell.name(), "read 512 B 1");
    assert!(first.evidence.contains("lost"), "{}", first.evidence);
}

#[test]
fn the_committed_schema_is_the_current_one() {
    const COMMITTED: &str =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/plimsoll.explanation-1.schema.json");
    let current = format!("{}\n", serde_json::to_string_pretty(&schema()).unwrap());
    if std::env::var_os("PLIMSOLL_WRITE_SCHEMA").is_some() {
        std::fs::write(COMMITTED, &current).unwrap();
    }
    assert!(
        std::fs::read_to_string(COMMITTED).is_ok_and(|committed| committed == current),
        "schema/plimsoll.explanation-1.schema.json is stale: run this test with \
         PLIMSOLL_WRITE_SCHEMA=1"
    );
}
