//! Volumes that may have I/O credits: fast at first, and slower for good when those are used up.

use finding::{Code, Finding, Number};
use record::Purpose;
use record::stack::{Layer, What, is_network};
use units::Nanos;

use crate::view::View;

/// Amazon's gp2 at 3000 IOPS and Azure's bursting disks keep their higher rate for half an hour.
const LASTS: Nanos = Nanos::secs(1_800);

/// What this run cannot exclude, where the target is no plain drive and nobody measured for long.
pub(crate) fn not_excluded(view: &View<'_>) -> Option<Finding> {
    let header = &view.run.header;
    let what = header.stack.as_ref().filter(|_| header.imported.is_none());
    let what = what.and_then(|stack| volume(&stack.layers))?;
    let measured = view.run.visits.iter().filter(|visit| visit.purpose == Purpose::Measure);
    let measured = Nanos::new(measured.map(|visit| visit.elapsed_ns).sum());
    (measured > Nanos::ZERO && measured < LASTS).then(|| {
        what.with("measured", Number::ns(measured.get())).with("wanted", Number::ns(LASTS.get()))
    })
}

/// A disk that is no drive, or a file system that is elsewhere.
fn volume(layers: &[Layer]) -> Option<Finding> {
    let of = |what: &String, file_system: bool| {
        let found = Finding::new(Code::IoCreditsPossible).with("file_system", file_system);
        found.with("what", what)
    };
    layers.iter().find_map(|layer| match &layer.what {
        What::Disk(disk) => disk.known_as.as_ref().map(|name| of(name, false)),
        // What is behind a file system of a program, nobody sees.
        What::FileSystem(fs) if is_network(&fs.kind) || fs.kind.starts_with("fuse") => {
            Some(of(&fs.kind, true))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use finding::Value;
    use record::stack::{Disk, FileSystem, Layer};

    use super::*;

    fn of(what: What) -> Option<(bool, Value)> {
        let layer = Layer { id: "a".into(), below: vec![], size_bytes: None, what, queue: None };
        let found = volume(&[layer])?;
        let elsewhere = found.value("file_system") == Some(&true.into());
        Some((elsewhere, found.value("what")?.clone()))
    }

    #[test]
    fn volumes_that_may_have_credits_are_known() {
        let disk = |known_as: Option<&str>| {
            let known_as = known_as.map(str::to_owned);
            of(What::Disk(Disk { known_as, ..Disk::default() }))
        };
        assert_eq!(disk(Some("Amazon EBS volume")), Some((false, "Amazon EBS volume".into())));
        assert_eq!(disk(None), None);
        let file_system = |kind: &str| {
            let kind = kind.to_owned();
            of(What::FileSystem(FileSystem { kind, ..FileSystem::default() }))
        };
        assert_eq!(file_system("fuse.sshfs"), Some((true, "fuse.sshfs".into())));
        assert_eq!(file_system("nfs4"), Some((true, "nfs4".into())));
        assert_eq!(file_system("ext4"), None);
    }
}
