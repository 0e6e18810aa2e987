//! Planted faults, each found by the conditions that name it: in the data, and in the transactions.

use tpcc::{Datum, Ending};

use crate::session::{Call, Sqlite};
use crate::{failures, loaded, run, small, violated};

/// A condition, and two faults of the data that it must find; the second takes a row away.
const IN_DATA: [(&str, [&str; 2]); 13] = [
    ("1", ["update warehouse set w_ytd = w_ytd + 1", "delete from district where d_id = 3"]),
    (
        "2",
        [
            "update district set d_next_o_id = d_next_o_id + 1 where d_id = 1",
            "delete from orders where o_d_id = 1 and o_id = (select max(o_id) from orders where o_d_id = 1)",
        ],
    ),
    (
        "3",
        [
            "update new_order set no_o_id = no_o_id - 1 where no_o_id = (select min(no_o_id) from new_order)",
            "delete from new_order where no_d_id = 10 and no_o_id = (select max(no_o_id) - 1 from new_order where no_d_id = 10)",
        ],
    ),
    (
        "4",
        [
            "update orders set o_ol_cnt = o_ol_cnt + 1 where o_id = 7 and o_d_id = 7",
            "delete from order_line where ol_o_id = 1 and ol_d_id = 1 and ol_number = 5",
        ],
    ),
    (
        "5",
        [
            "update orders set o_carrier_id = null where o_id = 1 and o_d_id = 1",
            "delete from new_order where no_d_id = 5 and no_o_id = (select min(no_o_id) from new_order where no_d_id = 5)",
        ],
    ),
    (
        "6",
        [
            "update order_line set ol_number = 99, ol_o_id = 2 where ol_o_id = 1 and ol_d_id = 1 and ol_number = 1",
            "delete from order_line where ol_o_id = 60 and ol_d_id = 9",
        ],
    ),
    (
        "7",
        [
            "update order_line set ol_delivery_d = null where ol_o_id = 5 and ol_number = 2 and ol_d_id = 1",
            "delete from orders where o_id = 8 and o_d_id = 8",
        ],
    ),
    (
        "8",
        [
            "update history set h_amount = h_amount + 1 where h_c_id = 1 and h_c_d_id = 1",
            "delete from history where h_c_id = 1 and h_c_d_id = 1",
        ],
    ),
    (
        "9",
        [
            "update history set h_d_id = 1 where h_c_id = 1 and h_c_d_id = 2",
            "delete from history where h_d_id = 2",
        ],
    ),
    (
        "10",
        [
            "update customer set c_balance = c_balance + 1 where c_id = 1 and c_d_id = 1",
            "delete from history where h_c_id = 60 and h_c_d_id = 10",
        ],
    ),
    (
        "11",
        [
            "update customer set c_delivery_cnt = c_delivery_cnt + 1 where c_id = 1 and c_d_id = 1",
            "delete from new_order where no_d_id = 4",
        ],
    ),
    (
        "12",
        [
            "update customer set c_ytd_payment = 0 where c_id = 9 and c_d_id = 9",
            "delete from order_line where ol_w_id = 1 and ol_o_id = 61 and ol_d_id = 6",
        ],
    ),
    (
        "stock",
        [
            "update stock set s_remote_cnt = 1 where s_i_id = 500",
            "delete from order_line where ol_w_id = 1 and ol_o_id > 60 and ol_number = 5",
        ],
    ),
];

#[test]
fn each_condition_finds_its_planted_faults_and_a_missing_row() {
    let population = small(1);
    let scale = population.scale();
    let mut database = loaded(population);
    // Condition 12 and the stock need orders of a run, some of them delivered.
    run(&mut database, population, 1, 1500);
    assert_eq!(violated(&database, scale), [""; 0]);
    for (condition, faults) in IN_DATA {
        for fault in faults {
            database.connection.execute_batch("begin").unwrap();
            let changed = database.connection.execute(fault, []).unwrap();
            assert!(changed > 0, "nothing to do for `{fault}`");
            let found = violated(&database, scale);
            assert!(found.contains(&condition), "`{fault}` violates {found:?} but not {condition}");
            database.connection.execute_batch("rollback").unwrap();
        }
    }
    assert_eq!(violated(&database, scale), [""; 0]);
}

