//! Exact money, and statements in the words of each dialect.

use tpcc::{Cents, Dialect, TenThousandths, statements};

#[test]
fn what_is_due_is_exact_and_rounded_half_up() {
    let due = |sum, discount, taxes: [i64; 2]| {
        Cents(sum).due(TenThousandths(discount), taxes.map(TenThousandths)).0
    };
    // 100.00 * 0.9 * 1.25 = 112.50
    assert_eq!(due(10_000, 1000, [1000, 1500]), 11_250);
    // 0.01 * 0.5 = 0.005
    assert_eq!(due(1, 5000, [0, 0]), 1);
    assert_eq!(due(1, 5001, [0, 0]), 0);
    // The largest order: 15 lines of 10 at 100.00, both taxes 0.2.
    assert_eq!(due(1_500_000, 0, [2000, 2000]), 2_100_000);
}

#[test]
fn money_prints_with_two_decimals() {
    let printed = [Cents(-1000), Cents(-5), Cents(7), Cents(123_456)].map(|c| c.to_string());
    assert_eq!(printed, ["-10.00", "-0.05", "0.07", "1234.56"]);
}

#[test]
fn place_holders_and_locks_are_those_of_the_dialect() {
    let next_order = Dialect::ALL.map(|dialect| {
        let is_it = |text: &String| text.starts_with("select d_next_o_id, d_tax");
        statements(dialect).into_iter().map(|statement| statement.text).find(is_it)
    });
    let text = |rest: &str| Some(format!("select d_next_o_id, d_tax from district where {rest}"));
    let expected = [
        text("d_w_id = ? and d_id = ?"),
        text("d_w_id = $1 and d_id = $2 for update"),
        text("d_w_id = ? and d_id = ? for update"),
    ];
    assert_eq!(next_order, expected);
}
