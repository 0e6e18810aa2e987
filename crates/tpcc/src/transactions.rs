//! The five transactions (clauses 2.4.2 to 2.8.2).
//!
//! Calls that do not depend on each other's replies share a flight. The order of work inside a transaction
//! is free as long as its effect is the same, says the specification.

use crate::input::{Carrier, Input, OrderedLine, Who};
use crate::random::last_name;
use crate::scale::{CustomerId, DISTRICTS, DistrictId};
use crate::session::{Intent, Session};
use crate::statements::{QUERIES, Step};
use crate::value::{Cents, Seconds, fields};
use crate::work::{Calls, Row, TransactionError, Tried};

/// What the terminal shows at the end, as far as it is worth a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// A new order.
    NewOrder {
        /// Its number in the district.
        order: u32,
        /// What the customer has to pay, with discount and taxes.
        due: Cents,
        /// Lines of brand goods: item and stock are both marked as original.
        brands: u32,
    },
    /// A payment.
    Payment {
        /// Who paid.
        customer: CustomerId,
        /// What they owe now; negative when they have paid ahead.
        balance: Cents,
    },
    /// The last order of a customer.
    OrderStatus {
        /// Whose.
        customer: CustomerId,
        /// Its number in the district.
        order: u32,
        /// How many lines it has.
        lines: u32,
    },
    /// A delivery.
    Delivery {
        /// Districts without an order to deliver. More than 1 % of all is to be reported.
        skipped: u32,
    },
    /// Items that run out.
    StockLevel {
        /// How many.
        low: u32,
    },
}

/// What a transaction does to the database.
pub(crate) const fn intent(input: &Input) -> Intent {
    match input {
        Input::OrderStatus { .. } | Input::StockLevel { .. } => Intent::Read,
        _ => Intent::Write,
    }
}

/// Does the work of an input between begin and commit. `None` asks for the rollback that an unused item
/// number is there for.
pub(crate) fn work(session: &mut dyn Session, input: &Input, now: Seconds) -> Tried<Option<Shown>> {
    let work = &mut Calls::new(session, QUERIES);
    match input {
        Input::NewOrder { customer, lines } => new_order(work, *customer, lines, now),
        Input::Payment { at, home, who, amount } => {
            let payer = find(work, *home, *who)?;
            payment(work, *at, payer, *amount, now).map(Some)
        }
        Input::OrderStatus { home, who } => {
            let customer = find(work, *home, *who)?;
            order_status(work, customer).map(Some)
        }
        Input::Delivery { warehouse, carrier } => {
            delivery(work, *warehouse, *carrier, now).map(Some)
        }
        Input::StockLevel { at, threshold } => stock_level(work, *at, *threshold).map(Some),
    }
}

/// A statement that found nothing where something must be.
fn nothing(step: Step) -> TransactionError {
    let statement = QUERIES[usize::from(step)].text;
    TransactionError::Rows { statement, seen: 0, wanted: "at least one" }
}

/// One ordered line with what the database knows about it.
struct Priced {
    line: OrderedLine,
    amount: Cents,
    is_brand: bool,
    label: String,
}

fn new_order(
    work: &mut Calls<'_>,
    customer: CustomerId,
    lines: &[OrderedLine],
    now: Seconds,
) -> Tried<Option<Shown>> {
    let CustomerId { home: DistrictId { warehouse, district }, customer } = customer;
    work.add(Step::ReadOrderer, fields![warehouse, district, customer]);
    work.add(Step::ReadNextOrder, fields![warehouse, district]);
    work.add(Step::TakeNextOrder, fields![warehouse, district]);
    for line in lines {
        work.add(Step::ReadItem, fields![line.item]);
        work.add(Step::ReadStock, fields![district, line.supply, line.item]);
    }
    work.fly()?;
    let mut orderer = work.row()?;
    let (warehouse_tax, discount) = (orderer.rate()?, orderer.rate()?);
    let mut next = work.row()?;
    let (order, district_tax) = (next.int()?, next.rate()?);
    work.one()?;
    let mut priced = Vec::with_capacity(lines.len());
    for (at, line) in (1..).zip(lines) {
        match work.row_if_any()? {
            Some(item) => priced.push(price(*line, item, work.row()?)?),
            None if at == lines.len() => {}
            None => return Err(nothing(Step::ReadItem)),
        }
    }
    let is_local = lines.iter().all(|line| line.supply == warehouse);
    let (count, is_local) = (lines.len() as u32, u32::from(is_local));
    work.add(
        Step::InsertOrder,
        fields![order, district, warehouse, customer, now, count, is_local],
    );
    work.add(Step::InsertNewOrder, fields![order, district, warehouse]);
    for (number, Priced { line, amount, label, .. }) in (1..).zip(&priced) {
        let OrderedLine { item, supply, quantity } = *line;
        let is_remote = u32::from(supply != warehouse);
        work.add(Step::TakeStock, fields![quantity, quantity, quantity, is_remote, supply, item]);
        let parcel = label.as_str();
        work.add(
            Step::InsertLine,
            fields![order, district, warehouse, number, item, supply, quantity, *amount, parcel],
        );
    }
    work.fly()?;
    for _ in 0..2 + 2 * priced.len() {
        work.one()?;
    }
    if priced.len() < lines.len() {
        return Ok(None);
    }
    let sum = priced.iter().map(|line| line.amount).fold(Cents(0), |sum, amount| sum + amount);
    let due = sum.due(discount, [warehouse_tax, district_tax]);
    let brands = priced.iter().map(|line| u32::from(line.is_brand)).sum();
    Ok(Some(Shown::NewOrder { order, due, brands }))
}

