//! Names of types that mean three things or more.

use std::collections::BTreeMap;

use super::{Found, Source, is_of_tests};

/// So many meanings are too many for one name.
const MEANINGS: usize = 3;

pub fn find(sources: &[Source]) -> Found {
    let mut types: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in sources {
        let mut names = Vec::new();
        collect(&source.file.items, &mut names);
        for name in names {
            types.entry(name).or_default().push(source.path.display().to_string());
        }
    }
    let crowded = types.into_iter().filter(|(_, places)| places.len() >= MEANINGS);
    let said: Vec<String> =
        crowded.map(|(name, places)| format!("{name} in {}", places.join(", "))).collect();
    if said.is_empty() { Found::new() } else { Found::from([("all".to_owned(), said)]) }
}

fn collect(items: &[syn::Item], names: &mut Vec<String>) {
    for item in items {
        match item {
            syn::Item::Struct(one) => names.push(one.ident.to_string()),
            syn::Item::Enum(one) => names.push(one.ident.to_string()),
            syn::Item::Trait(one) => names.push(one.ident.to_string()),
            syn::Item::Mod(module) if !is_of_tests(&module.attrs) => {
                let items = module.content.as_ref().map(|(_, items)| items.as_slice());
                collect(items.unwrap_or_default(), names);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::source;
    use super::*;

    #[test]
    fn a_name_with_three_meanings_is_named() {
        let rooms = ["a", "b", "c"].map(|room| source(room, &["m"], "struct Place;"));
        assert_eq!(find(&rooms)["all"].len(), 1);
        assert!(find(&rooms[..2]).is_empty());
    }
}
