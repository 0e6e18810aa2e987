//! One stream of one cell: its fields checked against each other and the files.

use units::{Bytes, Nanos};

use crate::access::{access, refuse_details};
use crate::check::{
    BLOCK_MAX, TIME_MAX, check_block, in_range, needs, not_multiple, place, share, too_large,
};
use crate::error::Problem;
use crate::model::{
    Access, Arrivals, Backend, Choice, Class, Data, Directory, Duty, FileSet, Last, Line, Mix,
    Operation, Pacing, Region, Spread, StartFile, Stop, Stream, SyncAtEnd, SyncPolicy, Until, Work,
    WriteThrough,
};
use crate::node::{At, Table};
use crate::raw::{Extent, RawClass, RawSpread, RawStream, RawSync, SyncOp, Time};
use crate::source::{Located, out_of_range};
use crate::{commit, directory, transactions};

const THREADS_MAX: u32 = 4096;
const QUEUE_DEPTH_MAX: u32 = 65_536;
/// Requests in flight of all workers of a stream.
pub(crate) const IN_FLIGHT_MAX: u64 = 1 << 20;
const RATE_MAX: f64 = 1e9;
const BURST_MAX: u32 = 1_000_000_000;
const CLASSES_MAX: usize = 1000;

/// What a stream must fit.
#[derive(Debug)]
pub(crate) struct Space<'a> {
    pub files: &'a FileSet,
    pub sector: Bytes,
}

/// A stream's fields with the places they came from.
struct Fields<'a> {
    raw: &'a RawStream,
    table: &'a Table,
    at: At,
    space: &'a Space<'a>,
}

/// Checks one stream.
pub(crate) fn stream(
    name: &str,
    raw: &RawStream,
    table: &Table,
    at: At,
    space: &Space<'_>,
) -> Located<Stream> {
    let fields = Fields { raw, table, at, space };
    let backend = raw.backend.unwrap_or(Backend::Auto);
    let (threads, queue_depth) = fields.concurrency()?;
    let access = fields.access()?;
    let mut mix = fields.mix(&access)?;
    let work = fields.work(&mut mix, &access)?;
    let direct = work == Work::Blocks && fields.direct(backend)?;
    fields.check_choice(&mix)?;
    let longest = match work {
        Work::Blocks => fields.blocks(&mix, &access, direct)?,
        Work::Files(_) | Work::Transactions(_) => Bytes::ZERO,
    };
    let align = fields.align(&mut mix)?;
    let access = lines_access(&mix).unwrap_or(access);
    let spread = fields.spread(longest)?;
    let region = fields.region(spread, align, longest, direct)?;
    let directory = work.directory();
    let stop = fields.stop(name, &access, &mix, directory)?;
    // Requests that move nothing never reach a number of bytes.
    let only_bytes = stop.bytes.is_some() && stop.time.is_none() && stop.operations.is_none();
    if only_bytes && mix.block_size_max() == Bytes::ZERO {
        return Err((fields.place("bytes"), needs("`bytes`", "a class that moves data")));
    }
    fields.check_staggered(&access, &stop, region.length, align)?;
    fields.check_replay(&access, region.length)?;
    let copy_to = fields.copy_to(&mix, region, align)?;
    let start_file = fields.start_file(&mix, &access, region, backend)?;
    if stop.last == Last::Short && work == Work::Blocks {
        fields.check_short(&mix, &access, align, region, &stop)?;
    }
    let sync = fields.sync()?;
    if directory.is_some() {
        directory::check_sync(&mix, sync, fields.place("sync"))?;
    }
    fields.check_blocking(&mix, backend)?;
    fields.check_in_kernel(&mix, direct)?;
    let stream = Stream {
        name: name.to_owned(),
        mix,
        align,
        region,
        copy_to,
        work,
        sync,
        threads,
        queue_depth,
        pacing: fields.pacing(name)?,
        duty: fields.duty()?,
        direct,
        write_through: raw.write_through.unwrap_or(WriteThrough::No),
        commit_writes: raw.commit_writes.unwrap_or(1),
        backend,
        stop,
        start_file,
        access,
    };
    commit::check(&stream, |field| fields.place(field))?;
    transactions::check(&stream, |field| fields.place(field))?;
    Ok(stream)
}

