//! Random lives: long enough for collections and checkpoints, one after another on one device.

use stats::random::{Random, derive_seed};

use super::{Life, Size, Step, WriteHistory, recover};
use crate::{BlockMemory, CrashLoss};

/// Crash points by default; `PLIMSOLL_CRASHES` asks for more.
const CRASHES: u64 = 50_000;

const SIZES: [Size; 4] = [
    Size { segment: 8, segments: 19, logical: 28 },
    Size { segment: 9, segments: 16, logical: 12 },
    Size { segment: 16, segments: 17, logical: 40 },
    Size { segment: 32, segments: 15, logical: 40 },
];

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

#[test]
fn survives_a_crash_anywhere() {
    let wanted = number("PLIMSOLL_CRASHES").unwrap_or(CRASHES);
    let first = number("PLIMSOLL_SEED").unwrap_or(1);
    let mut crashes = 0;
    let mut seeds = first..;
    while crashes < wanted {
        let seed = seeds.next().unwrap();
        let tried = crash_all(seed);
        crashes += tried.unwrap_or_else(|fault| panic!("PLIMSOLL_SEED={seed}: {fault}"));
    }
    println!("{crashes} crash points, seeds {first} to {}", seeds.start - 1);
}

/// Groups of up to 99 blocks, whose entries fill several sectors of the header.
#[test]
fn large_groups_are_torn_too() {
    torn_groups().unwrap();
}

pub fn torn_groups() -> Result<(), String> {
    let size = Size { segment: 100, segments: 15, logical: 100 };
    let round = (0..20).map(|n| Step::Write(5 * n, 5));
    let steps: Vec<Step> = round.clone().chain([Step::Flush]).chain(round.clone()).collect();
    let mut life = Life::first(size, &[steps.clone(), steps].concat())?;
    for place in 0..=life.device.changes() {
        for seed in 0..20 {
            let mut crashed = life.device.crash(place, CrashLoss::Random(seed));
            let fault = |fault| format!("change {place}, {seed}: {fault}");
            life.check(&mut crashed, place).map_err(fault)?;
        }
    }
    Ok(())
}

/// Four lives of one volume, each crashed at every place of its journal, and recoveries crashed too.
/// Returns the number of crash points.
pub fn crash_all(seed: u64) -> Result<u64, String> {
    let mut random = Random::new(seed);
    let size = SIZES[random.below(SIZES.len() as u64) as usize];
    let mut life = Life::first(size, &steps(&mut random, size))?;
    let mut crashes = 0;
    for number in 0..4 {
        let fault = |fault| format!("life {number}, {fault}");
        let (tried, crashed) = crash_everywhere(&mut life, &mut random).map_err(fault)?;
        crashes += tried;
        let (device, safe) = match random.below(3) {
            0 => killed(&mut life)?,
            _ => {
                let (device, shown) = crashed;
                life.history.cut(shown);
                (device.journaled(), shown)
            }
        };
        life = Life::run(device, life.history, safe, &steps(&mut random, size)).map_err(fault)?;
    }
    Ok(crashes)
}

/// Only the program dies: the device still has all in its cache, and nothing more of it is safe.
/// Returns the device, and how much of the history is safe.
fn killed(life: &mut Life) -> Result<(BlockMemory, usize), String> {
    let end = life.device.changes();
    let safe = *life.allowed(end).start();
    let device = life.device.clone();
    let shown = life.check(&mut device.clone(), end)?;
    life.history.cut(shown);
    Ok((device, safe))
}

/// Crashes a life at every place of its journal. Returns the number of crash points, and what one of
/// the later ones left, with the state that it shows.
fn crash_everywhere(
    life: &mut Life,
    random: &mut Random,
) -> Result<(u64, (BlockMemory, usize)), String> {
    let mut crashes = 0;
    let mut next = None;
    let end = life.device.changes();
    let stop = end - random.below((end - life.start()) as u64 / 3) as usize;
    for place in life.start()..=end {
        let fault = |fault| format!("change {place} of {end}: {fault}");
        let mut crashed = life.device.crash(place, CrashLoss::Random(random.bits()));
        let before = (place == stop).then(|| crashed.clone());
        let is_nested = random.below(6) == 0;
        if is_nested {
            crashed = crashed.journaled();
        }
        let shown = life.check(&mut crashed, place).map_err(fault)?;
        next = before.map(|device| (device, shown)).or(next);
        crashes += 1;
        if is_nested {
            crashes +=
                crash_recovery(&mut crashed, &life.history, shown, random.bits()).map_err(fault)?;
        }
    }
    Ok((crashes, next.ok_or("no crash to go on from")?))
}

/// Crashes a recovery at every place of its journal: what it showed must be shown again.
fn crash_recovery(
    opened: &mut BlockMemory,
    history: &WriteHistory,
    shown: usize,
    seed: u64,
) -> Result<u64, String> {
    let end = opened.changes();
    for place in 0..=end {
        let loss = CrashLoss::Random(derive_seed(seed, &[place as u64]));
        let mut crashed = opened.crash(place, loss);
        recover(&mut crashed, history, shown..=shown)
            .map_err(|fault| format!("change {place} of recovery: {fault}"))?;
    }
    Ok(end as u64 + 1)
}

fn steps(random: &mut Random, size: Size) -> Vec<Step> {
    let count = 20 + random.below(60);
    // Some lives flush after nearly every write, some hardly ever.
    let flushes = [2, 15, 40][random.below(3) as usize];
    let mut step = |_| {
        let first = random.below(u64::from(size.logical)) as u32;
        let blocks = 1 + random.below(5).min(u64::from(size.logical - first - 1)) as u32;
        match random.below(76 + flushes) {
            0..55 => Step::Write(first, blocks),
            55..62 => Step::Trim(first, blocks),
            62..66 => Step::Collect,
            66..68 => Step::Checkpoint,
            68..70 => Step::Reopen,
            70..74 => Step::Begin,
            74..76 => Step::Settle,
            _ => Step::Flush,
        }
    };
    (0..count).map(&mut step).collect()
}
