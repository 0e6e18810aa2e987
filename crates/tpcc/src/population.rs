//! What a database holds before the first transaction (clause 4.3.3): rows from a seed.

use std::ops::RangeInclusive;

use stats::Random;
use stats::random::{Permutation, derive_seed};

use crate::random::{Skews, data, digits, last_name, letters, within};
use crate::scale::{DISTRICTS, DistrictId, NAMES, Scale};
use crate::schema::Table;
use crate::value::{Cents, Datum, Fields, Seconds, TenThousandths, fields};

/// The rows of a fresh database. Each row depends on the seed and its key alone, so warehouses can be
/// loaded side by side and any of them made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Population {
    scale: Scale,
    skews: Skews,
    seed: u64,
    date: Seconds,
}

/// What a row is called: a customer or an order by its number in a district, an item or a stock by its
/// number in district 0 of a warehouse.
#[derive(Clone, Copy)]
struct RowId {
    home: DistrictId,
    number: u32,
}

/// What each customer has paid, in one payment.
const PAID: Cents = Cents(1000);

/// What the random numbers of a key are for, where it is not a row of a table.
const OF_PERMUTATION: u64 = 100;
const OF_LINE_COUNT: u64 = 101;

impl Population {
    /// `date` becomes the date of every order, payment and customer.
    pub fn new(scale: Scale, seed: u64, date: Seconds) -> Self {
        Self { scale, skews: Skews::at_load(scale, seed), seed, date }
    }

    /// Its size.
    pub const fn scale(&self) -> Scale {
        self.scale
    }

    /// The skews of the load, from which those of a run follow.
    pub const fn skews(&self) -> Skews {
        self.skews
    }

    /// The rows of a table that belong to a warehouse, by key. Items belong to warehouse 1.
    pub fn rows(self, table: Table, warehouse: u32) -> Box<dyn Iterator<Item = Fields>> {
        let all = DistrictId { warehouse, district: 0 };
        let items = (1..=self.scale.items()).map(move |number| RowId { home: all, number });
        let all_orders = 1..=self.scale.customers();
        let open_orders = self.scale.delivered() + 1..=self.scale.customers();
        let per_district = move |row: fn(&Self, RowId) -> Fields, numbers| {
            places(warehouse, numbers).map(move |place| row(&self, place))
        };
        match table {
            Table::Item if warehouse != 1 => Box::new(std::iter::empty()),
            Table::Item => Box::new(items.map(move |item| self.item(item))),
            Table::Warehouse => Box::new(std::iter::once(self.warehouse(all))),
            Table::Stock => Box::new(items.map(move |stock| self.stock(stock))),
            Table::District => Box::new(districts(warehouse).map(move |home| self.district(home))),
            Table::Customer => Box::new(per_district(Self::customer, all_orders)),
            Table::History => Box::new(per_district(Self::history, all_orders)),
            Table::Orders => Box::new(per_district(Self::order, all_orders)),
            Table::NewOrder => Box::new(per_district(|_, order| key(order), open_orders)),
            Table::OrderLine => Box::new(places(warehouse, all_orders).flat_map(move |order| {
                (1..=self.line_count(order)).map(move |number| self.order_line(order, number))
            })),
        }
    }

    /// How many rows a table has in all.
    pub fn count(&self, table: Table) -> u64 {
        let warehouses = u64::from(self.scale.warehouses());
        let districts = warehouses * u64::from(DISTRICTS);
        let customers = u64::from(self.scale.customers());
        match table {
            Table::Item => self.scale.items().into(),
            Table::Warehouse => warehouses,
            Table::Stock => warehouses * u64::from(self.scale.items()),
            Table::District => districts,
            Table::Customer | Table::History | Table::Orders => districts * customers,
            Table::NewOrder => districts * (customers - u64::from(self.scale.delivered())),
            Table::OrderLine => (1..=self.scale.warehouses())
                .flat_map(|warehouse| places(warehouse, 1..=self.scale.customers()))
                .map(|order| u64::from(self.line_count(order)))
                .sum(),
        }
    }

    fn seed_of(&self, what: u64, place: RowId) -> u64 {
        let RowId { home: DistrictId { warehouse, district }, number } = place;
        derive_seed(self.seed, &[what, warehouse.into(), district.into(), number.into()])
    }

    fn random(&self, table: Table, place: RowId) -> Random {
        Random::new(self.seed_of(table as u64, place))
    }

    fn item(&self, item: RowId) -> Fields {
        let random = &mut self.random(Table::Item, item);
        let (image, name) = (within(random, 1..=10_000), letters(random, 14..=24));
        fields![item.number, image, name, money(random, 100..=10_000), data(random)].into()
    }

    fn warehouse(&self, home: DistrictId) -> Fields {
        let random = &mut self.random(Table::Warehouse, RowId { home, number: 0 });
        let mut row = Fields::from(fields![home.warehouse, letters(random, 6..=10)]);
        row.extend(address(random));
        row.extend(fields![rate(random, 2000), self.paid_in_district() * DISTRICTS]);
        row
    }

