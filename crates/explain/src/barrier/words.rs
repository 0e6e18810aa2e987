//! Barriers in sentences.

use super::{
    BLOCK_SIZES_MIN, Barrier, Barriers, BlockQueue, CELLS_MIN, Cap, CapKind, Elasticities,
    Elasticity, Follows, Generator, KNEE_BLOCK, Ladder, NoFit, Place, Ranged, Seat, Verdict,
};
use crate::words::{bandwidth, count, iops, list, percent, seconds, size};

impl Barriers {
    /// What ends the rate, on what evidence, what to do next.
    pub fn sentences(&self) -> Vec<String> {
        if self.barriers.is_empty() {
            return vec![
                "Barrier: unknown. The run has no grid of block sizes and requests in flight."
                    .to_owned(),
            ];
        }
        // Limits that are known come before those that are not.
        let (known, unknown): (Vec<_>, Vec<_>) =
            self.barriers.iter().partition(|barrier| barrier.fit.is_some());
        let sentences = |barrier: &Barrier| barrier.with(self.elsewhere(barrier));
        known.into_iter().chain(unknown).flat_map(sentences).collect()
    }

    /// That another phase has the same requests with other numbers in flight, and says what limits them.
    fn elsewhere(&self, barrier: &Barrier) -> Option<String> {
        let one = barrier.one_number.as_ref()?;
        let block = one.smallest.0;
        let is_it = |other: &&Barrier| {
            other.op == barrier.op && other.ladders.iter().any(|ladder| ladder.block_bytes == block)
        };
        let other = self.barriers.iter().find(is_it)?;
        let group = &barrier.group;
        Some(format!(
            "{group}: {} requests are always in flight; {} shows the effect of more and of fewer.",
            one.in_flight, other.group
        ))
    }
}

impl Barrier {
    /// What ends the rate of this phase.
    pub fn sentences(&self) -> Vec<String> {
        self.with(None)
    }

    /// * `elsewhere`: that another phase shows its limit.
    fn with(&self, elsewhere: Option<String>) -> Vec<String> {
        let Some(fit) = &self.fit else {
            let mut sentences = elsewhere.map_or_else(|| self.no_fit_words(), |one| vec![one]);
            sentences.extend(self.left_out_words());
            sentences.extend(self.queue_words());
            return sentences;
        };
        // What ends the rate first: a generator that does, then the limits that were reached.
        let generator = generator_words(&self.group, &self.generator);
        let is_it = matches!(self.generator, Generator::NearNull { .. } | Generator::Busy { .. });
        let (mut sentences, generator) = match is_it {
            true => (Vec::from_iter(generator), None),
            false => (Vec::new(), generator),
        };
        let mut caps = [
            (self.iops, iops as fn(f64) -> String, "requests per second"),
            (self.bandwidth, bandwidth as fn(f64) -> String, "bandwidth"),
        ];
        caps.sort_by_key(|(cap, ..)| !cap.is_some_and(|cap| cap.reached));
        for (cap, show, what) in caps {
            sentences.extend(cap.map(|cap| cap_words(&self.group, what, &cap, show)));
        }
        if let Some(block) = self.knee_bytes {
            sentences.push(format!(
                "{}: from blocks of about {} up bandwidth is the limit, below it requests per \
                 second.",
                self.group,
                size(block)
            ));
        }
        let blocks = self.bound.iter().map(|cell| cell.block_bytes);
        let smallest = blocks.filter(|&block| block >= KNEE_BLOCK).min();
        if let Some((block, load)) = smallest.zip(self.knee_in_flight) {
            let at_limit = match load {
                // Fewer than one cannot be in flight.
                load if load < 1.05 => "one of them is at the limit".to_owned(),
                load => format!("at the limit {load:.1} of them are in flight"),
            };
            sentences.push(format!(
                "{}: one request of {} alone takes {}, so {at_limit}: more do not help.",
                self.group,
                size(block),
                seconds(fit.law.alone(block)),
            ));
        }
        if self.serial {
            sentences.push(format!(
                "{}: one in flight is already at the limit, more do not help: somewhere \
                 requests are served one at a time. A lock held until a request is done is a \
                 candidate; try one file per thread.",
                self.group
            ));
        } else if smallest.is_some()
            && self.knee_in_flight.is_none()
            && self.iops.is_some_and(|cap| cap.reached)
        {
            sentences.push(format!(
                "{}: the fewest in flight are already at a limit, so how many it takes is unknown; \
                 {}.",
                self.group,
                self.next_words("measure fewer in flight, down to one")
            ));
        }
        sentences.push(format!(
            "{}: the model fits {} with a mean error of {} and a largest of {}.",
            self.group,
            count(u64::from(fit.points), "cell"),
            percent(fit.error_mean),
            percent(fit.error_max)
        ));
        sentences.extend(self.left_out_words());
        sentences.extend(self.retrograde_words());
        sentences.extend(self.queue_words());
        sentences.extend(generator);
        sentences
    }