impl Fields<'_> {
    /// What the operations are about; classes of whole files get their length.
    fn work(&self, mix: &mut Mix, access: &Access) -> Located<Work> {
        let places = (self.place("operation"), self.place("directory"));
        let directory = directory::directory(self.raw.directory.as_ref(), mix, access, places)?;
        let places = (self.place("operation"), self.place("transactions"));
        let raw = self.raw.transactions.as_ref();
        let transactions = transactions::transactions(raw, mix, access, places)?;
        let work = directory.map(Work::Files).or(transactions.map(Work::Transactions));
        Ok(work.unwrap_or(Work::Blocks))
    }

    /// Where a field was set, else where the stream is.
    fn place(&self, field: &str) -> At {
        place(self.table, field, self.at)
    }

    fn direct(&self, backend: Backend) -> Located<bool> {
        let direct = self.raw.direct.unwrap_or(true);
        match backend {
            Backend::Mmap if direct => Err((
                self.place("backend"),
                Problem::Conflict {
                    first: "backend = \"mmap\"".to_owned(),
                    second: "direct = true".to_owned(),
                    hint: Some("set `direct=false`: a mapping goes through the page cache".into()),
                },
            )),
            Backend::IoUringIopoll if !direct => Err((
                self.place("backend"),
                Problem::Conflict {
                    first: "backend = \"io-uring-iopoll\"".to_owned(),
                    second: "direct = false".to_owned(),
                    hint: Some("set `direct=true`: only direct I/O can be polled".to_owned()),
                },
            )),
            _ => Ok(direct),
        }
    }

    fn concurrency(&self) -> Located<(u32, u32)> {
        let threads = self.raw.threads.unwrap_or(1);
        let threads = in_range("threads", threads, 1, THREADS_MAX, self.place("threads"))?;
        let at = self.place("queue_depth");
        let depth = self.raw.queue_depth.unwrap_or(1);
        let depth = in_range("queue_depth", depth, 1, QUEUE_DEPTH_MAX, at)?;
        let in_flight = u64::from(threads) * u64::from(depth);
        if in_flight > IN_FLIGHT_MAX {
            let wanted = format!("at most {IN_FLIGHT_MAX}");
            return Err((at, out_of_range("threads x queue_depth", in_flight, &wanted)));
        }
        Ok((threads, depth))
    }

    fn access(&self) -> Located<Access> {
        let at = self.place("access");
        if let Some(random_share) = self.raw.random_share {
            let at = self.place("random_share");
            return Ok(Access::Mixed { random_share: share("random_share", random_share, at)? });
        }
        match &self.raw.access {
            None => Ok(Access::Uniform),
            Some(raw) => {
                let kind = raw.kind.ok_or((at, needs("a table of `access`", "a `kind`")))?;
                refuse_details(raw, kind, at)?;
                access(raw, kind, at)
            }
        }
    }

    fn mix(&self, access: &Access) -> Located<Mix> {
        let choice = self.raw.choice.unwrap_or(Choice::Dice);
        let classes = match access {
            Access::Replay { requests } => requests
                .iter()
                .map(|r| Class { weight: 1.0, op: r.op, block_size: r.length, line: None })
                .collect(),
            _ => self.classes(access)?,
        };
        let mut classes = merged(classes);
        // There may be as many of these as there are cells.
        classes.shrink_to_fit();
        if classes.len() > CLASSES_MAX && !matches!(access, Access::Replay { .. }) {
            let wanted = format!("at most {CLASSES_MAX}");
            return Err((self.place("classes"), out_of_range("classes", classes.len(), &wanted)));
        }
        Ok(Mix { classes, choice })
    }

    fn classes(&self, access: &Access) -> Located<Vec<Class>> {
        let sizes = self.sizes()?;
        let mut classes = Vec::new();
        for Part { weight, op, size, line } in self.parts(access)? {
            if !moves_range(op) {
                classes.push(Class { weight, op, block_size: Bytes::ZERO, line });
                continue;
            }
            match size {
                Some(block_size) => classes.push(Class { weight, op, block_size, line }),
                None => {
                    let total: f64 = sizes.iter().map(|(_, part)| part).sum();
                    classes.extend(sizes.iter().map(|&(block_size, part)| Class {
                        weight: if sizes.len() == 1 { weight } else { weight * (part / total) },
                        op,
                        block_size,
                        line,
                    }));
                }
            }
        }
        Ok(classes)
    }

    fn sizes(&self) -> Located<Vec<(Bytes, f64)>> {
        let Some(mix) = &self.raw.block_sizes else {
            return Ok(vec![(self.raw.block_size.map_or(Bytes::kib(4), |size| size.0), 1.0)]);
        };
        let at = self.place("block_sizes");
        if mix.0.is_empty() {
            return Err((at, needs("`block_sizes`", "at least one size")));
        }
        for (_, weight) in &mix.0 {
            check_weight(*weight, at)?;
        }
        Ok(mix.0.clone())
    }

    fn parts(&self, access: &Access) -> Located<Vec<Part>> {
        let part = |weight, op| Part { weight, op, size: None, line: None };
        if let Some(seen) = self.raw.read_share {
            let reads = share("read_share", seen, self.place("read_share"))?;
            return Ok(reads_and_writes(reads, part(1.0, Operation::Read)).collect());
        }
        let Some(classes) = &self.raw.classes else {
            return Ok(vec![part(1.0, self.raw.operation.unwrap_or(Operation::Read))]);
        };
        let at = self.place("classes");
        if classes.is_empty() {
            return Err((at, needs("`classes`", "at least one class")));
        }
        let lines = classes.iter().any(RawClass::is_line);
        let random_share = if lines { Some(self.share_of_lines(access, at)?) } else { None };
        let mut parts = Vec::new();
        for class in classes {
            let weight = class.weight.unwrap_or(1.0);
            check_weight(weight, at)?;
            let line = random_share.map(|otherwise| self.line(class, otherwise, at)).transpose()?;
            let size = class.block_size.map(|size| size.0);
            let part = |op| Part { weight, op, size, line };
            match (class.operation, class.read_share) {
                (Some(op), None) => parts.push(part(op)),
                (None, Some(seen)) => {
                    let reads = share("read_share", seen, at)?;
                    if reads > 0.0 && reads < 1.0 && class.burst.is_some_and(|burst| burst > 1) {
                        let what = "a class with a `burst`";
                        return Err((at, needs(what, "an `operation`: a burst has one")));
                    }
                    parts.extend(reads_and_writes(reads, part(Operation::Read)));
                }
                _ => return Err((at, needs("a class", "an `operation` or a `read_share`"))),
            }
        }
        Ok(parts)
    }

    /// The share of random requests of classes that have none of their own.
    fn share_of_lines(&self, access: &Access, at: At) -> Located<f64> {
        match access {
            Access::Uniform => Ok(1.0),
            Access::Sequential { shared: false } => Ok(0.0),
            Access::Mixed { random_share } => Ok(*random_share),
            _ => Err((
                at,
                needs(
                    "a class with `random_share`, `align`, `think` or `burst`",
                    "access `uniform`, `sequential` or `mixed`",
                ),
            )),
        }
    }

    /// Its alignment is 0 where it is the stream's, which is not known yet.
    fn line(&self, class: &RawClass, random_share: f64, at: At) -> Located<Line> {
        let random_share = class.random_share.unwrap_or(random_share);
        let think = class.think.map_or(Nanos::ZERO, |time| time.0);
        if think > TIME_MAX {
            return Err((at, out_of_range("think", think.exact(), "at most a year")));
        }
        let align = class.align.map(|size| self.checked_align(size.0, at)).transpose()?;
        Ok(Line {
            random_share: share("random_share", random_share, at)?,
            align: align.unwrap_or(Bytes::ZERO),
            think,
            burst: in_range("burst", class.burst.unwrap_or(1), 1, BURST_MAX, at)?,
        })
    }

    fn check_choice(&self, mix: &Mix) -> Located<()> {
        let at = self.place("choice");
        let weights = || mix.classes.iter().map(|class| class.weight);
        match mix.choice {
            Choice::Dice | Choice::Interleave => Ok(()),
            Choice::Ratio if mix.classes.len() == 2 => Ok(()),
            Choice::Ratio => {
                let wanted = "exactly two classes";
                Err((at, needs("choice `ratio`", wanted)))
            }
            Choice::Shared => {
                let whole = weights().all(|weight| weight.fract() == 0.0);
                if whole && weights().sum::<f64>() <= 1e9 {
                    return Ok(());
                }
                let wanted = "`classes` with whole weights, such as 9 and 1";
                Err((at, needs("choice `shared`", wanted)))
            }
        }
    }

    /// Checks every request size; gives the longest.
    fn blocks(&self, mix: &Mix, access: &Access, direct: bool) -> Located<Bytes> {
        let at = match access {
            Access::Replay { .. } => self.place("access"),
            _ if self.table.contains("block_sizes") => self.place("block_sizes"),
            _ if self.table.contains("block_size") => self.place("block_size"),
            _ => self.place("classes"),
        };
        for class in mix.classes.iter().filter(|class| moves_range(class.op)) {
            let sector = (direct || class.op == Operation::Trim).then_some(self.space.sector);
            check_block(class.block_size, self.space.files.size, sector, at)?;
            self.check_self_describing(class, at)?;
        }
        Ok(mix.block_size_max())
    }

    fn check_self_describing(&self, class: &Class, at: At) -> Located<()> {
        let unit = Bytes::new(512);
        let stamped = self.space.files.data == Data::SelfDescribing;
        if stamped && class.op.writes() && !class.block_size.is_multiple_of(unit) {
            return Err((at, not_multiple("block size", class.block_size, unit)));
        }
        Ok(())
    }

    /// What all offsets are multiples of. Classes that leave their alignment to the stream get it.
    fn align(&self, mix: &mut Mix) -> Located<Bytes> {
        let own = |class: &Class| class.line.filter(|line| line.align > Bytes::ZERO);
        let align = match self.raw.align {
            Some(align) => self.checked_align(align.0, self.place("align"))?,
            None => {
                let leave_it = mix.classes.iter().filter(|class| own(class).is_none());
                let common = leave_it.fold(0, |n, class| gcd(n, class.block_size.get()));
                let otherwise = self.raw.block_size.map_or(Bytes::kib(4), |size| size.0);
                if common == 0 { otherwise.max(Bytes::new(1)) } else { Bytes::new(common) }
            }
        };
        let mut unit = 0;
        for class in &mut mix.classes {
            let Some(line) = &mut class.line else { return Ok(align) };
            if line.align == Bytes::ZERO {
                line.align = align;
            }
            unit = gcd(unit, line.align.get());
        }
        Ok(Bytes::new(unit.max(1)))
    }

    fn checked_align(&self, align: Bytes, at: At) -> Located<Bytes> {
        if align == Bytes::ZERO || align > BLOCK_MAX {
            return Err((at, out_of_range("align", align.exact(), "1B to 1GiB")));
        }
        let direct = self.raw.direct.unwrap_or(true);
        if direct && !align.is_multiple_of(self.space.sector) {
            return Err((at, not_multiple("alignment", align, self.space.sector)));
        }
        Ok(align)
    }

    fn region(
        &self,
        spread: Spread,
        align: Bytes,
        longest: Bytes,
        direct: bool,
    ) -> Located<Region> {
        let at = self.place("region");
        let space = self.space_of(spread);
        let raw = self.raw.region.unwrap_or_default();
        let start = match raw.start {
            None => Bytes::ZERO,
            Some(Extent::Rest) => {
                return Err((at, out_of_range("start", "rest", "a size or a share")));
            }
            Some(extent) => resolved(extent, space, align, Bytes::ZERO),
        };
        if start > space {
            return Err((at, too_large("region's start", start, "the files'", space, None)));
        }
        if direct && !start.is_multiple_of(self.space.sector) && start > Bytes::ZERO {
            return Err((at, not_multiple("region's start", start, self.space.sector)));
        }
        let rest = Bytes::new(space.get() - start.get());
        let length = resolved(raw.length.unwrap_or(Extent::Rest), space, align, rest);
        if length > rest {
            let hint = Some(format!("use `{}` or \"rest\"", rest.exact()));
            let problem =
                too_large("region's length", length, "what the files have left", rest, hint);
            return Err((at, problem));
        }
        if longest > length || length == Bytes::ZERO {
            let at = if self.raw.region.is_some() { at } else { self.place("block_size") };
            let problem = too_large("block size", longest, "the region's", length, None);
            return Err((at, problem));
        }
        Ok(Region { start, length, spread })
    }

    fn copy_to(&self, mix: &Mix, region: Region, align: Bytes) -> Located<Option<Bytes>> {
        let copies = |op: Operation| matches!(op, Operation::Copy | Operation::CopyRange);
        let Some(op) = mix.classes.iter().map(|class| class.op).find(|&op| copies(op)) else {
            return Ok(None);
        };
        let at = self.place("copy_to");
        let Some(extent) = self.raw.copy_to.filter(|extent| *extent != Extent::Rest) else {
            let at = self.place(if self.raw.copy_to.is_some() { "copy_to" } else { "operation" });
            let what = format!("operation `{}`", op.name());
            return Err((at, needs(&what, "`copy_to`, a size or a share")));
        };
        let space = self.space_of(region.spread);
        let to = resolved(extent, space, align, Bytes::ZERO);
        if self.raw.direct.unwrap_or(true) && !to.is_multiple_of(self.space.sector) {
            return Err((at, not_multiple("copy_to", to, self.space.sector)));
        }
        let end = Bytes::new(to.get().saturating_add(region.length.get()));
        if end > space {
            return Err((at, too_large("end of the copy", end, "the files'", space, None)));
        }
        let from_end = region.start.get() + region.length.get();
        if to.get() < from_end && region.start < end {
            let wanted = format!("a place outside of the region, {} long", region.length.exact());
            return Err((at, out_of_range("copy_to", to.exact(), &wanted)));
        }
        Ok(Some(to))
    }

    /// What only blocking calls can do.
    fn check_blocking(&self, mix: &Mix, backend: Backend) -> Located<()> {
        let alone = |op: Operation| op.in_directory() || op == Operation::CopyRange;
        let Some(op) = mix.classes.iter().map(|class| class.op).find(|&op| alone(op)) else {
            return Ok(());
        };
        if matches!(backend, Backend::Auto | Backend::Blocking) {
            return Ok(());
        }
        let problem = Problem::Conflict {
            first: format!("backend = \"{}\"", backend.name()),
            second: format!("operation = \"{}\"", op.name()),
            hint: Some("leave `backend` out: it is done by blocking calls".to_owned()),
        };
        Err((self.place("backend"), problem))
    }

    /// What the kernel copies goes through the page cache and says nothing new of itself.
    fn check_in_kernel(&self, mix: &Mix, direct: bool) -> Located<()> {
        if mix.classes.iter().all(|class| class.op != Operation::CopyRange) {
            return Ok(());
        }
        let conflict = |second: &str, hint: &str| {
            let (first, second) = ("operation = \"copy-range\"".to_owned(), second.to_owned());
            Problem::Conflict { first, second, hint: Some(hint.to_owned()) }
        };
        if direct {
            let hint = "set `direct=false`: the kernel copies through the page cache";
            return Err((self.place("direct"), conflict("direct = true", hint)));
        }
        if self.space.files.data == Data::SelfDescribing {
            let hint = "operation `copy` describes the copy anew";
            return Err((self.place("operation"), conflict("data = \"self-describing\"", hint)));
        }
        Ok(())
    }

    fn spread(&self, longest: Bytes) -> Located<Spread> {
        let stripe = match self.raw.spread {
            None | Some(RawSpread::Concatenated) => return Ok(Spread::Concatenated),
            Some(RawSpread::FilePerWorker) => return Ok(Spread::FilePerWorker),
            Some(RawSpread::Striped(stripe)) => stripe,
        };
        let at = self.place("spread");
        let file = self.space.files.size;
        if stripe == Bytes::ZERO || stripe > file {
            let wanted = format!("1B to a file's {}", file.exact());
            return Err((at, out_of_range("stripe", stripe.exact(), &wanted)));
        }
        if longest > stripe {
            return Err((at, too_large("block size", longest, "the stripe's", stripe, None)));
        }
        if self.raw.direct.unwrap_or(true) && !stripe.is_multiple_of(self.space.sector) {
            return Err((at, not_multiple("stripe", stripe, self.space.sector)));
        }
        if !file.is_multiple_of(stripe) {
            let wanted = format!("a part of the file size, {}, without remainder", file.exact());
            return Err((at, out_of_range("stripe", stripe.exact(), &wanted)));
        }
        Ok(Spread::Striped { stripe })
    }

    /// Requests can be cut where it is known which is the last: in sequence, of one size.
    fn check_short(
        &self,
        mix: &Mix,
        access: &Access,
        align: Bytes,
        region: Region,
        stop: &Stop,
    ) -> Located<()> {
        let at = self.place("last");
        let what = "`last = \"short\"`";
        if !matches!(access, Access::Sequential { .. }) || mix.block_size() != Some(align) {
            return Err((
                at,
                needs(what, "access `sequential` in blocks of one size, aligned to it"),
            ));
        }
        // Who of several took the last block and who the last of the budget need not be the same.
        let threads = self.raw.threads.unwrap_or(1);
        if matches!(access, Access::Sequential { shared: true }) && threads > 1 {
            return Err((at, needs(what, "one thread, or a cursor for each")));
        }
        let files = self.space.files;
        let split = region.spread == Spread::Concatenated && files.count > 1;
        if (split && !files.size.is_multiple_of(align))
            || matches!(region.spread, Spread::Striped { .. })
        {
            return Err((at, needs(what, "files that are whole numbers of blocks")));
        }
        let parts = match stop.until {
            Until::All => 1,
            Until::FirstWorker => u64::from(threads),
        };
        let bytes = stop.bytes.map(|bytes| Bytes::new(bytes.get().div_ceil(parts.max(1))));
        let stamped = self.space.files.data == Data::SelfDescribing && mix.modifies();
        if self.raw.direct.unwrap_or(true) || stamped {
            for length in [Some(region.length), bytes].into_iter().flatten() {
                if !length.is_multiple_of(self.space.sector) {
                    return Err((
                        at,
                        not_multiple("length of the last", length, self.space.sector),
                    ));
                }
            }
        }
        Ok(())
    }

    /// What was cut to nothing cannot be read, and cannot be cut in parts.
    fn start_file(
        &self,
        mix: &Mix,
        access: &Access,
        region: Region,
        backend: Backend,
    ) -> Located<StartFile> {
        let start_file = self.raw.start_file.unwrap_or_default();
        if start_file == StartFile::Keep {
            return Ok(start_file);
        }
        let at = self.place("start_file");
        let what = "`start_file`";
        let reads = |op: Operation| op.reads() || op == Operation::Trim;
        if mix.classes.iter().any(|class| reads(class.op)) || !mix.modifies() {
            return Err((at, needs(what, "a stream that only writes: its files begin empty")));
        }
        let whole = region.start == Bytes::ZERO && region.length == self.space_of(region.spread);
        if !whole {
            return Err((at, needs(what, "the whole of the files as its region")));
        }
        if matches!(access, Access::Replay { .. }) || backend == Backend::Mmap {
            let with = if backend == Backend::Mmap { "backend" } else { "access" };
            let first = "start_file".to_owned();
            let hint = Some("only plain writes extend a file".to_owned());
            return Err((at, Problem::Conflict { first, second: with.to_owned(), hint }));
        }
        Ok(start_file)
    }

    /// Bytes of the space.
    fn space_of(&self, spread: Spread) -> Bytes {
        match spread {
            Spread::Concatenated | Spread::Striped { .. } => self.space.files.total(),
            Spread::FilePerWorker => self.space.files.size,
        }
    }

    fn sync(&self) -> Located<Option<SyncPolicy>> {
        let Some(raw) = &self.raw.sync else { return Ok(None) };
        sync(raw, self.place("sync")).map(Some)
    }

    fn pacing(&self, name: &str) -> Located<Pacing> {
        let think = self.raw.think.map_or(Nanos::ZERO, |time| time.0);
        let burst = self.raw.burst.unwrap_or(1);
        let burst = in_range("burst", burst, 1, BURST_MAX, self.place("burst"))?;
        if think > TIME_MAX {
            let problem = out_of_range("think", think.exact(), "at most a year");
            return Err((self.place("think"), problem));
        }
        let pauses = |class: &RawClass| class.think.is_some_and(|think| think.0 > Nanos::ZERO);
        let class_pauses = self.raw.classes.iter().flatten().any(pauses);
        if class_pauses && (think > Nanos::ZERO || self.raw.rate.is_some()) {
            let second = if self.raw.rate.is_some() { "rate" } else { "think" }.to_owned();
            let first = "classes.think".to_owned();
            let hint = Some("leave one of them out".to_owned());
            return Err((self.place("classes"), Problem::Conflict { first, second, hint }));
        }
        let Some(rate) = self.raw.rate else {
            if self.raw.arrivals == Some(Arrivals::Poisson) {
                let problem = Problem::NoRate { stream: name.to_owned() };
                return Err((self.place("arrivals"), problem));
            }
            return Ok(Pacing::Closed { think, burst });
        };
        if !(rate > 0.0 && rate <= RATE_MAX) {
            let problem = out_of_range("rate", rate, "more than 0, at most 1000000000");
            return Err((self.place("rate"), problem));
        }
        if think > Nanos::ZERO || burst > 1 {
            let second = if think > Nanos::ZERO { "think" } else { "burst" };
            let hint = Some("an open loop has no pauses: leave one of them out".to_owned());
            let (first, second) = ("rate".to_owned(), second.to_owned());
            return Err((self.place("rate"), Problem::Conflict { first, second, hint }));
        }
        Ok(Pacing::Open { rate, arrivals: self.raw.arrivals.unwrap_or(Arrivals::Fixed) })
    }

    fn duty(&self) -> Located<Option<Duty>> {
        let Some(raw) = &self.raw.duty else { return Ok(None) };
        let at = self.place("duty");
        let (Some(Time(on)), Some(Time(off))) = (raw.on, raw.off) else {
            return Err((at, needs("`duty`", "both `on` and `off`")));
        };
        if on == Nanos::ZERO || on > TIME_MAX {
            return Err((at, out_of_range("on", on.exact(), "more than 0, at most a year")));
        }
        if off > TIME_MAX {
            return Err((at, out_of_range("off", off.exact(), "at most a year")));
        }
        if self.raw.rate.is_some() {
            let hint = Some("an open loop does not rest: leave one of them out".to_owned());
            let (first, second) = ("duty".to_owned(), "rate".to_owned());
            return Err((at, Problem::Conflict { first, second, hint }));
        }
        Ok(Some(Duty { on, off }))
    }

    fn stop(
        &self,
        name: &str,
        access: &Access,
        mix: &Mix,
        directory: Option<Directory>,
    ) -> Located<Stop> {
        let raw = self.raw;
        let ramp = raw.ramp.map_or(Nanos::ZERO, |time| time.0);
        for (field, time) in [("ramp", Some(ramp)), ("time", raw.time.map(|time| time.0))] {
            let zero = field == "time" && time == Some(Nanos::ZERO);
            if let Some(time) = time.filter(|&time| zero || time > TIME_MAX) {
                let wanted = if zero { "more than 0" } else { "at most a year" };
                return Err((self.place(field), out_of_range(field, time.exact(), wanted)));
            }
        }
        if raw.bytes.is_some_and(|bytes| bytes.0 == Bytes::ZERO) {
            return Err((self.place("bytes"), out_of_range("bytes", "0B", "more than 0")));
        }
        if raw.operations == Some(0) {
            return Err((self.place("operations"), out_of_range("operations", 0, "more than 0")));
        }
        let mut stop = Stop {
            ramp,
            time: raw.time.map(|time| time.0),
            bytes: raw.bytes.map(|size| size.0),
            operations: raw.operations,
            until: raw.stop.unwrap_or(Until::All),
            last: raw.last.unwrap_or(Last::Whole),
            extend: None,
        };
        if let Access::Replay { requests } = access {
            let listed = requests.len() as u64;
            stop.operations = Some(stop.operations.map_or(listed, |n| n.min(listed)));
        }
        // Not bytes: of empty files there never are any.
        let otherwise = stop.time.is_some() || stop.operations.is_some();
        if let Some(files) = directory::operations(mix, directory, otherwise) {
            stop.operations = Some(stop.operations.map_or(files, |n| n.min(files)));
        }
        if stop.time.is_none() && stop.bytes.is_none() && stop.operations.is_none() {
            return Err((self.at, Problem::NoStop { stream: name.to_owned() }));
        }
        let parts = stop.bytes.is_some() || stop.operations.is_some();
        if stop.until == Until::FirstWorker && !parts {
            let what = "`stop = \"first-worker\"`";
            return Err((self.place("stop"), needs(what, "`bytes` or `operations`")));
        }
        Ok(stop)
    }

    fn check_staggered(
        &self,
        access: &Access,
        stop: &Stop,
        length: Bytes,
        align: Bytes,
    ) -> Located<()> {
        if *access != Access::Staggered {
            return Ok(());
        }
        let Some(operations) = stop.operations else {
            return Err((self.place("access"), needs("access `staggered`", "`operations`")));
        };
        let blocks = length.get() / align.get().max(1);
        if operations > blocks {
            let wanted = format!("at most the {blocks} blocks of the region");
            let problem = out_of_range("operations", operations, &wanted);
            return Err((self.place("operations"), problem));
        }
        Ok(())
    }

    fn check_replay(&self, access: &Access, length: Bytes) -> Located<()> {
        let Access::Replay { requests } = access else { return Ok(()) };
        let at = self.place("access");
        for request in requests {
            let end = request.offset.get().checked_add(request.length.get());
            if end.is_none_or(|end| end > length.get()) {
                let end = Bytes::new(end.unwrap_or(u64::MAX));
                return Err((at, too_large("end of a request", end, "the region's", length, None)));
            }
            let direct = self.raw.direct.unwrap_or(true) && moves_range(request.op);
            let sector = self.space.sector;
            if direct && request.offset > Bytes::ZERO && !request.offset.is_multiple_of(sector) {
                return Err((at, not_multiple("offset", request.offset, sector)));
            }
        }
        Ok(())
    }
}

