//! A suite made larger or smaller: sizes of files, and totals of bytes and requests.

use units::Bytes;

use crate::check::{CheckContext, check};
use crate::error::{Problem, SuiteError};
use crate::model::{Precondition, Spread, Stream, Suite};
use crate::node::{At, Node, Table, Value};
use crate::source::{Setting, SuiteSource};

const SCALE_MAX: f64 = 1000.0;
/// Sizes of files are whole multiples of this where they were: direct I/O then reaches their end.
const PAGE: u64 = 4096;
/// Block sizes that have little in common do not make units larger than this.
const UNIT_MAX: u64 = 64 << 20;

/// How sizes and totals of one suite are multiplied.
#[derive(Clone, Copy, Debug)]
struct Scale {
    factor: f64,
    /// Sizes are multiples of it.
    unit: u64,
    least: Least,
}

/// A block for every worker.
#[derive(Clone, Copy, Debug, Default)]
struct Least {
    /// Bytes of a file.
    file: u64,
    /// Bytes of a region.
    region: u64,
    /// Bytes of a total.
    bytes: u64,
    /// Requests of a total.
    operations: u64,
}

impl SuiteSource {
    /// Multiplies the size of the files, regions given in bytes, and totals of bytes and
    /// requests, as they stand: what is set later is taken as it is. Times stay.
    ///
    /// Sizes are rounded up to whole blocks of the suite's largest size, requests to the next
    /// number; nothing gets smaller than one block, or request, for each worker, nor smaller than
    /// it was if it was no more. The factor is noted in the suite.
    ///
    /// * `factor`: more than 0, at most 1000.
    pub fn set_scale(&mut self, factor: f64) -> Result<(), SuiteError> {
        let at = At::Override(self.overrides_given.len());
        self.overrides_given.push(format!("--scale {factor}"));
        if !(factor > 0.0 && factor <= SCALE_MAX) {
            return Err(self.error(at, Problem::Scale(factor.to_string())));
        }
        let suite = check(self, &CheckContext::default())?;
        let scale = Scale { factor, unit: unit(&suite), least: Least::of(&suite) };
        let size = Bytes::new(scale.size(suite.files.size.get(), scale.least.file));
        let before = self.raw_head.scaled.unwrap_or(1.0);
        for (field, value) in
            [("file_size", Value::String(size.exact())), ("scaled", Value::Float(before * factor))]
        {
            self.assign_head(&[field.to_owned()], &Node::new(at, value))
                .map_err(|(at, problem)| self.error(at, problem))?;
        }
        scale.table(&mut self.defaults);
        for phase in &mut self.phases {
            scale.table(&mut phase.fields);
            phase.streams.iter_mut().for_each(|stream| scale.table(&mut stream.fields));
            phase.own.before_mut().into_iter().for_each(|before| scale.table(before));
            for axis in &mut phase.axes {
                axis.values.iter_mut().for_each(|value| scale.node(&axis.path, value));
            }
        }
        for over in &mut self.overrides {
            match &mut over.value {
                Setting::Value(value) => scale.node(&over.path, value),
                Setting::Axis(values) => {
                    values.iter_mut().for_each(|value| scale.node(&over.path, value));
                }
            }
        }
        Ok(())
    }
}

impl Scale {
    /// A size: rounded up, and as large as `least` unless it was smaller.
    fn size(&self, was: u64, least: u64) -> u64 {
        let units = (was as f64 * self.factor / self.unit as f64).ceil() as u64;
        let least = least.div_ceil(self.unit).max(1);
        let scaled = units.max(least).saturating_mul(self.unit);
        if self.factor <= 1.0 { scaled.min(was) } else { scaled }
    }

    /// A place: rounded down, so that what begins there still ends where it did or before.
    fn place(&self, was: u64) -> u64 {
        let units = (was as f64 * self.factor / self.unit as f64).floor() as u64;
        units.saturating_mul(self.unit)
    }