fn price(line: OrderedLine, mut item: Row, mut stock: Row) -> Tried<Priced> {
    let (price, _name, data) = (item.money()?, item.text()?, item.text()?);
    let (_quantity, stock_data) = (stock.int()?, stock.text()?);
    let is_brand = [data, stock_data].iter().all(|data| data.contains("ORIGINAL"));
    Ok(Priced { line, amount: price * line.quantity, is_brand, label: stock.text()? })
}

/// The customer of a number; of a name the one in the middle, rounded up, in the order of first names.
fn find(work: &mut Calls<'_>, home: DistrictId, who: Who) -> Tried<CustomerId> {
    let name = match who {
        Who::Number(customer) => return Ok(CustomerId { home, customer }),
        Who::Named(name) => last_name(name),
    };
    work.add(Step::FindByName, fields![home.warehouse, home.district, name]);
    work.fly()?;
    let mut all = work.rows()?;
    if all.is_empty() {
        return Err(nothing(Step::FindByName));
    }
    let middle = all.len().div_ceil(2) - 1;
    Ok(CustomerId { home, customer: Row::from(all.swap_remove(middle)).int()? })
}

fn payment(
    work: &mut Calls<'_>,
    at: DistrictId,
    payer: CustomerId,
    amount: Cents,
    now: Seconds,
) -> Tried<Shown> {
    let CustomerId { home, customer } = payer;
    let key = || fields![home.warehouse, home.district, customer];
    work.add(Step::PayWarehouse, fields![amount, at.warehouse]);
    work.add(Step::ReadWarehouse, fields![at.warehouse]);
    work.add(Step::PayDistrict, fields![amount, at.warehouse, at.district]);
    work.add(Step::ReadDistrict, fields![at.warehouse, at.district]);
    work.add(Step::ReadPayer, key());
    work.fly()?;
    work.one()?;
    let warehouse_name = work.row()?.text()?;
    work.one()?;
    let district_name = work.row()?.text()?;
    let mut row = work.row()?;
    let has_bad_credit = row.text()? == "BC";
    let balance = row.money()?;
    let [warehouse, district, number] = key();
    if has_bad_credit {
        work.add(Step::ReadData, key());
        work.fly()?;
        let old = work.row()?.text()?;
        let DistrictId { warehouse: w, district: d } = home;
        let data = format!("{customer} {d} {w} {} {} {amount} {old}", at.district, at.warehouse);
        let data: String = data.chars().take(500).collect();
        work.add(Step::PayWithData, fields![amount, amount, data, warehouse, district, number]);
    } else {
        work.add(Step::Pay, fields![amount, amount, warehouse, district, number]);
    }
    let data = format!("{warehouse_name}    {district_name}");
    let [warehouse, district, number] = key();
    work.add(
        Step::InsertHistory,
        fields![number, district, warehouse, at.district, at.warehouse, now, amount, data],
    );
    work.fly()?;
    work.one()?;
    work.one()?;
    Ok(Shown::Payment { customer: payer, balance: balance + Cents(-amount.0) })
}

fn order_status(work: &mut Calls<'_>, customer: CustomerId) -> Tried<Shown> {
    let DistrictId { warehouse, district } = customer.home;
    work.add(Step::ReadCustomer, fields![warehouse, district, customer.customer]);
    work.add(Step::ReadLastOrder, fields![warehouse, district, customer.customer]);
    work.fly()?;
    work.row()?;
    let order = work.row()?.int()?;
    work.add(Step::ReadLines, fields![warehouse, district, order]);
    work.fly()?;
    Ok(Shown::OrderStatus { customer, order, lines: work.rows()?.len() as u32 })
}

fn delivery(work: &mut Calls<'_>, warehouse: u32, carrier: Carrier, now: Seconds) -> Tried<Shown> {
    for district in 1..=DISTRICTS {
        work.add(Step::ReadOldest, fields![warehouse, district]);
    }
    work.fly()?;
    let mut orders = Vec::with_capacity(DISTRICTS as usize);
    for district in 1..=DISTRICTS {
        orders.extend(work.row()?.int_if_any()?.map(|order| (district, order)));
    }
    for &(district, order) in &orders {
        let key = || fields![warehouse, district, order];
        work.add(Step::DeleteNewOrder, key());
        work.add(Step::ReadReceiver, key());
        work.add(Step::SetCarrier, fields![carrier.0, warehouse, district, order]);
        work.add(Step::SetDelivered, fields![now, warehouse, district, order]);
        work.add(Step::SumLines, key());
    }
    work.fly()?;
    let mut charges = Vec::with_capacity(orders.len());
    for &(district, _) in &orders {
        // Reading the oldest takes no lock: engines disagree about what a second reader sees then.
        if work.affected()? != 1 {
            return Err(TransactionError::Raced);
        }
        let receiver = work.row()?.int()?;
        work.one()?;
        work.affected()?;
        charges.push((work.row()?.money()?, district, receiver));
    }
    for &(sum, district, receiver) in &charges {
        work.add(Step::Charge, fields![sum, warehouse, district, receiver]);
    }
    work.fly()?;
    for _ in &charges {
        work.one()?;
    }
    Ok(Shown::Delivery { skipped: DISTRICTS - orders.len() as u32 })
}

fn stock_level(work: &mut Calls<'_>, at: DistrictId, threshold: u32) -> Tried<Shown> {
    let DistrictId { warehouse, district } = at;
    work.add(Step::ReadOrdersEnd, fields![warehouse, district]);
    work.fly()?;
    let end = work.row()?.int()?;
    let first = end.saturating_sub(20);
    work.add(Step::CountLow, fields![warehouse, district, first, end, threshold]);
    work.fly()?;
    Ok(Shown::StockLevel { low: work.row()?.int()? })
}
