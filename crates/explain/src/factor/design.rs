//! A design as a table of small integers, and the linear algebra on it.

use std::collections::{BTreeMap, BTreeSet};

use stats::interval::student_quantile;

use super::{Observation, Pair, Refusal, mean};

/// A column that is left with less than this share of its length depends on those before it.
const DEPENDENT: f64 = 1e-9;

/// The design: `rows[observation][factor]` is a level's place in `levels[factor]`.
pub(super) struct Table {
    pub(super) names: Vec<String>,
    pub(super) levels: Vec<Vec<String>>,
    pub(super) rows: Vec<Vec<usize>>,
    pub(super) blocks: Vec<Option<u32>>,
    pub(super) values: Vec<f64>,
}

impl Table {
    pub(super) fn new(design: &[Observation]) -> Self {
        let names: Vec<String> = design
            .first()
            .map_or_else(Vec::new, |o| o.levels.iter().map(|(name, _)| name.clone()).collect());
        let alike = |o: &&Observation| {
            o.ln_value.is_finite() && o.levels.iter().map(|(name, _)| name).eq(&names)
        };
        let usable: Vec<&Observation> = design.iter().filter(alike).collect();
        let levels: Vec<Vec<String>> = (0..names.len())
            .map(|factor| {
                let set: BTreeSet<&String> = usable.iter().map(|o| &o.levels[factor].1).collect();
                let mut levels: Vec<String> = set.into_iter().cloned().collect();
                levels.sort_by(|a, b| numeric(a).total_cmp(&numeric(b)).then(a.cmp(b)));
                levels
            })
            .collect();
        let place = |factor: usize, level: &String| {
            levels[factor].iter().position(|known| known == level).unwrap_or(0)
        };
        let rows = usable
            .iter()
            .map(|o| {
                let places = o.levels.iter().enumerate();
                places.map(|(factor, (_, level))| place(factor, level)).collect()
            })
            .collect();
        Self {
            rows,
            blocks: usable.iter().map(|o| o.block).collect(),
            values: usable.iter().map(|o| o.ln_value).collect(),
            names,
            levels,
        }
    }

    pub(super) fn constants(&self) -> Vec<Refusal> {
        let constant = |factor: &usize| self.levels[*factor].len() < 2;
        let constants = (0..self.names.len()).filter(constant);
        constants.map(|factor| Refusal::Constant(self.names[factor].clone())).collect()
    }

    /// Factors that cannot be told apart, in groups, and those that can be judged.
    ///
    /// A factor can be judged when its columns add their full number to the rank of all others.
    pub(super) fn aliases(&self) -> (Vec<Vec<String>>, Vec<usize>) {
        let varying: Vec<usize> =
            (0..self.names.len()).filter(|&factor| self.levels[factor].len() >= 2).collect();
        let rank = |factors: &[usize]| self.rank(factors);
        let full = rank(&varying);
        let free = |factor: usize| {
            let others: Vec<usize> = varying.iter().copied().filter(|&f| f != factor).collect();
            full - rank(&others) == self.levels[factor].len() - 1
        };
        let (estimable, mut aliased): (Vec<usize>, Vec<usize>) =
            varying.iter().copied().partition(|&factor| free(factor));
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let pairwise = |a: usize, b: usize| rank(&[a, b]) < rank(&[a]) + rank(&[b]) - 1;
        let mut loose = Vec::new();
        while !aliased.is_empty() {
            let mut group = vec![aliased.remove(0)];
            let mut next = 0;
            while next < group.len() {
                let from = group[next];
                let (joined, rest): (Vec<usize>, Vec<usize>) =
                    aliased.iter().partition(|&&other| pairwise(from, other));
                group.extend(joined);
                aliased = rest;
                next += 1;
            }
            if group.len() == 1 { loose.extend(group) } else { groups.push(group) }
        }
        // Only three or more together depend on each other.
        if !loose.is_empty() {
            groups.push(loose);
        }
        let name = |group: Vec<usize>| group.iter().map(|&f| self.names[f].clone()).collect();
        (groups.into_iter().map(name).collect(), estimable)
    }

    /// Rank of a constant, dummies of the blocks and dummies of these factors.
    fn rank(&self, factors: &[usize]) -> usize {
        let mut basis = Basis::new(self.rows.len());
        basis.add(&vec![1.0; self.rows.len()]);
        for &factor in factors {
            for level in 1..self.levels[factor].len() {
                basis.add(&self.column(|row| f64::from(u8::from(self.rows[row][factor] == level))));
            }
        }
        basis.vectors.len()
    }

    fn column(&self, value: impl Fn(usize) -> f64) -> Vec<f64> {
        (0..self.rows.len()).map(value).collect()
    }

    /// Observations that are alike in all but one factor and were made in one block: sets in which
    /// that factor varies.
    pub(super) fn contexts(&self, factor: usize) -> Vec<Vec<usize>> {
        let mut sets: BTreeMap<(Option<u32>, Vec<usize>), Vec<usize>> = BTreeMap::new();
        for (row, levels) in self.rows.iter().enumerate() {
            let mut others = levels.clone();
            others.remove(factor);
            sets.entry((self.blocks[row], others)).or_default().push(row);
        }
        let varies = |set: &Vec<usize>| {
            set.iter().any(|&row| self.rows[row][factor] != self.rows[set[0]][factor])
        };
        sets.into_values().filter(varies).collect()
    }

    /// All pairs of such observations with different levels.
    pub(super) fn pairs(&self, factor: usize) -> Vec<Pair> {
        let mut pairs = Vec::new();
        for set in self.contexts(factor) {
            for &a in &set {
                for &b in &set {
                    let (from, to) = (self.rows[a][factor], self.rows[b][factor]);
                    if from < to {
                        pairs.push(Pair { a, b, from, to });
                    }
                }
            }
        }
        pairs
    }