    fn left_out_words(&self) -> Vec<String> {
        let far = (self.few_in_flight > 0).then(|| {
            format!(
                "{}: {} excluded: far fewer requests were in flight than asked for (rate times \
                 mean latency), so the effect of more is unknown. A synchronous engine, or buffered \
                 requests that wait for each other, are like that.",
                self.group,
                match self.few_in_flight {
                    1 => "1 cell is".to_owned(),
                    n => format!("{n} cells are"),
                }
            )
        });
        self.few_words().into_iter().chain(far).collect()
    }

    fn few_words(&self) -> Option<String> {
        (self.few_requests > 0).then(|| {
            format!(
                "{}: {} excluded: too few requests for so many in flight, so their rates depend on the \
                 start and end of a visit; measure longer (--set time=...).",
                self.group,
                match self.few_requests {
                    1 => "1 cell is".to_owned(),
                    n => format!("{n} cells are"),
                }
            )
        })
    }

    /// What can be said without the law, or why nothing can.
    fn no_fit_words(&self) -> Vec<String> {
        let group = &self.group;
        if self.paced {
            return vec![format!(
                "{group}: the suite sets its rate or its pauses, so how much the storage could do does \
                 not show here; whether the rate was kept does, beside the cell."
            )];
        }
        let is_all = self.few_requests == 0 && self.few_in_flight == 0;
        let times = |(small, time): (u64, f64), (large, longest): (u64, f64)| {
            let to = match large > small {
                true => format!(", of {} {}", size(large), seconds(longest)),
                false => String::new(),
            };
            format!("of {} it is {}{to}", size(small), seconds(time))
        };
        if let Some(alone) = self.one_at_a_time.as_ref().filter(|_| is_all) {
            return vec![format!(
                "{group}: requests come one at a time, so the time of a request is the limit: {}. Only a \
                 shorter time, or more at a time, raises the rate.",
                times(alone.smallest, alone.largest)
            )];
        }
        if let Some(one) = self.one_number.as_ref().filter(|_| is_all) {
            return vec![format!(
                "{group}: {n} requests are in flight all the time, so the time of a request decides the rate: \
                 {}. Whether more in flight would raise it is unknown; three numbers tell, as with \
                 --set threads=1,8,32 or --set queue_depth=1,8,32.",
                times(one.smallest, one.largest),
                n = one.in_flight
            )];
        }
        if self.ladders.is_empty() {
            return vec![self.unknown_words()];
        }
        let of = |ladder: &Ladder| {
            let Ranged { value, low, high } = ladder.rate;
            let block = size(ladder.block_bytes);
            match ladder.from {
                Some(from) => format!(
                    "{group}: at {block} requests per second end at {} [{}, {}], from {from} in flight \
                     on: more add next to nothing. Whether requests or bytes end there, fewer than 3 \
                     block sizes do not tell.",
                    iops(value),
                    iops(low),
                    iops(high)
                ),
                None => format!(
                    "{group}: at {block} no limit was reached with up to {} in flight: the rate still \
                     rises there ({}), so the time of a request is what limits it.",
                    ladder.most,
                    iops(value)
                ),
            }
        };
        self.ladders.iter().map(of).collect()
    }

    fn unknown_words(&self) -> String {
        let why = match (self.no_fit, self.withheld) {
            (_, Some(error)) => format!(
                "the law is off by {:.1} % on average, more than the 10 % beyond which it says nothing",
                100.0 * error
            ),
            (Some(NoFit::OneLoad), _) => format!(
                "one number of requests in flight{} cannot tell a limit from the time of a \
                 request; {}",
                self.left_words(),
                self.next_words("measure three at least, as with --set threads=1,8,32 or --set queue_depth=1,8,32")
            ),
            (Some(NoFit::TooFewBlockSizes), _) => {
                format!(
                    "fewer than 3 block sizes{}; {}",
                    self.left_words(),
                    self.next_words(
                        "measure longer, or more of them, as with --set block_size=4KiB,64KiB,1MiB"
                    )
                )
            }
            _ => format!(
                "fewer than 8 cells with a value{}; {}",
                self.left_words(),
                self.next_words("measure more")
            ),
        };
        format!("{}: barrier unknown: {why}.", self.group)
    }