/// A class before its size is known.
#[derive(Clone, Copy)]
struct Part {
    weight: f64,
    op: Operation,
    size: Option<Bytes>,
    line: Option<Line>,
}

/// A part as reads with a share and writes; whichever there are none of is left out.
fn reads_and_writes(reads: f64, part: Part) -> impl Iterator<Item = Part> {
    let both = [(reads, Operation::Read), (1.0 - reads, Operation::Write)];
    let present = both.into_iter().filter(|(share, _)| *share > 0.0);
    present.map(move |(share, op)| Part { weight: part.weight * share, op, ..part })
}

/// The access of a stream whose classes have shares of their own: random with their mean.
fn lines_access(mix: &Mix) -> Option<Access> {
    let (mut sum, mut weights) = (0.0, 0.0);
    for class in &mix.classes {
        sum += class.weight * class.line?.random_share;
        weights += class.weight;
    }
    (weights > 0.0).then(|| Access::Mixed { random_share: (sum / weights).clamp(0.0, 1.0) })
}

/// Whether an operation has an offset and a length.
pub(crate) fn moves_range(op: Operation) -> bool {
    !matches!(op, Operation::Fsync | Operation::Fdatasync) && op.is_of_blocks()
}

fn check_weight(weight: f64, at: At) -> Located<()> {
    if weight > 0.0 && weight <= 1e9 {
        return Ok(());
    }
    Err((at, out_of_range("weight", weight, "more than 0, at most 1000000000")))
}

