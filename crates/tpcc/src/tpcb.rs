//! The transaction that pgbench plays, "TPC-B (sort of)", and its select alone.
//!
//! It is no TPC-B: branch, teller and account are drawn independently. Tables are as pgbench makes them. With
//! fewer branches than sessions it measures the lock of a branch's row.
//!
//! Source: PostgreSQL's documentation of pgbench, "What is the Transaction Actually Performed in pgbench?".

use stats::Random;
use stats::random::derive_seed;

use crate::conditions::Condition;
use crate::dialect::{Dialect, Statement, queries};
use crate::execute::repeat;
use crate::random::within;
use crate::schema::TableText;
use crate::session::{Intent, Session};
use crate::value::{Datum, Fields, Seconds, fields};
use crate::work::{Calls, Tried};
use crate::workload::{PlayedTransaction, Player, REPEATS, Workload};

/// Of a branch.
const TELLERS: u32 = 10;
const ACCOUNTS: u32 = 100_000;

const TABLES: [TableText; 4] = [
    TableText {
        name: "pgbench_branches",
        columns: "bid int, bbalance int, filler char(88) null",
        key: "bid",
        index: "",
    },
    TableText {
        name: "pgbench_tellers",
        columns: "tid int, bid int, tbalance int, filler char(84) null",
        key: "tid",
        index: "",
    },
    TableText {
        name: "pgbench_accounts",
        columns: "aid int, bid int, abalance int, filler char(84)",
        key: "aid",
        index: "",
    },
    TableText {
        name: "pgbench_history",
        columns: "tid int, bid int, aid int, delta int, mtime date, filler char(22) null",
        key: "",
        index: "",
    },
];

queries! { Step, QUERIES:
    ReadAccount = "select abalance from pgbench_accounts where aid = ?", [Int];
    ChangeAccount = "update pgbench_accounts set abalance = abalance + ? where aid = ?", [];
    ChangeTeller = "update pgbench_tellers set tbalance = tbalance + ? where tid = ?", [];
    ChangeBranch = "update pgbench_branches set bbalance = bbalance + ? where bid = ?", [];
    InsertHistory = "insert into pgbench_history (tid, bid, aid, delta, mtime) values (?, ?, ?, ?, ?)", [];
}

/// Name, demand, and what follows `select count(*) from`.
#[rustfmt::skip]
const CONDITIONS: [(&str, &str, &str); 3] = [
    ("accounts", "an account has what its history says",
        "pgbench_accounts a left join (select aid, sum(delta) as s from pgbench_history group by aid) h \
         on h.aid = a.aid where not (abalance <=> coalesce(s, 0))"),
    ("tellers", "a teller has what its history says",
        "pgbench_tellers t left join (select tid, sum(delta) as s from pgbench_history group by tid) h \
         on h.tid = t.tid where not (tbalance <=> coalesce(s, 0))"),
    ("branches", "a branch has what its history says",
        "pgbench_branches b left join (select bid, sum(delta) as s from pgbench_history group by bid) h \
         on h.bid = b.bid where not (bbalance <=> coalesce(s, 0))"),
];

/// The transaction, or its select.
#[derive(Clone, Copy, Debug)]
pub struct Tpcb {
    branches: u32,
    accounts: u32,
    selects: bool,
}

impl Tpcb {
    /// * `selects`: it reads an account, and nothing else.
    pub const fn new(branches: u32, selects: bool) -> Self {
        Self { branches, accounts: ACCOUNTS, selects }
    }

    /// With so many accounts in a branch, for tests.
    #[must_use]
    pub const fn with_accounts(self, accounts: u32) -> Self {
        Self { accounts, ..self }
    }
}

impl Workload for Tpcb {
    fn operations(&self) -> &'static [&'static str] {
        if self.selects { &["select"] } else { &["transfer"] }
    }

    fn tables(&self) -> Vec<TableText> {
        TABLES.to_vec()
    }

    fn parts(&self) -> u32 {
        self.branches
    }

    fn rows(&self, table: usize, branch: u32) -> Box<dyn Iterator<Item = Fields> + '_> {
        let range = |each: u32| (branch - 1) * each + 1..=branch * each;
        // Blank, but there: it is what makes an account as long as it is.
        let filler = || Datum::from(" ".repeat(84));
        match table {
            0 => Box::new(std::iter::once(vec![branch.into(), 0.into(), Datum::Null])),
            1 => Box::new(
                range(TELLERS)
                    .map(move |teller| vec![teller.into(), branch.into(), 0.into(), Datum::Null]),
            ),
            2 => Box::new(
                range(self.accounts)
                    .map(move |account| vec![account.into(), branch.into(), 0.into(), filler()]),
            ),
            _ => Box::new(std::iter::empty()),
        }
    }

    fn count(&self) -> u64 {
        u64::from(self.branches) * u64::from(1 + TELLERS + self.accounts)
    }

    fn statements(&self, dialect: Dialect) -> Vec<Statement> {
        dialect.statements(QUERIES)
    }

    fn player(&self, number: u32, seed: u64) -> Box<dyn Player> {
        let random = Random::new(derive_seed(seed, &[number.into()]));
        Box::new(Client { load: *self, random, transfer: Transfer::default() })
    }

    fn prepare_conditions(&self, _dialect: Dialect) -> Vec<String> {
        Vec::new()
    }

    fn conditions(&self, dialect: Dialect) -> Vec<Condition> {
        let condition = |(name, demand, from)| {
            let sql = dialect.text(&format!("select count(*) from {from}"));
            Condition { name, demand, sql }
        };
        CONDITIONS.map(condition).into()
    }
}

#[derive(Clone, Copy, Default)]
struct Transfer {
    account: u32,
    teller: u32,
    branch: u32,
    delta: i64,
}

struct Client {
    load: Tpcb,
    random: Random,
    transfer: Transfer,
}

impl Player for Client {
    fn draw(&mut self) -> usize {
        let Tpcb { branches, accounts, .. } = self.load;
        let random = &mut self.random;
        self.transfer = Transfer {
            account: within(random, 1..=branches * accounts),
            branch: within(random, 1..=branches),
            teller: within(random, 1..=branches * TELLERS),
            delta: i64::from(within(random, 0..=10_000)) - 5000,
        };
        0
    }

    fn play(&mut self, session: &mut dyn Session, now: Seconds) -> PlayedTransaction {
        let Transfer { account, teller, branch, delta } = self.transfer;
        let delta = Datum::Int(delta);
        let transfer = |session: &mut dyn Session| -> Tried<Option<()>> {
            let work = &mut Calls::new(session, QUERIES);
            work.add(Step::ChangeAccount, fields![delta.clone(), account]);
            work.add(Step::ReadAccount, fields![account]);
            work.add(Step::ChangeTeller, fields![delta.clone(), teller]);
            work.add(Step::ChangeBranch, fields![delta.clone(), branch]);
            work.add(Step::InsertHistory, fields![teller, branch, account, delta.clone(), now]);
            work.fly()?;
            work.one()?;
            work.row()?;
            for _ in 0..3 {
                work.one()?;
            }
            Ok(Some(()))
        };
        let (ended, repeated) = if self.load.selects {
            // By itself: no transaction is begun.
            let mut work = Calls::new(session, QUERIES);
            work.add(Step::ReadAccount, fields![account]);
            (work.fly().and_then(|()| work.row().map(|_| Some(()))), Vec::new())
        } else {
            repeat(session, Intent::Write, REPEATS, transfer)
        };
        PlayedTransaction { repeated, failed: ended.err() }
    }
}