    fn stock(&self, stock: RowId) -> Fields {
        let random = &mut self.random(Table::Stock, stock);
        let quantity = within(random, 10..=100);
        let mut row = Fields::from(fields![stock.number, stock.home.warehouse, quantity]);
        row.extend((0..DISTRICTS).map(|_| Datum::from(letters(random, 24..=24))));
        row.extend(fields![0, 0, 0, data(random)]);
        row
    }

    fn district(&self, home: DistrictId) -> Fields {
        let random = &mut self.random(Table::District, RowId { home, number: 0 });
        let name = letters(random, 6..=10);
        let mut row = Fields::from(fields![home.district, home.warehouse, name]);
        row.extend(address(random));
        let next = self.scale.customers() + 1;
        row.extend(fields![rate(random, 2000), self.paid_in_district(), next]);
        row
    }

    /// 30 000.00 in the specification.
    fn paid_in_district(&self) -> Cents {
        PAID * self.scale.customers()
    }

    fn customer(&self, place: RowId) -> Fields {
        let random = &mut self.random(Table::Customer, place);
        let name = match place.number {
            number @ 1..=NAMES => number - 1,
            _ => self.skews.names.draw(random),
        };
        let mut row = key(place);
        row.extend(fields![letters(random, 8..=16), "OE", last_name(name)]);
        row.extend(address(random));
        let (phone, is_bad) = (digits(random, 16), random.below(10) == 0);
        let credit = if is_bad { "BC" } else { "GC" };
        row.extend(fields![phone, self.date, credit, Cents(5_000_000), rate(random, 5000)]);
        row.extend(fields![Cents(-PAID.0), PAID, 1, 0, letters(random, 300..=500)]);
        row
    }

    fn history(&self, place: RowId) -> Fields {
        let random = &mut self.random(Table::History, place);
        let DistrictId { warehouse, district } = place.home;
        let mut row = key(place);
        row.extend(fields![district, warehouse, self.date, PAID, letters(random, 12..=24)]);
        row
    }

    fn order(&self, order: RowId) -> Fields {
        let random = &mut self.random(Table::Orders, order);
        let seed = self.seed_of(OF_PERMUTATION, RowId { number: 0, ..order });
        let customers = Permutation::new(self.scale.customers().into(), seed);
        let customer = customers.at(u64::from(order.number) - 1) as u32 + 1;
        let carrier = self.is_delivered(order).then_some(within(random, 1..=10));
        let mut row = key(order);
        row.extend(fields![customer, self.date, carrier, self.line_count(order), 1]);
        row
    }

    fn order_line(&self, order: RowId, number: u32) -> Fields {
        let seed = derive_seed(self.seed_of(Table::OrderLine as u64, order), &[number.into()]);
        let random = &mut Random::new(seed);
        let item = within(random, 1..=self.scale.items());
        let (amount, label) = (money(random, 1..=999_999), letters(random, 24..=24));
        let (date, amount) = match self.is_delivered(order) {
            true => (Some(self.date), Cents(0)),
            false => (None, amount),
        };
        let mut row = key(order);
        row.extend(fields![number, item, order.home.warehouse, date, 5, amount, label]);
        row
    }

    fn is_delivered(&self, order: RowId) -> bool {
        order.number <= self.scale.delivered()
    }

    fn line_count(&self, order: RowId) -> u32 {
        within(&mut Random::new(self.seed_of(OF_LINE_COUNT, order)), 5..=15)
    }
}

fn districts(warehouse: u32) -> impl Iterator<Item = DistrictId> {
    (1..=DISTRICTS).map(move |district| DistrictId { warehouse, district })
}

/// Customers, or orders, of these numbers in every district of a warehouse.
fn places(warehouse: u32, numbers: RangeInclusive<u32>) -> impl Iterator<Item = RowId> {
    districts(warehouse)
        .flat_map(move |home| numbers.clone().map(move |number| RowId { home, number }))
}

/// The three columns that name a customer or an order.
fn key(place: RowId) -> Fields {
    fields![place.number, place.home.district, place.home.warehouse].into()
}

fn money(random: &mut Random, range: RangeInclusive<u32>) -> Cents {
    Cents(within(random, range).into())
}

fn rate(random: &mut Random, last: u32) -> TenThousandths {
    TenThousandths(within(random, 0..=last).into())
}

/// Streets, city, state and zip (clause 4.3.2.7).
fn address(random: &mut Random) -> [Datum; 5] {
    let [street, flat, city] = [(); 3].map(|()| letters(random, 10..=20));
    let state: String = (0..2).map(|_| char::from(b'A' + random.below(26) as u8)).collect();
    fields![street, flat, city, state, digits(random, 4) + "11111"]
}
