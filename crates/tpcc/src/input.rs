//! What terminals type: the inputs of the five transactions, from a seed (clauses 2.4.1 to 2.8.1).

use std::ops::RangeInclusive;

use stats::Random;
use stats::random::derive_seed;
use units::Nanos;

use crate::mix::{Deck, Kit, Transaction};
use crate::random::{Skews, within};
use crate::scale::{CustomerId, DISTRICTS, DistrictId, Scale};
use crate::value::Cents;

/// One line of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderedLine {
    /// The item; one more than there are is the unused number that makes the order fail.
    pub item: u32,
    /// The warehouse that supplies it.
    pub supply: u32,
    /// How many, 1 to 10.
    pub quantity: u32,
}

/// How a customer is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// By number in the district.
    Number(u32),
    /// By the number of a last name, see [`crate::last_name`].
    Named(u32),
}

/// Number of a carrier, 1 to 10.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carrier(pub u32);

/// What a terminal types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// An order.
    NewOrder {
        /// Who orders.
        customer: CustomerId,
        /// 5 to 15.
        lines: Vec<OrderedLine>,
    },
    /// A payment.
    Payment {
        /// Where it is made.
        at: DistrictId,
        /// Where the customer belongs.
        home: DistrictId,
        /// The customer there.
        who: Who,
        /// 1.00 to 5000.00.
        amount: Cents,
    },
    /// A question for a customer's last order.
    OrderStatus {
        /// Where the customer belongs.
        home: DistrictId,
        /// The customer there.
        who: Who,
    },
    /// A delivery of ten orders.
    Delivery {
        /// The warehouse that delivers.
        warehouse: u32,
        /// Who drives.
        carrier: Carrier,
    },
    /// A question for items that run out.
    StockLevel {
        /// Whose last 20 orders are looked at.
        at: DistrictId,
        /// 10 to 20; what is below runs out.
        threshold: u32,
    },
}

/// One transaction of a terminal with the times around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Before the transaction starts.
    pub keying: Nanos,
    /// What was typed.
    pub input: Input,
    /// After its answer.
    pub thinking: Nanos,
}

/// A terminal, bound to a warehouse and for Stock-Level to a district: an endless iterator of turns.
#[derive(Clone, Debug)]
pub struct Terminal {
    scale: Scale,
    skews: Skews,
    kit: Kit,
    home: DistrictId,
    deck: Deck,
    random: Random,
}

impl Input {
    /// Whose input this is.
    pub const fn transaction(&self) -> Transaction {
        match self {
            Self::NewOrder { .. } => Transaction::NewOrder,
            Self::Payment { .. } => Transaction::Payment,
            Self::OrderStatus { .. } => Transaction::OrderStatus,
            Self::Delivery { .. } => Transaction::Delivery,
            Self::StockLevel { .. } => Transaction::StockLevel,
        }
    }

    /// Whether it is an order of an unused item, which is to be rolled back.
    pub fn is_to_fail(&self, scale: Scale) -> bool {
        let Self::NewOrder { lines, .. } = self else { return false };
        lines.last().is_some_and(|line| line.item > scale.items())
    }
}

impl Terminal {
    /// The terminal of a district ([`Scale::districts`]). Terminals of one run share the seed and the skews.
    pub fn new(scale: Scale, skews: Skews, kit: Kit, home: DistrictId, seed: u64) -> Self {
        let place = [home.warehouse.into(), home.district.into()];
        let random = Random::new(derive_seed(seed, &place));
        Self { scale, skews, kit, home, deck: Deck::default(), random }
    }

    fn within(&mut self, range: RangeInclusive<u32>) -> u32 {
        within(&mut self.random, range)
    }

    /// True in so many of 100 cases.
    fn in_percent(&mut self, share: u64) -> bool {
        self.random.below(100) < share
    }

    fn district(&mut self) -> DistrictId {
        DistrictId { warehouse: self.home.warehouse, district: self.within(1..=DISTRICTS) }
    }

    /// Uniform among the other warehouses; its own where there is no other.
    fn other_warehouse(&mut self) -> u32 {
        match self.scale.warehouses() {
            1 => self.home.warehouse,
            all => {
                let other = self.within(1..=all - 1);
                other + u32::from(other >= self.home.warehouse)
            }
        }
    }

    fn who(&mut self) -> Who {
        if self.in_percent(60) {
            Who::Named(self.skews.names.draw(&mut self.random))
        } else {
            Who::Number(self.skews.customers.draw(&mut self.random))
        }
    }

    fn line(&mut self) -> OrderedLine {
        let item = self.skews.items.draw(&mut self.random);
        let is_remote = self.in_percent(1);
        let supply = if is_remote { self.other_warehouse() } else { self.home.warehouse };
        OrderedLine { item, supply, quantity: self.within(1..=10) }
    }

    fn new_order(&mut self) -> Input {
        let home = self.district();
        let customer = CustomerId { home, customer: self.skews.customers.draw(&mut self.random) };
        let count = self.within(5..=15);
        let is_wrong = self.in_percent(1);
        let mut lines: Vec<OrderedLine> = (0..count).map(|_| self.line()).collect();
        if let (true, Some(last)) = (is_wrong, lines.last_mut()) {
            last.item = self.scale.items() + 1;
        }
        Input::NewOrder { customer, lines }
    }

    fn payment(&mut self) -> Input {
        let at = self.district();
        let home = match (self.scale.warehouses() > 1, self.in_percent(15)) {
            (true, true) => {
                let warehouse = self.other_warehouse();
                DistrictId { warehouse, district: self.within(1..=DISTRICTS) }
            }
            _ => at,
        };
        let who = self.who();
        let amount = Cents(self.within(100..=500_000).into());
        Input::Payment { at, home, who, amount }
    }

    fn input(&mut self, of: Transaction) -> Input {
        match of {
            Transaction::NewOrder => self.new_order(),
            Transaction::Payment => self.payment(),
            Transaction::OrderStatus => {
                Input::OrderStatus { home: self.district(), who: self.who() }
            }
            Transaction::Delivery => Input::Delivery {
                warehouse: self.home.warehouse,
                carrier: Carrier(self.within(1..=10)),
            },
            Transaction::StockLevel => {
                Input::StockLevel { at: self.home, threshold: self.within(10..=20) }
            }
        }
    }
}

impl Iterator for Terminal {
    type Item = Turn;

    fn next(&mut self) -> Option<Turn> {
        let card = self.deck.deal(&mut self.random);
        let input = self.input(card);
        let (keying, thinking) = match self.kit.waits {
            true => (card.rules().keying, card.think(&mut self.random)),
            false => (Nanos::ZERO, Nanos::ZERO),
        };
        Some(Turn { keying, input, thinking })
    }
}
