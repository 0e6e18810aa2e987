//! What makes two names one device: a pure table of where each device keeps its bytes.
//!
//! | Two names are one device if | Rule |
//! |---|---|
//! | they have one device number | the same root |
//! | one is a partition of the other | the partition's range of the disk |
//! | both are loop devices over one file, and their ranges overlap | the same root |
//! | one is a loop device over the other | the range below |
//! | one is built on the other: md, LVM, crypt, bcache | all of each member |
//! | both are paths to one drive, by its WWID | one root for all of them |
//!
//! Two volumes of one group share no bytes, nor do two partitions of one array.

use crate::mounts::DeviceNumber;
use crate::target::FileId;

/// What holds bytes in the end, or on the way there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    /// A block device.
    Device(DeviceNumber),
    /// A file, under whatever name.
    File(FileId),
    /// A file of which no more than a name is known.
    Named(std::path::PathBuf),
}

/// Where a device lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub on: Root,
    /// First byte there.
    pub from: u64,
    /// How many bytes.
    pub length: u64,
    /// Byte for byte, in order. Else the device has something of it, and others may have the rest.
    pub is_linear: bool,
}

/// A device as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub name: String,
    pub number: DeviceNumber,
    pub size: u64,
    /// The drive's own name, the same on every path to it.
    pub wwid: Option<String>,
    /// Empty for what is no layer over something else.
    pub parts: Vec<Part>,
}

/// More places of one device are not followed.
const PLACES_MAX: usize = 4096;

/// A range of a root that belongs to a device.
#[derive(Clone, Debug, PartialEq)]
struct Place {
    root: Root,
    from: u64,
    to: u64,
    /// Only some of the range belongs to the device.
    is_vague: bool,
}

impl Place {
    fn overlaps(&self, other: &Self) -> bool {
        let is_apart = self.is_vague && other.is_vague;
        self.root == other.root && self.from < other.to && other.from < self.to && !is_apart
    }
}

/// All devices of a machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    all: Vec<Known>,
}

impl Table {
    pub fn new(all: Vec<Known>) -> Self {
        Self { all }
    }

    pub fn get(&self, name: &str) -> Option<&Known> {
        self.all.iter().find(|known| known.name == name)
    }

    /// Every other device that has bytes of this one.
    pub fn sharing(&self, name: &str) -> Vec<&str> {
        let Some(one) = self.get(name) else { return Vec::new() };
        let mine = self.places(one);
        let others = self.all.iter().filter(|other| other.name != name);
        others.filter(|other| share(&mine, &self.places(other))).map(|o| o.name.as_str()).collect()
    }

    /// Whether both have bytes in common.
    pub fn share(&self, one: &str, other: &str) -> bool {
        let places = |name: &str| self.get(name).map(|known| self.places(known));
        places(one).zip(places(other)).is_some_and(|(a, b)| one == other || share(&a, &b))
    }

    /// The devices and files that a device lies on, without itself.
    pub fn below(&self, name: &str) -> Vec<Root> {
        let Some(known) = self.get(name) else { return Vec::new() };
        let mut found: Vec<Root> = Vec::new();
        for place in self.places(known).into_iter().skip(1) {
            if !found.contains(&place.root) {
                found.push(place.root);
            }
        }
        found
    }

    /// The names that stand for a root.
    pub fn names_of<'a>(&'a self, root: &'a Root) -> impl Iterator<Item = &'a str> {
        let is_it = move |known: &&Known| *root == Root::Device(self.canonical(known));
        self.all.iter().filter(is_it).map(|known| known.name.as_str())
    }

    /// The number of the first of the paths to one drive.
    fn canonical(&self, known: &Known) -> DeviceNumber {
        let is_same = |other: &&Known| other.wwid == known.wwid && other.size == known.size;
        let paths = self.all.iter().filter(|_| known.wwid.is_some()).filter(is_same);
        paths.map(|path| path.number).min().unwrap_or(known.number)
    }

    fn root_of(&self, root: &Root) -> Root {
        match root {
            Root::Device(number) => {
                let known = self.all.iter().find(|known| known.number == *number);
                Root::Device(known.map_or(*number, |known| self.canonical(known)))
            }
            file => file.clone(),
        }
    }

