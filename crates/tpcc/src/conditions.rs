//! What must be true of a database at rest (clause 3.3.2), as SQL that counts what is not.
//!
//! Joins start from the table whose rows are not in question and are outer joins, and comparisons take NULL
//! for a value: a missing row, and a sum over none, would pass otherwise.

use crate::dialect::Dialect;
use crate::scale::Scale;

/// One condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Its number in the specification, or `stock`, which is ours: the twelve do not look at that table.
    pub name: &'static str,
    /// What it demands.
    pub demand: &'static str,
    /// A query of one integer: how many violations there are.
    pub sql: String,
}

/// Name, demand, and what follows `select count(*) from`. `LOADED` is the number of orders that a district
/// is loaded with, `DELIVERED` how many of them are delivered.
#[rustfmt::skip]
const CONDITIONS: [(&str, &str, &str); 13] = [
    ("1", "payments of a warehouse are those of its districts",
        "warehouse left join (select d_w_id, sum(d_ytd) as s from district group by d_w_id) x on d_w_id = w_id \
         where not (s <=> w_ytd)"),
    ("2", "the last order and the last undelivered order of a district precede its next number",
        "district \
         left join (select o_w_id, o_d_id, max(o_id) as a from orders group by o_w_id, o_d_id) o \
         on o_w_id = d_w_id and o_d_id = d_id \
         left join (select no_w_id, no_d_id, max(no_o_id) as b from new_order group by no_w_id, no_d_id) n \
         on no_w_id = d_w_id and no_d_id = d_id \
         where not (a <=> d_next_o_id - 1) or (b is not null and b <> d_next_o_id - 1)"),
    ("3", "numbers of undelivered orders of a district have no gaps",
        "(select no_w_id from new_order group by no_w_id, no_d_id \
         having max(no_o_id) - min(no_o_id) + 1 <> count(*)) x"),
    ("4", "orders of a district count as many lines as there are",
        "district \
         left join (select o_w_id, o_d_id, sum(o_ol_cnt) as a from orders group by o_w_id, o_d_id) o \
         on o_w_id = d_w_id and o_d_id = d_id \
         left join (select ol_w_id, ol_d_id, count(*) as b from order_line group by ol_w_id, ol_d_id) l \
         on ol_w_id = d_w_id and ol_d_id = d_id where not (a <=> b)"),
    ("5", "an order has no carrier if and only if it is undelivered",
        "(select o_id from orders left join new_order on no_w_id = o_w_id and no_d_id = o_d_id and no_o_id = o_id \
         where (o_carrier_id is null) <> (no_o_id is not null) \
         union all select no_o_id from new_order left join orders \
         on no_w_id = o_w_id and no_d_id = o_d_id and no_o_id = o_id where o_id is null) x"),
    ("6", "an order has as many lines as it counts",
        "orders left join \
         (select ol_w_id, ol_d_id, ol_o_id, count(*) as n from order_line group by ol_w_id, ol_d_id, ol_o_id) l \
         on ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id where not (n <=> o_ol_cnt)"),
    ("7", "a line has a delivery date if and only if its order has a carrier",
        "order_line left join orders on o_w_id = ol_w_id and o_d_id = ol_d_id and o_id = ol_o_id \
         where o_id is null or (ol_delivery_d is null) <> (o_carrier_id is null)"),
    ("8", "payments of a warehouse are those of the history",
        "warehouse left join (select h_w_id, sum(h_amount) as s from history group by h_w_id) h on h_w_id = w_id \
         where not (s <=> w_ytd)"),
    ("9", "payments of a district are those of the history",
        "district left join (select h_w_id, h_d_id, sum(h_amount) as s from history group by h_w_id, h_d_id) h \
         on h_w_id = d_w_id and h_d_id = d_id where not (s <=> d_ytd)"),
    ("10", "a customer owes what was delivered less what the history has as paid",
        "customer left join delivered_sums on dl_w = c_w_id and dl_d = c_d_id and dl_c = c_id \
         left join (select h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) as p from history \
         group by h_c_w_id, h_c_d_id, h_c_id) h on h_c_w_id = c_w_id and h_c_d_id = c_d_id and h_c_id = c_id \
         where not (c_balance <=> coalesce(dl_sum, 0) - coalesce(p, 0))"),
    ("11", "orders of a district are those delivered at the load, those delivered since, and the undelivered",
        "district \
         left join (select o_w_id, o_d_id, count(*) as a from orders group by o_w_id, o_d_id) o \
         on o_w_id = d_w_id and o_d_id = d_id \
         left join (select no_w_id, no_d_id, count(*) as b from new_order group by no_w_id, no_d_id) n \
         on no_w_id = d_w_id and no_d_id = d_id \
         left join (select c_w_id, c_d_id, sum(c_delivery_cnt) as c from customer group by c_w_id, c_d_id) c \
         on c_w_id = d_w_id and c_d_id = d_id where not (a - coalesce(b, 0) <=> DELIVERED + c)"),
    ("12", "what a customer owes and has paid is what was delivered",
        "customer left join delivered_sums on dl_w = c_w_id and dl_d = c_d_id and dl_c = c_id \
         where not (c_balance + c_ytd_payment <=> coalesce(dl_sum, 0))"),
    // The counters start at zero in spite of the loaded orders.
    ("stock", "the counters of a stock are the sums of the lines that it supplied",
        "stock left join (select ol_supply_w_id, ol_i_id, sum(ol_quantity) as q, count(*) as n, \
         sum(case when ol_supply_w_id <> ol_w_id then 1 else 0 end) as r from order_line \
         where ol_o_id > LOADED group by ol_supply_w_id, ol_i_id) l \
         on ol_supply_w_id = s_w_id and ol_i_id = s_i_id where not (s_ytd <=> coalesce(q, 0)) \
         or not (s_order_cnt <=> coalesce(n, 0)) or not (s_remote_cnt <=> coalesce(r, 0))"),
];

/// The statements that [`conditions`] need once before, on the same connection: what each customer's
/// delivered orders cost, as a temporary table. As a part of the queries it would be made several times.
pub fn prepare_conditions(dialect: Dialect) -> Vec<String> {
    let mut statements = vec![
        "drop table if exists delivered_sums".to_owned(),
        "create temporary table delivered_sums as \
         select o_w_id as dl_w, o_d_id as dl_d, o_c_id as dl_c, sum(ol_amount) as dl_sum from orders \
         join order_line on ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id \
         where ol_delivery_d is not null group by o_w_id, o_d_id, o_c_id"
            .to_owned(),
        "create index delivered_sums_i on delivered_sums (dl_w, dl_d, dl_c)".to_owned(),
    ];
    statements.extend((dialect == Dialect::Postgres).then(|| "analyze delivered_sums".to_owned()));
    statements
}

/// The twelve conditions of the specification, in order, and `stock`. They hold after the load and at any
/// time later when no transaction is open.
pub fn conditions(dialect: Dialect, scale: Scale) -> Vec<Condition> {
    let [loaded, delivered] = [scale.customers(), scale.delivered()].map(|n| n.to_string());
    let condition = |(name, demand, from): (_, _, &str)| {
        let from = from.replace("LOADED", &loaded).replace("DELIVERED", &delivered);
        Condition { name, demand, sql: dialect.text(&format!("select count(*) from {from}")) }
    };
    CONDITIONS.map(condition).into()
}
