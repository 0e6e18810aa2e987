//! A closed network of queues, solved exactly.
//!
//! Mean value analysis: Reiser and Lavenberg, Journal of the ACM 27 (1980). With n customers a
//! request finds at each queue what n - 1 customers leave there on average; so the answer for n
//! follows from that for n - 1. It is exact for queues served in order of arrival with exponential
//! times, and for delays. Service times here vary less than that, so the truth is between the
//! answer and the bounds min(n / sum of times, 1 / greatest demand).

/// What one request asks of a station, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Visit {
    /// How long it is served there.
    pub time: f64,
    /// How long it keeps one of the equal servers from others, on average: `time` over the number
    /// of servers that a request chooses from at random. 0 where nobody waits.
    pub demand: f64,
    /// How much of `time` shrinks where more wait, since the server chooses the nearest: to the
    /// share (3 / (n + 2)) to the power `reorder`, with n there.
    pub seek: f64,
    /// See `seek`.
    pub reorder: f64,
}

impl Visit {
    /// A visit without waiting.
    pub fn delay(time: f64) -> Self {
        Self { time, ..Self::default() }
    }

    /// A visit to one of so many servers, chosen at random. `servers` at least 1.
    pub fn one_of(servers: f64, time: f64) -> Self {
        Self { time, demand: time / servers, ..Self::default() }
    }

    /// Both, the other one by a share of the requests.
    pub(crate) fn add(&mut self, share: f64, other: &Self) {
        self.time += share * other.time;
        self.demand += share * other.demand;
        self.seek += share * other.seek;
        self.reorder = self.reorder.max(other.reorder);
    }

    /// Time at the server with so many others waiting there.
    fn time_beside(&self, others: f64) -> f64 {
        self.time - self.seek * (1.0 - (3.0 / (others + 3.0)).powf(self.reorder))
    }
}

/// What comes of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// Requests per second.
    pub rate: f64,
    /// Seconds at each station, waiting included, in the order of the visits.
    pub times: Vec<f64>,
    /// Share of the time that a server of each station is busy, 0 to 1.
    pub busy: Vec<f64>,
}

impl Solution {
    /// Seconds from start to end of a request.
    pub fn response(&self) -> f64 {
        self.times.iter().sum()
    }
}

/// Solves the network of `visits` for so many customers.
///
/// * Exact without `reorder`; with it, exact for one station, else an approximation that takes the
///   mean number waiting for the number.
/// * A queue of several servers with a common line is best given as `one_of` the number, with the
///   rest of its time as a delay: exact for one customer and in the limit (Seidmann 1987).
pub fn solve(visits: &[Visit], customers: u32) -> Solution {
    let mut others = vec![0.0; visits.len()];
    let mut times = vec![0.0; visits.len()];
    let mut rate = 0.0;
    for n in 1..=customers {
        let mut response = 0.0;
        for ((visit, time), others) in visits.iter().zip(&mut times).zip(&others) {
            *time = visit.time_beside(*others) * (1.0 + others);
            response += *time;
        }
        rate = f64::from(n) / response;
        if n < customers {
            for ((visit, time), others) in visits.iter().zip(&times).zip(&mut others) {
                // Of all that are at the station, those at one of its servers.
                let share = if visit.time > 0.0 { visit.demand / visit.time } else { 0.0 };
                *others = rate * time * share;
            }
        }
    }
    let busy = visits.iter().zip(&others).map(|(visit, others)| {
        let share = if visit.time > 0.0 { visit.demand / visit.time } else { 0.0 };
        rate * visit.time_beside(*others) * share
    });
    Solution { rate, busy: busy.collect(), times }
}
