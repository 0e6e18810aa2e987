//! Barriers as findings.

use finding::{Code, Finding, Number, Value};

use super::{
    BLOCK_SIZES_MIN, Barrier, Barriers, BlockQueue, CELLS_MIN, Cap, CapKind, Gain, Generator,
    KNEE_BLOCK, Ladder, NoFit, Place, Ranged,
};
use crate::words::list;

impl Barriers {
    /// What ends the rate, on what evidence, what to do next.
    pub fn findings(&self) -> Vec<Finding> {
        if self.barriers.is_empty() {
            return vec![Finding::new(Code::LimitsUnknown)];
        }
        // Limits that are known come before those that are not.
        let (known, unknown): (Vec<_>, Vec<_>) =
            self.barriers.iter().partition(|barrier| barrier.fit.is_some());
        let findings = |barrier: &Barrier| barrier.with(self.elsewhere(barrier));
        known.into_iter().chain(unknown).flat_map(findings).collect()
    }

    /// That another phase has the same requests with other numbers in flight, and says what limits them.
    fn elsewhere(&self, barrier: &Barrier) -> Option<Finding> {
        // A load with a set rate does not have as many in flight as it may.
        let one = barrier.one_number.as_ref().filter(|_| !barrier.paced)?;
        let block = one.smallest.0;
        let is_it = |other: &&Barrier| {
            let ladders = other.ladders.iter().map(|ladder| ladder.block_bytes);
            let mut blocks = ladders.chain(other.gains.iter().map(|gain| gain.block_bytes));
            other.op == barrier.op && blocks.any(|other| other == block)
        };
        let other = self.barriers.iter().find(is_it)?;
        let found = barrier.found(Code::LimitElsewhere).with("in_flight", one.in_flight);
        Some(found.with("other", &other.group))
    }
}

impl Barrier {
    /// What ends the rate of this phase.
    pub fn findings(&self) -> Vec<Finding> {
        self.with(None)
    }

    fn found(&self, code: Code) -> Finding {
        Finding::new(code).with("group", &self.group)
    }

    /// * `elsewhere`: that another phase shows its limit.
    fn with(&self, elsewhere: Option<Finding>) -> Vec<Finding> {
        let generator = self.of_generator();
        let is_it = self.generator.is_limit();
        let mut found: Vec<Finding> = match (&self.fit, elsewhere) {
            (Some(_), _) => {
                let first = generator.clone().filter(|_| is_it);
                first.into_iter().chain(self.of_fit()).collect()
            }
            (None, Some(one)) => vec![one],
            (None, None) => self.without_fit(),
        };
        found.extend(self.excluded());
        found.extend(self.of_queue());
        found.extend(generator.filter(|_| self.fit.is_some() && !is_it));
        found
    }

    /// The limits that were reached before those that were not.
    fn of_fit(&self) -> Vec<Finding> {
        let Some(fit) = &self.fit else { return Vec::new() };
        let caps = [(CapKind::Iops, self.iops), (CapKind::Bandwidth, self.bandwidth)];
        let mut caps: Vec<(CapKind, Cap)> =
            caps.into_iter().filter_map(|(kind, cap)| Some((kind, cap?))).collect();
        caps.sort_by_key(|(_, cap)| !cap.reached);
        let mut found: Vec<Finding> =
            caps.iter().map(|(kind, cap)| self.of_cap(*kind, cap)).collect();
        found.extend(
            self.knee_bytes.map(|block| {
                self.found(Code::LimitByBlockSize).with("block", Number::bytes(block))
            }),
        );
        let blocks = self.bound.iter().map(|cell| cell.block_bytes);
        let smallest = blocks.filter(|&block| block >= KNEE_BLOCK).min();
        found.extend(smallest.zip(self.knee_in_flight).map(|(block, load)| {
            self.found(Code::LimitInFlight)
                .with("block", Number::bytes(block))
                .with("time", Number::seconds(fit.law.alone(block)))
                // Fewer than one cannot be in flight.
                .with("in_flight", Number::plain(load.max(1.0)))
        }));
        let at_lowest = smallest.is_some()
            && self.knee_in_flight.is_none()
            && self.iops.is_some_and(|cap| cap.reached);
        if self.serial {
            found.push(self.found(Code::LimitSerial));
        } else if at_lowest {
            found.push(self.found(Code::LimitAtLowest).with("few", self.few_requests > 0));
        }
        found.push(
            self.found(Code::LimitModel)
                .with("n", fit.points)
                .with("mean", Number::share(fit.error_mean))
                .with("largest", Number::share(fit.error_max)),
        );
        let worst = self.retrograde.iter().min_by(|a, b| a.ratio.total_cmp(&b.ratio));
        found.extend(worst.map(|worst| {
            self.found(Code::LimitFalls)
                .with("places", self.retrograde.len())
                .with("block", Number::bytes(worst.block_bytes))
                .with("to", worst.to)
                .with("from", worst.from)
                .with("ratio", Number::share(worst.ratio))
        }));
        found
    }

