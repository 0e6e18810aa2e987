//! A suite's cell as the load that an array is asked about.

use array::{Addressing, Fill, Load};
use suite::model::{Access, Cell, Operation, Spread, Suite};
use units::Bytes;

/// What a cell asks for; an error says why that is not reckoned with.
pub(crate) fn load(suite: &Suite, cell: &Cell, cache: Fill) -> Result<Load, String> {
    let [stream] = cell.streams.as_slice() else {
        return Err("several streams play at once".to_owned());
    };
    if let Some(why) = stream.why_not_plain() {
        return Err(why.to_owned());
    }
    let access = match stream.access {
        Access::Uniform | Access::UniformOnce | Access::Permutation => Addressing::Random,
        Access::Sequential { .. } => Addressing::Sequential,
        _ => return Err("places are neither uniform nor one after the other".to_owned()),
    };
    let classes = &stream.mix.classes;
    let block = classes.first().map_or(Bytes::ZERO, |class| class.block_size);
    if classes.iter().any(|class| class.block_size != block) {
        return Err("requests have several sizes".to_owned());
    }
    let weight = |op: Option<Operation>| -> f64 {
        let those = classes.iter().filter(|class| op.is_none_or(|op| class.op == op));
        those.map(|class| class.weight).sum()
    };
    let (reads, writes, all) =
        (weight(Some(Operation::Read)), weight(Some(Operation::Write)), weight(None));
    if reads + writes < all || all <= 0.0 {
        return Err("there is more in it than reads and writes".to_owned());
    }
    let size = match stream.region.spread {
        Spread::FilePerWorker => {
            let used = u64::from(suite.files.count.min(stream.threads));
            Bytes::new(stream.region.length.get().saturating_mul(used))
        }
        Spread::Concatenated | Spread::Striped { .. } => stream.region.length,
    };
    Ok(Load {
        read_share: reads / all,
        access,
        block,
        threads: stream.threads,
        depth: stream.queue_depth,
        size,
        files: suite.files.count,
        cache,
    })
}
