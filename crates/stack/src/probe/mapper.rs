//! How device-mapper devices are laid out: the tables, as `dmsetup table` prints them.

use std::collections::BTreeMap;
use std::io;

use record::stack::{Extent, Segment};

use super::patience::output;
use crate::block::{KERNEL_SECTOR, name_of};
use crate::host::Host;

/// Tables by the mapped name, or why there are none.
pub(crate) fn tables(host: &Host) -> Result<BTreeMap<String, Vec<Segment>>, String> {
    // Keys of encrypted devices are zeros here unless one asks for them.
    let text = host.answer("dm-table", || output("dmsetup", &["table"])).map_err(|e| why(&e))?;
    let mut tables = parse(host, &text);
    if tables.values().flatten().any(|segment| segment.target == "raid") {
        // Without it only the layout is known.
        let status =
            host.answer("dm-status", || output("dmsetup", &["status", "--target", "raid"]));
        stand(&mut tables, &status.unwrap_or_default());
    }
    Ok(tables)
}

/// `vg-db: 0 8192 raid raid5_ls 3 AAa 512/2048 recover 0 0 -`: how each raid stands.
fn stand(tables: &mut BTreeMap<String, Vec<Segment>>, text: &str) {
    for line in text.lines() {
        let Some((name, row)) = line.split_once(": ") else { continue };
        let words: Vec<&str> = row.split_whitespace().collect();
        let [start, _, "raid", _, _, health, _, sync, ..] = words.as_slice() else { continue };
        let segments = tables.get_mut(name).into_iter().flatten();
        for segment in segments.filter(|segment| sectors(start) == Some(segment.start_bytes)) {
            segment.health = Some(super::cut(health));
            segment.sync = Some(super::cut(sync));
        }
    }
}

fn why(error: &io::Error) -> String {
    let text = error.to_string();
    match error.kind() {
        io::ErrorKind::NotFound => "the program dmsetup is not installed".to_owned(),
        _ if text.contains("ermission denied") || text.contains("not permitted") => {
            "only root may read the tables of device mapper".to_owned()
        }
        _ => text,
    }
}

fn parse(host: &Host, text: &str) -> BTreeMap<String, Vec<Segment>> {
    let mut tables: BTreeMap<String, Vec<Segment>> = BTreeMap::new();
    for line in text.lines() {
        // `vg-data: 0 8192 striped 2 1024 9:0 2048 9:1 2048`
        let Some((name, row)) = line.split_once(": ") else { continue };
        if let Some(segment) = segment(host, row) {
            tables.entry(name.to_owned()).or_default().push(segment);
        }
    }
    tables
}

fn sectors(word: &str) -> Option<u64> {
    word.parse::<u64>().ok()?.checked_mul(KERNEL_SECTOR)
}

/// `8:16` by its kernel name, or as it is where sysfs has no name for it.
fn layer(host: &Host, word: &str) -> Option<String> {
    let number = word.parse().ok()?;
    Some(name_of(host, number).unwrap_or_else(|| word.to_owned()))
}

fn segment(host: &Host, row: &str) -> Option<Segment> {
    let words: Vec<&str> = row.split_whitespace().collect();
    let [start, length, target, arguments @ ..] = words.as_slice() else { return None };
    let mut segment = Segment {
        start_bytes: sectors(start)?,
        length_bytes: sectors(length)?,
        target: (*target).to_owned(),
        level: None,
        chunk_bytes: None,
        on: Vec::new(),
        health: None,
        sync: None,
    };
    match *target {
        "striped" => {
            segment.chunk_bytes = arguments.get(1).and_then(|word| sectors(word));
            segment.on = pairs(host, arguments.get(2..).unwrap_or_default());
        }
        "raid" => raid(host, arguments, &mut segment),
        "crypt" => segment.on = pairs(host, arguments.get(3..5).unwrap_or_default()),
        "linear" | "mirror" | "delay" | "flakey" | "dust" => segment.on = pairs(host, arguments),
        // What follows a device means something else there: of thin volumes its number.
        _ => {
            segment.on = pairs(host, arguments);
            segment.on.iter_mut().for_each(|extent| extent.offset_bytes = None);
        }
    }
    Some(segment)
}