    pub(super) fn of_cap(&self, kind: CapKind, cap: &Cap) -> Finding {
        let few = (cap.cells as usize) < CELLS_MIN;
        let code = match cap.reached {
            false => Code::LimitNotReached,
            true if few || (cap.block_sizes as usize) < BLOCK_SIZES_MIN => Code::LimitApproximate,
            true => Code::Limit,
        };
        let Ranged { value, low, high } = cap.rate;
        self.found(code)
            .with("bandwidth", kind == CapKind::Bandwidth)
            .with("rate", kind.number(value).within(low, high))
            .with("least", kind.number(cap.highest_low))
            .with("n", cap.cells)
            .with("few", few)
            .with("one", cap.cells == 1)
    }

    fn excluded(&self) -> Vec<Finding> {
        let of = |code, n: u32| (n > 0).then(|| self.found(code).with("n", n).with("one", n == 1));
        let few = of(Code::CellsOfFewRequests, self.few_requests);
        few.into_iter().chain(of(Code::CellsOfFewInFlight, self.few_in_flight)).collect()
    }

    /// What can be said without the law, or why nothing can.
    fn without_fit(&self) -> Vec<Finding> {
        if self.paced {
            return vec![self.found(Code::LimitPaced)];
        }
        let is_all = self.few_requests == 0 && self.few_in_flight == 0;
        let times = |code, (small, time): (u64, f64), (large, longest): (u64, f64)| {
            self.found(code)
                .with("small", Number::bytes(small))
                .with("time", Number::seconds(time))
                .with_some("large", (large > small).then_some(Number::bytes(large)))
                .with("longest", Number::seconds(longest))
        };
        if let Some(alone) = self.one_at_a_time.as_ref().filter(|_| is_all) {
            return vec![times(Code::LimitOneAtATime, alone.smallest, alone.largest)];
        }
        if let Some(one) = self.one_number.as_ref().filter(|_| is_all) {
            let found = times(Code::LimitOneNumber, one.smallest, one.largest);
            return vec![found.with("in_flight", one.in_flight)];
        }
        if !self.gains.is_empty() {
            return self.gains.iter().map(|gain| self.of_gain(gain)).collect();
        }
        if self.ladders.is_empty() {
            return vec![self.unknown()];
        }
        let of = |ladder: &Ladder| {
            if let Some(gain) = &ladder.nearly {
                return self.of_gain(gain);
            }
            let Ranged { value, low, high } = ladder.rate;
            let (code, rate) = match ladder.from {
                Some(_) => (Code::LimitOfBlock, Number::iops(value).within(low, high)),
                None => (Code::LimitOfBlockNotReached, Number::iops(value)),
            };
            self.found(code)
                .with("block", Number::bytes(ladder.block_bytes))
                .with("rate", rate)
                .with_some("from", ladder.from)
                .with("most", ladder.most)
        };
        self.ladders.iter().map(of).collect()
    }

    /// More block sizes would be as noisy.
    fn of_gain(&self, gain: &Gain) -> Finding {
        let Ranged { low, high, .. } = gain.ratio;
        let ranged = |of: Ranged| Number::ratio(of.value).within(of.low, of.high);
        let code = match () {
            () if high < 1.0 => Code::MoreInFlightHarms,
            () if gain.is_nearly_saturated() => Code::NearlySaturated,
            () if low > 1.0 => Code::MoreInFlightHelps,
            () => Code::MoreInFlightUnknown,
        };
        self.found(code)
            .with("block", Number::bytes(gain.block_bytes))
            .with("to", gain.to)
            .with("from", gain.from)
            .with("ratio", ranged(gain.ratio))
            .with("slower", ranged(gain.slower()))
    }

    fn unknown(&self) -> Finding {
        let code = match (self.no_fit, self.withheld) {
            (_, Some(error)) => {
                return self.found(Code::LimitModelUnfit).with("error", Number::share(error));
            }
            (Some(NoFit::OneLoad), _) => Code::LimitOfOneLoad,
            (Some(NoFit::TooFewBlockSizes), _) => Code::LimitOfFewBlockSizes,
            _ => Code::LimitOfFewCells,
        };
        self.found(code).with("few", self.few_requests > 0)
    }

