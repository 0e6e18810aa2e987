//! The suites that come with the program.

/// A suite that comes with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Builtin {
    /// Its name on the command line.
    pub name: &'static str,
    /// The name for messages, of which nobody has the file: `suite bm-flash`.
    pub file: &'static str,
    /// Its text.
    pub text: &'static str,
}

// `BUILTIN`: suites. `LISTS`: lists of those, the studies' own sequences of measurements. Both from the
// files in `suites/`, in order of their names.
include!(concat!(env!("OUT_DIR"), "/builtin.rs"));

/// Every suite that comes with the program, and can be played by itself.
pub fn builtin() -> &'static [Builtin] {
    BUILTIN
}

/// The one of that name.
pub fn find_builtin(name: &str) -> Option<&'static Builtin> {
    BUILTIN.iter().find(|suite| suite.name == name)
}

/// Every list of suites that comes with the program.
pub fn builtin_lists() -> &'static [Builtin] {
    LISTS
}

/// The list of that name.
pub fn find_list(name: &str) -> Option<&'static Builtin> {
    LISTS.iter().find(|list| list.name == name)
}