    /// Of what too few are, where others were measured and left out.
    fn left_words(&self) -> &'static str {
        if self.few_requests > 0 { " in what is left" } else { "" }
    }

    fn next_words(&self, else_do: &'static str) -> &'static str {
        if self.few_requests > 0 { "measure longer, so that none is left out" } else { else_do }
    }

    fn retrograde_words(&self) -> Option<String> {
        let worst = self.retrograde.iter().min_by(|a, b| a.ratio.total_cmp(&b.ratio))?;
        Some(format!(
            "{}: more in flight makes it slower at {}; worst at {}, where {} in flight make {} of \
             the rate with {}.",
            self.group,
            count(self.retrograde.len() as u64, "place"),
            size(worst.block_bytes),
            worst.to,
            percent(worst.ratio),
            worst.from
        ))
    }

    fn queue_words(&self) -> Vec<String> {
        let queue = &self.queue;
        let mut sentences = Vec::new();
        if let Some(&(block, asked, seen)) = queue.off.first() {
            let why = if queue.off_by_ends {
                "visits too short for so many in flight: measure longer (--set time=...)"
            } else {
                "visits too short for so many in flight, think time, an open loop, or a broken \
                 measurement; check before trusting its latencies"
            };
            sentences.push(format!(
                "{}: the mean number of requests in flight differs from the number requested in {} ({} \
                 at {}: {seen:.1} instead of {asked}): {why}.",
                self.group,
                count(queue.off.len() as u64, "cell"),
                "most",
                size(block),
            ));
        }
        if queue.open_loop {
            sentences.push(format!(
                "{}: where requests wait is unknown: most are in no block device, and in an open loop \
                 those that wait in the host cannot be told from those that wait for their turn; a \
                 closed loop (without a rate) tells.",
                self.group
            ));
        }
        sentences.extend(self.by_block_words());
        let Some(place) = &queue.place else { return sentences };
        // Flushes and others' requests wait there as well.
        let share = if queue.share > 1.0 { "all".to_owned() } else { percent(queue.share) };
        let compared = match queue.compared {
            Some((few, most)) if few < most => {
                format!("from {few} to {most} in flight, {share} of the added waiting is there")
            }
            _ => format!("{share} of the requests in flight are there, waiting or served"),
        };
        sentences.push(match place {
            Place::Above => format!(
                "{}: the queue is above the block devices: {compared}. The ceiling is in the host: file system, scheduler, a limit of a control \
                 group (its requests wait where no device counts them), a lock, or the generator.",
                self.group
            ),
            Place::Devices { devices, has_members: true, .. } => format!(
                "{}: the queue is in {}: {compared} and not in the devices \
                 below.",
                self.group,
                list(devices)
            ),
            Place::Devices { devices, .. } => format!(
                "{}: the queue is at the devices ({}): {compared}.",
                self.group,
                list(devices)
            ),
        });
        sentences
    }
}

impl Barrier {
    /// What waits where, for each block size, where no single layer has it all.
    fn by_block_words(&self) -> Option<String> {
        let place = |place: &Place| match place {
            Place::Above => "above the block devices".to_owned(),
            Place::Devices { devices, has_members: true, .. } => {
                format!("in {} and not below", list(devices))
            }
            Place::Devices { devices, .. } => format!("at the devices ({})", list(devices)),
        };
        let shares = |one: &BlockQueue| -> Vec<String> {
            let each = one.shares.iter();
            each.map(|one| format!("{} {}", percent(one.share.min(1.0)), place(&one.place)))
                .collect()
        };
        // Neighbours in block size with one and the same place are one line.
        let mut lines: Vec<(u64, u64, String)> = Vec::new();
        let mut before: Option<&Place> = None;
        for one in self.queue.by_block.iter().filter(|one| !one.shares.is_empty()) {
            let at = one.place();
            match lines.last_mut().filter(|_| at.is_some() && at == before) {
                Some(last) => last.1 = one.block_bytes,
                None => lines.push((
                    one.block_bytes,
                    one.block_bytes,
                    at.map_or_else(|| list(&shares(one)), |at| format!("most {}", place(at))),
                )),
            }
            before = at;
        }
        let of = |(from, to, what): &(u64, u64, String)| match from == to {
            true => format!("at {} {what}", size(*from)),
            false => format!("at {} to {} {what}", size(*from), size(*to)),
        };
        let lines: Vec<String> = lines.iter().map(of).collect();
        (!lines.is_empty()).then(|| {
            format!(
                "{}: requests wait in several layers: {}. Where there is more than one limit, raising \
                 one leads to the other.",
                self.group,
                lines.join("; ")
            )
        })
    }
}