    fn of_queue(&self) -> Vec<Finding> {
        let queue = &self.queue;
        let off = queue.off.first().map(|&(block, asked, seen)| {
            self.found(Code::QueueOff)
                .with("n", queue.off.len())
                .with("block", Number::bytes(block))
                .with("seen", Number::plain(seen))
                .with("asked", asked)
                .with("short", queue.off_by_ends)
        });
        let mut found: Vec<Finding> = off.into_iter().collect();
        found.extend(queue.open_loop.then(|| self.found(Code::QueueUnknown)));
        found.extend(self.by_block());
        found.extend(queue.place.as_ref().map(|place| {
            let compared = queue.compared.filter(|(few, most)| few < most);
            let found = place
                .values()
                .into_iter()
                .fold(self.found(Code::Queue), |found, (name, value)| found.with(name, value));
            found
                // Flushes and others' requests wait there as well.
                .with("share", Number::share(queue.share.min(1.0)))
                .with_some("copied", queue.copied.map(Number::plain))
                .with_some("few", compared.map(|(few, _)| few))
                .with_some("most", compared.map(|(_, most)| most))
        }));
        found
    }

    /// What waits where, for each block size, where no single layer has it all.
    fn by_block(&self) -> Vec<Finding> {
        // Neighbours in block size with one and the same place are one finding.
        let mut lines: Vec<(&BlockQueue, u64)> = Vec::new();
        for one in self.queue.by_block.iter().filter(|one| !one.shares.is_empty()) {
            let at = one.place();
            let before = lines.last_mut().filter(|(last, _)| at.is_some() && at == last.place());
            match before {
                Some((_, largest)) => *largest = one.block_bytes,
                None => lines.push((one, one.block_bytes)),
            }
        }
        let head = (!lines.is_empty()).then(|| self.found(Code::Queues));
        let of = |(one, largest): &(&BlockQueue, u64)| {
            let larger = (*largest > one.block_bytes).then_some(Number::bytes(*largest));
            let found = self
                .found(Code::QueueOfBlock)
                .with("block", Number::bytes(one.block_bytes))
                .with_some("largest", larger)
                .with("one", one.place().is_some());
            if let Some(place) = one.place() {
                let values = place.values().into_iter();
                return values.fold(found, |found, (name, value)| found.with(name, value));
            }
            let shares = one.shares.iter().map(|part| {
                let [above, members, devices] = part.place.values();
                let share = Number::share(part.share.min(1.0)).into();
                Value::record([("share", share), above, members, devices])
            });
            found.with("shares", shares.collect::<Vec<_>>())
        };
        head.into_iter().chain(lines.iter().map(of)).collect()
    }

    fn of_generator(&self) -> Option<Finding> {
        let found = |code, name, number| Some(self.found(code).with(name, number));
        match self.generator {
            Generator::NearNull { null_rate } => {
                found(Code::LimitGenerator, "null_rate", Number::iops(null_rate))
            }
            Generator::Busy { share } => found(Code::LimitGenerator, "busy", Number::share(share)),
            Generator::RuledOut { null_rate } => {
                found(Code::LimitGeneratorExcluded, "null_rate", Number::iops(null_rate))
            }
            Generator::Unknown => None,
        }
    }
}

