//! The published bm-flash tables: all 164 cells, the blanks, and the ways pages bend them.

use record::Run;
use report::table::bm_flash;

use super::{import, only, sample, try_import};

const NAMES: [&str; 2] = ["bm-flash-raid0-12.txt", "bm-flash-raid5-4.txt"];

/// A table without what is only layout: blanks and bars at the ends of lines.
fn words(text: &str) -> Vec<String> {
    let line = |line: &str| {
        let line = line.trim_end_matches([' ', '|']);
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    text.lines().map(line).filter(|line| !line.is_empty()).collect()
}

#[test]
fn the_tables_are_printed_as_they_were_read() {
    let mut cells = 0;
    for name in NAMES {
        let run = only(name);
        let text = String::from_utf8(sample(name)).unwrap();
        assert_eq!(words(&bm_flash(&run)), words(&text), "{name}");
        cells += run.visits.len() - 1;
    }
    assert_eq!(cells, 164);
}

#[test]
fn blank_cells_have_no_figure_and_are_named() {
    let run = only(NAMES[1]);
    assert_eq!(run.cells.len(), 85);
    let visited = |index: u32| run.visits.iter().any(|v| v.cell == index);
    let blank: Vec<_> = run
        .cells
        .iter()
        .filter(|cell| !visited(cell.index))
        .map(|cell| (cell.coordinates[0].1.as_str(), cell.coordinates[1].1.as_str()))
        .collect();
    assert_eq!(blank, [("256KiB", "40"), ("512KiB", "10"), ("512KiB", "40"), ("1MiB", "40")]);
    assert_eq!(run.header.warnings[0].code, "blank-cells");
}

fn same(a: &Run, b: &Run) {
    assert_eq!(a.cells, b.cells);
    assert_eq!(a.visits, b.visits);
}

#[test]
fn tables_pasted_from_pages_are_the_same() {
    for name in NAMES {
        let run = only(name);
        let text = String::from_utf8(sample(name)).unwrap();
        let collapsed: String = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n")
            .collect();
        let page =
            format!("<html><pre>\n{}</pre>", text.replace('|', "&#124;").replace("  ", "&nbsp; "));
        let broken = text.replace('\n', "<br />\r\n");
        let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let tabs = text.replace("   ", "\t\u{a0}");
        let closed: String = text
            .lines()
            .map(|l| {
                if l.contains('|') && l.matches('|').count() == 3 {
                    format!("{l} |\n")
                } else {
                    format!("{l}\n")
                }
            })
            .collect();
        for (how, pasted) in [
            ("blanks", collapsed),
            ("entities", page),
            ("breaks", broken),
            ("one line", one_line),
            ("tabs", tabs),
            ("closed", closed),
        ] {
            let runs = try_import(name, pasted.as_bytes()).unwrap_or_else(|e| panic!("{how}: {e}"));
            assert_eq!(runs.len(), 1, "{how}");
            same(&runs[0], &run);
        }
    }
}

#[test]
fn both_tables_of_an_article_are_two_runs() {
    let text = NAMES.map(|name| String::from_utf8(sample(name)).unwrap()).join(
        "\nHowever, other arrays behave otherwise:\n\ntest:/benchmark# ./bm-flash /ssd/test.txt\n\n",
    );
    let runs = try_import("article.txt", text.as_bytes()).unwrap();
    assert_eq!(runs.len(), 2);
    for (run, name) in runs.iter().zip(NAMES) {
        same(run, &import(name)[0]);
    }
}

#[test]
fn a_bent_row_is_told_by_line() {
    let text = String::from_utf8(sample(NAMES[0])).unwrap();
    let told = |from: &str, to: &str| {
        let bent = text.replace(from, to);
        assert_ne!(bent, text);
        try_import("t.txt", bent.as_bytes()).unwrap_err().to_string()
    };
    assert_eq!(
        told("  32K | 19936", "  33K | 19936"),
        "t.txt:14: read as bm-flash: seen `33K` in `33K | 19936  623.0M | 51250 1601.5M | 50853 1589.1M`, \
         wanted the row of 32K"
    );
    let told = told("623.0M", "623.0X");
    assert!(told.starts_with("t.txt:14:") && told.contains("`623.0X`"), "{told}");
}
