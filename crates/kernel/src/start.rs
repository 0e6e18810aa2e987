//! What this process was given when it began.

use std::sync::atomic::{AtomicBool, Ordering};

static STDOUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether the process was started without standard output (`>&-`). Rust's runtime opens `/dev/null` in
/// its place before `main`, and whatever is written then goes well.
pub fn was_stdout_closed() -> bool {
    STDOUT_WAS_CLOSED.load(Ordering::Relaxed)
}

extern "C" fn look() {
    // SAFETY: the command takes integers and touches no memory of ours. It is allowed before `main`: it
    // needs nothing of Rust's runtime.
    let answer = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    STDOUT_WAS_CLOSED.store(answer == -1, Ordering::Relaxed);
}

/// What the C runtime calls before `main`.
// SAFETY: the section holds pointers to functions of this kind, and `look` may be called at that time.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;
