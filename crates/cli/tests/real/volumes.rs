//! File systems on a volume of the layer, by way of a loop device, whose server is killed. With the tests in
//! it/volume.rs these are what befell the first layer of this kind in a study of 2008.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tpcc::{Scale, Seconds, Tpcc, Workload};
use units::Bytes;

use crate::databases::{Open, engines};
use crate::lab::{Lab, Running, needs_root, tool};

/// Of each file that is written until the server is killed.
const FILE: usize = 100_000;

/// A volume with a file system on it.
struct Volume {
    // First: it unmounts while the server is there.
    lab: Lab,
    device: String,
    server: Option<Running>,
    /// Where it is mounted.
    point: String,
}

impl Volume {
    fn new(name: &str, kind: &str, size: &str) -> Option<Self> {
        let known = fs::read_to_string("/proc/filesystems").unwrap();
        if !known.split_whitespace().any(|word| word == kind) || !Path::new("/dev/fuse").exists() {
            eprintln!("skipped: needs {kind} and /dev/fuse");
            return None;
        }
        let lab = Lab::new(name);
        lab.ok(&format!("layer create v --size {size}"));
        fs::create_dir(lab.path("shown")).unwrap();
        let (device, point) = (String::new(), "m".to_owned());
        let mut volume = Self { lab, device, server: None, point };
        volume.serve();
        let force = if kind == "ext4" { "-F" } else { "-f" };
        tool(&format!("mkfs.{kind}"), &["-q", force, &volume.device]);
        Some(volume)
    }

    /// The volume as a block device.
    fn serve(&mut self) {
        let mut server = self.lab.start("layer serve v --mount shown");
        server.until("a volume", |running| running.out().contains("until Ctrl-C"));
        self.lab.mounted("shown");
        self.device = self.lab.attach(&self.lab.path("shown/volume"), &["--direct-io=on"]);
        self.server = Some(server);
    }

    fn mount(&mut self) -> PathBuf {
        self.lab.mount(&[&self.device], &self.point)
    }

    fn kill(&mut self) {
        self.server.take().unwrap().kill();
    }

    /// As somebody does who finds the server killed.
    fn clear(&mut self) {
        self.lab.unmount(&self.point, &["-l"]);
        self.lab.detach(&self.device);
        // Before it is unmounted, it says what to do.
        let said = self.lab.run("layer serve v --mount shown");
        said.is(5, &["cannot mount on shown", "a killed server left it: `umount -l shown` first"]);
        self.lab.unmount("shown", &["-l"]);
    }
}

fn content(number: usize) -> Vec<u8> {
    let line = |n: usize| format!("file {number} line {n}\n");
    let mut all: Vec<u8> = (0..).flat_map(|n| line(n).into_bytes()).take(FILE).collect();
    all.truncate(FILE);
    all
}

fn path(point: &Path, number: usize) -> PathBuf {
    point.join(format!("file-{number}"))
}

/// Writes one file after the other, until it cannot. Each that is durable is known to others.
fn write_files(point: &Path, durable: &Mutex<Vec<usize>>, first: usize) -> std::io::Result<()> {
    for number in first.. {
        let mut file = File::create(path(point, number))?;
        for piece in content(number).chunks(9000) {
            file.write_all(piece)?;
        }
        file.sync_all()?;
        File::open(point)?.sync_all()?;
        durable.lock().unwrap().push(number);
        if number > first + 10 {
            // Room for the next.
            durable.lock().unwrap().retain(|&one| one != number - 10);
            fs::remove_file(path(point, number - 10))?;
        }
    }
    Ok(())
}

/// There, the file system could not be mounted after a restart, and its check failed.
fn survives(kind: &str, check: &[&str]) {
    let kills = std::env::var("PLIMSOLL_KILLS").map_or(3, |text| text.parse().unwrap());
    let Some(mut volume) = Volume::new(&format!("killed-{kind}"), kind, "320MiB") else { return };
    let durable = Mutex::new(Vec::new());
    for kill in 0..kills {
        let point = volume.mount();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| write_files(&point, &durable, 1000 * kill));
            std::thread::sleep(Duration::from_millis(400 + 150 * kill as u64));
            volume.kill();
            writer.join().unwrap().unwrap_err();
        });
        volume.clear();
        volume.serve();
        // Mounting replays the journal; after that all must be well.
        let point = volume.mount();
        let durable = durable.lock().unwrap();
        assert!(durable.len() > kill, "{kind}: {} files are durable", durable.len());
        for &number in durable.iter() {
            let seen = fs::read(path(&point, number)).unwrap();
            assert!(seen == content(number), "{kind}: file {number} is another after kill {kill}");
        }
        volume.lab.unmount("m", &[]);
        tool(check[0], &[&check[1..], &[&volume.device]].concat());
    }
}

