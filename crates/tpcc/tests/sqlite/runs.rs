//! Runs without bugs: every condition holds, and what terminals show is what the database has.

use std::collections::BTreeMap;

use rusqlite::Connection;
use tpcc::{
    Carrier, Cents, Ending, ErrorClass, Input, KITS, Repeats, Scale, Shown, Table, TenThousandths,
    Terminal, Transaction, TransactionError, Who, conditions, execute, last_name,
};

use crate::session::{Call, Sqlite, load};
use crate::{NOW, failures, loaded, run, small, violated};

#[test]
fn conditions_hold_after_the_load_and_after_thousands_of_transactions() {
    for (warehouses, seed) in [(1, 1), (1, 2), (2, 3), (3, 4)] {
        let population = small(warehouses);
        let scale = population.scale();
        let mut database = loaded(population);
        for table in Table::ALL {
            let count = database.count(&format!("select count(*) from {}", table.text().name));
            assert_eq!(population.count(table), count as u64, "{table:?}");
        }
        assert_eq!(violated(&database, scale), [""; 0], "after the load");
        let played = run(&mut database, population, seed, 3000);
        assert_eq!(failures(&played), [&Ending::RolledBack; 0]);
        assert_eq!(violated(&database, scale), [""; 0], "seed {seed}");
        let rolled_back = played.iter().filter(|one| one.ending == Ending::RolledBack).count();
        assert_eq!(database.rolled_back as usize, rolled_back);
        assert!(rolled_back > 3, "{rolled_back}");
        let orders = played
            .iter()
            .filter(|one| matches!(one.ending, Ending::Committed(Shown::NewOrder { .. })));
        let more = format!("select count(*) - {} from orders", population.count(Table::Orders));
        assert_eq!(database.count(&more), orders.count() as i64);
    }
}

/// The long form: minutes, so only where it is asked for.
#[test]
fn conditions_hold_at_the_size_of_the_specification() {
    if std::env::var_os("PLIMSOLL_TPCC_FULL").is_none() {
        return;
    }
    let scale = Scale::new(1).unwrap();
    let population = tpcc::Population::new(scale, 1, NOW);
    let mut database = loaded(population);
    let played = run(&mut database, population, 5, 100_000);
    assert_eq!(failures(&played), [&Ending::RolledBack; 0]);
    assert_eq!(violated(&database, scale), [""; 0]);
}

/// What the database should have, computed from the inputs alone.
struct Model {
    quantities: BTreeMap<(u32, u32), i64>,
    next: BTreeMap<(u32, u32), u32>,
}

impl Model {
    fn of(database: &Sqlite) -> Self {
        let mut rows =
            database.connection.prepare("select s_w_id, s_i_id, s_quantity from stock").unwrap();
        let quantities = rows
            .query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        Self { quantities, next: BTreeMap::new() }
    }

    /// An order that was committed: its number, and what is due before discount and tax.
    fn order(&mut self, input: &Input, prices: &[i64], first: u32) -> (u32, Cents) {
        let Input::NewOrder { customer, lines } = input else { panic!("{input:?}") };
        let place = (customer.home.warehouse, customer.home.district);
        let number = self.next.entry(place).or_insert(first);
        *number += 1;
        let mut sum = 0;
        for line in lines {
            let quantity = self.quantities.get_mut(&(line.supply, line.item)).unwrap();
            let left = *quantity - i64::from(line.quantity);
            *quantity = if left >= 10 { left } else { left + 91 };
            sum += prices[line.item as usize - 1] * i64::from(line.quantity);
        }
        (*number - 1, Cents(sum))
    }
}

