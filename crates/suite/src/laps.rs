//! Amounts of bytes that are out of proportion to files that were made smaller.

use units::Bytes;

use crate::model::{Suite, Work};
use crate::{CheckContext, SuiteSource, check, parse};

/// A stream goes over its files this many times as often as its suite says before it is told.
const MORE: f64 = 1.5;

/// Of each stream that has an amount of `bytes` and goes over its files more than once, and more
/// often than the suite's text says: the size was set, and the amount was not. A sentence each,
/// without a full stop.
///
/// * `suite`: as it is played.
pub fn laps(source: &SuiteSource, suite: &Suite) -> Vec<String> {
    let own = parse(source.text(), source.file_name());
    let Some(own) = own.ok().and_then(|own| check(&own, &CheckContext::default()).ok()) else {
        return Vec::new();
    };
    let meant = times(&own);
    let mut said = Vec::new();
    for (phase, stream, bytes, length) in times(suite) {
        let now = ratio(bytes, length);
        let same = meant.iter().find(|one| (&one.0, &one.1) == (&phase, &stream));
        let Some(then) = same.map(|(_, _, bytes, length)| ratio(*bytes, *length)) else { continue };
        if now >= 2.0 && now > then * MORE {
            said.push(format!(
                "{phase}: stream `{stream}` moves {bytes} in a visit over {length} of its files, {now:.0} \
                 times over them, where the suite means {then:.2}: the size was set and `bytes` was not; \
                 set `bytes` too, or use `--scale`, which changes both"
            ));
        }
    }
    said
}

fn ratio(bytes: Bytes, length: Bytes) -> f64 {
    bytes.get() as f64 / length.get().max(1) as f64
}

/// Of each stream of each phase that has an amount: the amount and the bytes that it goes over, in the
/// cell where it does so most often.
fn times(suite: &Suite) -> Vec<(String, String, Bytes, Bytes)> {
    let mut found: Vec<(String, String, Bytes, Bytes)> = Vec::new();
    let cells = suite.phases.iter().flat_map(|p| p.cells.iter().map(move |cell| (&p.name, cell)));
    for (phase, stream) in
        cells.flat_map(|(phase, cell)| cell.streams.iter().map(move |s| (phase, s)))
    {
        let Some(bytes) = stream.stop.bytes.filter(|_| stream.work == Work::Blocks) else {
            continue;
        };
        let length = stream.region.length;
        let same = found.iter_mut().find(|one| (&one.0, &one.1) == (phase, &stream.name));
        match same {
            Some(one) if ratio(bytes, length) > ratio(one.2, one.3) => {
                (one.2, one.3) = (bytes, length)
            }
            Some(_) => {}
            None => found.push((phase.clone(), stream.name.clone(), bytes, length)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "schema = 1\nname = \"t\"\nfile_size = \"8GiB\"\n[[phase]]\nname = \"w\"\n\
                        operation = \"write\"\nbytes = \"8GiB\"\n[[phase]]\nname = \"r\"\n\
                        time = \"1s\"\n";

    fn said(change: impl FnOnce(&mut SuiteSource)) -> Vec<String> {
        let mut source = parse(TEXT, "t.toml").unwrap();
        change(&mut source);
        let suite = check(&source, &CheckContext::default()).unwrap();
        laps(&source, &suite)
    }

    #[test]
    fn a_size_that_leaves_the_amounts_is_told() {
        let told = said(|source| source.set_size(Bytes::mib(256)).unwrap());
        let [one] = told.as_slice() else { panic!("{told:?}") };
        assert!(
            one.contains("8 GiB") && one.contains("256 MiB") && one.contains("32 times"),
            "{one}"
        );
    }

    #[test]
    fn amounts_in_proportion_are_not() {
        assert_eq!(said(|_| {}), Vec::<String>::new());
        assert_eq!(said(|source| source.set_scale(0.01).unwrap()), Vec::<String>::new());
        assert_eq!(said(|source| source.set_size(Bytes::gib(64)).unwrap()), Vec::<String>::new());
        let both = said(|source| {
            source.set_size(Bytes::mib(256)).unwrap();
            source.set("bytes=256MiB").unwrap();
        });
        assert_eq!(both, Vec::<String>::new());
    }
}
