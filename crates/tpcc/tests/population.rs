//! The rows of a fresh database, at the size of the specification.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::HashSet;

use tpcc::{Datum, Dialect, Population, Scale, Seconds, Table, last_name};
use xxhash_rust::xxh3::Xxh3;

fn population(warehouses: u32) -> Population {
    Population::new(Scale::new(warehouses).unwrap(), 7, Seconds(1_700_000_000))
}

fn column(table: Table, name: &str) -> usize {
    table.text().columns().position(|column| column == name).unwrap()
}

fn ints(table: Table, name: &str) -> Vec<i64> {
    let at = column(table, name);
    let int = |row: Vec<Datum>| match row[at] {
        Datum::Int(n) => n,
        Datum::Null => 0,
        ref other => panic!("{other:?}"),
    };
    population(2).rows(table, 2).map(int).collect()
}

fn texts(table: Table, name: &str) -> Vec<String> {
    let at = column(table, name);
    let text = |row: Vec<Datum>| match &row[at] {
        Datum::Text(text) => text.clone(),
        other => panic!("{other:?}"),
    };
    population(2).rows(table, if table == Table::Item { 1 } else { 2 }).map(text).collect()
}

#[test]
fn every_table_has_its_rows_each_as_wide_as_the_table() {
    for warehouses in [1, 2] {
        let population = population(warehouses);
        for table in Table::ALL {
            let mut count = 0;
            for warehouse in 1..=warehouses {
                for row in population.rows(table, warehouse) {
                    assert_eq!(row.len(), table.text().columns().count(), "{table:?}");
                    count += 1;
                }
            }
            assert_eq!(population.count(table), count, "{table:?}");
            let w = u64::from(warehouses);
            let known = match table {
                Table::Warehouse => w,
                Table::District => 10 * w,
                Table::Customer | Table::History | Table::Orders => 30_000 * w,
                Table::NewOrder => 9000 * w,
                Table::Item => 100_000,
                Table::Stock => 100_000 * w,
                // Mean 10, deviation of the sum about 0.2 %.
                Table::OrderLine => continue,
            };
            assert_eq!(count, known, "{table:?}");
        }
        let lines = population.count(Table::OrderLine) as f64 / f64::from(warehouses);
        assert!((lines - 300_000.0).abs() < 3000.0, "{lines}");
    }
    let lines: i64 = ints(Table::Orders, "o_ol_cnt").iter().sum();
    assert_eq!(ints(Table::OrderLine, "ol_number").len() as i64, lines);
}

#[test]
fn the_first_thousand_customers_of_a_district_have_every_name_once() {
    let names = texts(Table::Customer, "c_last");
    assert_eq!(last_name(371), "PRICALLYOUGHT");
    for district in names.chunks(3000) {
        let first: HashSet<_> = district[..1000].iter().collect();
        assert_eq!(first.len(), 1000);
        // The rest is skewed: the hottest of the thousand names is far above the mean of 2.
        let hottest = first.iter().map(|n| district[1000..].iter().filter(|m| *m == *n).count());
        assert!(hottest.max().unwrap() > 20);
    }
    assert_ne!(names[1000..3000], names[4000..6000]);
}

#[test]
fn shares_of_marks_are_a_tenth() {
    let share = |texts: Vec<String>, mark: &str| {
        texts.iter().filter(|text| text.contains(mark)).count() as f64 / texts.len() as f64
    };
    let stock = texts(Table::Stock, "s_data");
    assert!(stock.iter().all(|data| (26..=50).contains(&data.len())));
    for (share, slack) in [
        (share(stock, "ORIGINAL"), 0.003),
        (share(texts(Table::Item, "i_data"), "ORIGINAL"), 0.003),
        (share(texts(Table::Customer, "c_credit"), "BC"), 0.005),
    ] {
        assert!((share - 0.1).abs() < slack, "{share}");
    }
}

#[test]
fn each_district_has_its_own_order_of_customers() {
    let customers = ints(Table::Orders, "o_c_id");
    let mut seen = HashSet::new();
    for district in customers.chunks(3000) {
        let mut sorted = district.to_vec();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(1..=3000));
        assert!(seen.insert(district.to_vec()));
    }
}

#[test]
fn orders_up_to_2100_are_delivered() {
    let (orders, carriers) = (ints(Table::Orders, "o_id"), ints(Table::Orders, "o_carrier_id"));
    assert!(orders.iter().zip(carriers).all(|(id, carrier)| (*id <= 2100) == (carrier > 0)));
    assert!(ints(Table::NewOrder, "no_o_id")[..900].iter().copied().eq(2101..=3000));
}

fn plain(field: &Datum) -> String {
    match field {
        Datum::Null => ";".to_owned(),
        Datum::Int(n) => format!("{n};"),
        Datum::Money(money) => format!("{money};"),
        Datum::Rate(rate) => format!("{};", rate.0),
        Datum::Date(date) => format!("{};", date.0),
        Datum::Text(text) => format!("{text};"),
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_in_every_version() {
    let scale = Scale::new(2).unwrap().with_items(100).unwrap().with_customers(30).unwrap();
    let digest = |seed| {
        let mut hash = Xxh3::new();
        for table in Table::ALL {
            for row in Population::new(scale, seed, Seconds(0)).rows(table, 2) {
                row.iter().for_each(|field| hash.update(plain(field).as_bytes()));
            }
        }
        hash.digest()
    };
    assert_eq!(digest(1), DIGEST);
    assert_ne!(digest(2), DIGEST);
}

const DIGEST: u64 = 17_448_360_282_096_219_018;

#[test]
fn tables_are_created_in_every_dialect() {
    let texts = Dialect::ALL.map(|dialect| {
        (Table::NewOrder.text().create(dialect), Table::NewOrder.text().finish(dialect).concat())
    });
    let [sqlite, postgres, mariadb] = texts;
    let columns = "create table new_order (no_o_id integer not null, no_d_id integer not null, \
                   no_w_id integer not null";
    let key = "primary key (no_w_id, no_d_id, no_o_id)";
    assert_eq!(sqlite, (format!("{columns}, {key}) without rowid"), String::new()));
    assert_eq!(postgres, (format!("{columns})"), format!("alter table new_order add {key}")));
    assert_eq!(mariadb, (format!("{columns}, {key}) engine = InnoDB"), String::new()));
    assert_eq!(Table::District.text().insert(Dialect::Postgres).matches('$').count(), 11);
}
