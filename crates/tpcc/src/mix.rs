//! Which transaction comes next, and how long its user types and thinks (clause 5.2).

use stats::Random;
use units::Nanos;

/// The five transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transaction {
    /// Enters an order of 5 to 15 lines.
    NewOrder,
    /// Books a payment of a customer.
    Payment,
    /// Reads a customer's last order.
    OrderStatus,
    /// Delivers the oldest order of each district; queued, so nobody waits for it.
    Delivery,
    /// Counts what a district sold lately and is short of.
    StockLevel,
}

/// What the specification fixes about a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Cards in a deck of 100.
    pub cards: u32,
    /// Time to type the input, constant.
    pub keying: Nanos,
    /// Mean of the time to think afterwards.
    pub thinking: Nanos,
    /// Limit of the 90th percentile of response times; of Delivery, of its queueing.
    pub limit: Nanos,
}

/// Limit of the 90th percentile of the time until a queued Delivery is done.
pub const DELIVERY_LIMIT: Nanos = Nanos::secs(80);

/// How a load is played, and in what it is not TPC-C. Their figures are not comparable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kit {
    /// What `--kit` calls it.
    pub name: &'static str,
    /// Whether terminals type and think.
    pub waits: bool,
    /// In what it deviates from the specification, for the head of a result.
    pub deviations: &'static [&'static str],
}

/// The known kits.
pub const KITS: [Kit; 2] = [
    Kit { name: "spec", waits: true, deviations: &[] },
    Kit { name: "saturating", waits: false, deviations: &["no keying and no think times"] },
];

impl Transaction {
    /// All five, in the order of the specification.
    pub const ALL: [Self; 5] =
        [Self::NewOrder, Self::Payment, Self::OrderStatus, Self::Delivery, Self::StockLevel];

    /// Its share, times and limit (clauses 5.2.3 and 5.2.5).
    pub const fn rules(self) -> Rules {
        let (cards, keying, thinking, limit) = match self {
            Self::NewOrder => (45, 18, 12, 5),
            Self::Payment => (43, 3, 12, 5),
            Self::OrderStatus => (4, 2, 10, 5),
            Self::Delivery => (4, 2, 5, 5),
            Self::StockLevel => (4, 2, 5, 20),
        };
        Rules {
            cards,
            keying: Nanos::secs(keying),
            thinking: Nanos::secs(thinking),
            limit: Nanos::secs(limit),
        }
    }

    /// A time to think: exponential, cut at ten times its mean (clause 5.2.5.4).
    pub(crate) fn think(self, random: &mut Random) -> Nanos {
        let mean = self.rules().thinking.as_secs_f64();
        Nanos::from_secs_f64(mean * random.exponential().min(10.0))
    }
}

/// Deals the transactions of one terminal from shuffled decks of 100 cards, so that each deck has the
/// exact mix (clause 5.2.4.2).
#[derive(Clone, Debug, Default)]
pub struct Deck {
    left: Vec<Transaction>,
}

impl Deck {
    /// The next card.
    pub fn deal(&mut self, random: &mut Random) -> Transaction {
        if let Some(card) = self.left.pop() {
            return card;
        }
        for card in Transaction::ALL {
            self.left.extend((0..card.rules().cards).map(|_| card));
        }
        random.shuffle(&mut self.left);
        self.left.pop().unwrap_or(Transaction::NewOrder)
    }
}