fn cap_words(group: &str, what: &str, cap: &Cap, show: fn(f64) -> String) -> String {
    let Ranged { value, low, high } = cap.rate;
    let (value, range) = (show(value), format!("[{}, {}]", show(low), show(high)));
    let is_bandwidth = what == "bandwidth";
    let ends = if is_bandwidth { "ends" } else { "end" };
    let (few, of_one) =
        ((cap.cells as usize) < CELLS_MIN, (cap.block_sizes as usize) < BLOCK_SIZES_MIN);
    if cap.reached && (few || of_one) {
        let near = match cap.cells {
            0 => "no cell comes within 5 % of that".to_owned(),
            1 => "only 1 cell comes within 5 % of that".to_owned(),
            n if few => format!("only {n} cells come within 5 % of that"),
            n => format!("{n} cells are within 5 % of that, all of one block size"),
        };
        return format!(
            "{group}: twice as many in flight add next to nothing, and by the law {what} {ends} at about \
             {value} {range}; {near}."
        );
    }
    if cap.reached {
        return format!(
            "{group}: {what} {ends} at {value} {range}; {} cells are within 5 % of it.",
            cap.cells
        );
    }
    let blocks = if is_bandwidth { "larger" } else { "smaller" };
    format!(
        "{group}: the limit of {what} was not reached: it is above {}, as the fastest cell that tells of \
         limits makes so much at least. More in flight or {blocks} blocks would show it.",
        show(cap.highest_low)
    )
}

fn generator_words(group: &str, generator: &Generator) -> Option<String> {
    Some(match *generator {
        Generator::NearNull { null_rate } => format!(
            "{group}: limited by the load generator: against a null target it makes {} only, less \
             than 3 times this. Use more workers or larger batches before judging the storage.",
            iops(null_rate)
        ),
        Generator::Busy { share } => format!(
            "{group}: limited by the load generator: its processor was busy for {} of the time. \
             Use more workers before judging the storage.",
            percent(share)
        ),
        Generator::RuledOut { null_rate } => format!(
            "{group}: not the load generator: against a null target it makes {}.",
            iops(null_rate)
        ),
        Generator::Unknown => return None,
    })
}