    /// In a full factorial, where every combination was measured equally often: share of the
    /// variance between combinations that each factor has, and that all interactions have.
    pub(super) fn shares(&self) -> Option<(Vec<f64>, f64)> {
        let mut cells: BTreeMap<&[usize], Vec<f64>> = BTreeMap::new();
        for (row, value) in self.rows.iter().zip(&self.values) {
            cells.entry(row).or_default().push(*value);
        }
        let combinations: usize =
            self.levels.iter().try_fold(1usize, |n, levels| n.checked_mul(levels.len()))?;
        let often = cells.values().next()?.len();
        if cells.len() != combinations
            || combinations < 2
            || cells.values().any(|values| values.len() != often)
        {
            return None;
        }
        let means: Vec<(&[usize], f64)> =
            cells.iter().map(|(&levels, values)| (levels, mean(values))).collect();
        let middle = mean(&means.iter().map(|(_, m)| *m).collect::<Vec<_>>());
        let total: f64 = means.iter().map(|(_, m)| (m - middle).powi(2)).sum();
        if total.is_nan() || total <= 0.0 {
            return None;
        }
        let share = |factor: usize| {
            let of_level = |level: usize| {
                let of = means.iter().filter(|(levels, _)| levels[factor] == level);
                let values: Vec<f64> = of.map(|(_, m)| *m).collect();
                values.len() as f64 * (mean(&values) - middle).powi(2)
            };
            (0..self.levels[factor].len()).map(of_level).sum::<f64>() / total
        };
        let shares: Vec<f64> = (0..self.names.len()).map(share).collect();
        let rest = (1.0 - shares.iter().sum::<f64>()).max(0.0);
        Some((shares, rest))
    }
}

/// Standard deviation of a single observation with its degrees of freedom: among repeats of one
/// combination, blocks taken off; without repeats what factors and pairs of them leave unexplained.
pub(super) fn residual_error(table: &Table) -> Option<(f64, f64)> {
    let combinations: BTreeSet<&Vec<usize>> = table.rows.iter().collect();
    let mut basis = Basis::new(table.rows.len());
    if combinations.len() < table.rows.len() {
        for combination in &combinations {
            basis.add(&table.column(|row| f64::from(u8::from(table.rows[row] == **combination))));
        }
    } else {
        basis.add(&vec![1.0; table.rows.len()]);
        let dummies: Vec<(usize, Vec<f64>)> = (0..table.names.len())
            .flat_map(|factor| (1..table.levels[factor].len()).map(move |level| (factor, level)))
            .map(|(factor, level)| {
                let is = |row: usize| f64::from(u8::from(table.rows[row][factor] == level));
                (factor, table.column(is))
            })
            .collect();
        for (_, column) in &dummies {
            basis.add(column);
        }
        for (i, (a, first)) in dummies.iter().enumerate() {
            for (_, second) in dummies[..i].iter().filter(|(b, _)| b != a) {
                let both: Vec<f64> = first.iter().zip(second).map(|(x, y)| x * y).collect();
                basis.add(&both);
            }
        }
    }
    let blocks: BTreeSet<u32> = table.blocks.iter().flatten().copied().collect();
    for block in blocks {
        basis.add(&table.column(|row| f64::from(u8::from(table.blocks[row] == Some(block)))));
    }
    let df = table.rows.len().checked_sub(basis.vectors.len()).filter(|&df| df >= 2)? as f64;
    let left = basis.remainder(&table.values);
    let squares: f64 = left.iter().map(|x| x * x).sum();
    Some(((squares / df).sqrt(), df))
}

/// Orthonormal columns (modified Gram-Schmidt).
struct Basis {
    rows: usize,
    vectors: Vec<Vec<f64>>,
}

impl Basis {
    fn new(rows: usize) -> Self {
        Self { rows, vectors: Vec::new() }
    }

    /// Adds what is new in a column, if anything.
    fn add(&mut self, column: &[f64]) {
        let length: f64 = column.iter().map(|x| x * x).sum();
        let mut left = self.remainder(column);
        left = self.remainder(&left);
        let new: f64 = left.iter().map(|x| x * x).sum();
        if self.vectors.len() < self.rows && new > DEPENDENT * length && length > 0.0 {
            let scale = new.sqrt().recip();
            left.iter_mut().for_each(|x| *x *= scale);
            self.vectors.push(left);
        }
    }

    /// What of a column lies in no vector of the basis.
    fn remainder(&self, column: &[f64]) -> Vec<f64> {
        let mut left = column.to_vec();
        for vector in &self.vectors {
            let along: f64 = left.iter().zip(vector).map(|(x, v)| x * v).sum();
            left.iter_mut().zip(vector).for_each(|(x, v)| *x -= along * v);
        }
        left
    }
}

/// Numbers sort as numbers, everything else after them.
fn numeric(text: &str) -> f64 {
    text.parse().ok().filter(|x: &f64| x.is_finite()).unwrap_or(f64::INFINITY)
}

/// Chance that Student's t with `df` degrees is above `t`, which is not negative: by bisection of
/// the quantile, to 1e-6.
pub(super) fn student_tail(t: f64, df: f64) -> f64 {
    if t.is_nan() {
        return 1.0;
    }
    let (mut low, mut high) = (0.0_f64, 0.5_f64);
    while high - low > 1e-6 {
        let middle = f64::midpoint(low, high);
        match student_quantile(1.0 - middle, df) {
            Some(quantile) if quantile > t => low = middle,
            Some(_) => high = middle,
            None => return 1.0,
        }
    }
    high
}