    /// Where a device's bytes are, at every layer: itself first.
    fn places(&self, known: &Known) -> Vec<Place> {
        let root = Root::Device(self.canonical(known));
        let mut found = vec![Place { root, from: 0, to: known.size, is_vague: false }];
        let mut next = 0;
        while let Some(place) = found.get(next).cloned().filter(|_| next < PLACES_MAX) {
            next += 1;
            let Root::Device(number) = place.root else { continue };
            let devices = self.all.iter().filter(|known| self.canonical(known) == number);
            for part in devices.flat_map(|known| &known.parts) {
                let below = self.part_of(part, &place);
                // A circle ends.
                let is_new = |below: &Place| {
                    found.iter().all(|known| known.root != below.root || known.from != below.from)
                };
                found.extend(below.filter(is_new));
            }
        }
        found
    }

    fn part_of(&self, part: &Part, place: &Place) -> Option<Place> {
        let root = self.root_of(&part.on);
        let end = part.from.saturating_add(part.length);
        if !part.is_linear {
            return Some(Place { root, from: part.from, to: end, is_vague: true });
        }
        let from = part.from.saturating_add(place.from);
        let to = end.min(part.from.saturating_add(place.to));
        (from < to).then_some(Place { root, from, to, is_vague: place.is_vague })
    }
}