impl Elasticities {
    /// Where each barrier sits, on what evidence, what to change next.
    pub fn sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        if self.generator_limited {
            sentences.push(
                "Limited by the load generator in some run: its ceiling, not the storage's, is \
                 what was measured. Nothing below can be credited to a layer."
                    .to_owned(),
            );
        }
        sentences.extend(self.verdicts.iter().flat_map(|verdict| self.verdict_words(verdict)));
        if self.verdicts.is_empty() {
            sentences.push("Barrier over runs: unknown. No run has a grid to fit.".to_owned());
        }
        if self.inside_cache {
            sentences.push(
                "Caution: the file fits in the declared cache, so the disks may not have been \
                 asked at all. Measure with a file of 4 times the cache or more."
                    .to_owned(),
            );
        }
        sentences
    }

    fn verdict_words(&self, verdict: &Verdict) -> Vec<String> {
        let cap = match verdict.cap {
            CapKind::Iops => "requests per second",
            CapKind::Bandwidth => "bandwidth",
        };
        let head = match &verdict.seat {
            Seat::In(factor) => format!("It is the {factor}"),
            Seat::NoneOf(factors) => format!("Not the {}", factors.join(", nor the ")),
            Seat::Unknown => "Unknown".to_owned(),
        };
        let evidence: Vec<String> =
            verdict.elasticities.iter().map(|e| factor_words(e, verdict.cap)).collect();
        let mut sentences = vec![format!(
            "{} {cap}: {head}. {}",
            verdict.group,
            if evidence.is_empty() {
                "No factor was given whose levels differ between the runs.".to_owned()
            } else {
                evidence.join(" ")
            }
        )];
        sentences.extend(self.next_words(verdict));
        sentences
    }

    fn next_words(&self, verdict: &Verdict) -> Option<String> {
        match &verdict.seat {
            Seat::NoneOf(_) => {
                let generator =
                    if self.generator_ruled_out { "" } else { ", or the generator itself" };
                let suggestion = match verdict.cap {
                    CapKind::Iops => {
                        "another file system, one file per thread instead of one for all, another \
                         scheduler, a second controller"
                    }
                    CapKind::Bandwidth => {
                        "a second controller or its slot and link, the software striping above it"
                    }
                };
                let null = if self.generator_ruled_out {
                    ""
                } else {
                    " Measure the same grid against a null target to rule the generator out."
                };
                Some(format!(
                    "So it sits above or beside them: a controller or link that all share, host \
                     software (file system, scheduler, striping){generator}. Next test, one change \
                     at a time: {suggestion}.{null}"
                ))
            }
            Seat::In(factor) if !verdict.acquitted.is_empty() => Some(format!(
                "Acquitted: the {}. To go further, add to the {factor}.",
                verdict.acquitted.join(", the ")
            )),
            _ => None,
        }
    }
}

fn factor_words(e: &Elasticity, kind: CapKind) -> String {
    let show = match kind {
        CapKind::Iops => iops as fn(f64) -> String,
        CapKind::Bandwidth => bandwidth as fn(f64) -> String,
    };
    let symbol = match kind {
        CapKind::Iops => "A",
        CapKind::Bandwidth => "W",
    };
    let factor = &e.factor;
    let Some(slope) = e.slope else {
        return match e.follows {
            Follows::Inseparable if e.together_with.is_empty() => {
                format!("No two runs differ in the {factor} alone, so they cannot be judged.")
            }
            Follows::Inseparable => format!(
                "The {factor} and the {} changed together: no single one can be credited.",
                list(&e.together_with)
            ),
            Follows::Inconclusive => format!("The {factor} are the same in all runs."),
            _ => format!(
                "{symbol} is not known in two runs that differ in the {factor}{}: it was not \
                 reached there, or the law does not fit.",
                if e.alone { " alone" } else { " (and in more, see above)" }
            ),
        };
    };
    let levels: Vec<String> = e.points.iter().map(|(level, _)| level.to_string()).collect();
    let caps: Vec<String> = e.points.iter().map(|&(_, cap)| show(cap)).collect();
    let seen = match caps.as_slice() {
        [first, rest @ ..] if rest.iter().all(|cap| cap == first) => first.clone(),
        _ => list(&caps),
    };
    let ends = format!("[{:.3}, {:.3}]", slope.low, slope.high);
    let ratio = e.ratio.map_or(String::new(), |ratio| {
        format!(", x{:.3} [{:.3}, {:.3}]", ratio.value, ratio.low, ratio.high)
    });
    let so = match e.follows {
        _ if !e.alone => {
            "other things that are recorded changed as well, so nothing is credited to it or taken \
             from it"
        }
        Follows::No => "it does not follow them",
        Follows::Yes => "it follows them",
        Follows::Partly => "it follows them in part: another limit is near",
        _ => "too uncertain to say: more runs or more levels are needed",
    };
    format!(
        "{symbol} = {seen} at {} {factor} (elasticity {:.3} {ends}{ratio}): {so}.",
        list(&levels),
        slope.value
    )
}

#[cfg(test)]
mod tests {
    use super::super::fit::tests::{LAW, planted};
    use super::super::{Point, QueueVerdict, of_points};
    use super::*;

    #[test]
    fn what_was_left_out_is_not_to_be_measured_but_longer() {
        let one_load: Vec<Point> = (9..20)
            .map(|k| Point { block_bytes: 1 << k, in_flight: 8, ln_rates: vec![7.0] })
            .collect();
        let mut barrier = of_points("read", "read", &one_load, 1);
        let said = barrier.sentences().join("\n");
        assert!(said.contains("three numbers tell"), "{said}");
        barrier.few_requests = 22;
        let said = barrier.sentences().join("\n");
        assert!(!said.contains("three numbers tell"), "{said}");
        assert!(said.contains("one number of requests in flight in what is left"), "{said}");
        assert!(said.contains("; measure longer, so that none is left out."), "{said}");
    }

