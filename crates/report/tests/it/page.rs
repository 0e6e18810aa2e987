//! What the page of figures is drawn from.

use std::io::Read;

use base64::Engine;
use record::{Run, Series, SeriesRow};
use report::page::{HtmlError, Page, Terms, html, live_schema, page, schema};
use serde_json::Value;

use crate::json::{assert_committed, check};
use crate::sample;

const TEMPLATE: &str =
    "<p>a</p><script type=\"application/json\" id=\"plimsoll-page\">null</script><p>b</p>";

fn of(runs: &[Run]) -> Page {
    page(runs, &Terms::default())
}

fn two() -> Vec<Run> {
    let mut second = sample::rich();
    second.header.id = "r18".into();
    vec![sample::rich(), second]
}

#[test]
fn the_committed_schemas_are_the_current_ones() {
    assert_committed("plimsoll.page-1.schema.json", &schema());
    assert_committed("plimsoll.live-1.schema.json", &live_schema());
}

#[test]
fn pages_meet_the_schema_and_do_not_vary() {
    let schema = serde_json::to_value(schema()).unwrap();
    let runs = two();
    let found = serde_json::to_value(of(&runs)).unwrap();
    check(&schema, &found, &schema, "$").unwrap();
    assert_eq!(found, serde_json::to_value(of(&runs)).unwrap());
    assert_eq!(found["runs"].as_array().unwrap().len(), 2);
    assert_eq!(found["against"][0]["reference"], "r17");
    assert_eq!(found["against"][0]["run"], "r18");
}

#[test]
fn every_row_of_the_run_is_in_the_page_with_its_own_key() {
    let run = sample::rich();
    let of_run = &of(std::slice::from_ref(&run)).runs[0];
    let streams: usize = run.cells.iter().map(|cell| cell.streams.len()).sum();
    let mut keys: Vec<&str> = of_run.cells.iter().map(|cell| cell.key.as_str()).collect();
    keys.dedup();
    assert_eq!((keys.len(), of_run.cells.len()), (streams, streams));
    let document = report::document(&run);
    for (cell, same) in of_run.cells.iter().zip(&document.cells) {
        assert_eq!(cell.row, same.row);
        assert_eq!(cell.marks.len(), same.marks.len());
        assert_eq!(cell.visits.len(), same.visits.len());
    }
}

#[test]
fn thinning_out_keeps_the_extremes() {
    let mut run = sample::rich();
    let visit = run.visits.iter_mut().find(|visit| visit.cell == 2).unwrap();
    // A million intervals: all at 1000 a second but for one silence and one burst.
    let row = |k: u64| {
        let requests = match k {
            123_456 => 0,
            777_777 => 50_000,
            _ => 1_000,
        };
        SeriesRow { requests, bytes: requests, tail: vec![(100, requests)] }
    };
    visit.elapsed_ns = 1_000_000 * 1_000_000_000;
    visit.streams[0].ops[0].series =
        Series { interval_ns: 1_000_000_000, rows: (0..1_000_000).map(row).collect() };
    let page = of(&[run]);
    let cell = page.runs[0].cells.iter().find(|cell| cell.key == "2.0").unwrap();
    let series = cell.visits[0].series.as_ref().unwrap();
    assert!(series.rate.len() <= 41_000 && series.merged >= 25, "{}", series.rate.len());
    assert_eq!(series.step_ns, u64::from(series.merged) * 1_000_000_000);
    let least = series.low.iter().copied().fold(f64::INFINITY, f64::min);
    let most = series.high.iter().copied().fold(0.0, f64::max);
    assert_eq!((least, most), (0.0, 50_000.0));
}

