//! Classes with places and pauses of their own: the lines of an IOMeter access specification.

use stats::Random;
use suite::model::Class;
use units::Nanos;

/// One worker's lines. Positions count units of the stream's alignment, as in
/// [`crate::access`].
#[derive(Debug)]
pub(crate) struct Lines {
    lines: Box<[Line]>,
    /// How many units the space has.
    units: u64,
    /// Where the last request ended, whatever its class.
    end: u64,
    /// The class of the burst, and how many requests of it are left.
    class: usize,
    left: u32,
}

#[derive(Clone, Copy, Debug)]
struct Line {
    random_share: f64,
    /// In units.
    align: u64,
    think: Nanos,
    burst: u32,
}

impl Lines {
    /// `None` where classes leave everything to the stream.
    ///
    /// * `unit`: bytes of a position; `units`: how many the space has.
    /// * `worker` of `workers`: each begins at its own equal part.
    pub(crate) fn new(
        classes: &[Class],
        unit: u64,
        units: u64,
        (worker, workers): (u32, u32),
    ) -> Option<Self> {
        let line = |class: &Class| {
            let line = class.line?;
            Some(Line {
                random_share: line.random_share,
                align: (line.align.get() / unit.max(1)).max(1),
                think: line.think,
                burst: line.burst.max(1),
            })
        };
        let lines: Box<[Line]> = classes.iter().map(line).collect::<Option<_>>()?;
        let end = u128::from(units) * u128::from(worker) / u128::from(workers.max(1));
        Some(Self { lines, units: units.max(1), end: end as u64, class: 0, left: 0 })
    }

    pub(crate) fn pauses(&self) -> bool {
        self.lines.iter().any(|line| line.think > Nanos::ZERO)
    }

    pub(crate) const fn burst_over(&self) -> bool {
        self.left == 0
    }

    /// The next requests are of class `index`; gives the pause before them.
    pub(crate) fn begin_burst(&mut self, index: usize) -> Nanos {
        let line = self.lines[index];
        (self.class, self.left) = (index, line.burst);
        line.think
    }

    /// The class of the burst.
    pub(crate) const fn class(&self) -> usize {
        self.class
    }

    /// Where the next request of the burst goes; it is `length` units long and fits below
    /// `positions`.
    pub(crate) fn next(&mut self, random: &mut Random, positions: u64, length: u64) -> u64 {
        self.left = self.left.saturating_sub(1);
        let line = self.lines[self.class];
        let jumps = match line.random_share {
            share if share <= 0.0 => false,
            share if share >= 1.0 => true,
            share => random.unit() < share,
        };
        let from = if jumps { random.below(self.units) } else { self.end };
        let aligned = from.div_ceil(line.align).saturating_mul(line.align);
        let position = if aligned < positions { aligned } else { 0 };
        self.end = position.saturating_add(length);
        position
    }
}