/// Classes with the same request added up, in the order in which they first came.
fn merged(classes: Vec<Class>) -> Vec<Class> {
    let mut indices = std::collections::HashMap::new();
    let mut merged: Vec<Class> = Vec::new();
    for class in classes {
        let line = class.line.map(|line| {
            let Line { random_share, align, think, burst } = line;
            (random_share.to_bits(), align, think, burst)
        });
        let index = *indices.entry((class.op, class.block_size, line)).or_insert(merged.len());
        match merged.get_mut(index) {
            Some(known) => known.weight += class.weight,
            None => merged.push(class),
        }
    }
    merged
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// An extent in bytes; shares are rounded down to the alignment.
fn resolved(extent: Extent, space: Bytes, align: Bytes, rest: Bytes) -> Bytes {
    match extent {
        Extent::Bytes(bytes) => bytes,
        Extent::Rest => rest,
        Extent::Percent(percent) => {
            let exact = (space.get() as f64 * (percent / 100.0)) as u64;
            let exact = exact.min(space.get());
            Bytes::new(exact - exact % align.get().max(1))
        }
    }
}

fn sync(raw: &RawSync, at: At) -> Located<SyncPolicy> {
    let op = match raw.op {
        None | Some(SyncOp::Fsync) => Operation::Fsync,
        Some(SyncOp::Fdatasync) => Operation::Fdatasync,
        Some(SyncOp::SyncRange) => Operation::SyncRange,
    };
    let at_end = raw.at_end.unwrap_or(SyncAtEnd::No);
    if raw.every == Some(0) {
        return Err((at, out_of_range("every", 0, "at least 1")));
    }
    if raw.every.is_none() && at_end == SyncAtEnd::No {
        return Err((at, needs("`sync`", "`every` or `at_end`, else it never happens")));
    }
    Ok(SyncPolicy {
        op,
        every: raw.every,
        shared: raw.shared.unwrap_or(false),
        each_file: raw.each_file.unwrap_or(false),
        at_end,
    })
}
