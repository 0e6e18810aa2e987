use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use record::stack::{
    FileSystem, Layer, LoopDevice, Mapper, Partition, Pool, Segment, Unseen, What,
};

use super::serial::{Serials, Shown};
use super::{bus, disk, file_system, line, mapper, md, pool, queue, small};
use crate::block::{self, BlockKind, KERNEL_SECTOR};
use crate::host::Host;
use crate::mounts::{Mount, mount_of, mounts};
use crate::target::upper_mount;

/// A stack of more layers is not looked at further: no machine has it.
const LAYERS_MAX: usize = 4096;
/// Neither is a chain of more.
const DEPTH_MAX: usize = 64;

/// The layers found so far.
pub(super) struct Layers<'a> {
    pub(super) host: &'a Host,
    serials: Shown,
    /// In the order in which they were left: each after those that it stands on.
    found: Vec<Layer>,
    /// Entered, perhaps not left.
    met: BTreeSet<String>,
    depth: usize,
    unseen: Vec<Unseen>,
    mounts: Option<Vec<Mount>>,
    /// Tables of device mapper, by name; `None` before they were asked for.
    tables: Option<Result<BTreeMap<String, Vec<Segment>>, String>>,
    slots: Option<BTreeMap<String, String>>,
}

impl<'a> Layers<'a> {
    pub(super) fn new(host: &'a Host, serials: Serials) -> Self {
        Self {
            host,
            serials: Shown::new(host, serials),
            found: Vec::new(),
            met: BTreeSet::new(),
            depth: 0,
            unseen: Vec::new(),
            mounts: None,
            tables: None,
            slots: None,
        }
    }

    /// Layers with each before those that it stands on, and what was not seen.
    ///
    /// Whoever was left last comes first, so roots and what they stand on have to be entered from
    /// the last: then the list reads in their order.
    pub(super) fn finish(mut self) -> (Vec<Layer>, Vec<Unseen>) {
        self.found.reverse();
        self.unseen.reverse();
        (self.found, self.unseen)
    }

    /// Notes what could not be seen, once.
    pub(super) fn unseen(&mut self, what: impl Into<String>, why: impl Into<String>) {
        let (what, why) = (what.into(), why.into());
        if !self.unseen.iter().any(|known| known.what == what) {
            self.unseen.push(Unseen { what, why });
        }
    }

    /// Whether a layer is to be looked at now; it has to be left again.
    fn enter(&mut self, id: &str) -> bool {
        if self.met.len() >= LAYERS_MAX || self.depth >= DEPTH_MAX {
            self.unseen(
                format!("what is below {id}"),
                "there are more layers than any machine has",
            );
            return false;
        }
        let is_new = self.met.insert(id.to_owned());
        self.depth += usize::from(is_new);
        is_new
    }

    fn leave(&mut self, layer: Layer) {
        self.depth = self.depth.saturating_sub(1);
        self.found.push(layer);
    }

    /// Adds several layers in their order; their ids.
    fn all(
        &mut self,
        names: &[String],
        mut add: impl FnMut(&mut Self, &str) -> String,
    ) -> Vec<String> {
        let mut ids: Vec<String> = names.iter().rev().map(|name| add(self, name)).collect();
        ids.reverse();
        ids.dedup();
        ids
    }

    /// Adds block devices by their kernel names.
    pub(super) fn blocks(&mut self, names: &[String]) -> Vec<String> {
        self.all(names, Self::block)
    }

    /// Adds a mounted file system and all below it; its id.
    pub(super) fn file_system(&mut self, mount: &Mount) -> String {
        let id = mount.point.display().to_string();
        if !self.enter(&id) {
            return id;
        }
        let (mut what, devices) = self.mounted(mount);
        let below = if mount.file_system == "overlay" {
            let all = self.mounts();
            let upper =
                mount.value("upperdir").and_then(|u| upper_mount(&all, mount, Path::new(u)));
            upper.map(|upper| self.file_system(upper)).into_iter().collect()
        } else {
            self.blocks(&devices)
        };
        if let Some(journal) = what.journal.take() {
            let name = block::named(self.host, &journal);
            let id = name.map_or(journal, |name| self.block(&name));
            what.journal = Some(id);
        }
        self.leave(Layer {
            id: id.clone(),
            below,
            size_bytes: None,
            what: What::FileSystem(what),
            queue: None,
        });
        id
    }

    fn mounted(&mut self, mount: &Mount) -> (FileSystem, Vec<String>) {
        let (mut devices, missing) = block::under_mount(self.host, mount);
        let first = devices.first().cloned();
        let mut what = file_system::file_system(self, mount, first.as_deref());
        let found: Option<Pool> = match mount.file_system.as_str() {
            "btrfs" => first.and_then(|first| pool::btrfs(self.host, &first)),
            "zfs" => {
                let (found, members) = pool::zfs(self, &mount.source);
                devices = members;
                found
            }
            _ => None,
        };
        if let Some(missing) = missing.filter(|_| devices.is_empty() || found.is_none()) {
            self.unseen(missing, "the kernel does not show it here");
        }
        what.pool = found;
        (what, devices)
    }

    fn mounts(&mut self) -> Vec<Mount> {
        let host = self.host;
        self.mounts.get_or_insert_with(|| mounts(host).unwrap_or_default()).clone()
    }