#[test]
fn a_course_ends_with_the_load_and_not_with_the_last_request_of_any_stream() {
    let mut run = sample::rich();
    let visit = run.visits.iter_mut().find(|visit| visit.cell == 2).unwrap();
    let row = |requests: u64| SeriesRow { requests, bytes: requests, tail: vec![(100, requests)] };
    // 2.53 s of load; one request that was in flight then came back at 2.71 s.
    let steady = std::iter::repeat_n(100, 25);
    let rows: Vec<SeriesRow> = steady.chain([31, 0, 1]).map(row).collect();
    visit.elapsed_ns = 2_710_000_000;
    visit.load_ns = Some(2_530_000_000);
    visit.streams[0].ops[0].series = Series { interval_ns: 100_000_000, rows };
    let rates = |run: &record::Run| {
        let page = of(std::slice::from_ref(run));
        let cell = page.runs[0].cells.iter().find(|cell| cell.key == "2.0").unwrap();
        cell.visits[0].series.as_ref().unwrap().rate.clone()
    };
    assert_eq!(rates(&run), vec![1000.0; 25]);
    // Of runs that do not tell the load from the rest, the interval that was not full is left out.
    let visit = run.visits.iter_mut().find(|visit| visit.cell == 2).unwrap();
    visit.load_ns = None;
    visit.elapsed_ns = 2_530_000_000;
    visit.streams[0].ops[0].series.rows.truncate(26);
    assert_eq!(rates(&run), vec![1000.0; 25]);
    // A stream that stood still while the load went on did nothing then.
    let visit = run.visits.iter_mut().find(|visit| visit.cell == 2).unwrap();
    visit.load_ns = Some(2_530_000_000);
    let mut other = visit.streams[0].clone();
    other.name = "other".into();
    visit.streams[0].ops[0].series.rows.truncate(20);
    visit.streams.push(other);
    assert_eq!(rates(&run), [vec![1000.0; 20], vec![0.0; 5]].concat());
    // A visit of less than an interval has the rate of what there is.
    let visit = run.visits.iter_mut().find(|visit| visit.cell == 2).unwrap();
    visit.streams.truncate(1);
    visit.streams[0].ops[0].series.rows.truncate(1);
    (visit.load_ns, visit.elapsed_ns) = (Some(40_000_000), 50_000_000);
    assert_eq!(rates(&run), vec![2000.0]);
}

#[test]
fn heat_has_every_request_of_the_course_in_a_band_of_the_cell() {
    let mut run = sample::rich();
    let visit = run.visits.iter_mut().find(|visit| visit.cell == 2).unwrap();
    let row =
        |k: u64| SeriesRow { requests: 3, bytes: 3, tail: vec![(80 + k as u16 % 7, 2), (160, 1)] };
    visit.elapsed_ns = 50_000 * 100_000_000;
    visit.streams[0].ops[0].series =
        Series { interval_ns: 100_000_000, rows: (0..50_000).map(row).collect() };
    let page = of(&[run]);
    let cell = page.runs[0].cells.iter().find(|cell| cell.key == "2.0").unwrap();
    let heat = cell.visits[0].heat.as_ref().unwrap();
    assert!(heat.columns.len() <= 6_000, "{}", heat.columns.len());
    let room = heat.columns.len() as u64 * heat.step_ns / 100_000_000;
    assert!((50_000..50_010).contains(&room), "{room}");
    let all = heat.columns.iter().flatten();
    assert_eq!(all.clone().map(|(_, count)| count).sum::<u64>(), 150_000);
    assert!(all.clone().all(|(band, _)| usize::from(*band) < cell.bands.len()));
    // From the shortest to the longest, without a space between.
    assert!(cell.bands.windows(2).all(|pair| pair[0].1 < pair[1].0));
    assert_eq!(all.map(|(band, _)| *band).max(), Some(cell.bands.len() as u16 - 1));
}

#[test]
fn a_run_under_way_is_not_advised_to_be_resumed() {
    let mut run = sample::rich();
    run.header.visits_planned = 1000;
    let mut told = |state| {
        run.header.state = state;
        let page = page(std::slice::from_ref(&run), &Terms::default());
        serde_json::to_string(&page).unwrap()
    };
    let killed = told(record::RunState::Killed);
    assert!(killed.contains("finishes it."), "{killed}");
    let live = told(record::RunState::Running);
    assert!(
        live.contains("r17 is under way, 3 of 1000 visits") && !live.contains("finishes it."),
        "{live}"
    );
}

