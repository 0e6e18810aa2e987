//! The rows of the CSV as Parquet: proper types, null where a value is not known, units beside.

use std::collections::BTreeMap;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};
use record::Run;

use crate::rows::{self, COLUMNS, Column, Kind, Row, Value};

/// Rows that stand together in a file.
const GROUP: usize = 64 << 10;

/// Why no Parquet came out: a bug of ours, since everything is written to memory.
#[derive(Debug, thiserror::Error)]
#[error("cannot write Parquet")]
pub struct ParquetFailed(#[from] ParquetError);

/// A Parquet file with a row per visit, stream and operation: the columns of [`crate::csv`], all
/// of them optional.
///
/// In the file's metadata `plimsoll.columns` is the version of the columns, `plimsoll.run` the
/// run, and `plimsoll.units` a JSON object from column to unit. Pages are not compressed. The
/// same samples give the same bytes.
pub fn parquet(run: &Run) -> Result<Vec<u8>, ParquetFailed> {
    let mut out = Vec::new();
    let properties = WriterProperties::builder()
        .set_created_by(format!("plimsoll {}", run.header.program))
        .set_key_value_metadata(Some(metadata(run)))
        .build();
    let mut file = SerializedFileWriter::new(&mut out, schema()?, Arc::new(properties))?;
    let rows = rows::rows(run);
    for rows in rows.chunks(GROUP) {
        let mut group = file.next_row_group()?;
        for (k, column) in COLUMNS.iter().enumerate() {
            write(&mut group, *column, rows, k)?;
        }
        group.close()?;
    }
    file.close()?;
    Ok(out)
}

fn metadata(run: &Run) -> Vec<KeyValue> {
    let units: BTreeMap<_, _> =
        COLUMNS.iter().filter(|c| !c.unit.is_empty()).map(|c| (c.name, c.unit)).collect();
    // A map of text to text always has a JSON.
    let units = serde_json::to_string(&units).unwrap_or_default();
    vec![
        KeyValue::new("plimsoll.columns".to_owned(), "1".to_owned()),
        KeyValue::new("plimsoll.run".to_owned(), run.header.id.clone()),
        KeyValue::new("plimsoll.units".to_owned(), units),
    ]
}

fn schema() -> Result<TypePtr, ParquetError> {
    let fields: Result<Vec<TypePtr>, _> = COLUMNS.iter().map(|c| field(*c)).collect();
    Type::group_type_builder("visits").with_fields(fields?).build().map(Arc::new)
}

fn field(column: Column) -> Result<TypePtr, ParquetError> {
    let (physical, logical) = match column.kind {
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Count => (Physical::INT64, Some(LogicalType::integer(64, false))),
        Kind::Number => (Physical::DOUBLE, None),
        Kind::Flag => (Physical::BOOLEAN, None),
        // In UTC.
        Kind::Time => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::NANOS))),
    };
    Type::primitive_type_builder(column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()
        .map(Arc::new)
}

/// A column of a group of rows: which are there, and the values of those.
fn write(
    group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>,
    column: Column,
    rows: &[Row],
    k: usize,
) -> Result<(), ParquetError> {
    let Some(mut writer) = group.next_column()? else {
        return Err(ParquetError::General(format!("no room for column {}", column.name)));
    };
    let there: Vec<i16> = rows.iter().map(|row| i16::from(row[k].is_some())).collect();
    let there = Some(there.as_slice());
    let values = || rows.iter().filter_map(|row| row[k].as_ref());
    match column.kind {
        Kind::Text => {
            let all: Vec<ByteArray> = values().filter_map(as_text).collect();
            writer.typed::<ByteArrayType>().write_batch(&all, there, None)?;
        }
        Kind::Count | Kind::Time => {
            let all: Vec<i64> = values().filter_map(as_integer).collect();
            writer.typed::<Int64Type>().write_batch(&all, there, None)?;
        }
        Kind::Number => {
            let all: Vec<f64> = values().filter_map(as_number).collect();
            writer.typed::<DoubleType>().write_batch(&all, there, None)?;
        }
        Kind::Flag => {
            let all: Vec<bool> = values().filter_map(as_flag).collect();
            writer.typed::<BoolType>().write_batch(&all, there, None)?;
        }
    }
    writer.close()
}

fn as_text(value: &Value) -> Option<ByteArray> {
    match value {
        Value::Text(text) => Some(ByteArray::from(text.as_str())),
        _ => None,
    }
}

/// Unsigned ones are stored as the signed of the same bits, and the schema says so.
const fn as_integer(value: &Value) -> Option<i64> {
    match value {
        Value::Count(n) => Some(n.cast_signed()),
        Value::Time(ns) => Some(*ns),
        _ => None,
    }
}

const fn as_number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(x) => Some(*x),
        _ => None,
    }
}

const fn as_flag(value: &Value) -> Option<bool> {
    match value {
        Value::Flag(yes) => Some(*yes),
        _ => None,
    }
}
