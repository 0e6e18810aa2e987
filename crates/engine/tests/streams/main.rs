//! What each suite asks of a device, request by request, against what its original does.
#![expect(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "tests")]

mod bm_flash;
mod bonnie;
mod crystaldiskmark;
mod database_server;
mod dd;
mod iometer;
mod ioping;
mod iozone;
mod language;
mod mixes;
mod orion;
mod pg_test_fsync;
mod probes;
mod snia;
mod support;
mod sysbench;
mod wal;
mod whole_files;
mod xdd;