/// Devices among the words, each with the offset that may follow it.
fn pairs(host: &Host, words: &[&str]) -> Vec<Extent> {
    let found = words.iter().enumerate().filter_map(|(position, word)| {
        let layer = layer(host, word)?;
        let offset_bytes = words.get(position + 1).and_then(|next| sectors(next));
        Some(Extent { layer, offset_bytes })
    });
    found.collect()
}

/// `raid5_ls 3 128 region_size 1024 3 253:0 253:1 253:2 253:3 - -`: level, number of parameters
/// with the chunk first, number of members, and of each where its metadata and its data are.
fn raid(host: &Host, words: &[&str], segment: &mut Segment) {
    let level = words.first().map(|word| word.split('_').next().unwrap_or(word));
    segment.level = level.map(str::to_owned);
    let parameters = words.get(1).and_then(|word| word.parse::<usize>().ok()).unwrap_or(0);
    segment.chunk_bytes = words.get(2).and_then(|word| sectors(word)).filter(|&bytes| bytes > 0);
    let devices = words.get(parameters.saturating_add(3)..).unwrap_or_default();
    let data = devices.chunks(2).filter_map(|pair| layer(host, pair.get(1)?));
    segment.on = data.map(|layer| Extent { layer, offset_bytes: None }).collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(row: &str) -> Segment {
        let host = Host::captured("/no/such/tree");
        parse(&host, &format!("x: {row}\n")).remove("x").unwrap().remove(0)
    }

    fn on(segment: &Segment) -> Vec<(&str, Option<u64>)> {
        segment.on.iter().map(|e| (e.layer.as_str(), e.offset_bytes)).collect()
    }

    #[test]
    fn tables_are_read() {
        let striped = only("0 8192 striped 2 1024 9:0 2048 9:1 2048");
        assert_eq!(striped.chunk_bytes, Some(512 << 10));
        assert_eq!(on(&striped), [("9:0", Some(1 << 20)), ("9:1", Some(1 << 20))]);
        let linear = only("8192 16 linear 8:16 34");
        assert_eq!((linear.start_bytes, on(&linear)), (8192 * 512, vec![("8:16", Some(34 * 512))]));
        let raid = only(
            "0 100 raid raid6_zr 3 128 region_size 1024 4 253:0 253:1 253:2 253:3 - - 253:6 253:7",
        );
        assert_eq!((raid.level.as_deref(), raid.chunk_bytes), (Some("raid6"), Some(64 << 10)));
        assert_eq!(on(&raid), [("253:1", None), ("253:3", None), ("253:7", None)]);
        let crypt =
            only("0 100 crypt aes-xts-plain64 0000000000000000 0 259:1 32768 1 allow_discards");
        assert_eq!(on(&crypt), [("259:1", Some(32768 * 512))]);
        let delay = only("0 100 delay 8:0 0 5 8:0 0 5");
        assert_eq!(delay.on.len(), 2);
        assert_eq!(on(&only("0 100 thin 253:2 1")), [("253:2", None)]);
    }

    #[test]
    fn how_a_raid_stands_is_read() {
        let host = Host::captured("/no/such/tree");
        let mut tables =
            parse(&host, "vg-a: 0 100 raid raid5_ls 3 128 0 0 1 - -\nvg-a: 100 9 linear 8:0 1\n");
        stand(&mut tables, "vg-a: 0 100 raid raid5_ls 3 AAa 1/2 recover 0 0 -\nvg-b: 0 1 raid\nx");
        let [raid, linear] = tables["vg-a"].as_slice() else { panic!() };
        assert_eq!((raid.health.as_deref(), raid.sync.as_deref()), (Some("AAa"), Some("recover")));
        assert_eq!(linear.health, None);
    }

    #[test]
    fn nonsense_is_nothing() {
        let host = Host::captured("/no/such/tree");
        for text in [
            "",
            "No devices found",
            "x:",
            "x: 1",
            "x: a b c",
            ": : :",
            "x: 18446744073709551615 1 linear",
        ] {
            assert!(parse(&host, text).is_empty(), "{text}");
        }
        assert!(on(&only("0 1 raid")).is_empty());
        assert!(on(&only("0 1 raid raid5 99999999999999999999 1")).is_empty());
        assert!(on(&only("0 1 crypt a")).is_empty());
    }
}
