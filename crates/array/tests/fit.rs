//! Parameters from measured cells: planted ones are found, and one published table gives the other.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use array::{
    ArrayDesign, FitError, Load, Measured, Model, ParameterName, Provenance, builtin, fit,
    fit_drive,
};
use stats::Random;
use units::Bytes;

fn name(part: &str, key: &'static str) -> ParameterName {
    ParameterName { part: part.to_owned(), key }
}

fn disk() -> [ParameterName; 3] {
    ["seek_read", "media_rate", "reorder"].map(|key| name("raptor-10k", key))
}

/// Random reads of a disk, twelve cells.
fn loads() -> Vec<Load> {
    let blocks = [4, 64, 1024].map(Bytes::kib).into_iter();
    let reads = |block| [1, 2, 8, 32].map(|n| Load::random_reads(block, n, Bytes::gib(20)));
    blocks.flat_map(reads).collect()
}

fn rate(design: &ArrayDesign, load: &Load) -> f64 {
    Model::new(design.clone()).answer(load).unwrap().rate
}

/// The Raptor with other values than those of its text.
fn planted() -> ArrayDesign {
    let mut design = builtin::design("raptor-alone").unwrap();
    for (name, factor) in disk().iter().zip([0.7, 1.5, 1.4]) {
        design = design.scaled(name, factor).unwrap();
    }
    design
}

#[test]
fn planted_values_are_found() {
    let truth = planted();
    let measured: Vec<_> =
        loads().iter().map(|load| Measured { load: *load, rate: rate(&truth, load) }).collect();
    let start = builtin::design("raptor-alone").unwrap();
    let found = fit(&start, &disk(), &measured).unwrap();
    for (value, planted) in found.values.iter().zip([0.7, 1.5, 1.4]) {
        assert!((value.factor / planted - 1.0).abs() < 1e-3, "{value:?}, planted {planted}");
    }
    assert!(found.error < 1e-4, "{}", found.error);
    // They prove nothing any more.
    let fitted = found.design.parameters_of(Provenance::Fitted);
    assert!(disk().iter().all(|name| fitted.contains(name)), "{fitted:?}");
    assert_eq!(start.parameters_of(Provenance::Fitted).len(), 1);
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    let truth = planted();
    let loads = loads();
    let rates: Vec<_> = loads.iter().map(|load| rate(&truth, load)).collect();
    let start = builtin::design("raptor-alone").unwrap();
    let mut random = Random::new(17);
    let (mut held, mut all) = (0, 0);
    for _ in 0..200 {
        let measured: Vec<_> = loads
            .iter()
            .zip(&rates)
            .map(|(load, rate)| Measured {
                load: *load,
                rate: rate * f64::exp(0.03 * random.normal()),
            })
            .collect();
        let found = fit(&start, &disk(), &measured).unwrap();
        for (value, planted) in found.values.iter().zip([0.7, 1.5, 1.4]) {
            held += u32::from((value.factor_low..=value.factor_high).contains(&planted));
            all += 1;
        }
    }
    println!("{held} of {all}");
    // 570 are right. Twice the variance gives 597, half of it 516.
    assert!((550..=588).contains(&held), "{held} of {all}");
}

