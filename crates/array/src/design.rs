//! Designs: which parts an array is made of, and how they are joined.

use layout::{Array, Level};
use serde::{Deserialize, Serialize};
use units::Bytes;

use crate::error::{TextError, TextProblem};
use crate::parameter::{Adjustable, End, Parameter, ParameterName, Provenance};
use crate::part::{
    Controller, Drive, FileSystem, Host, Link, LogLayer, Parameters, Part, Striping, parse, price,
    read, schema,
};

/// More legs than any host has slots for.
const LEGS_MAX: u32 = 64;

/// A part with the name of its text.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Named<T> {
    /// Of the text.
    pub name: String,
    /// What it says.
    pub part: T,
    /// What one costs, in the currency of all texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<f64>,
}

/// What a link is there for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkPer {
    /// All drives of a leg share it: the slot of a controller.
    #[default]
    Leg,
    /// Each drive has its own: a port of the board.
    Drive,
}

/// Which of its members an array has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArrayState {
    /// All.
    #[default]
    Whole,
    /// All but the first of the first leg.
    Degraded,
    /// The same, and a spare is being filled, at the controller's `rebuild_share`.
    Rebuilding,
}

impl ArrayState {
    /// Whether no member is lost.
    pub fn is_whole(&self) -> bool {
        *self == Self::Whole
    }
}

/// Equal legs that software stripes over.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LegStripe {
    /// The software.
    pub striping: Named<Striping>,
    /// Bytes on one leg before the next.
    pub chunk: Bytes,
    /// How many legs.
    pub legs: u32,
}

/// An array as it might be built: legs of a link, a controller and equal drives.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArrayDesign {
    /// What it is, and why somebody asks.
    pub why: String,
    /// What requests come from.
    pub host: Named<Host>,
    /// `None` for a raw block device.
    pub file_system: Option<Named<FileSystem>>,
    /// `None` for one leg.
    pub stripe: Option<LegStripe>,
    /// Of each leg, or of each drive.
    pub link: Named<Link>,
    /// Which of the two.
    pub link_per: LinkPer,
    /// Of each leg.
    pub controller: Named<Controller>,
    /// Of each leg: its level, members and chunk.
    pub array: Array,
    /// Which members it has.
    #[serde(skip_serializing_if = "ArrayState::is_whole")]
    pub state: ArrayState,
    /// Where its data begins, counted from a full stripe: 0 where partitions are aligned.
    pub start: Bytes,
    /// Each member.
    pub drive: Named<Drive>,
    /// On each member.
    pub layer: Option<Named<LogLayer>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    schema: u32,
    why: String,
    host: String,
    file_system: Option<String>,
    stripe: Option<StripeFile>,
    link: String,
    #[serde(default)]
    link_per: LinkPer,
    controller: String,
    level: Level,
    members: u32,
    chunk: Option<Bytes>,
    #[serde(default)]
    state: ArrayState,
    #[serde(default)]
    start: Bytes,
    drive: String,
    layer: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StripeFile {
    software: String,
    chunk: Bytes,
    legs: u32,
}

