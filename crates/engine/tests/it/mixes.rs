//! Which request comes next.

use device::Op;
use proptest::prelude::*;
use suite::model::{Choice, Class, Operation, Stream};
use units::Bytes;

use crate::help::*;

fn play_mix(classes: Vec<Class>, choice: Choice, n: u64) -> Vec<(Op, u32)> {
    let mut s = Stream { stop: for_operations(n), ..stream() };
    s.mix.classes = classes;
    s.mix.choice = choice;
    s.align = Bytes::new(512);
    s.region.length = Bytes::mib(8);
    let v = engine::Visit { file_size: Bytes::mib(8), ..visit(vec![s]) };
    let mut device = null(&v);
    play(&v, &mut device);
    device.log.iter().map(|e| (e.request.op, e.request.length)).collect()
}

fn weights_to_classes(weights: &[f64]) -> Vec<Class> {
    (1u64..).zip(weights).map(|(i, &w)| class(Operation::Read, w, 512 * i)).collect()
}

/// The largest distance of any class from its share, at any point.
fn worst(weights: &[f64], n: u64) -> f64 {
    let total: f64 = weights.iter().sum();
    let mut counts = vec![0.0; weights.len()];
    let mut worst: f64 = 0.0;
    let log = play_mix(weights_to_classes(weights), Choice::Interleave, n);
    for (i, (_, length)) in log.iter().enumerate() {
        counts[*length as usize / 512 - 1] += 1.0;
        for (count, weight) in counts.iter().zip(weights) {
            worst = worst.max((count - weight / total * (i + 1) as f64).abs());
        }
    }
    worst
}

#[test]
fn interleave_of_thirds_is_a_pattern() {
    let classes = vec![class(Operation::Read, 2.0, 4096), class(Operation::Write, 1.0, 4096)];
    let seen: String = play_mix(classes, Choice::Interleave, 9)
        .iter()
        .map(|(op, _)| if *op == Op::Read { 'r' } else { 'w' })
        .collect();
    assert_eq!(&seen[..3], &seen[3..6]);
    assert_eq!(seen.matches('w').count(), 3);
}

#[test]
fn interleave_keeps_uneven_classes_within_one_of_their_share() {
    for weights in [
        [&[0.5][..], &[0.005; 100]].concat(),
        [&[1.0][..], &[0.5; 2], &[0.1; 20]].concat(),
        (1..40).map(|i| 1.0 / f64::from(i)).collect(),
        vec![1e6, 1.0],
        // Whoever is owed most lets one of these fall 1.007 behind.
        vec![
            0.288_160_393_468_564_5,
            0.078_949_574_363_818_41,
            9.129_069_698_074_908,
            9.871_888_636_854_777,
            7.827_469_576_032_034,
            5.067_512_450_683_959,
            2.944_157_004_664_740_3,
            2.226_440_583_473_325_4,
        ],
    ] {
        let worst = worst(&weights, 3000);
        assert!(worst <= 1.0 + 1e-6, "{worst} off for {weights:?}");
    }
}

#[test]
fn interleave_does_not_drift() {
    let worst = worst(&[0.1, 0.2, 0.7], 300_000);
    assert!(worst <= 1.0 + 1e-6, "{worst} off");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn interleave_is_within_one_of_its_share_at_any_point(
        weights in prop::collection::vec(0.001f64..10.0, 1..12)
    ) {
        let worst = worst(&weights, 500);
        prop_assert!(worst <= 1.0 + 1e-6, "{worst} off for {weights:?}");
    }
}

#[test]
fn dice_fall_by_weight_and_independently() {
    let weights = [1.0, 2.0, 3.0, 4.0];
    let n = 50_000;
    let log = play_mix(weights_to_classes(&weights), Choice::Dice, n);
    let faces: Vec<usize> = log.iter().map(|(_, length)| *length as usize / 512 - 1).collect();
    for (face, weight) in weights.iter().enumerate() {
        let seen = faces.iter().filter(|&&f| f == face).count() as u64;
        assert_binomial(seen, n, weight / 10.0, "class");
    }
    let mut pairs = vec![0u64; 16];
    for pair in faces.windows(2) {
        pairs[pair[0] * 4 + pair[1]] += 1;
    }
    let chi = chi_square(&pairs, |i| (n - 1) as f64 * weights[i / 4] * weights[i % 4] / 100.0);
    assert!(chi < chi_limit(15), "pairs: chi-square {chi:.1}, seed 11");
}
