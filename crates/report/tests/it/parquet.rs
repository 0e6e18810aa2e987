//! Parquet, read back with the same library.

use std::collections::BTreeMap;

use parquet::basic::{LogicalType, Repetition, TimeUnit};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, RowAccessor};
use record::Run;
use report::{COLUMNS, CSV_COLUMNS, Kind, csv, parquet};

use crate::csv::parse;
use crate::sample;

fn open(run: &Run) -> SerializedFileReader<bytes::Bytes> {
    SerializedFileReader::new(bytes::Bytes::from(parquet(run).unwrap())).unwrap()
}

/// A value as CSV has it, where a name breaks no line.
fn text(field: &Field) -> String {
    match field {
        Field::Null => String::new(),
        Field::Str(text) => report::plain(text),
        Field::ULong(n) => n.to_string(),
        Field::Long(n) => n.to_string(),
        Field::Double(x) => x.to_string(),
        Field::Bool(yes) => yes.to_string(),
        other => panic!("{other:?}"),
    }
}

fn check(run: &Run) {
    let file = open(run);
    let rows: Vec<Vec<String>> = file
        .get_row_iter(None)
        .unwrap()
        .map(|row| row.unwrap().get_column_iter().map(|(_, field)| text(field)).collect())
        .collect();
    let records = parse(&csv(run));
    assert_eq!(rows.len(), records.len() - 1);
    for (row, record) in rows.iter().zip(&records[1..]) {
        assert_eq!(row, record);
    }
}

#[test]
fn it_has_the_rows_of_the_csv() {
    check(&sample::rich());
    let mut run = sample::rich();
    run.header.seed = u64::MAX;
    run.header.target.given = "odd, \"\u{1b}\" ünd\n".into();
    check(&run);
    run.visits.clear();
    check(&run);
}

#[test]
fn types_are_proper_and_units_are_beside() {
    let file = open(&sample::rich());
    let metadata = file.metadata().file_metadata();
    let columns = metadata.schema_descr().columns();
    assert_eq!(columns.iter().map(|c| c.name()).collect::<Vec<_>>(), CSV_COLUMNS);
    for (column, ours) in columns.iter().zip(COLUMNS) {
        let info = column.self_type().get_basic_info();
        assert_eq!(info.repetition(), Repetition::OPTIONAL, "{}", ours.name);
        let wanted = match ours.kind {
            Kind::Text => Some(LogicalType::String),
            Kind::Count => Some(LogicalType::integer(64, false)),
            Kind::Time => Some(LogicalType::timestamp(true, TimeUnit::NANOS)),
            Kind::Number | Kind::Flag => None,
        };
        assert_eq!(column.logical_type_ref(), wanted.as_ref(), "{}", ours.name);
    }
    let pairs = metadata.key_value_metadata().unwrap();
    let value = |key: &str| {
        let found = pairs.iter().find(|pair| pair.key == key).unwrap();
        found.value.clone().unwrap()
    };
    assert_eq!((value("plimsoll.run"), value("plimsoll.columns")), ("r17".into(), "1".into()));
    let units: BTreeMap<String, String> = serde_json::from_str(&value("plimsoll.units")).unwrap();
    assert_eq!((units["latency_ns_mean"].as_str(), units["iops"].as_str()), ("ns", "1/s"));
    assert!(!units.contains_key("phase"));
}

#[test]
fn unknown_is_null_and_nothing_is_zero() {
    let mut run = sample::rich();
    run.visits[0].streams[0].ops[0].requests = 0;
    let file = open(&run);
    let column = |name: &str| CSV_COLUMNS.iter().position(|c| *c == name).unwrap();
    let rows: Vec<_> = file.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows[0].get_ulong(column("requests")).unwrap(), 0);
    // As in the CSV: too few values for a percentile.
    assert!(rows[2].get_ulong(column("latency_ns_p50")).is_err());
}

#[test]
fn the_same_samples_give_the_same_bytes() {
    assert!(parquet(&sample::rich()).unwrap() == parquet(&sample::rich()).unwrap());
}
