//! Making a volume, and removing one.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use layer::{BLOCK, BlockDevice, CreateOptions, LiveShare, LogVolume, SEGMENT, VolumeId};
use rustix::fs::{FallocateFlags, IFlags};
use stack::{Access, Action, Consent, Host, Own, Permit, Target};
use units::{ByteOffset, Bytes};

use crate::{VolumeError, VolumeFile};

/// At the smallest fill it takes what a volume can reach, 16 TiB, and more.
const SIZE_MAX: Bytes = Bytes::gib(8 << 10);

/// What volume is to be made.
#[derive(Clone, Debug)]
pub struct VolumeOrder {
    /// A file that is not there yet, or a block device.
    pub path: PathBuf,
    /// What it is to offer; `None` for what a device holds.
    pub size: Option<Bytes>,
    /// How far the log's room is filled once all of the volume holds data.
    pub fill: LiveShare,
    /// Which device may be lost.
    pub consent: Consent,
}

/// A volume that may be made.
#[derive(Debug)]
pub struct VolumePlan {
    permit: Permit,
    target: Target,
    options: CreateOptions,
    /// Of the file or device below.
    below: Bytes,
    consent: Consent,
}

impl VolumePlan {
    /// Looks, judges, changes nothing.
    ///
    /// * `id`: drawn at random.
    pub fn new(order: &VolumeOrder, id: VolumeId) -> Result<Self, VolumeError> {
        let target = stack::inspect(&Host::this(), &order.path)?;
        let there = match target.path.kind {
            stack::PathKind::Missing => None,
            stack::PathKind::BlockDevice { .. } => Some(target.path.size),
            stack::PathKind::File { .. } => {
                return Err(VolumeError::Exists { path: order.path.clone() });
            }
            _ => return Err(VolumeError::Kind { path: order.path.clone() }),
        };
        let of = |logical| CreateOptions { logical, segment: SEGMENT, id };
        let fits = |logical: Bytes| {
            (BLOCK..=SIZE_MAX).contains(&logical)
                && there.is_none_or(|there| of(logical).device_size(order.fill) <= there)
        };
        let wanted = order
            .size
            .or_else(|| there.map(|there| CreateOptions::largest(there, order.fill).min(SIZE_MAX)));
        let Some(logical) = wanted.map(whole).filter(|logical| fits(*logical)) else {
            return Err(VolumeError::NoFit { path: order.path.clone() });
        };
        let options = of(logical);
        let below = options.device_size(order.fill);
        let permit = judged(&target, below, &order.consent)?;
        Ok(Self { permit, target, options, below, consent: order.consent.clone() })
    }

    /// What the volume offers.
    pub fn size(&self) -> Bytes {
        self.options.logical
    }

    /// What will be done: a sentence each.
    pub fn describe(&self) -> Vec<String> {
        match self.permit.action {
            Action::Destroy => self.permit.describe().to_vec(),
            _ => {
                let (path, below) = (self.permit.path.display(), self.below);
                vec![format!("Creates {path} and takes {below} for it, which only you may read.")]
            }
        }
    }

    /// Makes it.
    pub fn make(self) -> Result<(), VolumeError> {
        let made = match self.permit.action {
            Action::Destroy => self.make_on_device(),
            _ => self.make_in_file(),
        };
        made.map(drop)
    }

    /// With all its room: it must not run out of it later.
    fn make_in_file(&self) -> Result<VolumeFile, VolumeError> {
        let path = &self.permit.path;
        let failed = |what| move |source| VolumeError::File { what, path: path.clone(), source };
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create_new(true).mode(0o600);
        let file = options.open(path).map_err(failed("create"))?;
        // Where blocks are copied on writing, as on btrfs, room that was taken once is not enough.
        if let Ok(flags) = rustix::fs::ioctl_getflags(&file) {
            let _ = rustix::fs::ioctl_setflags(&file, flags | IFlags::NOCOW);
        }
        let room = rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, self.below.get());
        let made = room.map_err(|errno| failed("take room for")(errno.into()));
        let made = made.and_then(|()| VolumeFile::locked(file, path, true));
        made.and_then(|file| self.created(file)).inspect_err(|_| {
            // The error itself is what to tell.
            let _ = std::fs::remove_file(path);
        })
    }

    /// The device, judged once more while nobody else can claim or mount it.
    fn make_on_device(&self) -> Result<VolumeFile, VolumeError> {
        let path = &self.permit.path;
        let failed = |source| VolumeError::File { what: "claim", path: path.clone(), source };
        let Some(held) = self.permit.held().get() else {
            return Err(self.permit.exchanged().into());
        };
        let claim = held.claim().map_err(failed)?;
        self.permit.confirm(&claim)?;
        self.permit.confirm_contents(&claim)?;
        judged(&self.target, self.below, &self.consent)?;
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
        self.permit.confirm(&file)?;
        self.created(VolumeFile::locked(file, path, true)?)
    }

    fn created(&self, file: VolumeFile) -> Result<VolumeFile, VolumeError> {
        let failed = |error| VolumeError::Layer { path: self.permit.path.clone(), error };
        let volume = LogVolume::create(file, &self.options).map_err(failed)?;
        volume.close().map_err(failed)
    }
}

fn judged(target: &Target, size: Bytes, consent: &Consent) -> Result<Permit, VolumeError> {
    let own = Own::of_this_process(None);
    let access = Access::Write { size, also: Bytes::ZERO };
    let facts = stack::gather(&Host::this(), target, access, consent, &own);
    Ok(stack::decide(&facts)?.holding(&target.path))
}

fn whole(size: Bytes) -> Bytes {
    Bytes::new(size.get() / BLOCK.get() * BLOCK.get())
}

/// Removes the volume on a file or device, which must be one: a file as a whole, of a device what shows that
/// there is a volume.
pub fn destroy(path: &Path) -> Result<(), VolumeError> {
    let failed = |error| VolumeError::Layer { path: path.to_path_buf(), error };
    let mut file = VolumeFile::open(path, true)?;
    // Of a link that it is known by, what it leads to.
    let resolved = std::fs::canonicalize(path);
    layer::is_volume(&mut file).map_err(failed)?;
    if file.is_device() {
        let nothing = vec![0; 2 * BLOCK.get() as usize];
        let wiped = file.write(ByteOffset::ZERO, &nothing).and_then(|()| file.flush());
        return wiped.map_err(|error| failed(error.into()));
    }
    resolved.and_then(std::fs::remove_file).map_err(|source| VolumeError::File {
        what: "remove",
        path: path.to_path_buf(),
        source,
    })
}