    fn operations(&self, was: u64) -> u64 {
        let scaled = ((was as f64 * self.factor).ceil() as u64).max(self.least.operations).max(1);
        if self.factor <= 1.0 { scaled.min(was) } else { scaled }
    }

    fn table(&self, fields: &mut Table) {
        for entry in &mut fields.entries {
            self.node(std::slice::from_ref(&entry.key), &mut entry.node);
        }
    }

    /// A field's value, if it is a size or a total.
    fn node(&self, path: &[String], node: &mut Node) {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        match path.as_slice() {
            ["bytes"] => sized(node, |was| self.size(was, self.least.bytes)),
            ["region"] => match &mut node.value {
                Value::Table(details) => {
                    for entry in &mut details.entries {
                        let path = ["region".to_owned(), entry.key.clone()];
                        self.node(&path, &mut entry.node);
                    }
                }
                _ => sized(node, |was| self.size(was, self.least.region)),
            },
            ["region", "length"] => sized(node, |was| self.size(was, self.least.region)),
            ["region", "start"] | ["copy_to"] => sized(node, |was| self.place(was)),
            ["directory"] => {
                if let Value::Table(details) = &mut node.value {
                    let files = details.get_mut("files");
                    files.into_iter().for_each(|files| self.count(files));
                }
            }
            ["transactions"] => {
                if let Value::Table(details) = &mut node.value {
                    details.get_mut("scale").into_iter().for_each(|scale| self.count(scale));
                }
            }
            ["operations"] | ["directory", "files"] | ["transactions", "scale"] => self.count(node),
            ["before"] => {
                if let Value::Table(details) = &mut node.value {
                    self.table(details);
                }
            }
            _ => {}
        }
    }
}

impl Scale {
    fn count(&self, node: &mut Node) {
        if let Value::Integer(n) = &mut node.value {
            let scaled = self.operations(u64::try_from(*n).unwrap_or(0));
            *n = i64::try_from(scaled).unwrap_or(i64::MAX);
        }
    }
}

/// Changes a size in bytes; shares and words stay.
fn sized(node: &mut Node, change: impl Fn(u64) -> u64) {
    let was = match &node.value {
        Value::Integer(n) => u64::try_from(*n).ok(),
        Value::String(text) => text.parse::<Bytes>().ok().map(Bytes::get),
        _ => None,
    };
    if let Some(was) = was.filter(|&was| was > 0) {
        node.value = Value::String(Bytes::new(change(was)).exact());
    }
}

fn streams(suite: &Suite) -> impl Iterator<Item = &Stream> {
    suite.cells().flat_map(|cell| cell.streams.iter().chain(&cell.before))
}

/// The largest block of preconditioning; 0 without.
fn passes(suite: &Suite) -> u64 {
    let phases = suite.phases.iter().flat_map(|phase| &phase.precondition);
    let blocks = suite.files.precondition.iter().chain(phases).map(|pass| match pass {
        Precondition::Write { block_size, .. } => block_size.get(),
        Precondition::Trim => 0,
    });
    blocks.max().unwrap_or(0)
}

/// What all sizes are multiples of: the largest block; of pages and stripes a multiple, too, if
/// that is not out of all proportion.
fn unit(suite: &Suite) -> u64 {
    let blocks = streams(suite).map(|stream| stream.block_size_max().get());
    let largest = blocks.chain([passes(suite)]).max().unwrap_or(PAGE).max(1);
    let stripes = streams(suite).filter_map(|stream| match stream.region.spread {
        Spread::Striped { stripe } => Some(stripe.get()),
        Spread::Concatenated | Spread::FilePerWorker => None,
    });
    [PAGE].into_iter().chain(stripes).fold(largest, |unit, other| {
        lcm(unit, other).filter(|&both| both <= UNIT_MAX.max(largest)).unwrap_or(unit)
    })
}

