//! Blocks that hold a configuration against itself, to check those that hold two against each other.
//!
//! A block has two labels, each visited once, one after the other in an order by coin. Where both
//! labels stand for the same thing, they differ by noise, unless something hangs on the label
//! itself: another file, another place, another process. And in every block the second visit may
//! meet what the first left behind.

use crate::interval::plain;
use crate::paired::Contrast;

/// Fewest blocks in which who came second can be told from noise.
const BLOCKS_MIN: usize = 4;
/// Orders that vary by less than this say nothing about what an order does.
const VARIES: f64 = 1e-6;

/// A block of one cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    /// Blocks of several cells with one number were made together.
    pub number: u32,
    /// The second label's logarithm less the first label's.
    pub difference: f64,
    /// 1 where the second label was visited second, -1 where it was first; between those in a mean
    /// over cells.
    pub order: f64,
}

/// All blocks of a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Blocks {
    /// Of two configurations.
    pub others: Vec<Block>,
    /// Of one with itself.
    pub again: Vec<Block>,
}

/// How far the second label is from the first where both stand for the same.
///
/// * The blocks of two configurations lend the noise: whatever those two differ by falls out. What
///   the order of a block does is fitted over all blocks and taken off.
/// * `None` where nothing was held against itself, or fewer than two degrees of freedom are left.
///
/// Method: least squares of `difference = mean of its kind + order * g`.
pub fn label(blocks: &Blocks) -> Option<Contrast> {
    let (others, again) = (Centred::of(&blocks.others)?, Centred::of(&blocks.again)?);
    let spread = others.orders + again.orders;
    let fits = spread > VARIES;
    let slope = if fits { (others.products + again.products) / spread } else { 0.0 };
    let parameters = if fits { 3.0 } else { 2.0 };
    let df = others.n + again.n - parameters;
    if df < 2.0 {
        return None;
    }
    let left = others.squares + again.squares - slope * (others.products + again.products);
    let variance = left.max(0.0) / df;
    let reach = if fits { again.order * again.order / spread } else { 0.0 };
    let middle = again.difference - slope * again.order;
    let error = (variance * (again.n.recip() + reach)).sqrt();
    (middle.is_finite() && error.is_finite()).then_some(Contrast { middle, error, df, offset: 0.0 })
}

/// The same over several cells: of the means over cells of every block that all cells have.
pub fn label_of_all(cells: &[Blocks]) -> Option<Contrast> {
    label(&Blocks {
        others: means(cells.iter().map(|cell| cell.others.as_slice())),
        again: means(cells.iter().map(|cell| cell.again.as_slice())),
    })
}

/// How far the visit that comes second in a block is from the first one, over all cells and blocks;
/// negative where it is slower.
///
/// * One value a block: the mean over cells of its difference, the cell's own mean taken off, in
///   the order of time. Cells of one block move together, blocks do not.
/// * `None` with fewer than four blocks.
pub fn second(cells: &[Blocks]) -> Option<Contrast> {
    let in_time = |cell: &Blocks| -> Blocks {
        let mean =
            cell.others.iter().map(|b| b.difference).sum::<f64>() / cell.others.len().max(1) as f64;
        let turned = |block: &Block, mean: f64| {
            let difference = block.order * (block.difference - mean);
            Block { difference, order: 1.0, ..*block }
        };
        let others = cell.others.iter().map(|block| turned(block, mean)).collect();
        Blocks { others, again: cell.again.iter().map(|block| turned(block, 0.0)).collect() }
    };
    let cells: Vec<Blocks> = cells.iter().map(in_time).collect();
    let mut values = means(cells.iter().map(|cell| cell.others.as_slice()));
    values.extend(means(cells.iter().map(|cell| cell.again.as_slice())));
    let values: Vec<f64> = values.iter().map(|block| block.difference).collect();
    if values.len() < BLOCKS_MIN {
        return None;
    }
    let mean = plain(&values, 0.95)?;
    let (all, df) = (mean.visits as f64, mean.df - 1.0);
    // The cells' own means cost a degree of freedom.
    let error = (mean.variance * mean.df / df / all).sqrt();
    Some(Contrast { middle: mean.mean, error, df, offset: 0.0 })
}

