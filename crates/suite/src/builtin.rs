//! The suites that come with the program.

/// A suite that comes with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Builtin {
    /// Its name on the command line.
    pub name: &'static str,
    /// The name for messages: `suites/bm-flash.toml`.
    pub file: &'static str,
    /// Its text.
    pub text: &'static str,
}

macro_rules! builtin {
    ($name:literal) => {
        Builtin {
            name: $name,
            file: concat!("suites/", $name, ".toml"),
            text: include_str!(concat!("../../../suites/", $name, ".toml")),
        }
    };
}

const BUILTIN: [Builtin; 9] = [
    builtin!("bm-flash"),
    builtin!("calibration"),
    builtin!("random-read"),
    builtin!("random-write"),
    builtin!("reread"),
    builtin!("sequential-read"),
    builtin!("sequential-write"),
    builtin!("steady-write"),
    builtin!("working-set"),
];

/// Every suite that comes with the program.
pub fn builtin() -> &'static [Builtin] {
    &BUILTIN
}

/// The one of that name.
pub fn find_builtin(name: &str) -> Option<&'static Builtin> {
    BUILTIN.iter().find(|suite| suite.name == name)
}