impl Place {
    /// Where that is, for templates.
    fn values(&self) -> [(&'static str, Value); 3] {
        let (above, members, devices) = match self {
            Self::Above => (true, false, [].as_slice()),
            Self::Devices { devices, has_members, .. } => (false, *has_members, devices.as_slice()),
        };
        [("above", above.into()), ("members", members.into()), ("devices", devices.into())]
    }

    /// Where that is.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Above => "above the block devices".to_owned(),
            Self::Devices { devices, has_members: true, .. } => {
                format!("in {} and not below", list(devices))
            }
            Self::Devices { devices, .. } => format!("at the devices ({})", list(devices)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fit::tests::{LAW, planted};
    use super::super::{Point, QueueVerdict, of_points};
    use super::*;

    fn codes(found: &[Finding]) -> Vec<Code> {
        found.iter().map(|finding| finding.code).collect()
    }

    #[test]
    fn what_was_left_out_is_not_to_be_measured_but_longer() {
        let one_load: Vec<Point> = (9..20)
            .map(|k| Point { block_bytes: 1 << k, in_flight: 8, ln_rates: vec![7.0] })
            .collect();
        let mut barrier = of_points("read", "read", &one_load, 1);
        assert_eq!(codes(&barrier.findings()), [Code::LimitOneNumber]);
        barrier.few_requests = 22;
        let found = barrier.findings();
        assert_eq!(codes(&found), [Code::LimitOfOneLoad, Code::CellsOfFewRequests]);
        let said = found[0].text();
        assert!(said.contains("; measure longer, so that no cell is excluded."), "{said}");
    }

    #[test]
    fn where_visits_differ_too_much_more_block_sizes_are_no_advice() {
        let point = |in_flight, rate: f64, off: [f64; 3]| {
            let ln_rates = off.map(|off| rate.ln() + off).to_vec();
            Point { block_bytes: 8192, in_flight, ln_rates }
        };
        let noisy = [
            point(1, 6000.0, [-0.5, 0.0, 0.5]),
            point(8, 25_000.0, [0.0, 0.5, -0.5]),
            point(64, 35_500.0, [0.5, -0.5, 0.0]),
        ];
        let barrier = of_points("log", "write", &noisy, 1);
        let found = barrier.findings();
        assert_eq!(codes(&found), [Code::MoreInFlightUnknown]);
        assert_eq!(found[0].value("to"), Some(&64_u64.into()));
        let alone = of_points("server log", "write", &noisy[1..2], 1);
        let found = Barriers { barriers: vec![alone, barrier] }.findings();
        assert_eq!(codes(&found), [Code::LimitElsewhere, Code::MoreInFlightUnknown]);
        assert_eq!(found[0].value("other"), Some(&"log".into()));
    }

    #[test]
    fn fewer_than_one_are_not_in_flight_and_a_limit_that_few_cells_show_is_told_so() {
        let mut barrier = of_points("read", "read", &planted(&LAW), 1);
        let knee = |barrier: &Barrier| {
            let found = barrier.findings();
            let knee = found.iter().find(|one| one.code == Code::LimitInFlight);
            knee.and_then(|knee| knee.value("in_flight").cloned()).unwrap()
        };
        barrier.knee_in_flight = Some(0.93);
        assert_eq!(knee(&barrier), Number::plain(1.0).into());
        barrier.knee_in_flight = Some(5.1);
        assert_eq!(knee(&barrier), Number::plain(5.1).into());
        let ends = |cells: u32, block_sizes: u32| {
            let cap = Cap { cells, block_sizes, reached: true, ..barrier.iops.unwrap() };
            barrier.of_cap(CapKind::Iops, &cap)
        };
        assert_eq!(ends(3, 2).code, Code::Limit);
        let few = ends(2, 2);
        assert_eq!(few.code, Code::LimitApproximate);
        assert!(few.text().ends_with("; only 2 cells come within 5 % of that."), "{few:?}");
        let of_one = ends(3, 1).text();
        assert!(of_one.ends_with("; 3 cells are within 5 % of that, all of one block size."));
        // What nobody came near is at least what was seen.
        let cap = Cap { reached: false, highest_low: 41_000.0, ..barrier.iops.unwrap() };
        let above = barrier.of_cap(CapKind::Iops, &cap);
        assert_eq!(above.code, Code::LimitNotReached);
        assert_eq!(above.value("least"), Some(&Number::iops(41_000.0).into()));
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
        other.ladders =
            vec![Ladder { block_bytes: block, rate, from: Some(16), most: 128, nearly: None }];
        let first = |barriers: Vec<Barrier>| Barriers { barriers }.findings()[0].code;
        assert_eq!(first(vec![alone.clone()]), Code::LimitOneNumber);
        assert_eq!(first(vec![alone.clone(), other.clone()]), Code::LimitElsewhere);
        // Of another block size it shows nothing.
        other.ladders[0].block_bytes = 3;
        assert_eq!(first(vec![alone, other]), Code::LimitOneNumber);
    }

    #[test]
    fn one_number_in_flight_does_not_tell_waiting_from_being_served() {
        let mut barrier = of_points("read", "read", &[], 1);
        let place =
            Some(Place::Devices { depth: 0, devices: vec!["sda".into()], has_members: false });
        barrier.queue =
            QueueVerdict { place, share: 1.0, compared: Some((8, 8)), ..QueueVerdict::default() };
        let said = finding::texts(&barrier.findings()).join("\n");
        assert!(said.contains("of the requests in flight are there, waiting or served"), "{said}");
        barrier.queue.compared = Some((1, 8));
        let said = finding::texts(&barrier.findings()).join("\n");
        assert!(
            said.contains("from 1 to 8 in flight, 100 % of the added waiting is there"),
            "{said}"
        );
    }
}
