//! Modules that need each other, directly or by way of others.
//!
//! Looked at among the children of one module: a child may use its parent, and a parent its children.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};

use super::{Found, Source, is_of_tests};

type Module = Vec<String>;
type Graph = BTreeMap<String, BTreeSet<String>>;

pub fn find(sources: &[Source]) -> Found {
    let mut rooms: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
    for source in sources {
        rooms.entry(&source.room).or_default().push(source);
    }
    let cycles = |(room, sources): (&str, Vec<&Source>)| (room.to_owned(), cycles(&sources));
    rooms.into_iter().map(cycles).filter(|(_, found)| !found.is_empty()).collect()
}

fn cycles(sources: &[&Source]) -> Vec<String> {
    let modules: BTreeSet<&Module> = sources.iter().map(|source| &source.module).collect();
    // By parent: which child needs which.
    let mut graphs: BTreeMap<Module, Graph> = BTreeMap::new();
    for source in sources {
        let mut seen = Names { here: source.module.clone(), named: BTreeSet::new() };
        seen.visit_file(&source.file);
        for named in seen.named {
            let Some(used) = module_in(&named, &modules) else { continue };
            let common = source.module.iter().zip(&used).take_while(|(a, b)| a == b).count();
            let (Some(from), Some(to)) = (source.module.get(common), used.get(common)) else {
                continue;
            };
            let parent = source.module[..common].to_vec();
            let graph = graphs.entry(parent).or_default();
            graph.entry(from.clone()).or_default().insert(to.clone());
        }
    }
    graphs.iter().flat_map(|(parent, graph)| circles(parent, graph)).collect()
}

/// The module that a path leads into.
fn module_in(path: &Module, modules: &BTreeSet<&Module>) -> Option<Module> {
    (0..=path.len()).rev().map(|end| path[..end].to_vec()).find(|part| modules.contains(part))
}

/// Groups of modules of which each reaches each other.
fn circles(parent: &Module, graph: &Graph) -> Vec<String> {
    let reached = |from: &String| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(at) = open.pop() {
            for next in graph.get(at).into_iter().flatten() {
                if seen.insert(next) {
                    open.push(next);
                }
            }
        }
        seen
    };
    let reach: BTreeMap<&String, BTreeSet<&String>> =
        graph.keys().map(|from| (from, reached(from))).collect();
    let mut taken: BTreeSet<&String> = BTreeSet::new();
    let mut found = Vec::new();
    for (from, others) in &reach {
        let back = |to: &&&String| reach.get(**to).is_some_and(|back| back.contains(from));
        let circle: Vec<&str> = others.iter().filter(back).map(|to| to.as_str()).collect();
        if circle.len() > 1 && !taken.contains(from) {
            taken.extend(others.iter().filter(back));
            let within = if parent.is_empty() { String::new() } else { parent.join("::") + ": " };
            found.push(format!("{within}{}", circle.join(" <-> ")));
        }
    }
    found
}

/// Paths within the crate that a file names.
struct Names {
    here: Module,
    named: BTreeSet<Module>,
}

impl Names {
    fn add(&mut self, path: &[String]) {
        let Some((first, rest)) = path.split_first() else { return };
        let mut base = match first.as_str() {
            "crate" => Vec::new(),
            "self" => self.here.clone(),
            "super" => self.here[..self.here.len().saturating_sub(1)].to_vec(),
            _ => return,
        };
        for part in rest {
            match part.as_str() {
                "super" => drop(base.pop()),
                _ => base.push(part.clone()),
            }
        }
        self.named.insert(base);
    }

    fn add_tree(&mut self, before: &[String], tree: &syn::UseTree) {
        let with = |ident: &syn::Ident| [before, &[ident.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.add_tree(&with(&path.ident), &path.tree),
            syn::UseTree::Name(name) => self.add(&with(&name.ident)),
            syn::UseTree::Rename(name) => self.add(&with(&name.ident)),
            syn::UseTree::Glob(_) => self.add(before),
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.add_tree(before, tree));
            }
        }
    }
}

impl<'a> Visit<'a> for Names {
    fn visit_item_mod(&mut self, module: &'a syn::ItemMod) {
        if !is_of_tests(&module.attrs) {
            self.here.push(module.ident.to_string());
            visit::visit_item_mod(self, module);
            self.here.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        self.add_tree(&[], &item.tree);
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let parts: Vec<String> =
            path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.add(&parts);
        visit::visit_path(self, path);
    }
}

#[cfg(test)]
mod tests {
    use super::super::source;
    use super::*;

    #[test]
    fn modules_that_need_each_other_are_a_cycle() {
        let ring = [
            source("r", &["a"], "use crate::b::{X, Y};"),
            source("r", &["b"], "fn f() { crate::c::deep::go(); }"),
            source("r", &["c", "deep"], "use super::super::a::Z;"),
            source("r", &["d"], "use crate::a::Z;"),
            source("r", &[], "mod a; mod b; pub use self::a::Z;"),
        ];
        assert_eq!(find(&ring)["r"], ["a <-> b <-> c"]);
        assert!(find(&ring[..2]).is_empty());
    }

    #[test]
    fn parents_children_and_tests_are_none() {
        let family = [
            source("r", &["a"], "mod b; use self::b::X; pub struct Y;"),
            source("r", &["a", "b"], "use super::Y; use crate::a::Y as Z;"),
            source("r", &["c"], "use crate::a::Y;\n#[cfg(test)]\nmod tests { use crate::d::T; }"),
            source("r", &["d"], "use crate::c::U;"),
        ];
        assert!(find(&family).is_empty(), "{:?}", find(&family));
    }

    #[test]
    fn children_that_need_each_other_are_a_cycle_of_their_parent() {
        let children = [
            source("r", &["a", "b"], "use super::c::X;"),
            source("r", &["a", "c"], "use crate::a::b::Y;"),
        ];
        assert_eq!(find(&children)["r"], ["a: b <-> c"]);
    }
}
