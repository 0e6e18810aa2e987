//! The laws of the inputs: exact shapes by enumeration, the ranges that an auditor checks, and twins that
//! must fall outside.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;

use stats::Random;
use tpcc::{
    Deck, DistrictId, Input, KITS, OrderedLine, Scale, Skew, Skews, Terminal, Transaction, Who,
};
use units::Nanos;

const SEED: u64 = 20_241_125;

fn scale(warehouses: u32) -> Scale {
    Scale::new(warehouses).unwrap()
}

/// The weights of pages of so many numbers, as shares, the hottest first.
fn shares(skew: Skew, per_page: usize) -> Vec<f64> {
    let weights = skew.weights();
    let all: u64 = weights.iter().sum();
    let mut pages: Vec<f64> =
        weights.chunks(per_page).map(|page| page.iter().sum::<u64>() as f64 / all as f64).collect();
    pages.sort_by(|a, b| b.total_cmp(a));
    pages
}

fn top(shares: &[f64], part: f64) -> f64 {
    shares[..(shares.len() as f64 * part).round() as usize].iter().sum()
}

#[test]
fn weights_are_those_of_all_pairs() {
    for (warehouses, turn) in [(1, 0), (2, 123)] {
        let names = Skews::plain(scale(warehouses)).names.turned(turn);
        let mut counted = vec![0u64; 1000];
        for mask in 0..=255u32 {
            for number in 0..1000 {
                counted[((mask | number) + turn) as usize % 1000] += 1;
            }
        }
        assert_eq!(names.weights(), counted);
    }
    // An A that is larger than the range wraps more than once.
    let small = Skews::plain(scale(1).with_items(100).unwrap()).items.turned(7);
    let mut counted = vec![0u64; 100];
    for mask in 0..=8191u32 {
        for number in 1..=100 {
            counted[((mask | number) + 7) as usize % 100] += 1;
        }
    }
    assert_eq!(small.weights(), counted);
}

#[test]
fn shapes_without_a_constant_are_those_known() {
    let plain = Skews::plain(scale(1));
    let known = [
        (plain.items, 194.62, [0.305, 0.590, 0.710, 0.844]),
        (plain.customers, 57.67, [0.222, 0.487, 0.613, 0.790]),
        (plain.names, 25.63, [0.147, 0.400, 0.542, 0.723]),
    ];
    for (skew, hottest, tops) in known {
        let shares = shares(skew, 1);
        assert!((shares[0] * shares.len() as f64 - hottest).abs() < 0.005, "{skew:?}");
        for (part, wanted) in [0.01, 0.05, 0.1, 0.2].into_iter().zip(tops) {
            let seen = top(&shares, part);
            assert!((seen - wanted).abs() < 0.0006, "{skew:?}, top {part}: {seen} for {wanted}");
        }
    }
    for (rows, tops) in
        [(22, [0.158, 0.402, 0.563, 0.728, 0.931]), (45, [0.126, 0.369, 0.513, 0.699, 0.917])]
    {
        let shares = shares(plain.items, rows);
        for (part, wanted) in [0.01, 0.05, 0.1, 0.2, 0.5].into_iter().zip(tops) {
            let seen = top(&shares, part);
            assert!((seen - wanted).abs() < 0.0011, "{rows} rows, top {part}: {seen}, {wanted}");
        }
    }
}

/// Chi-square of `draws` against the exact law, in standard deviations; classes of few are joined.
fn deviation(skew: Skew, draws: u32, mut draw: impl FnMut(&mut Random) -> u32) -> f64 {
    let weights = skew.weights();
    let all: u64 = weights.iter().sum();
    let mut counts = vec![0u32; weights.len()];
    let mut random = Random::new(SEED);
    let first = if weights.len() == 1000 { 0 } else { 1 };
    for _ in 0..draws {
        counts[(draw(&mut random) - first) as usize] += 1;
    }
    let (mut chi_square, mut classes) = (0.0, 0);
    let (mut expected, mut seen) = (0.0, 0.0);
    for (weight, count) in weights.iter().zip(counts) {
        expected += *weight as f64 / all as f64 * f64::from(draws);
        seen += f64::from(count);
        if expected >= 10.0 {
            chi_square += (seen - expected) * (seen - expected) / expected;
            classes += 1;
            (expected, seen) = (0.0, 0.0);
        }
    }
    let freedom = f64::from(classes - 1);
    (chi_square - freedom) / (2.0 * freedom).sqrt()
}