#[test]
fn ext4_survives_kills_of_the_server() {
    needs_root!("losetup", "mkfs.ext4", "e2fsck", "mount", "umount");
    survives("ext4", &["e2fsck", "-f", "-n"]);
}

#[test]
fn xfs_survives_kills_of_the_server() {
    needs_root!("losetup", "mkfs.xfs", "xfs_repair", "mount", "umount");
    survives("xfs", &["xfs_repair", "-n"]);
}

#[test]
fn btrfs_survives_kills_of_the_server() {
    needs_root!("losetup", "mkfs.btrfs", "btrfs", "mount", "umount");
    survives("btrfs", &["btrfs", "check"]);
}

/// There, the head of a file that a shell appended to was overwritten. And a server that is asked to end
/// waits for who is on it.
#[test]
fn a_file_that_grows_for_long_keeps_its_head() {
    needs_root!("losetup", "mkfs.ext4", "mount", "umount");
    let Some(mut volume) = Volume::new("grown", "ext4", "320MiB") else { return };
    let point = volume.mount();
    let line = |number: usize| format!("line {number} of a log that a shell appends to\n");
    let mut file = File::create(point.join("run.out")).unwrap();
    for number in 0..400_000 {
        file.write_all(line(number).as_bytes()).unwrap();
        if number % 20_000 == 0 {
            // What was written lately is read back from the drive, and written over by others.
            file.sync_all().unwrap();
            fs::write(point.join("other"), content(number).repeat(100)).unwrap();
        }
    }
    drop(file);
    volume.server.as_ref().unwrap().signal(Signal::INT);
    volume.server.as_mut().unwrap().until_it_says("shown/volume is in use");
    volume.lab.unmount("m", &[]);
    let point = volume.mount();
    let text = fs::read_to_string(point.join("run.out")).unwrap();
    assert!(text.lines().enumerate().all(|(number, seen)| seen == line(number).trim_end()));
    assert_eq!(text.lines().count(), 400_000);
    volume.lab.unmount("m", &[]);
    let device = volume.device.clone();
    volume.lab.detach(&device);
    let all = fs::read(volume.lab.path("shown/volume")).unwrap();
    assert_eq!(all.len(), 320 << 20, "it is read to its end");
    let server = volume.server.take().unwrap();
    server.signal(Signal::INT);
    assert_eq!(server.end().code, Some(130));
    volume.lab.unmounted("shown");
    assert_eq!(fs::read_dir(volume.lab.path("shown")).unwrap().count(), 0, "it is still mounted");
    volume.lab.ok("layer check v");
}

/// The scratch file with the volume of a run that was killed is the next run's.
#[test]
fn a_killed_run_on_the_layer_is_no_hindrance() {
    let lab = Lab::new("killed-layer");
    let scratch = lab.path("layer-plimsoll-scratch.dat");
    let is_volume = || fs::read(&scratch).is_ok_and(|bytes| bytes.starts_with(b"PlimSupr"));
    let mut running = lab.start("run random-write --set time=1h --size 16MiB --target layer:.");
    running.until("a volume", |_| is_volume());
    running.kill();
    assert!(is_volume());
    lab.ok("run random-write --quick --size 16MiB --target layer:.");
    assert!(!scratch.exists());
}

/// What a device does not hold is said with what it does.
#[test]
fn a_device_that_is_too_small_for_a_suite_on_the_layer_is_refused() {
    needs_root!("losetup");
    let mut lab = Lab::new("small-layer");
    let image = lab.sparse("image", 256);
    let device = lab.attach(&image, &[]);
    let words = format!("run random-write --target layer:{device} --destroy {device} --dry-run");
    lab.run(&words).is(2, &["would lie on it, which has 256 MiB", "`--size 1"]);
    let fits = lab.run(&words).err;
    let most = fits.split("`--size ").nth(1).unwrap().split('`').next().unwrap();
    lab.ok(&format!("{words} --size {most}"));
}

