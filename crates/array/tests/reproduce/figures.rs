//! Single published figures against what the model says of the same load.

use std::collections::{BTreeSet, HashMap};

use array::{
    Addressing, ArrayDesign, Component, End, Load, Model, ParameterName, Provenance, builtin,
    write_amplification,
};
use layout::{Array, Level};
use serde::Deserialize;
use units::Bytes;

use crate::claim::{Claim, Role};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Figures {
    claim: Vec<Figure>,
    not_predicted: Vec<Gap>,
    transactions: HashMap<String, Transaction>,
}

/// What a model without the mechanism does not say.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Gap {
    id: String,
    study: String,
    what: String,
    published: String,
    why: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Figure {
    id: String,
    study: String,
    what: String,
    array: String,
    load: Asked,
    #[serde(default)]
    build: Build,
    /// What the figure is a multiple of.
    over: Option<Build>,
    transaction: Option<String>,
    quantity: String,
    published: f64,
    tolerance: f64,
    #[serde(default)]
    fitted: bool,
    binding: Option<Component>,
    miss: Option<String>,
}

/// The array, or another one, with other drives than its text says.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Build {
    array: Option<String>,
    members: Option<u32>,
    level: Option<Level>,
}

/// Response = seconds + reads / reads per second + writes / writes per second.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Transaction {
    seconds: f64,
    reads: f64,
    writes: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    block: Bytes,
    threads: u32,
    depth: Option<u32>,
    size: Bytes,
    read_share: Option<f64>,
    access: Option<Addressing>,
}

impl Figure {
    fn design(&self, build: &Build) -> ArrayDesign {
        let mut design = builtin::design(build.array.as_ref().unwrap_or(&self.array)).unwrap();
        let own = design.array;
        let level = build.level.unwrap_or(own.level());
        let members = build.members.unwrap_or(own.members());
        design.array = Array::new(level, members, own.chunk()).unwrap();
        design
    }

    /// In the figure's unit, and the part that limits.
    fn of(&self, design: ArrayDesign, transaction: Option<&Transaction>) -> (f64, Component) {
        let model = Model::without_ranges(design);
        let answer = |read_share| {
            let load = Load {
                read_share,
                depth: self.load.depth.unwrap_or(1),
                access: self.load.access.unwrap_or(Addressing::Random),
                ..Load::random_reads(self.load.block, self.load.threads, self.load.size)
            };
            model.answer(&load).unwrap()
        };
        let own = answer(self.load.read_share.unwrap_or(1.0));
        let value = match (self.quantity.as_str(), transaction) {
            ("requests/s", None) => own.rate,
            ("MiB/s", None) => own.bandwidth.0.get() as f64 / f64::from(1 << 20),
            ("GB/s", None) => own.bandwidth.0.get() as f64 / 1e9,
            ("ms", None) => own.response.as_secs_f64() * 1e3,
            ("pages per page", None) => {
                write_amplification(model.design().layer.as_ref().unwrap().part.live_share.value.0)
            }
            ("transactions/min", Some(one)) => {
                let seconds = |share| 1.0 / answer(share).rate;
                60.0 / (one.seconds + one.reads * seconds(1.0) + one.writes * seconds(0.0))
            }
            (other, _) => panic!("{} {}: unit `{other}`", self.id, self.what),
        };
        (value, own.binding)
    }

    fn claim(self, transactions: &HashMap<String, Transaction>) -> Claim {
        let transaction = self.transaction.as_ref().map(|name| &transactions[name]);
        let designs: Vec<_> = [Some(&self.build), self.over.as_ref()]
            .into_iter()
            .flatten()
            .map(|b| self.design(b))
            .collect();
        let unit = if self.over.is_some() { "times" } else { &self.quantity };
        let texts = [&self.id, &self.study, &self.what, &self.array, unit];
        // With an assumed value at an end of its range.
        let with = |change: Option<(&ParameterName, End)>| {
            let those = designs.iter().map(|design| match change {
                Some((name, end)) => design.at(name, end),
                None => design.clone(),
            });
            let found: Vec<_> = those.map(|design| self.of(design, transaction)).collect();
            let over = found.get(1).map_or(1.0, |other| other.0);
            let (value, limits) = found[0];
            let claim = Claim::number(texts, [self.published, value / over, self.tolerance]);
            let is_met = claim.is_met && self.binding.is_none_or(|part| part == limits);
            Claim { is_met, ..claim.limited(limits) }
        };
        let claim = with(None);
        let turns = |name: &ParameterName| {
            [End::Low, End::High].iter().any(|&end| with(Some((name, end))).is_met != claim.is_met)
        };
        let assumed = designs.iter().flat_map(|design| design.parameters_of(Provenance::Assumed));
        let depends = assumed.filter(turns).map(|one| format!("{}.{}", one.part, one.key));
        let depends = Vec::from_iter(BTreeSet::from_iter(depends)).join(", ");
        let other = self.over.as_ref().and_then(|other| other.array.clone());
        let arrays = [Some(self.array.clone()), other].into_iter().flatten().collect();
        let role = Role::of(self.fitted);
        Claim { role, arrays, depends, miss: self.miss.clone(), ..claim }
    }
}

pub fn claims() -> Vec<Claim> {
    let all: Figures = toml::from_str(include_str!("data/claims.toml")).unwrap();
    let gaps = all.not_predicted.iter().map(|gap| {
        let texts = [&gap.id, &gap.study, &gap.what, &gap.published].map(String::as_str);
        let [id, study, what, published] = texts;
        let claim = Claim::statement([id, study, what, published, ""], &[]);
        Claim { is_met: false, miss: Some(gap.why.clone()), ..claim.used(Role::NotPredicted) }
    });
    let gaps: Vec<_> = gaps.collect();
    all.claim.into_iter().map(|figure| figure.claim(&all.transactions)).chain(gaps).collect()
}