fn share(mine: &[Place], theirs: &[Place]) -> bool {
    mine.iter().any(|place| theirs.iter().any(|other| place.overlaps(other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 1000;

    fn number(minor: u32) -> DeviceNumber {
        DeviceNumber { major: 8, minor }
    }

    fn disk(name: &str, minor: u32, parts: Vec<Part>) -> Known {
        Known { name: name.to_owned(), number: number(minor), size: SIZE, wwid: None, parts }
    }

    fn on(minor: u32) -> Root {
        Root::Device(number(minor))
    }

    fn file(inode: u64) -> Root {
        Root::File(FileId { device: number(99), inode })
    }

    fn linear(on: Root, from: u64, length: u64) -> Vec<Part> {
        vec![Part { on, from, length, is_linear: true }]
    }

    fn member(on: Root) -> Part {
        Part { on, from: 0, length: SIZE, is_linear: false }
    }

    fn sized(size: u64, known: Known) -> Known {
        Known { size, ..known }
    }

    /// Asserts who shares bytes, both ways.
    fn check(all: Vec<Known>, pairs: &[(&str, &str, bool)]) {
        let table = Table::new(all);
        for (one, other, wanted) in pairs {
            assert_eq!(table.share(one, other), *wanted, "{one} and {other}");
            assert_eq!(table.share(other, one), *wanted, "{other} and {one}");
            assert_eq!(table.sharing(one).contains(other), *wanted, "{one} lists {other}");
        }
    }

    #[test]
    fn partitions_share_with_their_disk_and_not_with_each_other() {
        let first = sized(400, disk("sda1", 1, linear(on(0), 0, 400)));
        let second = sized(600, disk("sda2", 2, linear(on(0), 400, 600)));
        check(
            vec![disk("sda", 0, vec![]), first, second, disk("sdb", 16, vec![])],
            &[
                ("sda", "sda1", true),
                ("sda", "sda2", true),
                ("sda1", "sda2", false),
                ("sda", "sdb", false),
            ],
        );
    }

    #[test]
    fn loop_devices_over_one_file_share_where_their_ranges_overlap() {
        let over = |name, minor, from, length, inode| {
            sized(length, disk(name, minor, linear(file(inode), from, length)))
        };
        check(
            vec![
                over("loop0", 0, 0, 1000, 7),
                over("loop1", 1, 0, 500, 7),
                over("loop2", 2, 500, 500, 7),
                over("loop3", 3, 0, 1000, 8),
            ],
            &[
                ("loop0", "loop1", true),
                ("loop0", "loop2", true),
                ("loop1", "loop2", false),
                ("loop0", "loop3", false),
            ],
        );
    }

    #[test]
    fn a_file_known_by_name_only_is_the_same_under_the_same_name() {
        let over =
            |name, minor, path: &str| disk(name, minor, linear(Root::Named(path.into()), 0, SIZE));
        check(
            vec![over("loop0", 0, "/a"), over("loop1", 1, "/a"), over("loop2", 2, "/b")],
            &[("loop0", "loop1", true), ("loop0", "loop2", false)],
        );
    }

    #[test]
    fn a_loop_device_over_a_device_and_its_partitions_are_that_device() {
        let upper = disk("loop0", 50, linear(on(0), 0, SIZE));
        let inner = sized(300, disk("loop0p1", 51, linear(on(50), 100, 300)));
        let apart = sized(100, disk("sda1", 1, linear(on(0), 0, 100)));
        check(
            vec![disk("sda", 0, vec![]), apart, upper, inner],
            &[
                ("sda", "loop0", true),
                ("sda", "loop0p1", true),
                ("sda1", "loop0", true),
                ("sda1", "loop0p1", false),
            ],
        );
    }

    #[test]
    fn members_are_the_arrays_and_parts_of_what_is_built_on_them_are_apart() {
        let half = |name, minor, from| sized(500, disk(name, minor, linear(on(100), from, 500)));
        check(
            vec![
                disk("sda", 0, vec![]),
                disk("sdb", 16, vec![]),
                sized(2 * SIZE, disk("md0", 100, vec![member(on(0)), member(on(16))])),
                half("md0p1", 101, 0),
                half("md0p2", 102, 500),
                disk("dm-0", 103, vec![member(on(100))]),
                disk("dm-1", 104, vec![member(on(100))]),
                disk("loop0", 50, linear(on(0), 0, SIZE)),
            ],
            &[
                ("md0", "sda", true),
                ("md0p1", "sdb", true),
                ("md0p1", "md0", true),
                ("md0p1", "md0p2", false),
                ("sda", "sdb", false),
                ("dm-0", "dm-1", false),
                ("dm-0", "md0", true),
                ("dm-0", "sda", true),
                ("dm-0", "loop0", true),
            ],
        );
    }

    #[test]
    fn paths_to_one_drive_are_one_drive() {
        let path = |name, minor, wwid: &str| Known {
            wwid: Some(wwid.to_owned()),
            ..disk(name, minor, vec![])
        };
        let half =
            |name, minor, below, from| sized(500, disk(name, minor, linear(on(below), from, 500)));
        check(
            vec![
                path("sda", 0, "naa.1"),
                path("sdb", 16, "naa.1"),
                path("sdc", 32, "naa.2"),
                half("sda1", 1, 0, 0),
                half("sdb1", 17, 16, 0),
                half("sdb2", 18, 16, 500),
                disk("dm-0", 100, linear(on(16), 0, SIZE)),
            ],
            &[
                ("sda", "sdb", true),
                ("sda", "sdc", false),
                ("sda1", "sdb1", true),
                ("sda1", "sdb2", false),
                ("sda", "dm-0", true),
                ("sda", "sdb1", true),
            ],
        );
        // A word that two unlike drives have is no drive's own name.
        let table =
            Table::new(vec![path("sda", 0, "naa.1"), sized(SIZE + 1, path("sdb", 16, "naa.1"))]);
        assert!(!table.share("sda", "sdb"));
    }

    #[test]
    fn a_table_that_runs_in_a_circle_ends() {
        let all = vec![disk("a", 1, linear(on(2), 0, SIZE)), disk("b", 2, linear(on(1), 0, SIZE))];
        check(all, &[("a", "b", true)]);
        assert!(!Table::default().share("a", "b") && Table::default().sharing("a").is_empty());
    }

    #[test]
    fn what_is_below_is_named() {
        let table = Table::new(vec![
            disk("sda", 0, linear(file(7), 0, SIZE)),
            sized(500, disk("sda1", 1, linear(on(0), 0, 500))),
        ]);
        assert_eq!(table.below("sda1"), [on(0), file(7)]);
        assert_eq!(table.names_of(&on(0)).collect::<Vec<_>>(), ["sda"]);
    }
}
