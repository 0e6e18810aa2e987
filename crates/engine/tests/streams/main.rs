//! What each suite asks of a device, request by request, against what its original does.
#![expect(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "tests")]

mod bm_flash;
mod language;
mod support;