    /// Adds a block device and all below it; its id.
    pub(super) fn block(&mut self, name: &str) -> String {
        let id = name.to_owned();
        if !self.enter(name) {
            return id;
        }
        let Some(device) = block::device(self.host, name, 0, false) else {
            self.unseen(format!("the block device {name}"), "sysfs does not show it");
            self.depth = self.depth.saturating_sub(1);
            return id;
        };
        let (what, below) = self.block_parts(name, &device.kind);
        let queue = match &device.kind {
            BlockKind::Partition { .. } => None,
            _ => Some(queue::queue(self.host, name)),
        };
        let size_bytes = Some(device.size.get());
        self.leave(Layer { id: id.clone(), below, size_bytes, what, queue });
        id
    }

    fn block_parts(&mut self, name: &str, kind: &BlockKind) -> (What, Vec<String>) {
        let names = block::below(self.host, name);
        match kind {
            BlockKind::Partition { of } => {
                let directory = block::class(name);
                let start = self.host.number(directory.join("start"));
                let partition = Partition {
                    number: small(self.host, directory.join("partition")),
                    start_bytes: start.and_then(|sectors| sectors.checked_mul(KERNEL_SECTOR)),
                };
                (What::Partition(partition), self.blocks(std::slice::from_ref(of)))
            }
            BlockKind::Mapper { name: mapped, uuid } => {
                let segments = self.segments(name, mapped);
                let maker = uuid.split('-').next().filter(|maker| !maker.is_empty());
                let mapper =
                    Mapper { name: mapped.clone(), maker: maker.map(super::cut), segments };
                let below = self.in_order(&mapper, names);
                (What::Mapper(mapper), self.blocks(&below))
            }
            BlockKind::Md { .. } => {
                let array = md::md(self.host, name);
                let members: Vec<String> =
                    array.members.iter().map(|member| member.layer.clone()).collect();
                let names = if members.is_empty() { names } else { members };
                (What::Md(array), self.blocks(&names))
            }
            BlockKind::Loop { file } => self.loop_parts(name, file.as_deref()),
            BlockKind::Zram => (What::Memory { name: "zram".to_owned() }, Vec::new()),
            BlockKind::Ram => (What::Memory { name: "brd".to_owned() }, Vec::new()),
            BlockKind::Disk => {
                let (what, left_out) = disk::disk(self.host, name, &self.serials);
                if left_out {
                    self.unseen(
                        "serial numbers",
                        "this machine has no id (/etc/machine-id) that they could be hashed with",
                    );
                }
                (What::Disk(what), bus::above_disk(self, name))
            }
        }
    }

    /// Devices below in the order of the table, which sysfs does not have; then what only sysfs
    /// has.
    fn in_order(&self, mapper: &Mapper, names: Vec<String>) -> Vec<String> {
        let mut below: Vec<String> = Vec::new();
        let extents = mapper.segments.iter().flatten().flat_map(|segment| &segment.on);
        for name in extents.map(|extent| extent.layer.clone()).chain(names) {
            if !below.contains(&name) && block::number_of(self.host, &name).is_some() {
                below.push(name);
            }
        }
        below
    }

    fn segments(&mut self, device: &str, mapped: &str) -> Option<Vec<Segment>> {
        let host = self.host;
        let tables = self.tables.get_or_insert_with(|| mapper::tables(host));
        match tables {
            Ok(tables) => {
                if let Some(found) = tables.get(mapped) {
                    return Some(found.clone());
                }
                self.unseen(
                    format!("how {device} ({mapped}) is laid out"),
                    "dmsetup does not list it",
                );
            }
            Err(why) => {
                let why = why.clone();
                self.unseen(format!("how {device} ({mapped}) is laid out"), why);
            }
        }
        None
    }

    fn loop_parts(&mut self, name: &str, file: Option<&Path>) -> (What, Vec<String>) {
        let directory = block::class(name).join("loop");
        let what = LoopDevice {
            file: file.map(|file| file.display().to_string()),
            direct: self.host.number(directory.join("dio")).map(|n| n != 0),
            offset_bytes: self.host.number(directory.join("offset")),
        };
        let all = self.mounts();
        let mount = file.and_then(|file| mount_of(&all, file, None));
        let below = mount.map(|mount| self.file_system(mount)).into_iter().collect();
        (What::Loop(what), below)
    }

    /// Adds a layer that stands on at most one other.
    pub(super) fn single(
        &mut self,
        id: &str,
        what: impl FnOnce(&mut Self) -> What,
        below: impl FnOnce(&mut Self) -> Option<String>,
    ) -> String {
        if self.enter(id) {
            let below = below(self).into_iter().collect();
            let what = what(self);
            self.leave(Layer { id: id.to_owned(), below, size_bytes: None, what, queue: None });
        }
        id.to_owned()
    }

    /// The firmware's name of the slot that a PCI device is in.
    pub(super) fn slot(&mut self, address: &str) -> Option<String> {
        let host = self.host;
        let slots = self.slots.get_or_insert_with(|| {
            let named = host.names("/sys/bus/pci/slots").into_iter().filter_map(|slot| {
                let address = line(host, format!("/sys/bus/pci/slots/{slot}/address"))?;
                Some((address, slot))
            });
            named.collect()
        });
        // A slot's address has no function: `0000:01:00`.
        slots.get(address.rsplit_once('.').map_or(address, |(device, _)| device)).cloned()
    }
}