#[test]
fn draws_follow_the_exact_law_and_a_constant_redrawn_does_not() {
    let run = Skews::at_load(scale(1), 1).at_run(2);
    for skew in [run.names, run.customers, run.items] {
        let off = deviation(skew, 10_000_000, |random| skew.draw(random));
        assert!(off.abs() < 3.3, "{skew:?} is off by {off} standard deviations");
        let redrawn = |random: &mut Random| {
            let turn = random.below(8192) as u32;
            skew.turned(turn).draw(random)
        };
        assert!(deviation(skew, 10_000_000, redrawn) > 100.0, "{skew:?}");
    }
}

#[test]
fn the_constant_of_names_keeps_its_distance_from_the_loads() {
    let mut seen = [false; 256];
    for seed in 0..2000 {
        let load = Skews::at_load(scale(1), seed);
        let run = load.at_run(seed + 1);
        let apart = load.names.turn().abs_diff(run.names.turn());
        assert!((65..=119).contains(&apart) && apart != 96 && apart != 112, "{apart}");
        seen[apart as usize] = true;
    }
    assert!((65..=119).all(|apart| seen[apart] != (apart == 96 || apart == 112)));
}

#[test]
fn every_deck_has_the_exact_mix() {
    let mut random = Random::new(SEED);
    let mut deck = Deck::default();
    let mut decks = Vec::new();
    for _ in 0..50 {
        let dealt: Vec<_> = (0..100).map(|_| deck.deal(&mut random)).collect();
        for card in Transaction::ALL {
            let count = dealt.iter().filter(|other| **other == card).count();
            assert_eq!(count, card.rules().cards as usize, "{card:?}");
        }
        decks.push(dealt);
    }
    assert!(decks.windows(2).all(|two| two[0] != two[1]), "a deck is not shuffled");
}

/// What an auditor counts in the inputs of a run.
#[derive(Default)]
struct Audit {
    orders: f64,
    failing: f64,
    lines: f64,
    remote_lines: f64,
    by_count: BTreeMap<usize, f64>,
    payments: f64,
    remote_payments: f64,
    by_name: [f64; 2],
    statuses: f64,
}

impl Audit {
    fn of(inputs: impl Iterator<Item = Input>, items: u32) -> Self {
        let mut audit = Self::default();
        for input in inputs {
            match input {
                Input::NewOrder { customer, lines } => {
                    audit.orders += 1.0;
                    audit.lines += lines.len() as f64;
                    *audit.by_count.entry(lines.len()).or_default() += 1.0;
                    let home = customer.home.warehouse;
                    audit.remote_lines += lines.iter().filter(|l| l.supply != home).count() as f64;
                    audit.failing += f64::from(lines.last().unwrap().item == items + 1);
                    assert!(lines.iter().all(|line| (1..=10).contains(&line.quantity)));
                }
                Input::Payment { at, home, who, amount } => {
                    audit.payments += 1.0;
                    audit.remote_payments += f64::from(at.warehouse != home.warehouse);
                    audit.by_name[0] += f64::from(matches!(who, Who::Named(_)));
                    assert!((100..=500_000).contains(&amount.0));
                }
                Input::OrderStatus { who, .. } => {
                    audit.statuses += 1.0;
                    audit.by_name[1] += f64::from(matches!(who, Who::Named(_)));
                }
                Input::Delivery { carrier, .. } => assert!((1..=10).contains(&carrier.0)),
                Input::StockLevel { threshold, .. } => assert!((10..=20).contains(&threshold)),
            }
        }
        audit
    }

    /// What lies outside the ranges of clause 9.2.2.5.
    fn faults(&self) -> Vec<&'static str> {
        let share = |part: f64, all: f64| part / all * 100.0;
        let even = self.orders / 11.0;
        let uniform = (5..=15).all(|count| {
            let seen = self.by_count.get(&count).copied().unwrap_or(0.0);
            (seen - even).abs() < 5.0 * even.sqrt()
        });
        let rules = [
            ("rollbacks", share(self.failing, self.orders), 0.9..=1.1),
            ("lines", self.lines / self.orders, 9.5..=10.5),
            ("remote lines", share(self.remote_lines, self.lines), 0.95..=1.05),
            ("remote payments", share(self.remote_payments, self.payments), 14.0..=16.0),
            ("payments by name", share(self.by_name[0], self.payments), 57.0..=63.0),
            ("statuses by name", share(self.by_name[1], self.statuses), 57.0..=63.0),
            ("lines uniform", f64::from(uniform), 1.0..=1.0),
        ];
        rules.into_iter().filter(|rule| !rule.2.contains(&rule.1)).map(|rule| rule.0).collect()
    }
}