/// What 1500 transactions with a bug violate.
fn found(plant: impl FnOnce(&mut Sqlite)) -> Vec<&'static str> {
    let population = small(2);
    let mut database = loaded(population);
    plant(&mut database);
    let played = run(&mut database, population, 2, 1500);
    assert_eq!(failures(&played), [&Ending::RolledBack; 0]);
    violated(&database, population.scale())
}

/// With another text in a statement.
fn edited(from: &'static str, to: &'static str) -> Vec<&'static str> {
    found(|database| database.edit(from, to))
}

/// With one of so many executions of a statement left out.
fn without(start: &'static str, one_of: u32) -> Vec<&'static str> {
    let mut count = 0;
    found(|database| {
        database.plant(move |text, _| {
            count += u32::from(text.starts_with(start));
            let skips = text.starts_with(start) && count.is_multiple_of(one_of);
            if skips { Call::Skip } else { Call::Do }
        });
    })
}

#[test]
fn bugs_of_payments_are_found() {
    assert_eq!(edited("d_ytd = d_ytd + ?", "d_ytd = d_ytd + 0 * ?"), ["1", "9"]);
    assert_eq!(edited("w_ytd = w_ytd + ?", "w_ytd = w_ytd + 0 * ?"), ["1", "8"]);
    assert_eq!(without("insert into history", 9), ["8", "9", "10"]);
}

#[test]
fn bugs_of_orders_are_found() {
    assert_eq!(without("insert into order_line", 50), ["4", "6", "stock"]);
    assert_eq!(without("insert into new_order", 50), ["2", "3", "5", "11"]);
    assert_eq!(
        edited(
            "o_ol_cnt, o_all_local) values (?, ?, ?, ?, ?, ?, ?)",
            "o_ol_cnt, o_all_local) values (?, ?, ?, ?, ?, ? + 1, ?)"
        ),
        ["4", "6"]
    );
    assert_eq!(
        edited("d_next_o_id = d_next_o_id + 1", "d_next_o_id = d_next_o_id + 2"),
        ["2", "3"]
    );
    assert_eq!(edited("s_ytd = s_ytd + ?", "s_ytd = s_ytd + 1 + 0 * ?"), ["stock"]);
    let remote_at_home = found(|database| {
        database.plant(|text, fields| {
            if text.starts_with("update stock") && fields[3] == Datum::Int(1) {
                let Datum::Int(supply) = fields[4] else { panic!("{fields:?}") };
                fields[4] = Datum::Int(3 - supply);
            }
            Call::Do
        });
    });
    assert_eq!(remote_at_home, ["stock"]);
}

#[test]
fn bugs_of_deliveries_are_found() {
    assert_eq!(edited("c_balance = c_balance + ?", "c_balance = c_balance + 0 * ?"), ["10", "12"]);
    assert_eq!(edited("c_delivery_cnt + 1", "c_delivery_cnt"), ["11"]);
    assert_eq!(without("update orders set o_carrier_id", 9), ["5", "7"]);
    assert_eq!(without("update order_line set ol_delivery_d", 9), ["7", "10", "12"]);
    let second_oldest = edited(
        "select min(no_o_id) from new_order where no_w_id = ? and no_d_id = ?",
        "select no_o_id from new_order where no_w_id = ? and no_d_id = ? order by no_o_id limit 1 offset 1",
    );
    assert_eq!(second_oldest, ["3"]);
}

#[test]
fn a_rollback_that_leaves_its_order_is_found() {
    assert_eq!(found(|database| database.keeps = true), ["4", "6"]);
}