/// Table A was never fitted this way, nor with these starting values; and B gives A as A gives B.
#[test]
fn each_table_of_s1_predicts_the_other() {
    #[derive(serde::Deserialize)]
    struct Tables {
        table: Vec<Table>,
    }
    #[derive(serde::Deserialize)]
    struct Table {
        name: String,
        array: String,
        misses: Vec<(Bytes, u32, String)>,
        cells: Vec<(Bytes, f64, f64, f64, bool)>,
    }
    let all: Tables = toml::from_str(include_str!("reproduce/data/bm-flash.toml")).unwrap();
    let cells = |table: &Table| -> Vec<Measured> {
        let rows = table
            .cells
            .iter()
            .flat_map(|row| [(row.0, 1, row.1), (row.0, 10, row.2), (row.0, 40, row.3)]);
        let good = rows.filter(|(block, threads, _)| {
            !table.misses.iter().any(|miss| (miss.0, miss.1) == (*block, *threads))
        });
        good.map(|(block, threads, rate)| Measured {
            load: Load::random_reads(block, threads, Bytes::gib(4)),
            rate,
        })
        .collect()
    };
    let names = [
        name("xeon-2009", "submit_time"),
        name("xeon-2009", "submit_page_time"),
        name("areca-1680ix", "hit_time"),
        name("areca-1680ix", "page_time"),
    ];
    let find = |name| all.table.iter().find(|table| table.name == name).unwrap();
    for (from, to) in [("A reads", "B reads"), ("B reads", "A reads")] {
        let mut start = builtin::design(&find(from).array).unwrap();
        for (name, factor) in names.iter().zip([2.0, 2.0, 0.5, 0.5]) {
            start = start.scaled(name, factor).unwrap();
        }
        let found = fit(&start, &names, &cells(find(from))).unwrap();
        let mut other = builtin::design(&find(to).array).unwrap();
        other.host = found.design.host.clone();
        other.controller = found.design.controller.clone();
        let errors: Vec<_> = cells(find(to))
            .iter()
            .map(|cell| (rate(&other, &cell.load) / cell.rate - 1.0).abs())
            .collect();
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        println!("{from} to {to}: mean error {:.2} %", mean * 100.0);
        for value in &found.values {
            println!("  {value:?}");
        }
        assert!(mean < 0.015, "{from} to {to}: {mean}, {:?}", found.values);
    }
}

#[test]
fn what_cells_cannot_tell_is_refused() {
    let design = builtin::design("raptor-alone").unwrap();
    let loads = loads();
    let measured: Vec<_> = loads.iter().map(|load| Measured { load: *load, rate: 100.0 }).collect();
    let refused = |names: &[ParameterName], measured: &[Measured]| {
        fit(&design, names, measured).unwrap_err().to_string()
    };
    assert_eq!(
        refused(&disk(), &measured[..3]),
        "fit: 3 cells for 3 parameters, wanted at least one parameter and more cells"
    );
    let cores = name("xeon-2008", "cores");
    assert_eq!(refused(&[cores], &measured), "fit: `xeon-2008.cores` is no quantity of the design");
    // Nothing was written; and a disk's electronics are no different from its turns.
    let write = name("raptor-10k", "seek_write");
    assert_eq!(fit(&design, &[write], &measured), Err(FitError::Undetermined));
    let none = Measured { rate: 0.0, ..measured[0] };
    assert_eq!(
        refused(&[name("raptor-10k", "rpm")], &[none; 2]),
        "load: `rate` is 0, wanted more than none"
    );
}

/// The values that were planted come out of the cells alone, and the text of the drive is that of a part.
#[test]
fn a_drive_is_fitted_and_written_as_a_part() {
    let mut truth = builtin::design("mtron-alone").unwrap();
    for (key, factor) in [("read_time", 0.6), ("merge_time", 1.7)] {
        truth = truth.scaled(&name("mtron-7535", key), factor).unwrap();
    }
    let blocks = [4, 16, 64].map(Bytes::kib).into_iter();
    let loads = blocks.flat_map(|block| {
        [(1.0, 1), (1.0, 8), (0.0, 1), (0.5, 4)].map(|(read_share, threads)| Load {
            read_share,
            ..Load::random_reads(block, threads, Bytes::gib(4))
        })
    });
    let measured: Vec<_> = loads.map(|load| Measured { load, rate: rate(&truth, &load) }).collect();
    let start = builtin::design("mtron-alone").unwrap();
    let found = fit_drive(&start, &measured).unwrap();
    let factor =
        |key: &str| found.values.iter().find(|value| value.name.key == key).unwrap().factor;
    assert!((factor("read_time") / 0.6 - 1.0).abs() < 0.01, "{:?}", found.values);
    assert!((factor("merge_time") / 1.7 - 1.0).abs() < 0.01, "{:?}", found.values);
    let text = found.design.drive_text("a test");
    let array = "schema = 1\nwhy = \"t\"\nhost = \"xeon-2008\"\nlink = \"sas-3g\"\n\
        controller = \"plain-sata\"\nlevel = \"none\"\nmembers = 1\ndrive = \"mine\"\n";
    let array =
        array.replace("none", "raid0").replace("members = 1", "members = 2\nchunk = \"64KiB\"");
    let find = |part: &str| if part == "mine" { Some(text.as_str()) } else { builtin::part(part) };
    let read = ArrayDesign::parse("t.toml", &array, find).unwrap();
    assert_eq!(read.drive.part, found.design.drive.part, "{text}");
}