fn inputs(warehouses: u32, count: usize) -> impl Iterator<Item = Input> {
    let scale = scale(warehouses);
    let skews = Skews::at_load(scale, 1).at_run(2);
    let terminals: Vec<_> =
        scale.districts().map(|home| Terminal::new(scale, skews, KITS[1], home, SEED)).collect();
    let each = count / terminals.len();
    terminals.into_iter().flat_map(move |terminal| terminal.take(each)).map(|turn| turn.input)
}

#[test]
fn a_million_inputs_are_within_an_auditors_ranges_and_twins_are_not() {
    const COUNT: usize = 1_000_000;
    let faults = |edit: fn(&mut Vec<OrderedLine>, u32)| {
        let edited = inputs(10, COUNT).map(|mut input| {
            if let Input::NewOrder { customer, lines } = &mut input {
                edit(lines, customer.home.warehouse);
            }
            input
        });
        Audit::of(edited, 100_000).faults()
    };
    assert_eq!(faults(|_, _| {}), [""; 0]);
    let never_remote = |lines: &mut Vec<OrderedLine>, home| {
        lines.iter_mut().for_each(|line| line.supply = home);
    };
    assert_eq!(faults(never_remote), ["remote lines"]);
    let last_but_one = |lines: &mut Vec<OrderedLine>, _| {
        let last = lines.len() - 1;
        lines.swap(last - 1, last);
    };
    assert_eq!(faults(last_but_one), ["rollbacks"]);
    let from_six = |lines: &mut Vec<OrderedLine>, _| {
        if lines.len() == 5 {
            lines.insert(0, lines[0]);
        }
    };
    assert_eq!(faults(from_six), ["lines uniform"]);
}

#[test]
fn with_one_warehouse_nothing_is_remote() {
    let faults = Audit::of(inputs(1, 200_000), 100_000).faults();
    assert_eq!(faults, ["remote lines", "remote payments"]);
}

#[test]
fn every_other_warehouse_supplies_alike_and_the_own_one_never_remotely() {
    let mut suppliers = BTreeMap::<u32, u32>::new();
    let scale = scale(4);
    let skews = Skews::plain(scale);
    let home = DistrictId { warehouse: 3, district: 9 };
    for turn in Terminal::new(scale, skews, KITS[0], home, SEED).take(100_000) {
        match turn.input {
            Input::NewOrder { lines, customer } => {
                assert_eq!(customer.home.warehouse, 3);
                lines.iter().for_each(|line| *suppliers.entry(line.supply).or_default() += 1);
            }
            Input::StockLevel { at, .. } => assert_eq!(at, home),
            _ => {}
        }
    }
    assert_eq!(suppliers.keys().copied().collect::<Vec<_>>(), [1, 2, 3, 4]);
    let others = [1, 2, 4].map(|other| f64::from(suppliers[&other]));
    let mean = others.iter().sum::<f64>() / 3.0;
    assert!(others.iter().all(|n| (n - mean).abs() < 5.0 * mean.sqrt()), "{others:?}");
}

#[test]
fn twenty_terminals_with_specified_times_order_at_the_ceiling() {
    let scale = scale(2);
    let skews = Skews::at_load(scale, 1).at_run(2);
    let end = Nanos::secs(10 * 3600);
    let mut orders = 0u32;
    for home in scale.districts() {
        let mut now = Nanos::ZERO;
        for turn in Terminal::new(scale, skews, KITS[0], home, SEED) {
            now = now + turn.keying + turn.thinking;
            if now > end {
                break;
            }
            orders += u32::from(turn.input.transaction() == Transaction::NewOrder);
        }
    }
    let per_minute = f64::from(orders) / 600.0;
    let ceiling = 2.0 * 12.863;
    assert!((per_minute / ceiling - 1.0).abs() < 0.01, "{per_minute} for {ceiling}");
}

#[test]
fn the_same_seed_gives_the_same_inputs_and_no_two_terminals_do() {
    let first: Vec<_> = inputs(2, 2000).collect();
    assert_eq!(first, inputs(2, 2000).collect::<Vec<_>>());
    let (one, two) = first.split_at(100);
    assert_ne!(one, &two[..100]);
}
