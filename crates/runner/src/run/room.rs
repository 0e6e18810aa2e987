//! Visits that are shorter than they were meant to be, so that every cell has enough of them.

use plan::Short;
use record::Warning;
use suite::model::{Rounds, Stop};
use units::Nanos;

use crate::prepare::span;
use crate::run::Running;

const CODE: &str = "visit-cut";

/// Leaves so many thousandths of the time that a stream is measured for, and nothing on top for
/// slow requests.
pub(super) fn shorten(stop: &mut Stop, permille: Option<u32>) {
    let Some(permille) = permille else { return };
    stop.time = stop.time.map(|time| part(time, permille));
    stop.extend = None;
}

fn part(time: Nanos, permille: u32) -> Nanos {
    Nanos::new((time.get() / 1000).saturating_mul(permille.into()).max(1))
}

/// So many thousandths of a visit's time make no other rate.
const NEARLY_ALL: u32 = 995;

/// What is left of the time of a visit, in words.
fn measure(whole: Nanos, permille: u32) -> String {
    let part = part(whole, permille);
    // Next to nothing less: what is saved is what slow requests would have had on top.
    match permille >= NEARLY_ALL {
        true => format!("{whole}, and nothing on top where requests are slow"),
        false => format!("{part} instead of at least {whole}"),
    }
}

/// What a run that is short of time will come to, in words; `None` where shorter visits make up for
/// it.
///
/// * `visit`: measured time of a visit as it was meant.
/// * `most`: the longest time that the visits may take together.
pub(crate) fn too_short(short: &Short, visit: Nanos, most: Nanos) -> Option<String> {
    let rounds = short.rounds?;
    let times = match rounds {
        1 => "one visit".to_owned(),
        n => format!("{n} visits"),
    };
    Some(format!(
        "{} is time for {times} to every cell, even if each measures {} instead of {visit}; {} \
         are wanted, without which nobody knows how sure a rate is: that takes {} and the waits for \
         an idle device (--max-time)",
        span(most),
        part(visit, short.time_permille),
        short.wanted,
        span(short.needed),
    ))
}

/// The same before the run begins, in a sentence of its own; or that visits are shorter.
pub(crate) fn describe(short: &Short, rounds: &Rounds) -> String {
    match too_short(short, rounds.visit_time, rounds.time_max) {
        Some(text) => format!("Time is too short: {text}."),
        None => format!(
            "Measures {} instead of {} in each visit, so that every cell has {} of them in that \
             time.",
            part(rounds.visit_time, short.time_permille),
            rounds.visit_time,
            short.wanted,
        ),
    }
}

impl Running<'_> {
    /// Says before the first visit that the time is too short, whatever the device does.
    pub(super) fn tell_short(&mut self) {
        if self.visits > 0 {
            // A run that goes on has said so.
            return;
        }
        let rounds = self.suite.rounds;
        let short = self.course.schedule().short();
        let text = short.and_then(|s| too_short(&s, rounds.visit_time, rounds.time_max));
        if let Some(text) = text {
            self.warn(Warning::new("time-short", text));
        }
    }

    /// Says, once in a phase, that visits are shorter than they were meant to be.
    pub(super) fn tell_time(&mut self) {
        let Some(permille) = self.course.time_cut() else { return };
        let phase = self.course.round().map_or(0, |round| round.phase);
        let phase = self.suite.phases.get(phase).map_or("", |phase| phase.name.as_str());
        let begins = format!("{phase}: visits measure ");
        if self.warned.iter().any(|(code, text)| code == CODE && text.starts_with(&begins)) {
            return;
        }
        let rounds = &self.suite.rounds;
        let wait = self.course.mean_wait();
        let waits = match wait {
            Nanos::ZERO => String::new(),
            wait => format!(" (the device was waited for {wait} before each, on average)"),
        };
        let measure = measure(rounds.visit_time, permille);
        let text = format!(
            "{begins}{measure}, since every cell is to have {} of \
             them within {}{waits}: rates vary more; raise --max-time",
            rounds.visits_min,
            span(rounds.time_max),
        );
        self.warn(Warning::new(CODE, text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_less_is_not_called_less() {
        let told = |permille| measure(Nanos::secs(2), permille);
        assert_eq!(told(995), "2 s, and nothing on top where requests are slow");
        assert_eq!(told(860), "1.72 s instead of at least 2 s");
    }
}
