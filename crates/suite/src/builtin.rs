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

macro_rules! builtin {
    ($name:literal) => {
        Builtin {
            name: $name,
            file: concat!("suite ", $name),
            text: include_str!(concat!("../../../suites/", $name, ".toml")),
        }
    };
}

const BUILTIN: [Builtin; 51] = [
    builtin!("bm-flash"),
    builtin!("bonnie"),
    builtin!("calibration"),
    builtin!("copy-40g"),
    builtin!("crystaldiskmark"),
    builtin!("database-server"),
    builtin!("dd-40g"),
    builtin!("dd-big"),
    builtin!("dd-small"),
    builtin!("iometer-4k"),
    builtin!("iometer-all-in-one"),
    builtin!("iometer-database"),
    builtin!("iometer-file-server"),
    builtin!("iometer-streaming-read"),
    builtin!("iometer-streaming-write"),
    builtin!("iometer-web-server"),
    builtin!("iometer-workstation"),
    builtin!("ioping"),
    builtin!("iozone"),
    builtin!("iozone-phoronix"),
    builtin!("orion-advanced"),
    builtin!("orion-dss"),
    builtin!("orion-normal"),
    builtin!("orion-oltp"),
    builtin!("orion-simple"),
    builtin!("pg-test-fsync"),
    builtin!("random-read"),
    builtin!("random-write"),
    builtin!("read-write-mix"),
    builtin!("reread"),
    builtin!("sequential-read"),
    builtin!("sequential-write"),
    builtin!("snia-cross-stimulus"),
    builtin!("snia-enterprise-composite"),
    builtin!("snia-host-idle-recovery"),
    builtin!("snia-iops"),
    builtin!("snia-latency"),
    builtin!("snia-throughput"),
    builtin!("snia-write-saturation"),
    builtin!("steady-write"),
    builtin!("sysbench-fsync-rate"),
    builtin!("sysbench-rndrd"),
    builtin!("sysbench-rndrw"),
    builtin!("sysbench-rndwr"),
    builtin!("sysbench-seek-rate"),
    builtin!("sysbench-seqrd"),
    builtin!("sysbench-seqrewr"),
    builtin!("sysbench-seqwr"),
    builtin!("wal"),
    builtin!("working-set"),
    builtin!("xdd"),
];

/// Lists of those: the studies' own sequences of measurements.
const LISTS: [Builtin; 5] = [
    builtin!("100k-iops"),
    builtin!("mysql-mft"),
    builtin!("one-dvd-per-second"),
    builtin!("postgresql-disks"),
    builtin!("sara-ssd"),
];

/// Every suite that comes with the program, and can be played by itself.
pub fn builtin() -> &'static [Builtin] {
    &BUILTIN
}

/// The one of that name.
pub fn find_builtin(name: &str) -> Option<&'static Builtin> {
    BUILTIN.iter().find(|suite| suite.name == name)
}

/// Every list of suites that comes with the program.
pub fn builtin_lists() -> &'static [Builtin] {
    &LISTS
}

/// The list of that name.
pub fn find_list(name: &str) -> Option<&'static Builtin> {
    LISTS.iter().find(|list| list.name == name)
}
