//! docs/reproduce.md: the claims, what is missed and why, and what the arrays are made of.

use std::collections::BTreeSet;

use array::{Provenance, builtin};

use crate::claim::{Claim, Role};
use crate::tables;

const HEAD: &str = "\
# Five studies, predicted

Made by `make reproduce`; do not edit. The [model of arrays](predict.md) predicts what five studies of 2008 to 2011 published; their names are in [arrays/README.md](../arrays/README.md).
*Fitted*: a value of a part was made to agree with the figure, which then proves nothing. *Held out*: nothing was. A claim is met where the error is within the tolerance and the part that limits is the expected one.
*Depends on*: with an assumed value at an end of its range the status would be the other one.

";

const ORIGINS: [Provenance; 5] = [
    Provenance::Datasheet,
    Provenance::Spec,
    Provenance::Derived,
    Provenance::Fitted,
    Provenance::Assumed,
];

pub fn text(claims: &[Claim]) -> String {
    let count =
        |role, is_met| claims.iter().filter(|one| (one.role, one.is_met) == (role, is_met)).count();
    let [fitted, held, concluded] = [Role::Fitted, Role::HeldOut, Role::Conclusion]
        .map(|role| [true, false].map(|is_met| count(role, is_met)));
    let mut text = format!(
        "{HEAD}Of {} claims {} are held out: {} are met, {} missed. {} are fitted: {} met, {} missed. {} are not predicted, since the model has no part that would do it.\n\
         {} of those held out are conclusions of the studies: met means that the model has a cause for what was measured, mostly another one than the study (see below).\n\n",
        claims.len(),
        held.iter().sum::<usize>() + concluded[0],
        held[0] + concluded[0],
        held[1],
        fitted.iter().sum::<usize>(),
        fitted[0],
        fitted[1],
        count(Role::NotPredicted, false),
        concluded[0],
    );
    text += "## Claims\n\n";
    text += &table(
        "id | study | what | published | predicted | error | tolerance | use | limits | status",
        claims.iter().map(Claim::row),
    );
    text += "\n## Known misses\n\n";
    let missed = claims.iter().filter_map(|claim| Some((claim, claim.miss.as_ref()?)));
    text += &table(
        "id | what | status | reason",
        missed
            .map(|(one, why)| format!("| {} | {} | {} | {why} |", one.id, one.what, one.status())),
    );
    text += "\nCells that the mean errors leave out:\n\n";
    text += &table("table | block | threads | off by more than | reason", tables::misses());
    text += "\n## Conclusions of the studies\n\n";
    let others = claims.iter().filter(|claim| claim.role == Role::Conclusion);
    text += &table(
        "what | the study concludes | the model finds | arrays",
        others.map(|one| {
            let arrays = one.arrays.join(", ");
            format!("| {} | {} | {} | {arrays} |", one.what, one.published, one.predicted)
        }),
    );
    text + &parameters(claims)
}

/// Arrays with their parts, then the values of each part.
fn parameters(claims: &[Claim]) -> String {
    let arrays: BTreeSet<_> = claims.iter().flat_map(|claim| &claim.arrays).collect();
    let mut parts = BTreeSet::new();
    let rows = arrays.into_iter().map(|name| {
        let design = builtin::design(name).unwrap();
        let all = ORIGINS.map(|origin| design.parameters_of(origin));
        let counts = all.each_ref().map(|those| those.len().to_string()).join(" | ");
        let own: BTreeSet<_> = all.into_iter().flatten().map(|one| one.part).collect();
        parts.extend(own.clone());
        let own = Vec::from_iter(own).join(", ");
        format!("| {name} | {} | {own} | {counts} |", design.why)
    });
    let origins = ORIGINS.map(|origin| format!("{origin:?}").to_lowercase()).join(" | ");
    let mut text = "\n## Arrays and their parameters\n\nThe numbers count values by [origin](../arrays/README.md).\n\n".to_owned();
    text += &table(&format!("array | what | parts | {origins}"), rows.collect::<Vec<_>>());
    text += "\n";
    text += &table(
        "part | parameter | value | origin | source or range",
        parts.iter().flat_map(values),
    );
    text
}

/// A row for each value of a part, in order: that of the file depends on the reader's features.
fn values(part: &String) -> BTreeSet<String> {
    let file: toml::Table = builtin::part(part).unwrap().parse().unwrap();
    let plain = |value: &toml::Value| value.to_string().replace('"', "");
    let rows = file["parameters"].as_table().unwrap().iter().map(|(key, one)| {
        let source = one.get("from").or(one.get("range")).unwrap();
        let [value, origin, source] = [&one["value"], &one["origin"], source].map(plain);
        format!("| {part} | {key} | {value} | {origin} | {source} |")
    });
    rows.collect()
}

fn table(head: &str, rows: impl IntoIterator<Item = String>) -> String {
    let rule = "---|".repeat(head.split('|').count());
    let rows: String = rows.into_iter().map(|row| row + "\n").collect();
    format!("| {head} |\n|{rule}\n{rows}")
}

/// Rows of a table for a terminal.
pub fn aligned(rows: &[&str]) -> String {
    let cells = |row: &&'_ str| row.split('|').map(|cell| cell.trim().to_owned()).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap().min(50);
    let widths: Vec<_> = (1..rows[0].len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row[1..].iter().zip(&widths);
        cells.map(|(cell, &width)| format!("{cell:<width$.width$}  ")).collect::<String>()
    };
    rows.iter().map(line).map(|line| line.trim_end().to_owned() + "\n").collect()
}