fn column(database: &Sqlite, sql: &str) -> Vec<i64> {
    let mut rows = database.connection.prepare(sql).unwrap();
    rows.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn stock_orders_and_amounts_are_those_of_a_model() {
    let population = small(2);
    let scale = population.scale();
    let mut database = loaded(population);
    let mut model = Model::of(&database);
    let prices = column(&database, "select i_price from item order by i_id");
    let skews = population.skews().at_run(1);
    let mut brands_seen = 0;
    for home in scale.districts().step_by(3) {
        for turn in Terminal::new(scale, skews, KITS[1], home, 8).take(400) {
            let input = turn.input;
            let played = execute(&mut database, &input, NOW, Repeats(0));
            let Ending::Committed(Shown::NewOrder { order, due, brands }) = played.ending else {
                continue;
            };
            let (number, sum) = model.order(&input, &prices, scale.customers() + 1);
            let Input::NewOrder { customer, .. } = &input else { panic!() };
            let (w, d, c) = (customer.home.warehouse, customer.home.district, customer.customer);
            let rate = |sql: String| TenThousandths(database.count(&sql));
            let discount = rate(format!(
                "select c_discount from customer where c_w_id = {w} and c_d_id = {d} and c_id = {c}"
            ));
            let taxes = [
                rate(format!("select w_tax from warehouse where w_id = {w}")),
                rate(format!("select d_tax from district where d_w_id = {w} and d_id = {d}")),
            ];
            assert_eq!((order, due), (number, sum.due(discount, taxes)));
            brands_seen += brands;
            let wanted = format!(
                "select count(*) from order_line join item on i_id = ol_i_id \
                 join stock on s_w_id = ol_supply_w_id and s_i_id = ol_i_id \
                 where ol_w_id = {w} and ol_d_id = {d} and ol_o_id = {order} \
                 and i_data like '%ORIGINAL%' and s_data like '%ORIGINAL%'"
            );
            assert_eq!(database.count(&wanted), i64::from(brands));
            let labels = format!(
                "select count(*) from order_line join stock on s_w_id = ol_supply_w_id and s_i_id = ol_i_id \
                 where ol_w_id = {w} and ol_d_id = {d} and ol_o_id = {order} and ol_dist_info <> s_dist_{d:02}"
            );
            assert_eq!(database.count(&labels), 0);
        }
    }
    assert!(brands_seen > 20, "{brands_seen}");
    let quantities = column(&database, "select s_quantity from stock order by s_w_id, s_i_id");
    assert!(quantities.into_iter().eq(model.quantities.into_values()));
}

/// How many payments and questions by name go to another customer than the one in the middle.
fn wrong_customers(database: &mut Sqlite) -> usize {
    let mut wrong = 0;
    for home in small(1).scale().districts() {
        for name in 0..13 {
            let who = Who::Named(name);
            let input = match name % 2 {
                0 => Input::Payment { at: home, home, who, amount: Cents(100) },
                _ => Input::OrderStatus { home, who },
            };
            let found = match execute(database, &input, NOW, Repeats(0)).ending {
                Ending::Committed(
                    Shown::Payment { customer, .. } | Shown::OrderStatus { customer, .. },
                ) => customer,
                other => panic!("{other:?}"),
            };
            let rank = |sign: &str| {
                database.count(&format!(
                    "select count(*) from customer a join customer b on a.c_d_id = b.c_d_id and a.c_last = b.c_last \
                     where a.c_d_id = {} and a.c_last = '{}' and a.c_id = {} and b.c_first {sign} a.c_first",
                    home.district,
                    last_name(name),
                    found.customer
                ))
            };
            let (before, behind) = (rank("<"), rank(">"));
            assert!(before + behind >= 3);
            wrong += usize::from(behind - before != 0 && behind - before != 1);
        }
    }
    wrong
}

/// Thirteen names, each of four or five customers; in a small database everybody has another name.
fn with_namesakes() -> Sqlite {
    let database = loaded(small(1));
    let names: String = (0..13).map(|n| format!(" when {n} then '{}'", last_name(n))).collect();
    let same = format!("update customer set c_last = case c_id % 13{names} end");
    database.connection.execute_batch(&same).unwrap();
    database
}

#[test]
fn a_name_means_the_customer_in_the_middle() {
    let mut database = with_namesakes();
    assert_eq!(wrong_customers(&mut database), 0);
    let mut off_by_one = with_namesakes();
    off_by_one.edit("order by c_first, c_id", "order by c_first desc, c_id");
    // Of four it is now the third; of five it is still the third.
    assert!(wrong_customers(&mut off_by_one) > 40);
    // No condition of the specification sees it.
    assert_eq!(violated(&off_by_one, small(1).scale()), [""; 0]);
}

#[test]
fn bad_credit_remembers_payments_within_500_characters() {
    let population = small(1);
    let mut database = loaded(population);
    run(&mut database, population, 1, 2000);
    let changed = "c_data glob c_id || ' ' || c_d_id || ' 1 *'";
    let paid = |credit: &str| {
        database.count(&format!(
            "select count(*) from customer where c_payment_cnt > 1 and c_credit = '{credit}' and {changed}"
        ))
    };
    assert!(paid("BC") > 5);
    assert_eq!(paid("GC"), 0);
    let unlike = format!(
        "select count(*) from customer where c_payment_cnt > 1 and c_credit = 'BC' and not ({changed}) \
         or length(c_data) > 500"
    );
    assert_eq!(database.count(&unlike), 0);
    assert!(database.count("select count(*) from history where h_data like '%    %'") > 500);
}

#[test]
fn answers_to_questions_are_those_of_the_tables() {
    let population = small(1);
    let scale = population.scale();
    let mut database = loaded(population);
    run(&mut database, population, 3, 1500);
    let skews = population.skews().at_run(3);
    let mut asked = [0, 0];
    for home in scale.districts() {
        for turn in Terminal::new(scale, skews, KITS[1], home, 77).take(150) {
            let of = turn.input.transaction();
            if of != Transaction::OrderStatus && of != Transaction::StockLevel {
                continue;
            }
            match (execute(&mut database, &turn.input, NOW, Repeats(0)).ending, &turn.input) {
                (Ending::Committed(Shown::OrderStatus { customer, order, lines }), _) => {
                    let of = format!(
                        "o_w_id = {} and o_d_id = {} and o_c_id = {}",
                        customer.home.warehouse, customer.home.district, customer.customer
                    );
                    let last = database.count(&format!("select max(o_id) from orders where {of}"));
                    let count = database.count(&format!(
                        "select o_ol_cnt from orders where {of} and o_id = {order}"
                    ));
                    assert_eq!((i64::from(order), i64::from(lines)), (last, count));
                    asked[0] += 1;
                }
                (
                    Ending::Committed(Shown::StockLevel { low }),
                    Input::StockLevel { at, threshold },
                ) => {
                    let wanted = database.count(&format!(
                        "select count(*) from stock where s_w_id = {w} and s_quantity < {threshold} and s_i_id in \
                         (select ol_i_id from order_line, district where d_w_id = {w} and d_id = {d} \
                         and ol_w_id = {w} and ol_d_id = {d} and ol_o_id between d_next_o_id - 20 and d_next_o_id - 1)",
                        w = at.warehouse,
                        d = at.district
                    ));
                    assert_eq!(i64::from(low), wanted);
                    asked[1] += 1;
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert!(asked.iter().all(|count| *count > 30), "{asked:?}");
}

#[test]
fn an_empty_district_is_skipped_and_counted() {
    let population = small(1);
    let mut database = loaded(population);
    let undelivered = population.scale().customers() - population.scale().delivered();
    let deliver = Input::Delivery { warehouse: 1, carrier: Carrier(4) };
    for turn in 0..=undelivered {
        let skipped = if turn < undelivered { 0 } else { 10 };
        let played = execute(&mut database, &deliver, NOW, Repeats(0));
        assert_eq!(played.ending, Ending::Committed(Shown::Delivery { skipped }));
    }
    assert_eq!(violated(&database, population.scale()), [""; 0]);
}

/// An order with every call number `at` failing so many times.
fn with_failures(class: ErrorClass, times: u32, repeats: u32) -> (Sqlite, tpcc::Execution) {
    let mut database = loaded(small(1));
    let mut left = times;
    database.plant(move |text, _| match text.starts_with("insert into order_line") && left > 0 {
        true => {
            left -= 1;
            Call::Fail(class)
        }
        false => Call::Do,
    });
    let scale = small(1).scale();
    let home = scale.districts().next().unwrap();
    let mut terminal = Terminal::new(scale, small(1).skews(), KITS[1], home, 1);
    let input = terminal
        .find(|turn| turn.input.transaction() == Transaction::NewOrder)
        .map(|turn| turn.input)
        .unwrap();
    let played = execute(&mut database, &input, NOW, Repeats(repeats));
    assert_eq!(violated(&database, scale), [""; 0]);
    (database, played)
}

#[test]
fn what_the_engine_asks_to_repeat_is_repeated_with_the_same_input() {
    for class in [ErrorClass::Busy, ErrorClass::Deadlock, ErrorClass::Serialization] {
        let (database, played) = with_failures(class, 2, 2);
        assert_eq!(played.repeated, [class, class]);
        assert!(matches!(played.ending, Ending::Committed(_)), "{played:?}");
        assert_eq!(database.count("select count(*) from orders"), 601);
        let (database, played) = with_failures(class, 3, 2);
        let Ending::Failed(fault) = played.ending else { panic!("{played:?}") };
        assert_eq!(fault.class(), class);
        assert_eq!(database.count("select count(*) from orders"), 600);
        assert_eq!(database.rolled_back, 3);
    }
    for class in [ErrorClass::Gone, ErrorClass::Other] {
        let (_, played) = with_failures(class, 1, 9);
        assert_eq!(played.repeated, []);
        assert!(matches!(played.ending, Ending::Failed(_)), "{played:?}");
    }
}

#[test]
fn a_delivery_that_another_session_was_faster_with_is_repeated() {
    let mut database = loaded(small(1));
    let mut is_first = true;
    database.plant(move |text, _| {
        match text.starts_with("delete from new_order") && std::mem::take(&mut is_first) {
            true => Call::Miss,
            false => Call::Do,
        }
    });
    let input = Input::Delivery { warehouse: 1, carrier: Carrier(1) };
    let played = execute(&mut database, &input, NOW, Repeats(1));
    assert_eq!(played.repeated, [ErrorClass::Serialization]);
    assert_eq!(played.ending, Ending::Committed(Shown::Delivery { skipped: 0 }));
    assert_eq!(violated(&database, small(1).scale()), [""; 0]);
}

#[test]
fn a_missing_item_is_a_fault_unless_it_is_the_last() {
    let mut database = loaded(small(1));
    let home = small(1).scale().districts().next().unwrap();
    let mut terminal = Terminal::new(small(1).scale(), small(1).skews(), KITS[1], home, 1);
    let mut input = terminal
        .find(|turn| turn.input.transaction() == Transaction::NewOrder)
        .map(|turn| turn.input)
        .unwrap();
    let Input::NewOrder { lines, .. } = &mut input else { panic!() };
    lines[0].item = 501;
    let played = execute(&mut database, &input, NOW, Repeats(0));
    let Ending::Failed(fault) = played.ending else { panic!("{played:?}") };
    assert!(matches!(fault, TransactionError::Rows { seen: 0, .. }), "{fault:?}");
    assert!(fault.to_string().contains("from item"), "{fault}");
}

#[test]
fn three_threads_on_one_file_repeat_what_was_busy() {
    let population = small(1);
    let scale = population.scale();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    let open = || {
        let connection = Connection::open(&path).unwrap();
        connection.busy_timeout(std::time::Duration::ZERO).unwrap();
        connection.execute_batch("pragma journal_mode = wal; pragma synchronous = off").unwrap();
        connection
    };
    load(&open(), population);
    let repeated: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = scale
            .districts()
            .take(3)
            .map(|home| {
                let connection = open();
                scope.spawn(move || {
                    let mut database = Sqlite::new(connection);
                    let skews = population.skews().at_run(1);
                    let mut repeated = 0;
                    for turn in Terminal::new(scale, skews, KITS[1], home, 4).take(150) {
                        let played = execute(&mut database, &turn.input, NOW, Repeats(1_000_000));
                        assert!(!matches!(played.ending, Ending::Failed(_)), "{played:?}");
                        assert!(played.repeated.iter().all(|class| *class == ErrorClass::Busy));
                        repeated += played.repeated.len();
                    }
                    repeated
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let database = Sqlite::new(open());
    assert_eq!(violated(&database, scale), [""; 0], "{repeated} repeats");
}

#[test]
fn every_condition_is_there_once_in_order() {
    let names: Vec<_> =
        conditions(tpcc::Dialect::Postgres, small(1).scale()).iter().map(|one| one.name).collect();
    assert_eq!(names, ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "stock"]);
}
