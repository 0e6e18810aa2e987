//! Processes that may not be looked into.

use std::process::Command;

use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use stack::RefusalReason;

use crate::same_bytes::{Elsewhere, Lab, is_root, reasons, settled};

fn is_unchecked(found: &[RefusalReason]) -> bool {
    found.iter().any(|reason| matches!(reason, RefusalReason::Unchecked { .. }))
}

/// Does it without some rights, which are those of a thread.
fn without<T: Send>(rights: CapabilitySet, what: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let mut mine = capabilities(None).unwrap();
            mine.effective -= rights;
            mine.permitted -= rights;
            set_capabilities(None, mine).unwrap();
            what()
        });
        thread.join().unwrap()
    })
}

const MAY_LOOK: CapabilitySet = CapabilitySet::SYS_PTRACE;

#[test]
fn processes_that_may_not_be_looked_into_are_not_taken_for_free() {
    if !is_root() {
        return;
    }
    let mut lab = Lab::new("blind");
    let disk = lab.disk("disk");
    let Some(device) = lab.attach(&disk) else { return };
    assert!(settled(&device).is_empty(), "{:?}", settled(&device));
    // Somebody with all rights, who may not be looked into without them.
    let _other = Command::new("sleep").arg("600").spawn().map(Elsewhere).unwrap();
    let found = without(MAY_LOOK, || reasons(&device));
    assert!(is_unchecked(&found), "a device has no leases: {found:?}");
    let said = found.iter().map(ToString::to_string).collect::<String>();
    assert!(said.contains("could not be examined"), "{said}");
    // Of our own file the kernel knows the writers.
    let file = lab.scratch.file("file", &[7; 4096]);
    assert!(settled(&file).is_empty());
    let rights = MAY_LOOK | CapabilitySet::LEASE;
    let found = without(rights, || settled(&file));
    assert!(found.is_empty(), "{found:?}");
    // Of another user's it does not say.
    std::os::unix::fs::chown(&file, Some(65534), None).unwrap();
    assert!(is_unchecked(&without(rights, || reasons(&file))));
    assert!(without(CapabilitySet::LEASE, || settled(&file)).is_empty(), "all can be seen");
    // And a new file is nobody's.
    assert!(without(rights, || reasons(&lab.path("new"))).is_empty());
}