#[test]
fn a_card_begins_with_what_made_its_colour() {
    let mut run = sample::rich();
    run.cells = run.cells[2..4].to_vec();
    run.cells.iter_mut().for_each(|cell| cell.streams[0].threads = 1);
    let visit = |order: u32, requests: u64| {
        let ops = vec![sample::op("read", requests, 4096)];
        let streams = vec![sample::record("main", ops)];
        sample::visit(2 + order % 2, order, 2_000_000_000, streams)
    };
    let rates = [20_000, 30_000, 20_100, 30_100, 9_000, 29_900, 19_900, 30_050, 20_050, 29_950];
    run.visits = (0..).zip(rates).map(|(order, requests)| visit(order, requests)).collect();
    let sure = |run: &Run| {
        let verdicts = of(std::slice::from_ref(run)).runs.remove(0).verdicts;
        verdicts.into_iter().find(|verdict| verdict.topic == "How sure").unwrap()
    };
    let found = sure(&run);
    assert!(found.is_doubt, "{found:?}");
    assert!(found.sentences[0].contains("one of 5 visits is an outlier"), "{found:?}");
    assert!(found.sentences[1].contains("2 cells with an interval"), "{found:?}");
    assert_eq!(found.evidence[0].cells[0].cell, "2.0");
    run.visits[4] = visit(4, 20_020);
    let found = sure(&run);
    assert!(!found.is_doubt && found.sentences[0].contains("with an interval"), "{found:?}");
}

#[test]
fn runs_are_held_against_the_first_of_their_suite() {
    let held = |suites: &[(&str, &str)]| -> Vec<(String, String, bool)> {
        let made = suites.iter().zip(1..).map(|((suite, phase), number)| {
            let mut run = sample::rich();
            run.header.id = format!("r{number}");
            run.header.suite = (*suite).to_owned();
            run.cells.iter_mut().for_each(|cell| cell.phase = format!("{phase}-{}", cell.phase));
            run
        });
        let page = of(&made.collect::<Vec<_>>());
        let all = page.against.into_iter();
        all.map(|one| (one.run, one.reference, one.cells.is_empty())).collect()
    };
    let told = |run: &str, reference: &str, is_apart: bool| {
        (run.to_owned(), reference.to_owned(), is_apart)
    };
    let (grid, log) = (("grid", "a"), ("log", "b"));
    // As a study makes them: both suites on each of three stacks.
    assert_eq!(
        held(&[grid, log, grid, log, grid, log]),
        [
            told("r3", "r1", false),
            told("r4", "r2", false),
            told("r5", "r1", false),
            told("r6", "r2", false)
        ]
    );
    // What nothing else is like is told of all the same.
    assert_eq!(held(&[grid, log]), [told("r2", "r1", true)]);
    // A suite of another name with the same cells.
    let again = ("grid-again", "a");
    assert_eq!(held(&[grid, again, again]), [told("r2", "r1", false), told("r3", "r2", false)]);
}

#[test]
fn every_sentence_has_its_evidence() {
    let page = of(&two());
    let verdicts = page.runs.iter().flat_map(|run| &run.verdicts).chain(&page.together);
    for verdict in verdicts {
        assert_eq!(verdict.sentences.len(), verdict.evidence.len(), "{}", verdict.topic);
    }
}

#[test]
fn data_never_ends_its_element() {
    let mut run = sample::rich();
    run.header.suite = "</script><script>alert(1)</script><!--".into();
    run.header.target.given = "\"'\n\u{202e}<SCRIPT\u{2028}".into();
    let page = of(&[run]);
    let whole = html(TEMPLATE, &page).unwrap();
    let start = whole.find("plimsoll-page\">").unwrap() + "plimsoll-page\">".len();
    let end = start + whole[start..].find('<').unwrap();
    assert!(whole[end..].starts_with("</script><p>b</p>"), "the first `<` is the element's end");
    let back: Value = serde_json::from_str(&whole[start..end]).unwrap();
    assert_eq!(back, serde_json::to_value(&page).unwrap());
}