/// A database server that can be started again as it was.
struct Again {
    command: Vec<String>,
    ids: [String; 2],
    process: Option<Child>,
}

impl Again {
    fn of(server: &db::Server) -> Self {
        let process = format!("/proc/{}", server.pid().unwrap());
        let line = fs::read_to_string(format!("{process}/cmdline")).unwrap();
        let status = fs::read_to_string(format!("{process}/status")).unwrap();
        let ids = ["Uid:", "Gid:"].map(|name| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.split_whitespace().next().unwrap().to_owned()
        });
        let command = line.split_terminator('\0').map(str::to_owned).collect();
        Self { command, ids, process: None }
    }

    fn start(&mut self, directory: &Path) {
        let [uid, gid] = &self.ids;
        let mut command = Command::new("setpriv");
        command.args([&format!("--reuid={uid}"), &format!("--regid={gid}"), "--clear-groups"]);
        command.args(["--pdeathsig=KILL", "--"]).args(&self.command);
        command.current_dir(directory).env("LC_ALL", "C");
        self.process = Some(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    }
}

impl Drop for Again {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // In order, with its children.
            let _ = kill_process(Pid::from_child(&process), Signal::TERM);
            let _ = process.wait();
        }
    }
}

/// Plays transactions until one fails; how many went well.
fn play(server: &db::Server, workload: &Tpcc, number: u32) -> u64 {
    let mut client = server.client().unwrap();
    client.prepare(&workload.statements(client.dialect())).unwrap();
    let mut player = workload.player(number, 5 + u64::from(number));
    let mut played = 0;
    while {
        player.draw();
        player.play(client.as_mut(), Seconds(1_800_000_000)).failed.is_none()
    } {
        played += 1;
    }
    played
}

/// There, a database found pages that were not its own. Its server and that of its volume are killed while it
/// plays; it comes back with all that it acknowledged, and what TPC-C wants of its data holds.
#[test]
fn databases_survive_kills_of_the_volumes_server() {
    needs_root!("losetup", "mkfs.ext4", "mount", "umount", "setpriv");
    for name in engines().into_iter().filter(|name| *name != "sqlite") {
        let engine = db::Engine::parse(name).unwrap();
        let place = Open::new();
        let name = format!("killed-{name}");
        let Some(mut volume) = Volume::new(&name, "ext4", "2500MiB") else { return };
        volume.point = place.0.join("m").display().to_string();
        let (on, memory, data) = (volume.mount(), Bytes::mib(32), Bytes::ZERO);
        let plan = db::Plan { engine, on, log_on: None, memory, data, key: 0xfeed_3001 };
        let server = db::look(&plan).unwrap().start(8, &|| false).unwrap().unwrap();
        let scale = Scale::new(1).unwrap().with_items(2000).unwrap().with_customers(300).unwrap();
        let workload = Tpcc::new(scale, 11, Seconds(1_700_000_000));
        assert!(server.load(&workload, &mut |_, _| true).unwrap());
        let (mut again, pid) = (Again::of(&server), server.pid().unwrap());
        let witness = server.witness(2).unwrap();
        std::thread::scope(|scope| {
            let players = [1, 2].map(|number| {
                scope.spawn({
                    let (server, workload) = (&server, &workload);
                    move || play(server, workload, number)
                })
            });
            std::thread::sleep(Duration::from_secs(2));
            volume.kill();
            std::thread::sleep(Duration::from_millis(100));
            // It may hang, or have ended by itself.
            let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
            let played: u64 = players.into_iter().map(|one| one.join().unwrap()).sum();
            assert!(played > 20, "{engine}: {played} transactions");
        });
        volume.clear();
        volume.serve();
        volume.mount();
        again.start(&server.path().join("data"));
        let since = Instant::now();
        let found = loop {
            match server.surviving(&witness) {
                Ok(found) => break found,
                Err(error) => {
                    assert!(since.elapsed() < Duration::from_secs(60), "{engine}: {error}");
                    std::thread::sleep(Duration::from_millis(100));
                }
            }
        };
        assert!(found.acknowledged > 20 && found.missing == 0, "{engine}: {found:?}");
        assert!(server.violations(&workload).unwrap().is_empty(), "{engine}");
        // Its directory goes with the volume: what the first server holds of it is on the dead file system.
        drop((again, server));
    }
}