/// Means over cells, of the blocks that all cells with any have.
fn means<'a>(cells: impl Iterator<Item = &'a [Block]>) -> Vec<Block> {
    let cells: Vec<&[Block]> = cells.filter(|cell| !cell.is_empty()).collect();
    let Some((first, rest)) = cells.split_first() else { return Vec::new() };
    let n = cells.len() as f64;
    let of = |block: &Block| {
        let mut sum = *block;
        for cell in rest {
            let same = cell.iter().find(|other| other.number == block.number)?;
            sum.difference += same.difference;
            sum.order += same.order;
        }
        Some(Block { difference: sum.difference / n, order: sum.order / n, ..sum })
    };
    first.iter().filter_map(of).collect()
}

/// Sums about the means of one kind of blocks.
struct Centred {
    n: f64,
    difference: f64,
    order: f64,
    /// Of differences, squared.
    squares: f64,
    /// Of orders, squared.
    orders: f64,
    /// Of both.
    products: f64,
}

impl Centred {
    fn of(blocks: &[Block]) -> Option<Self> {
        let n = blocks.len() as f64;
        let mean = |of: fn(&Block) -> f64| blocks.iter().map(of).sum::<f64>() / n;
        let (difference, order) = (mean(|b| b.difference), mean(|b| b.order));
        let sum = |of: &dyn Fn(&Block) -> f64| blocks.iter().map(of).sum::<f64>();
        (!blocks.is_empty()).then(|| Self {
            n,
            difference,
            order,
            squares: sum(&|b| (b.difference - difference).powi(2)),
            orders: sum(&|b| (b.order - order).powi(2)),
            products: sum(&|b| (b.order - order) * (b.difference - difference)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(first: u32, values: &[f64]) -> Vec<Block> {
        let each = (first..).zip(values);
        each.map(|(number, &difference)| Block {
            number,
            difference,
            order: if number % 2 == 0 { 1.0 } else { -1.0 },
        })
        .collect()
    }

    #[test]
    fn what_two_differ_by_is_no_noise() {
        let others = blocks(0, &[0.5, 0.52, 0.48, 0.5, 0.51, 0.49]);
        let with = |again: &[f64]| {
            label(&Blocks { others: others.clone(), again: blocks(9, again) }).unwrap()
        };
        let near = with(&[0.01]);
        assert!((near.middle - 0.01).abs() < 0.02 && near.p_beyond(0.0) > 0.3, "{near:?}");
        assert!(near.df == 4.0);
        let far = with(&[0.2, 0.2]);
        assert!((far.middle - 0.2).abs() < 1e-9 && far.p_beyond(0.0) < 0.001, "{far:?}");
    }

    #[test]
    fn the_order_of_a_block_is_taken_off() {
        // Whoever is second is 0.2 slower; block 9 has the second label first.
        let order = |number: u32| if number.is_multiple_of(2) { -0.2 } else { 0.2 };
        let values: Vec<f64> =
            (0..8).map(|k| 0.1 + order(k) + if k % 3 == 0 { 0.01 } else { -0.01 }).collect();
        let cell = Blocks { others: blocks(0, &values), again: blocks(9, &[0.2]) };
        let label = label(&cell).unwrap();
        assert!(label.middle.abs() < 0.02 && label.p_beyond(0.0) > 0.1, "{label:?}");
        let second = second(std::slice::from_ref(&cell)).unwrap();
        assert!((second.middle + 0.2).abs() < 0.01 && second.p_beyond(0.0) < 1e-6, "{second:?}");
        let twice = [cell.clone(), cell];
        assert!((self::second(&twice).unwrap().middle + 0.2).abs() < 0.01);
    }

    #[test]
    fn too_little_says_nothing() {
        let none = Blocks::default();
        assert!(label(&none).is_none() && second(&[]).is_none());
        let others = Blocks { others: blocks(0, &[0.1; 10]), again: vec![] };
        assert!(label(&others).is_none() && label_of_all(&[others]).is_none());
        let few = Blocks { others: blocks(0, &[0.1, 0.2]), again: blocks(9, &[0.1]) };
        assert!(label(&few).is_none());
        let odd = Blocks { others: blocks(0, &[f64::NAN; 10]), again: blocks(9, &[0.1]) };
        assert!(label(&odd).is_none());
        // Order that never varies is in no fit.
        let mut same =
            Blocks { others: blocks(0, &[0.1, 0.2, 0.1, 0.2]), again: blocks(9, &[0.1]) };
        same.others.iter_mut().chain(&mut same.again).for_each(|block| block.order = 1.0);
        assert_eq!(label(&same).unwrap().df, 3.0);
    }
}
