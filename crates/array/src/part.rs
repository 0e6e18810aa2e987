//! Parts: what a text in `parts/` says about one of them.

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

use crate::error::{TextError, TextProblem};
use crate::parameter::{Adjustable, Parameter, PerSecond, Share};

/// Its parameters by name, to be looked through and changed.
pub(crate) type Parameters<'a> = Vec<(&'static str, &'a mut dyn Adjustable)>;

/// What is common to parts.
pub(crate) trait Part: DeserializeOwned {
    /// As `kind` says in its text.
    const KIND: &'static str;
    fn parameters(&mut self) -> Parameters<'_>;
}

/// Declares a part of which all fields are parameters.
macro_rules! part {
    (
        $(#[$doc:meta])* $kind:literal $name:ident {
            $($(#[$field_doc:meta])* $field:ident: $value:ty,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name { $($(#[$field_doc])* pub $field: Parameter<$value>,)* }

        impl Part for $name {
            const KIND: &'static str = $kind;
            fn parameters(&mut self) -> Parameters<'_> {
                vec![$((stringify!($field), &mut self.$field as &mut dyn Adjustable),)*]
            }
        }
    };
}

part! {
    /// Processors and the kernel's way down to the driver.
    "host" Host {
        /// Processors that submit requests.
        cores: u32,
        /// Finding the blocks and submitting one request.
        submit_time: Nanos,
        /// The same for each 4 KiB page of it.
        submit_page_time: Nanos,
        /// Longer requests are cut, and their pieces overlap.
        request_max: Bytes,
    }
}

part! {
    /// What a file system locks during direct I/O on a file.
    "file-system" FileSystem {
        /// Reads of one file are submitted one at a time.
        reads_exclusive: bool,
        /// Writes of one file are made one at a time, until they are done.
        writes_exclusive: bool,
    }
}

part! {
    /// Software that stripes over legs.
    "striping" Striping {
        /// What it adds to the submission of a request.
        submit_time: Nanos,
    }
}

part! {
    /// A serial link.
    "link" Link {
        /// Of one lane, line coding taken off.
        lane_rate: PerSecond,
        /// How many are side by side.
        lanes: u32,
        /// Bytes of data in a packet.
        payload: Bytes,
        /// Bytes around them.
        overhead: Bytes,
    }
}

part! {
    /// A RAID controller, or a plain adapter where `cache` is nothing.
    "controller" Controller {
        /// From the driver to the cache and back, the interrupt included, for a read.
        hit_time: Nanos,
        /// The same for each 4 KiB page of the first piece of a request.
        page_time: Nanos,
        /// Its processor's time for each request, from the host or to a drive. For one from the
        /// host it is part of `hit_time` or `write_time`.
        request_time: Nanos,
        /// Memory that keeps blocks.
        cache: Bytes,
        /// Whether a write is done when it is in the cache.
        write_back: bool,
        /// From the driver to the cache and back for a write.
        write_time: Nanos,
        /// What goes from the host into the cache; the link is hidden where it is faster.
        write_rate: PerSecond,
        /// Share of the drives' time that filling a spare gets, 0 to 1.
        rebuild_share: Share,
    }
}

part! {
    /// A disk.
    "mechanical" Mechanical {
        /// Bytes that it holds.
        size: Bytes,
        /// Turns per minute.
        rpm: u32,
        /// Mean seek before a read.
        seek_read: Nanos,
        /// Mean seek before a write.
        seek_write: Nanos,
        /// Electronics, per request.
        command_time: Nanos,
        /// Along a track, mean of all zones.
        media_rate: PerSecond,
        /// How a seek shrinks with n requests to choose from: (3 / (n + 2)) to this power; 0 where
        /// neither drive nor kernel choose.
        reorder: f64,
    }
}

part! {
    /// A flash drive that maps pages.
    "page-mapped" PageMapped {
        /// Bytes that it holds.
        size: Bytes,
        /// What requests pass one by one.
        request_time: Nanos,
        /// Reading a page, in one of the channels.
        channel_time: Nanos,
        /// How many work side by side, 1 or more. Not a whole number where it is fitted.
        channels: f64,
        /// Reading in sequence.
        read_rate: PerSecond,
        /// From a write to its answer out of the drive's buffer.
        write_time: Nanos,
        /// Writing in sequence.
        write_rate: PerSecond,
        /// Share of its flash that holds data, 0 to 1: what cleaning depends on.
        live_share: Share,
    }
}

part! {
    /// A flash drive that maps whole erase units and serves one request at a time.
    "block-mapped" BlockMapped {
        /// Bytes that it holds.
        size: Bytes,
        /// A read anywhere; its transfer overlaps.
        read_time: Nanos,
        /// Reading in sequence.
        read_rate: PerSecond,
        /// Writing in sequence.
        write_rate: PerSecond,
        /// Rewriting the erase unit around a write.
        merge_time: Nanos,
    }
}

part! {
    /// A virtual disk: requests share a few equal servers, and a quota stands before them.
    "volume" Volume {
        /// Bytes that it holds.
        size: Bytes,
        /// What requests pass one by one: the quota of requests.
        request_time: Nanos,
        /// What all bytes pass: the quota of throughput.
        rate: PerSecond,
        /// How many there are, 1 or more; a request goes to one by chance. Not a whole number where it
        /// is fitted.
        servers: f64,
        /// A read at one of the servers, but for its bytes.
        read_time: Nanos,
        /// A write at one of the servers, but for its bytes.
        write_time: Nanos,
        /// Bytes of one request.
        server_rate: PerSecond,
    }
}

part! {
    /// A log-structured layer on a drive: random writes arrive there in sequence.
    "log-layer" LogLayer {
        /// Share of the drive that holds data, 0 to 1.
        live_share: Share,
    }
}

/// A drive of any kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
#[expect(missing_docs, reason = "each names its type")]
pub enum Drive {
    Mechanical(Mechanical),
    PageMapped(PageMapped),
    BlockMapped(BlockMapped),
    Volume(Volume),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    schema: u32,
    kind: String,
    #[serde(rename = "why")]
    _why: String,
    price: Option<f64>,
    #[serde(rename = "parameters")]
    _parameters: IgnoredAny,
}

#[derive(Deserialize)]
struct Body<T> {
    parameters: T,
}

/// A part of one kind from its text.
///
/// * `file`: its name, for messages.
pub(crate) fn parse<T: Part>(file: &str, text: &str) -> Result<T, TextError> {
    let kind = kind(file, text)?;
    if kind != T::KIND {
        return Err(TextError::known(file, "kind", &kind, T::KIND));
    }
    let mut part = read::<Body<T>>(file, text)?.parameters;
    let fault = part.parameters().into_iter().find_map(|(key, one)| Some((key, one.fault()?)));
    match fault {
        None => Ok(part),
        Some((key, (seen, wanted))) => {
            Err(TextError::whole(file, TextProblem::Parameter { key, seen, wanted }))
        }
    }
}

fn kind(file: &str, text: &str) -> Result<String, TextError> {
    let head: Head = read(file, text)?;
    schema(file, head.schema)?;
    Ok(head.kind)
}

/// What one such part costs, in any currency; `None` where its text does not say.
pub(crate) fn price(file: &str, text: &str) -> Result<Option<f64>, TextError> {
    let price = read::<Head>(file, text)?.price;
    match price.filter(|price| !price.is_finite() || *price < 0.0) {
        Some(seen) => Err(TextError::known(file, "price", seen, "0 or more")),
        None => Ok(price),
    }
}

/// Refuses versions that we do not know.
pub(crate) fn schema(file: &str, version: u32) -> Result<(), TextError> {
    if version == 1 { Ok(()) } else { Err(TextError::known(file, "schema", version, "1")) }
}

pub(crate) fn read<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, TextError> {
    toml::from_str(text).map_err(|error| TextError::toml(file, text, &error))
}

impl Drive {
    pub(crate) fn parse(file: &str, text: &str) -> Result<Self, TextError> {
        match kind(file, text)?.as_str() {
            Mechanical::KIND => parse(file, text).map(Self::Mechanical),
            PageMapped::KIND => parse(file, text).map(Self::PageMapped),
            BlockMapped::KIND => parse(file, text).map(Self::BlockMapped),
            Volume::KIND => parse(file, text).map(Self::Volume),
            kind => {
                let wanted = "mechanical, page-mapped, block-mapped or volume";
                Err(TextError::known(file, "kind", kind, wanted))
            }
        }
    }

    /// What it holds.
    pub(crate) const fn size(&self) -> &Parameter<Bytes> {
        match self {
            Self::Mechanical(drive) => &drive.size,
            Self::PageMapped(drive) => &drive.size,
            Self::BlockMapped(drive) => &drive.size,
            Self::Volume(drive) => &drive.size,
        }
    }

    /// As `kind` says in its text.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Mechanical(_) => Mechanical::KIND,
            Self::PageMapped(_) => PageMapped::KIND,
            Self::BlockMapped(_) => BlockMapped::KIND,
            Self::Volume(_) => Volume::KIND,
        }
    }

    pub(crate) fn parameters(&mut self) -> Parameters<'_> {
        match self {
            Self::Mechanical(drive) => drive.parameters(),
            Self::PageMapped(drive) => drive.parameters(),
            Self::BlockMapped(drive) => drive.parameters(),
            Self::Volume(drive) => drive.parameters(),
        }
    }
}