    #[test]
    fn fewer_than_one_are_not_in_flight_and_a_limit_that_few_cells_show_is_told_so() {
        let mut barrier = of_points("read", "read", &planted(&LAW), 1);
        barrier.knee_in_flight = Some(0.93);
        let said = barrier.sentences().join("\n");
        assert!(said.contains(", so one of them is at the limit: more do not help."), "{said}");
        barrier.knee_in_flight = Some(5.1);
        let said = barrier.sentences().join("\n");
        assert!(
            said.contains(", so at the limit 5.1 of them are in flight: more do not help."),
            "{said}"
        );
        let ends = |cells: u32, block_sizes: u32| {
            let cap = Cap { cells, block_sizes, reached: true, ..barrier.iops.unwrap() };
            cap_words("read", "requests per second", &cap, iops)
        };
        assert!(ends(3, 2).starts_with("read: requests per second end at "), "{}", ends(3, 2));
        let few = ends(2, 2);
        assert!(few.contains("end at about") && few.contains("only 2 cells come within"), "{few}");
        let of_one = ends(3, 1);
        assert!(of_one.contains("end at about"), "{of_one}");
        assert!(of_one.ends_with("; 3 cells are within 5 % of that, all of one block size."));
        // What nobody came near is at least what was seen.
        let cap = Cap { reached: false, highest_low: 41_000.0, ..barrier.iops.unwrap() };
        let above = cap_words("read", "requests per second", &cap, iops);
        assert!(above.contains("was not reached: it is above 41.0 K,"), "{above}");
    }

    #[test]
    fn the_fastest_of_many_may_be_so_by_chance() {
        let point = |ln_rates: Vec<f64>| Point { block_bytes: 4096, in_flight: 8, ln_rates };
        let noisy: Vec<Point> = (0..10).map(|_| point(vec![9.0, 9.02, 8.98])).collect();
        let far = crate::barrier::unsure(&noisy);
        assert!((0.02..0.1).contains(&far), "{far}");
        // Visited once each: nothing tells.
        assert!(crate::barrier::unsure(&[point(vec![9.0]), point(vec![9.1])]) > 0.0);
    }

    #[test]
    fn what_another_phase_shows_is_not_called_unknown() {
        let one_load: Vec<Point> = (9..20)
            .map(|k| Point { block_bytes: 1 << k, in_flight: 8, ln_rates: vec![7.0] })
            .collect();
        let alone = of_points("server", "read", &one_load, 1);
        let block = alone.one_number.as_ref().unwrap().smallest.0;
        let mut other = of_points("reads", "read", &[], 1);
        let rate = Ranged { value: 9e3, low: 8e3, high: 1e4 };
        other.ladders = vec![Ladder { block_bytes: block, rate, from: Some(16), most: 128 }];
        let said = |barriers: Vec<Barrier>| Barriers { barriers }.sentences().join("\n");
        assert!(said(vec![alone.clone()]).contains("is unknown"), "{}", said(vec![alone.clone()]));
        let both = said(vec![alone.clone(), other.clone()]);
        assert!(
            both.contains("server: 8 requests are always in flight; reads shows the effect"),
            "{both}"
        );
        assert!(!both.contains("is unknown"), "{both}");
        // Of another block size it shows nothing.
        other.ladders[0].block_bytes = 3;
        assert!(said(vec![alone, other]).contains("is unknown"));
    }

    #[test]
    fn one_number_in_flight_does_not_tell_waiting_from_being_served() {
        let mut barrier = of_points("read", "read", &[], 1);
        let place =
            Some(Place::Devices { depth: 0, devices: vec!["sda".into()], has_members: false });
        barrier.queue =
            QueueVerdict { place, share: 1.0, compared: Some((8, 8)), ..QueueVerdict::default() };
        let said = barrier.sentences().join("\n");
        assert!(said.contains("of the requests in flight are there, waiting or served"), "{said}");
        barrier.queue.compared = Some((1, 8));
        let said = barrier.sentences().join("\n");
        assert!(
            said.contains("from 1 to 8 in flight, 100 % of the added waiting is there"),
            "{said}"
        );
    }
}
