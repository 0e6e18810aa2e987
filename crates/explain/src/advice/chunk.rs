//! A chunk that the requests of a database do not fit.

use finding::{Code, Number};
use record::stack::StackTree;

use super::geometry::{Stripe, stripe};
use super::{Advice, Predicted, Use, quoted};

/// Smaller chunks make random reads need several members: none such is advised.
const CHUNK_MIN: u64 = 32 << 10;

pub(super) fn look(tree: &StackTree, purpose: Use) -> Vec<Advice> {
    let stripes = tree.layers.iter().filter_map(stripe);
    stripes
        .flat_map(|stripe| {
            [
                too_small(&stripe, purpose),
                part_of_stripe(&stripe, purpose),
                cut_small(&stripe, tree),
            ]
        })
        .flatten()
        .collect()
}

fn with_chunk(advice: Advice, stripe: &Stripe<'_>) -> Advice {
    advice.with("level", &stripe.level).with("chunk", Number::bytes(stripe.unit))
}

fn grow(array: &str, chunk: u64) -> String {
    format!("mdadm --grow {} --chunk={}", quoted(&format!("/dev/{array}")), chunk >> 10)
}

fn too_small(stripe: &Stripe<'_>, purpose: Use) -> Option<Advice> {
    let request = purpose.request_bytes;
    if stripe.unit >= request || request == 0 {
        return None;
    }
    // Chosen for writes of whole stripes.
    let whole = stripe.write_cost(0, request).is_some_and(|cost| cost.read_bytes == 0.0);
    if whole && stripe.unit >= CHUNK_MIN {
        return None;
    }
    let members = request.div_ceil(stripe.unit);
    let wanted = request.checked_next_power_of_two()?.max(64 << 10);
    let id = &stripe.layer.id;
    Some(
        with_chunk(Advice::new(Code::ChunkBelowRequest, id), stripe)
            .with("request", Number::bytes(request))
            .with("members", members)
            .command(grow(id, wanted)),
    )
}

/// Long writes that fill no stripe of an array with parity, and would fill one of smaller chunks.
fn part_of_stripe(stripe: &Stripe<'_>, purpose: Use) -> Option<Advice> {
    let request = purpose.request_bytes;
    let now = stripe.write_cost(0, request).filter(|cost| cost.read_bytes > 0.0)?;
    let halves = std::iter::successors(Some(stripe.unit), |chunk| Some(chunk / 2));
    let fits = halves.skip(1).take_while(|&chunk| chunk >= CHUNK_MIN).find_map(|chunk| {
        let other = stripe.with_chunk(chunk)?;
        let cost = other.write_cost(0, request)?;
        (cost.read_bytes == 0.0).then_some((chunk, cost))
    });
    let (chunk, then) = fits?;
    let id = &stripe.layer.id;
    Some(
        with_chunk(Advice::new(Code::RequestBelowStripe, id), stripe)
            .with("request", Number::bytes(request))
            .with("width", Number::bytes(stripe.width))
            .with("wanted", Number::bytes(chunk))
            .predicting(Predicted::of(&now, &then))
            .command(grow(id, chunk)),
    )
}

/// Members that take less at a time than a chunk.
fn cut_small(stripe: &Stripe<'_>, tree: &StackTree) -> Option<Advice> {
    let cut = tree.below(stripe.layer).find_map(|member| {
        let queue = member.queue.as_ref()?;
        let most = queue.request_bytes_max.filter(|&most| most < stripe.unit)?;
        // What the hardware takes cannot be raised.
        let hardware = queue.request_bytes_hardware_max.filter(|&hardware| hardware > most)?;
        Some((member, most, hardware.min(stripe.unit)))
    });
    let (member, most, value) = cut?;
    Some(
        with_chunk(Advice::new(Code::RequestBelowChunk, &member.id), stripe)
            .with("most", Number::bytes(most))
            .with("kib", most >> 10)
            .with("array", &stripe.layer.id)
            .command(super::set_queue(&member.id, "max_sectors_kb", &(value >> 10).to_string())),
    )
}

#[cfg(test)]
mod tests {
    use super::super::example::{disk, disk_with, md, tree};
    use super::*;

    fn with(chunk_kib: u64, request: u64) -> Vec<Advice> {
        let array = md("md0", "raid6", chunk_kib, &["a", "b", "c", "d"]);
        look(&tree(vec![array, disk("a", "")]), Use { request_bytes: request })
    }

    #[test]
    fn the_8_kib_chunks_of_the_study_are_found_for_larger_pages() {
        let found = with(8, 16 << 10);
        assert_eq!(found[0].finding.value("members"), Some(&2_u64.into()), "{found:?}");
    }

    #[test]
    fn chunks_that_hold_a_page_are_left_alone() {
        assert!(with(8, 8 << 10).is_empty() && with(128, 16 << 10).is_empty());
        assert!(with(8, 0).is_empty());
    }

    #[test]
    fn long_writes_that_fill_no_stripe_are_found() {
        // Two of four members hold data.
        let found = with(256, 128 << 10);
        assert_eq!(
            (found.len(), found[0].finding.code),
            (1, Code::RequestBelowStripe),
            "{found:?}"
        );
        assert!(found[0].commands[0].ends_with("--chunk=64"), "{found:?}");
        let foretold = &found[0].predicts[0];
        assert!(foretold.now.read > 0.0 && foretold.then.read == 0.0, "{foretold:?}");
        assert_eq!(foretold.then.written, 2.0);
        // Whole stripes, pages that fill none of any sensible chunk, and arrays without parity.
        assert!(with(64, 128 << 10).is_empty() && with(64, 256 << 10).is_empty());
        assert!(with(256, 16 << 10).is_empty());
        let plain = md("md0", "raid10", 256, &["a", "b", "c", "d"]);
        assert!(look(&tree(vec![plain]), Use { request_bytes: 128 << 10 }).is_empty());
    }

    #[test]
    fn requests_cut_below_the_chunk_are_found() {
        let with = |most: u64, hardware: u64| {
            let drive = disk_with("a", |_, queue| {
                queue.request_bytes_max = Some(most << 10);
                queue.request_bytes_hardware_max = Some(hardware << 10);
            });
            let array = md("md0", "raid0", 512, &["a", "b"]);
            look(&tree(vec![array, drive]), Use::default())
        };
        let found = with(128, 4096);
        assert_eq!(found[0].commands, ["echo 512 > /sys/block/a/queue/max_sectors_kb"]);
        assert!(with(128, 128).is_empty() && with(1024, 4096).is_empty());
    }
}
