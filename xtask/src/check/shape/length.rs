//! Functions that are longer than a screen.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::{Found, Source, is_of_tests};

/// Lines of a function at most, its signature among them.
const LINES_MAX: usize = 70;

pub fn find(sources: &[Source]) -> Found {
    let mut found = Found::new();
    for source in sources {
        let mut seen = Functions { long: Vec::new() };
        seen.visit_file(&source.file);
        for (name, lines) in seen.long {
            let what = format!("{name} of {} ({lines} lines)", source.path.display());
            found.entry(source.room.clone()).or_default().push(what);
        }
    }
    found
}

struct Functions {
    long: Vec<(String, usize)>,
}

impl Functions {
    fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let first = signature.span().start().line;
        let lines = (block.span().end().line + 1).saturating_sub(first);
        if lines > LINES_MAX {
            self.long.push((signature.ident.to_string(), lines));
        }
    }
}

impl<'a> Visit<'a> for Functions {
    fn visit_item_mod(&mut self, module: &'a syn::ItemMod) {
        if !is_of_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'a syn::ItemFn) {
        if !is_of_tests(&function.attrs) {
            self.add(&function.sig, &function.block);
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        self.add(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }
}

#[cfg(test)]
mod tests {
    use super::super::source;
    use super::*;

    #[test]
    fn a_long_function_is_named() {
        let body = "x();\n".repeat(LINES_MAX - 1);
        let long = format!("fn a() {{\n{body}}}\nstruct S;\nimpl S {{ fn b() {{\n{body}\n}} }}");
        let found = find(&[source("r", &["m"], &long)]);
        assert_eq!(found["r"].len(), 2, "{found:?}");
        let short = format!("fn a() {{\n{}}}", "x();\n".repeat(LINES_MAX - 2));
        assert!(find(&[source("r", &["m"], &short)]).is_empty());
        let of_tests = format!("#[cfg(test)]\nmod tests {{ {long} }}");
        assert!(find(&[source("r", &["m"], &of_tests)]).is_empty());
    }
}
