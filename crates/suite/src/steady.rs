//! Whether a phase that is played until it is steady can ever be found so.

use units::Bytes;

use crate::error::Problem;
use crate::model::{Access, Cell, Pacing, Phase, Steady, Stream, Work};
use crate::rounds::STEADY_ROUNDS;

/// What keeps a phase from being called steady, whatever is measured.
pub(crate) fn never(phase: &Phase) -> Option<Problem> {
    let steady = phase.steady?;
    let never = |why: String, hint: String| {
        Some(Problem::NeverSteady { phase: phase.name.clone(), why, hint })
    };
    if steady.rounds_max < STEADY_ROUNDS {
        return never(
            format!(
                "it has {} rounds at most, and the rule looks at the last half of at least \
                 {STEADY_ROUNDS}",
                steady.rounds_max
            ),
            format!("set `steady.rounds_max` to {STEADY_ROUNDS} or more"),
        );
    }
    let wanted = volume(phase, &steady);
    let most = most_written(phase, &steady)?;
    if most >= wanted.get() {
        return None;
    }
    never(
        format!(
            "its {} rounds write {} at most, and `volume` wants {wanted}: {} times the {} that is \
             written to",
            steady.rounds_max,
            Bytes::new(most),
            steady.volume,
            phase.active_range(),
        ),
        "set `steady.volume` to less, 0 where nothing is written; or `round` or `rounds_max` to more"
            .to_owned(),
    )
}

/// A volume that was asked for where nothing is written.
///
/// * `asked`: as set, not as filled in.
pub(crate) fn idle_volume(phase: &Phase, asked: Option<f64>) -> Option<Problem> {
    let idle = phase.active_range() == Bytes::ZERO && asked.is_some_and(|volume| volume > 0.0);
    idle.then(|| Problem::NoEffect {
        field: "steady.volume".to_owned(),
        why: format!("phase `{}` writes nothing", phase.name),
        hint: "leave it out, or say `volume = 0`".to_owned(),
    })
}

/// Bytes that must be written in the phase first.
fn volume(phase: &Phase, steady: &Steady) -> Bytes {
    // `as` saturates, which is all that is asked of a bound this large.
    Bytes::new((phase.active_range().get() as f64 * steady.volume) as u64)
}

/// Bytes that all rounds together can write, where something bounds them.
fn most_written(phase: &Phase, steady: &Steady) -> Option<u64> {
    let round = phase
        .cells
        .iter()
        .try_fold(0u64, |sum, cell| Some(sum.saturating_add(most_of_cell(cell, steady)?)))?;
    Some(round.saturating_mul(steady.rounds_max.into()))
}

fn most_of_cell(cell: &Cell, steady: &Steady) -> Option<u64> {
    let mut streams = cell.streams.iter().chain(&cell.before);
    streams.try_fold(0u64, |sum, stream| Some(sum.saturating_add(most_of_stream(stream, steady)?)))
}

/// Of a visit; flushes of the file system and requests under way at the end have room in twice of
/// what is asked for.
fn most_of_stream(stream: &Stream, steady: &Steady) -> Option<u64> {
    if stream.work != Work::Blocks || matches!(stream.access, Access::Replay { .. }) {
        return None;
    }
    if !stream.mix.classes.iter().any(|class| class.op.writes()) {
        return Some(0);
    }
    let block = stream.block_size_max().get();
    let by_count = stream.stop.operations.map(|n| n.saturating_mul(block));
    let by_bytes = stream.stop.bytes.map(|bytes| bytes.get());
    let by_rate = match stream.pacing {
        Pacing::Open { rate, .. } if stream.stop.time.is_some() => {
            Some((rate * steady.round.as_secs_f64() * block as f64) as u64)
        }
        _ => None,
    };
    let most = [by_count, by_bytes, by_rate].into_iter().flatten().min()?;
    Some(most.saturating_mul(2))
}
