//! First-come first-served servers, without any event: when a request arrives, when it leaves is known.

use crate::parameter::PerSecond;

/// Nanoseconds of a byte.
pub(super) fn byte_time(rate: PerSecond) -> f64 {
    1e9 / rate.0.get() as f64
}

/// Nanoseconds of so many bytes.
pub(super) fn span(bytes: u64, byte_time: f64) -> u64 {
    (bytes as f64 * byte_time).round() as u64
}

/// Equal servers. Requests must come in the order of their arrival: see [`super`].
#[derive(Clone, Debug)]
pub(super) struct Station {
    /// When each is free, in ns.
    free: Vec<u64>,
    /// Time of all servers' work so far, in ns; it may lie ahead.
    busy: u64,
    visits: u64,
}

impl Station {
    pub(super) fn new(servers: usize) -> Self {
        Self { free: vec![0; servers.max(1)], busy: 0, visits: 0 }
    }

    /// One of the servers takes `time`; returns when that is over.
    pub(super) fn serve(&mut self, server: usize, arrival: u64, time: u64) -> u64 {
        let end = self.free[server].max(arrival) + time;
        self.free[server] = end;
        self.busy += time;
        self.visits += 1;
        end
    }

    /// That of the first `among` servers which is free first takes `time`: a common line.
    pub(super) fn serve_first(&mut self, among: usize, arrival: u64, time: u64) -> u64 {
        let mut first = 0;
        for server in 1..self.free.len().min(among) {
            if self.free[server] < self.free[first] {
                first = server;
            }
        }
        self.serve(first, arrival, time)
    }

    /// When a server is done with all that it has.
    pub(super) fn free_at(&self, server: usize) -> u64 {
        self.free[server]
    }

    /// How many a server has that are not done at `now`, about: its work in times of the mean.
    pub(super) fn waiting(&self, server: usize, now: u64) -> f64 {
        let work = self.free[server].saturating_sub(now) as f64;
        // The first is half done.
        if work > 0.0 { work * self.visits as f64 / self.busy as f64 + 0.5 } else { 0.0 }
    }

    /// Mean work of a server so far, in ns.
    pub(super) fn busy(&self) -> u64 {
        self.busy / self.free.len() as u64
    }

    pub(super) fn visits(&self) -> u64 {
        self.visits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::agenda::{Agenda, Due};
    use crate::network::{Visit, solve};
    use stats::Random;

    const MEAN: f64 = 1e6;

    fn near(found: f64, wanted: f64, what: &str) {
        assert!((found / wanted - 1.0).abs() < 0.01, "{what}: {found}, wanted {wanted}");
    }

    fn time(random: &mut Random, mean: f64) -> u64 {
        (random.exponential() * mean) as u64
    }

    /// Mean time at the station, in means of the service, of requests that come at random.
    fn open(servers: usize, load: f64, is_constant: bool) -> f64 {
        let mut random = Random::new(5);
        let mut station = Station::new(servers);
        let (mut now, mut sum) = (0, 0);
        let count = 6_000_000;
        for _ in 0..count {
            now += time(&mut random, MEAN / load / servers as f64);
            let service = if is_constant { MEAN as u64 } else { time(&mut random, MEAN) };
            sum += station.serve_first(servers, now, service) - now;
        }
        near(station.busy() as f64 / now as f64, load, "busy");
        sum as f64 / f64::from(count) / MEAN
    }

    #[test]
    fn lines_of_random_arrivals_are_as_long_as_erlang_and_pollaczek_say() {
        // M/M/c: Erlang's C over c (1 - load), and the service.
        for (servers, load) in [(1, 0.5), (2, 0.7), (4, 0.8), (8, 0.6)] {
            let offered = servers as f64 * load;
            let (mut term, mut sum) = (1.0, 0.0);
            for k in 0..servers {
                sum += term;
                term *= offered / (k + 1) as f64;
            }
            let wait = term / (1.0 - load);
            let wanted = 1.0 + wait / (sum + wait) / (servers as f64 * (1.0 - load));
            near(open(servers, load, false), wanted, "M/M/c");
        }
        // M/D/1: half of what waits where times are exponential.
        for load in [0.3, 0.6, 0.8] {
            near(open(1, load, true), 1.0 + load / 2.0 / (1.0 - load), "M/D/1");
        }
    }

    /// A closed network: a delay, a choice of one of so many servers, a single one. Rate, and how
    /// busy the two are.
    fn closed(customers: u32, times: [f64; 3], choice: usize) -> (f64, f64, f64) {
        let mut random = Random::new(9);
        let mut stations = [Station::new(choice), Station::new(1)];
        let mut agenda = Agenda::new(customers as usize);
        (0..customers).for_each(|n| agenda.push(0, Due::Portion(n)));
        let mut places = vec![0; customers as usize];
        let (count, mut now) = (2_000_000, 0);
        let mut done = 0;
        while done < count {
            let Some((at, Due::Portion(n))) = agenda.pop_until(u64::MAX) else { unreachable!() };
            now = at;
            let place = &mut places[n as usize];
            let service = time(&mut random, times[*place]);
            let end = match *place {
                0 => now + service,
                1 => {
                    let server = random.below(choice as u64) as usize;
                    stations[0].serve(server, now, service)
                }
                _ => stations[1].serve(0, now, service),
            };
            done += u32::from(*place == 2);
            *place = (*place + 1) % 3;
            agenda.push(end, Due::Portion(n));
        }
        let now = now as f64;
        let [a, b] = stations.map(|station| station.busy() as f64 / now);
        (f64::from(count) / now, a, b)
    }

    #[test]
    fn closed_networks_are_as_solved_exactly() {
        for (customers, times, choice) in [
            (1, [3e5, 2e5, 1e5], 4),
            (5, [9e5, 4e5, 1e5], 4),
            (12, [1e6, 8e5, 1e5], 8),
            (40, [2e6, 4e5, 1e5], 3),
        ] {
            let wanted = solve(
                &[
                    Visit::delay(times[0]),
                    Visit::one_of(choice as f64, times[1]),
                    Visit::one_of(1.0, times[2]),
                ],
                customers,
            );
            let (rate, a, b) = closed(customers, times, choice);
            near(rate, wanted.rate, "rate");
            near(a, wanted.busy[1], "choice");
            near(b, wanted.busy[2], "single");
        }
    }

    #[test]
    fn machines_and_a_repairman() {
        for (machines, running, service) in [(3u32, 5.0, 2.0), (10, 27.5, 15.7)] {
            let (mut term, mut sum) = (1.0, 1.0);
            for k in 0..machines {
                term *= f64::from(machines - k) * service / running;
                sum += term;
            }
            let wanted = (1.0 - 1.0 / sum) / service;
            let (rate, _, busy) = closed(machines, [running * 1e5, 0.0, service * 1e5], 1);
            near(rate * 1e5, wanted, "rate");
            near(busy, wanted * service, "busy");
        }
    }
}