#[test]
fn much_data_is_compressed_and_the_same_each_time() {
    let mut run = sample::rich();
    run.header.suite_text = "# 0123456789 </script>\n".repeat(100_000);
    let page = of(&[run]);
    let whole = html(TEMPLATE, &page).unwrap();
    assert_eq!(whole, html(TEMPLATE, &page).unwrap());
    let (_, rest) = whole.split_once(" data-coding=\"gzip\" id=\"plimsoll-page\">").unwrap();
    let (data, _) = rest.split_once('<').unwrap();
    assert!(data.len() < 200_000, "{}", data.len());
    let bytes = base64::engine::general_purpose::STANDARD.decode(data).unwrap();
    let mut back = String::new();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut back).unwrap();
    let back: Value = serde_json::from_str(&back).unwrap();
    assert_eq!(back, serde_json::to_value(&page).unwrap());
}

#[test]
fn a_template_of_another_make_is_refused() {
    let page = of(&[sample::rich()]);
    assert!(matches!(html("<p>", &page), Err(HtmlError::NoPlace(0))));
    assert!(matches!(html(&TEMPLATE.repeat(2), &page), Err(HtmlError::NoPlace(2))));
}

#[test]
fn nothing_measured_is_a_page_too() {
    let mut run = sample::rich();
    run.visits.clear();
    let page = of(&[run]);
    assert!(page.runs[0].cells.iter().all(|cell| cell.iops.is_none() && cell.visits.is_empty()));
    assert!(of(&[]).runs.is_empty());
}

#[test]
fn a_row_says_what_its_visits_had_to_move_and_what_was_done_to_caches() {
    let text = "schema = 1\nname = \"two\"\nfile_size = \"8MiB\"\ncaches = [\"flush\", \"purge\"]\n\
        [defaults]\noperation = \"read\"\nblock_size = \"4KiB\"\n\
        [[phase]]\nname = \"job\"\nbytes = \"8MiB\"\n\
        [[phase]]\nname = \"both\"\nbytes = \"8MiB\"\ntime = \"1s\"\ncaches = []\n";
    let source = suite::parse(text, "two").unwrap();
    let plan = suite::check(&source, &suite::CheckContext::default()).unwrap();
    let mut run = sample::rich();
    run.header.suite_text = text.to_owned();
    let cells = plan.phases.iter().zip(0..).map(|(phase, index)| {
        let streams = &phase.cells[0].streams;
        let own = streams.iter().map(|s| sample::stream(&s.name, "read", Some(4096), 1));
        sample::cell(index, &phase.name, &[], own.collect())
    });
    run.cells = cells.collect();
    run.visits.clear();
    let cells = &of(&[run.clone()]).runs[0].cells;
    assert_eq!(cells[0].job_bytes, Some(8 << 20));
    assert_eq!(cells[0].caches, ["flush", "purge"]);
    // What ends by time has no job, and a phase may leave caches alone.
    assert_eq!((cells[1].job_bytes, cells[1].caches.len()), (None, 0));
    // Of a suite that says nothing of them.
    run.cells[0].streams[0].name = "other".into();
    assert_eq!(of(&[run]).runs[0].cells[0].job_bytes, None);
}

#[test]
fn flushes_stand_beside_the_writes_they_make_durable() {
    let page = of(&[sample::rich()]);
    let cells = &page.runs[0].cells;
    let pages = cells.iter().find(|cell| cell.row.stream == "pages").unwrap();
    let [flush] = pages.flushes.as_slice() else { panic!("{:?}", pages.flushes) };
    assert_eq!((flush.op.as_str(), flush.requests), ("fsync", Some(100)));
    let mean = flush.latency_ns.mean.unwrap();
    assert!(flush.latency_ns.p50.is_some() && !flush.quantiles.is_empty());
    let document = report::document(&sample::rich());
    let same = document.cells.iter().find(|cell| cell.row.stream == "pages").unwrap();
    let fsync = same.ops.iter().find(|op| op.op == "fsync").unwrap();
    assert_eq!(fsync.latency_ns.mean, Some(mean));
    assert!(cells.iter().filter(|cell| cell.row.stream != "pages").all(|c| c.flushes.is_empty()));
    // Of what a mix moved only its writes were written.
    let written: Vec<_> = pages.visits.iter().map(|visit| (visit.bytes, visit.written)).collect();
    assert_eq!(written, [(Some(9_000 * 8192), Some(3_000 * 8192))]);
}