impl ArrayDesign {
    /// A design from its text and those of its parts.
    ///
    /// * `file`: name of the text, for messages.
    /// * `part`: the text of a part by its name.
    ///
    /// # Errors
    ///
    /// What is wrong with the text or with that of a part; a part that is not there; members that
    /// make no array of the level.
    pub fn parse<'a>(
        file: &str,
        text: &str,
        part: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<Self, TextError> {
        let raw: File = read(file, text)?;
        schema(file, raw.schema)?;
        let find = |key: &'static str, name: &str| {
            let text = part(name)
                .ok_or_else(|| TextError::known(file, key, name, "the name of a part, of which a file NAME.toml lies beside this one or in ../parts"))?;
            Ok((format!("{name}.toml"), text))
        };
        let array = Array::new(raw.level, raw.members, raw.chunk)
            .map_err(|error| TextError::whole(file, TextProblem::Array(error)))?;
        if !raw.state.is_whole() && !raw.level.is_redundant() {
            let wanted = "raid1, raid10, raid5 or raid6: with a member `state` takes away data";
            return Err(TextError::known(file, "level", raw.level, wanted));
        }
        let (drive_file, drive_text) = find("drive", &raw.drive)?;
        Ok(Self {
            why: raw.why,
            host: named("host", raw.host, &find)?,
            file_system: raw
                .file_system
                .map(|name| named("file-system", name, &find))
                .transpose()?,
            stripe: raw.stripe.map(|stripe| stripe.check(file, &find)).transpose()?,
            link: named("link", raw.link, &find)?,
            link_per: raw.link_per,
            controller: named("controller", raw.controller, &find)?,
            array,
            state: raw.state,
            start: raw.start,
            drive: Named {
                part: Drive::parse(&drive_file, drive_text)?,
                name: raw.drive,
                price: price(&drive_file, drive_text)?,
            },
            layer: raw.layer.map(|name| named("layer", name, &find)).transpose()?,
        })
    }

    /// How many legs there are, at least one.
    pub fn legs(&self) -> u32 {
        self.stripe.as_ref().map_or(1, |stripe| stripe.legs)
    }

    /// What all its legs hold.
    pub fn capacity(&self) -> Bytes {
        let leg = self.array.capacity(self.drive.part.size().value);
        Bytes::new(leg.get().saturating_mul(u64::from(self.legs())))
    }

    /// How many drives all its legs have.
    pub fn drives(&self) -> u32 {
        self.array.members().saturating_mul(self.legs())
    }

    /// What its drives, links and controllers cost. `None` without the price of a drive; a link or
    /// controller without one costs nothing.
    pub fn price(&self) -> Option<f64> {
        let (legs, drives) = (f64::from(self.legs()), f64::from(self.drives()));
        let links = if self.link_per == LinkPer::Leg { legs } else { drives };
        let controllers = self.controller.price.unwrap_or(0.0) * legs;
        let links = self.link.price.unwrap_or(0.0) * links;
        self.drive.price.map(|one| one * drives + controllers + links)
    }

    /// Its parameters of one origin, the host's first.
    pub fn parameters_of(&self, origin: Provenance) -> Vec<ParameterName> {
        let mut copy = self.clone();
        let all = copy.parameters().into_iter().flat_map(|(part, all)| {
            let those = all.into_iter().filter(|(_, one)| one.origin() == origin);
            those.map(|(key, _)| ParameterName { part: part.clone(), key }).collect::<Vec<_>>()
        });
        all.collect()
    }

    /// The design with one assumed parameter at an end of its range.
    pub fn at(&self, name: &ParameterName, end: End) -> Self {
        let mut copy = self.clone();
        if let Some(one) = copy.parameter(name) {
            one.set(end);
        }
        copy
    }

    /// The design with one parameter multiplied, and [`Provenance::Fitted`] from then on; `None` if
    /// there is none of that name, or if it is no quantity.
    pub fn scaled(&self, name: &ParameterName, factor: f64) -> Option<Self> {
        let mut copy = self.clone();
        copy.parameter(name)?.scale(factor)?;
        Some(copy)
    }

    /// Says where the value of a parameter comes from.
    pub fn cite(&mut self, name: &ParameterName, from: &str) {
        if let Some(one) = self.parameter(name) {
            one.cite(from);
        }
    }

    /// One value, rounded for people.
    pub fn shown(&self, name: &ParameterName) -> Option<String> {
        self.clone().parameter(name).map(|one| one.shown())
    }

    /// The drive as the text of a part.
    pub fn drive_text(&self, why: &str) -> String {
        let mut drive = self.drive.part.clone();
        let kind = drive.kind();
        let lines =
            drive.parameters().into_iter().map(|(key, one)| format!("{key} = {}\n", one.text()));
        let lines: String = lines.collect();
        format!("schema = 1\nkind = \"{kind}\"\nwhy = {why:?}\n\n[parameters]\n{lines}")
    }

    pub(crate) fn drive_keys(&self) -> Vec<&'static str> {
        self.drive.part.clone().parameters().into_iter().map(|(key, _)| key).collect()
    }

    /// The design with drives that hold so much.
    ///
    /// * `from`: what says so.
    #[must_use]
    pub fn of_size(mut self, size: Bytes, from: &str) -> Self {
        let known = match &mut self.drive.part {
            Drive::Mechanical(drive) => &mut drive.size,
            Drive::PageMapped(drive) => &mut drive.size,
            Drive::BlockMapped(drive) => &mut drive.size,
            Drive::Volume(drive) => &mut drive.size,
        };
        let origin = Provenance::Derived;
        *known = Parameter { value: size, origin, from: from.to_owned(), range: None };
        self
    }

    fn parameter(&mut self, name: &ParameterName) -> Option<&mut dyn Adjustable> {
        let part = self.parameters().into_iter().find(|(part, _)| *part == name.part);
        part?.1.into_iter().find(|(key, _)| *key == name.key).map(|(_, one)| one)
    }

    fn parameters(&mut self) -> Vec<(String, Parameters<'_>)> {
        fn of<T: Part>(named: &mut Named<T>) -> (String, Parameters<'_>) {
            (named.name.clone(), named.part.parameters())
        }
        let mut all = vec![of(&mut self.host), of(&mut self.link), of(&mut self.controller)];
        all.extend(self.file_system.as_mut().map(of));
        all.extend(self.stripe.as_mut().map(|stripe| of(&mut stripe.striping)));
        all.push((self.drive.name.clone(), self.drive.part.parameters()));
        all.extend(self.layer.as_mut().map(of));
        all
    }
}

/// Name for messages, and text, of the part that a key names.
type Text<'a> = Result<(String, &'a str), TextError>;

fn named<'a, T: Part>(
    key: &'static str,
    name: String,
    find: &impl Fn(&'static str, &str) -> Text<'a>,
) -> Result<Named<T>, TextError> {
    let (file, text) = find(key, &name)?;
    Ok(Named { part: parse(&file, text)?, name, price: price(&file, text)? })
}

impl StripeFile {
    fn check<'a>(
        self,
        file: &str,
        find: &impl Fn(&'static str, &str) -> Text<'a>,
    ) -> Result<LegStripe, TextError> {
        if !(2..=LEGS_MAX).contains(&self.legs) {
            return Err(TextError::known(file, "legs", self.legs, "2 to 64"));
        }
        // The same rules as for any stripe.
        Array::new(Level::Raid0, self.legs, Some(self.chunk))
            .map_err(|error| TextError::whole(file, TextProblem::Array(error)))?;
        let striping = named("software", self.software, find)?;
        Ok(LegStripe { striping, chunk: self.chunk, legs: self.legs })
    }
}
