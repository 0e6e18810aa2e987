//! Layers of fields: `[defaults]`, phase, stream, overrides, grid. What is nearer wins, and a
//! field that takes the place of another drives it out.

use crate::node::{Entry, Node, Table, Value};
use crate::raw;

/// Spells short forms out: `"zipf"` is `{ kind = "zipf" }`.
pub(crate) fn spelled_out(field: &str, node: &Node) -> Node {
    let Some(word) = node.as_str() else { return node.clone() };
    if raw::unset_word(field) == Some(word) {
        return node.clone();
    }
    match field {
        "access" | "data" => node.clone().wrapped("kind"),
        "region" => node.clone().wrapped("length"),
        "sync" => {
            let mut table = node.clone().wrapped("op");
            if let Value::Table(fields) = &mut table.value {
                let every = Node::new(node.at, Value::Integer(1));
                fields.insert(Entry { key: "every".to_owned(), at: node.at, node: every });
            }
            table
        }
        "caches" if word == "none" => Node::new(node.at, Value::Array(Vec::new())),
        "caches" => Node::new(node.at, Value::Array(vec![node.clone()])),
        _ => node.clone(),
    }
}

/// Puts `upper` over `base`.
pub(crate) fn apply(base: &mut Table, upper: &Table) {
    for entry in &upper.entries {
        apply_entry(base, entry);
    }
}

/// Puts one field over `base`.
pub(crate) fn apply_entry(base: &mut Table, entry: &Entry) {
    for other in raw::alternatives(&entry.key) {
        base.remove(other);
    }
    if let (true, Value::Table(details)) = (is_table_of_fields(&entry.key), &entry.node.value) {
        if base.get(&entry.key).is_none_or(|node| node.as_table().is_none()) {
            let node = Node::new(entry.node.at, Value::Table(Table::default()));
            base.insert(Entry { key: entry.key.clone(), at: entry.at, node });
        }
        if let Some(Node { value: Value::Table(fields), .. }) = base.get_mut(&entry.key) {
            apply(fields, details);
        }
        return;
    }
    let node = spelled_out(&entry.key, &entry.node);
    if let (Value::Table(details), true) = (&entry.node.value, refines(&entry.key, &entry.node))
        && let Some(Node { value: Value::Table(fields), .. }) = base.get_mut(&entry.key)
    {
        for detail in &details.entries {
            fields.insert(detail.clone());
        }
        return;
    }
    base.insert(Entry { key: entry.key.clone(), at: entry.at, node });
}

/// Whether the details of a field are fields themselves.
fn is_table_of_fields(field: &str) -> bool {
    matches!(field, "before" | "steady")
}

/// Whether a table gives details to the one below it instead of taking its place. A table that
/// names its kind is whole: another kind's details would make no sense in it.
fn refines(field: &str, node: &Node) -> bool {
    let names_kind = node.as_table().is_some_and(|table| table.contains("kind"));
    let has_details = matches!(
        field,
        "access" | "data" | "sync" | "region" | "rounds" | "duty" | "directory" | "transactions"
    );
    has_details && !names_kind
}

/// Puts a value at a path over `base`.
pub(crate) fn apply_path(base: &mut Table, path: &[String], value: &Node) {
    let Some((field, rest)) = path.split_first() else { return };
    let node = rest.iter().rev().fold(value.clone(), |node, key| node.wrapped(key));
    apply_entry(base, &Entry { key: field.clone(), at: value.at, node });
}

/// Takes out what was set to the word for "not set".
pub(crate) fn drop_unset(table: &mut Table) {
    table.entries.retain(|e| match (e.node.as_str(), raw::unset_word(&e.key)) {
        (Some(seen), Some(word)) => seen != word,
        _ => true,
    });
}