fn lcm(a: u64, b: u64) -> Option<u64> {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    a.checked_div(x)?.checked_mul(b)
}

impl Least {
    fn of(suite: &Suite) -> Self {
        let passes = Self { file: passes(suite), ..Self::default() };
        streams(suite).fold(passes, |least, stream| {
            let (block, workers) = (stream.block_size_max().get(), u64::from(stream.threads));
            let all = block.saturating_mul(workers);
            let region = match stream.region.spread {
                Spread::FilePerWorker => block,
                Spread::Concatenated | Spread::Striped { .. } => all,
            };
            let totals = [stream.stop.bytes.map(|_| all), stream.stop.operations.map(|_| workers)];
            Self {
                file: least.file.max(file(suite, stream, region)),
                region: least.region.max(region),
                bytes: least.bytes.max(totals[0].unwrap_or(0)),
                operations: least.operations.max(totals[1].unwrap_or(0)),
            }
        })
    }
}

/// Bytes that a file must have for the stream's part of the files to have `region`.
fn file(suite: &Suite, stream: &Stream, region: u64) -> u64 {
    let file = suite.files.size.get() as f64;
    let length = stream.region.length.get().max(1) as f64;
    (file * (region as f64 / length)).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    fn scaled(fields: &str, factor: f64) -> Suite {
        let text = format!("schema = 1\nname = \"t\"\n{fields}");
        let mut source = parse(&text, "t.toml").unwrap();
        source.set_scale(factor).unwrap();
        let suite = check(&source, &CheckContext::default()).unwrap();
        let again = parse(&crate::resolved_text(&source).unwrap(), "again").unwrap();
        assert_eq!(check(&again, &CheckContext::default()).unwrap(), suite);
        suite
    }

    fn first(suite: &Suite) -> &Stream {
        streams(suite).next().unwrap()
    }

    #[test]
    fn sizes_and_totals_are_multiplied_and_rounded_to_blocks() {
        let text = "file_size = \"64GiB\"\n[[phase]]\nname = \"p\"\nbytes = \"64GiB\"\noperations = 1001\n\
                    time = \"10s\"\n[phase.grid]\nblock_size = [\"512B\", \"4MiB\"]\n";
        let suite = scaled(text, 0.01);
        let size = Bytes::mib(656);
        assert_eq!(suite.files.size, size, "64 GiB / 100 = 655.36 MiB");
        assert_eq!(first(&suite).stop.bytes, Some(size));
        assert_eq!(first(&suite).stop.operations, Some(11));
        assert_eq!(first(&suite).stop.time, Some(units::Nanos::secs(10)));
        assert_eq!(suite.scaled, Some(0.01));
    }

    #[test]
    fn every_worker_has_a_block() {
        let text = "file_size = \"4GiB\"\n[[phase]]\nname = \"p\"\nthreads = 40\nblock_size = \"4MiB\"\n\
                    operations = 1000\nbytes = \"1GiB\"\nregion = \"50%\"\n";
        let suite = scaled(text, 1e-6);
        assert_eq!(suite.files.size, Bytes::mib(320), "the half of it is 40 blocks");
        assert_eq!(first(&suite).stop.operations, Some(40));
        assert_eq!(first(&suite).stop.bytes, Some(Bytes::mib(160)));
    }

    #[test]
    fn what_was_small_stays() {
        let text = "file_size = \"16KiB\"\n[[phase]]\nname = \"p\"\nthreads = 4\nblock_size = \"16KiB\"\n\
                    operations = 3\n";
        let suite = scaled(text, 0.5);
        assert_eq!(suite.files.size, Bytes::kib(16));
        assert_eq!(first(&suite).stop.operations, Some(3));
    }

    #[test]
    fn regions_stay_inside_the_files() {
        for factor in [0.001, 0.013, 0.3, 0.77, 1.0, 3.3] {
            let text = "file_size = \"10GiB\"\n[[phase]]\nname = \"p\"\ntime = \"1s\"\nblock_size = \"1MiB\"\n\
                        region = { start = \"3GiB\", length = \"7GiB\" }\n";
            let suite = scaled(text, factor);
            let region = &first(&suite).region;
            assert!(
                region.length >= Bytes::mib(1) && region.length <= suite.files.size,
                "{factor}"
            );
        }
    }

    #[test]
    fn stripes_stay_whole() {
        let text = "file_size = \"960MiB\"\nfile_count = 3\n[[phase]]\nname = \"p\"\ntime = \"1s\"\n\
                    block_size = \"3KiB\"\nspread = { stripe = \"48KiB\" }\n";
        let suite = scaled(text, 0.01);
        assert!(suite.files.size.is_multiple_of(Bytes::kib(48)), "{}", suite.files.size);
    }

    #[test]
    fn what_was_set_on_top_is_multiplied_too_and_what_comes_later_is_not() {
        let text = "schema = 1\nname = \"t\"\nfile_size = \"1GiB\"\n[[phase]]\nname = \"p\"\ntime = \"1s\"\n";
        let mut source = parse(text, "t").unwrap();
        source.set("operations=1000").unwrap();
        source.set("p.bytes=100MiB,200MiB").unwrap();
        source.set_scale(0.1).unwrap();
        source.set_scale(0.5).unwrap();
        source.set("file_size=3GiB").unwrap();
        let suite = check(&source, &CheckContext::default()).unwrap();
        assert_eq!(suite.files.size, Bytes::gib(3));
        assert_eq!(first(&suite).stop.operations, Some(50));
        assert_eq!(first(&suite).stop.bytes, Some(Bytes::mib(5)));
        assert_eq!(suite.scaled, Some(0.05));
    }

    #[test]
    fn files_of_a_directory_are_fewer_however_they_were_given() {
        let files = |source: &mut crate::SuiteSource| {
            source.set_scale(0.01).unwrap();
            let suite = check(source, &CheckContext::default()).unwrap();
            let files = |stream: &Stream| stream.directory().map(|directory| directory.files);
            streams(&suite).filter_map(files).collect::<Vec<_>>()
        };
        let text = |defaults: &str, phase: &str| {
            let top = "schema = 1\nname = \"t\"\nfile_size = \"1GiB\"\n[defaults]\n";
            let phase = format!("[[phase]]\nname = \"p\"\noperation = \"create\"\n{phase}");
            parse(&format!("{top}{defaults}\n{phase}\n"), "t").unwrap()
        };
        let given = "directory = { files = 16384, file_size = \"8KiB\" }";
        assert_eq!(files(&mut text(given, "")), [164]);
        assert_eq!(files(&mut text("", given)), [164]);
        let axis = "[phase.grid]\ndirectory.files = [1000, 16384]";
        assert_eq!(files(&mut text("", axis)), [10, 164]);
        for set in ["directory.files=2000", "directory={ files = 2000 }", "p.directory.files=2000"]
        {
            let mut source = text(given, "");
            source.set(set).unwrap();
            assert_eq!(files(&mut source), [20], "{set}");
        }
        let mut after = text(given, "");
        after.set_scale(0.5).unwrap();
        after.set("directory.files=100").unwrap();
        assert_eq!(
            first(&check(&after, &CheckContext::default()).unwrap()).stop.operations,
            Some(100)
        );
        // One for each worker at least.
        assert_eq!(files(&mut text(given, "threads = 400")), [400]);
    }

    #[test]
    fn nonsense_is_refused() {
        let text = "schema = 1\nname = \"t\"\n[[phase]]\nname = \"p\"\ntime = \"1s\"\n";
        for factor in [0.0, -1.0, f64::NAN, f64::INFINITY, 1001.0] {
            let error = parse(text, "t").unwrap().set_scale(factor).unwrap_err();
            assert!(error.to_string().contains("wanted more than 0"), "{error}");
        }
    }
}
