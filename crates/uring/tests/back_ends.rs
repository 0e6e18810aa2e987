//! Every back end against real files: data arrives, errors pass, waits end when they should.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "all of this file is tests, also what is outside of test functions"
)]

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use device::{Completion, Device, Errno, FileIndex, Full, Op, Request, Slot};
use units::{ByteOffset, Bytes, Instant, Nanos};
use uring::{
    Allow, AnyBackend, BackendError, Choice, Create, DirectWish, FileSet, Fill, OpenError,
    OpenSpec, Requested, Visitor, WriteThrough,
};

const BLOCK: u32 = 4096;
const SEED: u64 = 42;

/// A directory on the file system of the build, removed at the end. Not the system's temporary
/// directory: that may be in memory, where direct I/O proves nothing.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("b{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A file of `blocks` blocks, each full of its own number + 1.
    fn file(&self, name: &str, blocks: u8) -> PathBuf {
        let path = self.0.join(name);
        let bytes: Vec<u8> =
            (0..blocks).flat_map(|block| vec![block + 1; BLOCK as usize]).collect();
        fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn spec(paths: &[&Path], direct: bool) -> OpenSpec {
    OpenSpec {
        files: paths.iter().map(|path| path.to_path_buf()).collect(),
        read: true,
        write: true,
        direct: if direct { DirectWish::Require } else { DirectWish::No },
        ..OpenSpec::default()
    }
}

fn requested(choice: Choice, depth: u32) -> Requested {
    Requested {
        choice,
        depth,
        buffer_len: Bytes::new(u64::from(BLOCK)),
        fill: Fill::Incompressible { seed: SEED },
        allow: Allow::default(),
    }
}

fn request(op: Op, block: u64, slot: u32) -> Request {
    Request {
        offset: ByteOffset::new(block * u64::from(BLOCK)),
        length: BLOCK,
        slot: Slot(slot),
        file: FileIndex(0),
        op,
    }
}

/// A back end of each kind and size, with the kernel's newer facilities and without.
fn all(direct: bool) -> Vec<Requested> {
    let old = Allow {
        registered_files: false,
        registered_buffers: false,
        registered_ring: false,
        defer_taskrun: false,
        no_sqarray: false,
        no_iowait: false,
        timed_wait: false,
        ..Allow::default()
    };
    let oldest = Allow { coop_taskrun: false, ..old };
    let mut all: Vec<Requested> = [1, 4]
        .into_iter()
        .flat_map(|depth| {
            [Choice::IoUring, Choice::IoUringSqpoll, Choice::Libaio, Choice::Blocking, Choice::Auto]
                .map(|choice| requested(choice, depth))
        })
        .collect();
    all.extend([old, oldest].map(|allow| Requested { allow, ..requested(Choice::IoUring, 4) }));
    if !direct {
        all.extend([1, 4].map(|depth| requested(Choice::Mmap, depth)));
    }
    all
}

/// Runs a check on a device, whatever its type.
struct Check<F>(F);

trait Body {
    fn run<D: Device>(&mut self, device: &mut D);
}

impl<B: Body> Visitor for Check<&mut B> {
    type Output = ();
    fn visit<D: Device>(self, device: &mut D) {
        self.0.run(device);
    }
}

/// Opens every back end on `spec` and runs `body` on it. Those that this machine refuses are
/// skipped, with the reason.
fn on_each(spec: &OpenSpec, direct: bool, mut body: impl Body) {
    let files = match FileSet::open(spec) {
        Ok(files) => Arc::new(files),
        Err(OpenError::NoDirect { path, reason }) => {
            println!("skipped: no direct I/O on {}: {reason}", path.display());
            return;
        }
        Err(error) => panic!("{error}"),
    };
    for requested in all(direct) {
        match uring::open(&files, &requested) {
            Ok(mut backend) => {
                println!(
                    "{:?} depth {}: {:?}",
                    requested.choice,
                    requested.depth,
                    backend.report()
                );
                backend.visit(Check(&mut body));
            }
            Err(
                error @ (BackendError::IoUringDenied { .. } | BackendError::LibaioDenied { .. }),
            ) => {
                println!("skipped: {error}");
            }
            Err(error) => panic!("{requested:?}: {error}"),
        }
    }
}

fn one<D: Device>(device: &mut D, request: Request) -> Completion {
    let mut done = Vec::with_capacity(1);
    device.submit(request).unwrap();
    device.reap(1, Instant::MAX, &mut done).unwrap();
    assert_eq!(done.len(), 1, "{request:?}");
    assert_eq!(done[0].slot, request.slot);
    done[0]
}

struct EveryOp(PathBuf);

impl Body for EveryOp {
    fn run<D: Device>(&mut self, device: &mut D) {
        assert_eq!(one(device, request(Op::Read, 2, 0)).result(), Ok(BLOCK));
        assert_eq!(device.buffer(Slot(0)), vec![3; BLOCK as usize]);

        device.buffer(Slot(0)).fill(77);
        assert_eq!(one(device, request(Op::Write, 1, 0)).result(), Ok(BLOCK));
        for op in [Op::Fsync, Op::Fdatasync, Op::SyncRange] {
            assert_eq!(one(device, request(op, 1, 0)).result(), Ok(0), "{op}");
        }
        let mut found = vec![0; BLOCK as usize];
        let file = fs::OpenOptions::new().read(true).write(true).open(&self.0).unwrap();
        file.read_exact_at(&mut found, u64::from(BLOCK)).unwrap();
        assert!(found.iter().all(|&byte| byte == 77));

        match one(device, request(Op::Trim, 1, 0)).result() {
            Ok(moved) => {
                assert_eq!(moved, 0);
                file.read_exact_at(&mut found, u64::from(BLOCK)).unwrap();
                assert!(found.iter().all(|&byte| byte == 0));
            }
            Err(Errno::EOPNOTSUPP) => println!("skipped: no holes on this file system"),
            Err(errno) => panic!("trim: {errno}"),
        }
        file.write_all_at(&vec![2; BLOCK as usize], u64::from(BLOCK)).unwrap();
        assert_eq!(one(device, request(Op::Read, 1, 0)).result(), Ok(BLOCK));
        assert_eq!(device.buffer(Slot(0)), vec![2; BLOCK as usize]);
    }
}

#[test]
fn every_operation_does_what_it_says_buffered() {
    let scratch = Scratch::new();
    let path = scratch.file("data", 4);
    on_each(&spec(&[&path], false), false, EveryOp(path.clone()));
}

#[test]
fn every_operation_does_what_it_says_direct() {
    let scratch = Scratch::new();
    let path = scratch.file("data", 4);
    on_each(&spec(&[&path], true), true, EveryOp(path.clone()));
}

struct Ends;

impl Body for Ends {
    fn run<D: Device>(&mut self, device: &mut D) {
        // The file has 3 blocks and a half.
        assert_eq!(one(device, request(Op::Read, 3, 0)).result(), Ok(BLOCK / 2));
        assert_eq!(one(device, request(Op::Read, 4, 0)).result(), Ok(0));
    }
}

#[test]
fn reads_at_the_end_of_the_file_are_short() {
    let scratch = Scratch::new();
    let path = scratch.file("data", 4);
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(u64::from(BLOCK) * 7 / 2).unwrap();
    on_each(&spec(&[&path], false), false, Ends);
}

struct Refused;

impl Body for Refused {
    fn run<D: Device>(&mut self, device: &mut D) {
        let ok = request(Op::Read, 0, 0);
        let write = request(Op::Write, 0, 0);
        assert_eq!(one(device, write).result(), Err(Errno(9)), "EBADF: opened for reading");
        let no_file = Request { file: FileIndex(7), ..ok };
        assert_eq!(one(device, no_file).result(), Err(Errno(9)));
        let no_slot = Request { slot: Slot(1000), ..ok };
        assert_eq!(one(device, no_slot).result(), Err(Errno::EINVAL));
        let too_long = Request { length: BLOCK + 1, ..ok };
        assert_eq!(one(device, too_long).result(), Err(Errno::EINVAL));
        assert_eq!(device.buffer(Slot(1000)), &[] as &[u8]);
        assert_eq!(one(device, ok).result(), Ok(BLOCK), "and it still works");
    }
}

#[test]
fn what_cannot_be_done_completes_with_the_errno() {
    let scratch = Scratch::new();
    let path = scratch.file("data", 4);
    let spec = OpenSpec { write: false, ..spec(&[&path], false) };
    on_each(&spec, false, Refused);
}

struct Misaligned;

impl Body for Misaligned {
    fn run<D: Device>(&mut self, device: &mut D) {
        let odd = Request { offset: ByteOffset::new(1), ..request(Op::Read, 0, 0) };
        assert_eq!(one(device, odd).result(), Err(Errno::EINVAL));
    }
}

#[test]
fn misaligned_direct_reads_pass_the_kernel_s_error_on() {
    let scratch = Scratch::new();
    let path = scratch.file("data", 4);
    on_each(&spec(&[&path], true), true, Misaligned);
}

struct Waits;

impl Body for Waits {
    fn run<D: Device>(&mut self, device: &mut D) {
        let mut done = Vec::with_capacity(16);
        // Nothing in flight: at once, unless told to sleep.
        device.reap(0, Instant::MAX, &mut done).unwrap();
        device.reap(3, Instant::MAX, &mut done).unwrap();
        let until = device.now() + Nanos::millis(3);
        device.reap(0, until, &mut done).unwrap();
        device.reap(1, until, &mut done).unwrap();
        assert!(device.now() >= until, "slept too little");
        assert!(done.is_empty());

        // As many as fit, then full; each comes back once.
        let mut taken = 0;
        while device.submit(request(Op::Read, 0, taken)).is_ok() {
            taken += 1;
        }
        assert_eq!(device.submit(request(Op::Read, 0, 0)), Err(Full));
        // More than is in flight is not waited for.
        while done.len() < taken as usize {
            let before = done.len();
            device.reap(taken as usize - before, Instant::MAX, &mut done).unwrap();
            assert!(done.len() > before, "came back with nothing");
        }
        let mut slots: Vec<u32> = done.iter().map(|completion| completion.slot.0).collect();
        slots.sort_unstable();
        assert_eq!(slots, (0..taken).collect::<Vec<_>>());

        // No more than there is room for.
        for slot in 0..taken {
            device.submit(request(Op::Read, 0, slot)).unwrap();
        }
        let mut narrow: Vec<Completion> = Vec::with_capacity(1);
        let room = narrow.capacity();
        device.reap(taken as usize, Instant::MAX, &mut narrow).unwrap();
        assert_eq!(narrow.len(), room.min(taken as usize));
        assert_eq!(narrow.capacity(), room);
        // Asking without waiting gets the rest in the end.
        let mut rest = taken as usize - narrow.len();
        while rest > 0 {
            done.clear();
            device.reap(0, Instant::MAX, &mut done).unwrap();
            rest -= done.len();
        }
        // Dropped with a request in flight: nothing hangs.
        device.submit(request(Op::Read, 0, 0)).unwrap();
        device.reap(0, Instant::MAX, &mut done).unwrap();
    }
}

#[test]
fn waits_end_as_the_seam_says() {
    let scratch = Scratch::new();
    let path = scratch.file("data", 4);
    on_each(&spec(&[&path], false), false, Waits);
}

struct ManyFiles;

impl Body for ManyFiles {
    fn run<D: Device>(&mut self, device: &mut D) {
        for file in 0..20_u32 {
            let request = Request { file: FileIndex(file), ..request(Op::Read, 0, 0) };
            assert_eq!(one(device, request).result(), Ok(BLOCK));
            assert_eq!(device.buffer(Slot(0)), vec![file as u8; BLOCK as usize], "file {file}");
        }
    }
}

#[test]
fn requests_reach_their_own_file_of_many() {
    let scratch = Scratch::new();
    let paths: Vec<PathBuf> = (0..20_u8)
        .map(|i| {
            let path = scratch.0.join(format!("f{i}"));
            fs::write(&path, vec![i; BLOCK as usize]).unwrap();
            path
        })
        .collect();
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    on_each(&spec(&paths, false), false, ManyFiles);
}

fn open_one(path: &str, read: bool, requested: &Requested) -> (Arc<FileSet>, AnyBackend) {
    let spec = OpenSpec {
        files: vec![path.into()],
        read,
        write: !read,
        direct: DirectWish::Prefer,
        ..OpenSpec::default()
    };
    let files = Arc::new(FileSet::open(&spec).unwrap());
    let backend = uring::open(&files, requested).unwrap();
    (files, backend)
}

struct Expect(Op, Option<u8>);

impl Visitor for Expect {
    type Output = ();
    fn visit<D: Device>(self, device: &mut D) {
        let Self(op, byte) = self;
        assert_eq!(one(device, request(op, 1, 0)).result(), Ok(BLOCK));
        if let Some(byte) = byte {
            assert!(device.buffer(Slot(0)).iter().all(|&found| found == byte));
        }
    }
}

#[test]
fn character_devices_are_targets() {
    for requested in all(true) {
        let (files, mut zero) = open_one("/dev/zero", true, &requested);
        assert_eq!(files.files()[0].size, None);
        assert!(!files.direct_in_force());
        zero.visit(Expect(Op::Read, Some(0)));
        let (_, mut null) = open_one("/dev/null", false, &requested);
        null.visit(Expect(Op::Write, None));
    }
    let files = Arc::new(
        FileSet::open(&OpenSpec {
            files: vec!["/dev/zero".into()],
            read: true,
            ..OpenSpec::default()
        })
        .unwrap(),
    );
    let error = uring::open(&files, &requested(Choice::Mmap, 1)).unwrap_err();
    assert!(matches!(error, BackendError::NoMapping { .. }), "{error}");
}

#[test]
fn a_refused_ring_is_replaced_with_its_reason() {
    let scratch = Scratch::new();
    let path = scratch.file("data", 4);
    let no_ring = Allow { io_uring: false, ..Allow::default() };
    let neither = Allow { libaio: false, ..no_ring };
    let name = |allow, direct| {
        let files = FileSet::open(&OpenSpec {
            direct: if direct { DirectWish::Prefer } else { DirectWish::No },
            ..spec(&[&path], false)
        });
        let files = Arc::new(files.unwrap());
        let wanted = Requested { allow, ..requested(Choice::Auto, 8) };
        let backend = uring::open(&files, &wanted).unwrap();
        (backend.report().clone(), files.direct_in_force())
    };
    let (report, _) = name(no_ring, false);
    assert_eq!(report.name, "blocking");
    assert!(report.reasons.iter().any(|why| why.contains("no io_uring")), "{report:?}");
    let (report, direct) = name(no_ring, true);
    assert_eq!(report.name, if direct { "libaio" } else { "blocking" });
    assert!(report.reasons.iter().any(|why| why.contains("EPERM")), "{report:?}");
    let (report, _) = name(neither, true);
    assert_eq!(report.name, "blocking");

    // Asked for by name there is no replacement.
    let files = Arc::new(FileSet::open(&spec(&[&path], false)).unwrap());
    let wanted = Requested { allow: neither, ..requested(Choice::IoUring, 8) };
    let error = uring::open(&files, &wanted).unwrap_err();
    assert!(matches!(error, BackendError::IoUringDenied { .. }), "{error}");
    assert!(error.hint().is_some());
    let wanted = Requested { allow: neither, ..requested(Choice::Libaio, 8) };
    let error = uring::open(&files, &wanted).unwrap_err();
    assert!(matches!(error, BackendError::LibaioDenied { .. }), "{error}");
    let error = uring::open(&files, &requested(Choice::IoUringIopoll, 8)).unwrap_err();
    assert!(matches!(error, BackendError::NoPolling { .. }), "{error}");
    let error = uring::open(&files, &requested(Choice::IoUring, 1 << 20)).unwrap_err();
    assert!(matches!(error, BackendError::Depth { .. }), "{error}");
    let error = uring::open(&files, &requested(Choice::Auto, 0)).unwrap_err();
    assert!(matches!(error, BackendError::Depth { .. }), "{error}");
}

#[test]
fn what_cannot_be_opened_is_said() {
    let scratch = Scratch::new();
    let open = |spec: &OpenSpec| FileSet::open(spec).unwrap_err();
    assert_eq!(open(&OpenSpec::default()), OpenError::Empty);
    let missing = scratch.0.join("missing");
    let error = open(&spec(&[&missing], false));
    assert!(error.to_string().contains("ENOENT"), "{error}");
    let error = open(&spec(&[&scratch.0], false));
    assert!(error.to_string().contains("is a directory"), "{error}");
    let made = OpenSpec { create: Create::New, ..spec(&[&missing], false) };
    FileSet::open(&OpenSpec { write_through: WriteThrough::Data, ..made.clone() }).unwrap();
    assert!(matches!(open(&made), OpenError::Open { errno: Errno(17), .. }), "EEXIST");
    let again = OpenSpec { create: Create::IfMissing, ..made };
    FileSet::open(&again).unwrap();
}

/// A file truncated under a mapping is an error of the request, not the end of the process.
#[test]
fn a_file_truncated_under_a_mapping_is_eio() {
    let scratch = Scratch::new();
    let path = scratch.file("data", 4);
    let files = Arc::new(FileSet::open(&spec(&[&path], false)).unwrap());
    let mut backend = uring::open(&files, &requested(Choice::Mmap, 1)).unwrap();
    let AnyBackend::Mapped(device) = &mut backend else { panic!("not a mapping") };
    assert_eq!(one(device, request(Op::Read, 3, 0)).result(), Ok(BLOCK));
    let file = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    file.set_len(u64::from(BLOCK)).unwrap();
    for op in [Op::Read, Op::Write] {
        assert_eq!(one(device, request(op, 3, 0)).result(), Err(Errno::EIO), "{op}");
    }
    assert_eq!(one(device, request(Op::Read, 0, 0)).result(), Ok(BLOCK));
    // Grown again, the file's own pages are seen again, not the handler's zeroes.
    file.set_len(u64::from(BLOCK) * 4).unwrap();
    file.write_all_at(&[9; BLOCK as usize], u64::from(BLOCK) * 3).unwrap();
    assert_eq!(one(device, request(Op::Read, 3, 0)).result(), Ok(BLOCK));
    assert_eq!(device.buffer(Slot(0)), vec![9; BLOCK as usize]);
    assert_eq!(one(device, request(Op::Write, 4, 0)).result(), Err(Errno(27)), "EFBIG");
}

#[test]
fn the_cache_is_emptied_and_seen() {
    let scratch = Scratch::new();
    let path = scratch.file("data", 64);
    let files = FileSet::open(&spec(&[&path], false)).unwrap();
    let file = &files.files()[0];
    let length = Bytes::new(64 * u64::from(BLOCK));
    let seen = uring::residency(file, ByteOffset::ZERO, length).unwrap();
    assert_eq!(seen.cached, 1.0, "just written: {seen:?}");
    uring::purge(&files).unwrap();
    let seen = uring::residency(file, ByteOffset::ZERO, length).unwrap();
    let memory = rustix::fs::statfs(&path).unwrap().f_type == 0x0102_1994;
    if memory {
        println!("skipped: tmpfs has no other place for its pages");
    } else {
        assert_eq!(seen.cached, 0.0, "{seen:?}");
        let mut byte = [0];
        fs::File::open(&path).unwrap().read_exact_at(&mut byte, 0).unwrap();
        assert!(uring::residency(file, ByteOffset::ZERO, length).unwrap().cached > 0.0);
    }
    assert_eq!(uring::residency(file, ByteOffset::ZERO, Bytes::ZERO).unwrap().cached, 0.0);
}

#[test]
fn files_are_made_and_marked() {
    let scratch = Scratch::new();
    let path = scratch.0.join("made");
    let size = Bytes::mib(1);
    uring::allocate(&path, size, uring::Allocation::Sparse).unwrap();
    match uring::allocate(&path, size, uring::Allocation::Reserved) {
        Ok(()) => {}
        Err(error) if error.errno == Errno::EOPNOTSUPP => println!("skipped: {error}"),
        Err(error) => panic!("{error}"),
    }
    assert_eq!(fs::metadata(&path).unwrap().len(), size.get());
    assert_eq!(uring::mark(&path, "user.plimsoll").unwrap(), None);
    match uring::set_mark(&path, "user.plimsoll", b"mine") {
        Ok(()) => {
            let mark = uring::mark(&path, "user.plimsoll").unwrap();
            assert_eq!(mark.as_deref(), Some(&b"mine"[..]));
        }
        Err(error) => println!("skipped: {error}"),
    }
    let huge = Bytes::new(1 << 60);
    let error = uring::allocate(&path, huge, uring::Allocation::Reserved).unwrap_err();
    assert!(matches!(error.errno.0, 27 | 28), "{error}");
    uring::sync_file_system(&path).unwrap();
    let files = FileSet::open(&spec(&[&path], false)).unwrap();
    match uring::discard(&files.files()[0]) {
        Ok(()) => {}
        Err(error) if error.errno == Errno::EOPNOTSUPP => println!("skipped: {error}"),
        Err(error) => panic!("{error}"),
    }
}

/// Reads until nothing comes before `until`: what is in flight then never completes.
struct Never;

impl Visitor for Never {
    type Output = ();
    fn visit<D: Device>(self, device: &mut D) {
        let mut done = Vec::with_capacity(4);
        for slot in 0..2 {
            device.submit(request(Op::Read, 0, slot)).unwrap();
        }
        loop {
            done.clear();
            let until = device.now() + Nanos::millis(30);
            device.reap(1, until, &mut done).unwrap();
            if done.is_empty() {
                assert!(device.now() >= until, "came back early with nothing");
                break;
            }
            for completion in &done {
                device.submit(request(Op::Read, 0, completion.slot.0)).unwrap();
            }
        }
        assert_eq!(device.buffer(Slot(0)), &[] as &[u8], "in flight: not ours");
        device.reap(0, Instant::MAX, &mut done).unwrap();
    }
}

/// The master of a pseudo-terminal that nobody writes to: a read that stays in flight.
#[test]
fn a_ring_with_a_request_that_never_ends_keeps_its_times_and_ends() {
    for mut wanted in all(true) {
        if matches!(wanted.choice, Choice::IoUring | Choice::IoUringSqpoll) {
            wanted.depth = 4;
            let (_files, mut backend) = open_one("/dev/ptmx", true, &wanted);
            backend.visit(Never);
            let before = std::time::Instant::now();
            drop(backend);
            // Cancelled, not waited for.
            assert!(before.elapsed() < std::time::Duration::from_secs(2), "{wanted:?}");
        }
    }
}

/// The kernel's log, read to its end: a `pread` that stays in the kernel.
#[test]
fn threads_stuck_in_the_kernel_are_left_there() {
    if let Err(error) = fs::File::open("/dev/kmsg") {
        println!("skipped: /dev/kmsg: {error}");
        return;
    }
    let (_files, mut backend) = open_one("/dev/kmsg", true, &requested(Choice::Blocking, 4));
    backend.visit(Never);
    drop(backend);
}

/// A loop device over a scratch file; gone at the end.
struct LoopDevice {
    path: PathBuf,
    _scratch: Scratch,
}

impl LoopDevice {
    fn new() -> Result<Self, String> {
        let scratch = Scratch::new();
        let file = scratch.file("disk", 16);
        let made = std::process::Command::new("losetup")
            .args(["--find", "--show"])
            .arg(&file)
            .output()
            .map_err(|error| format!("losetup: {error}"))?;
        if !made.status.success() {
            return Err(String::from_utf8_lossy(&made.stderr).trim().to_owned());
        }
        let path = String::from_utf8_lossy(&made.stdout).trim().into();
        Ok(Self { path, _scratch: scratch })
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = std::process::Command::new("losetup").arg("--detach").arg(&self.path).status();
    }
}

struct BlockOps;

impl Body for BlockOps {
    fn run<D: Device>(&mut self, device: &mut D) {
        device.buffer(Slot(0)).fill(5);
        assert_eq!(one(device, request(Op::Write, 7, 0)).result(), Ok(BLOCK));
        assert_eq!(one(device, request(Op::Fdatasync, 0, 0)).result(), Ok(0));
        device.buffer(Slot(0)).fill(0);
        assert_eq!(one(device, request(Op::Read, 7, 0)).result(), Ok(BLOCK));
        assert_eq!(device.buffer(Slot(0)), vec![5; BLOCK as usize]);
        match one(device, request(Op::Trim, 7, 0)).result() {
            Ok(moved) => {
                assert_eq!(moved, 0);
                assert_eq!(one(device, request(Op::Read, 7, 0)).result(), Ok(BLOCK));
                assert_eq!(device.buffer(Slot(0)), vec![0; BLOCK as usize]);
            }
            Err(Errno::EOPNOTSUPP) => println!("skipped: no discard below this loop device"),
            Err(errno) => panic!("trim: {errno}"),
        }
        // Beyond the end: nothing to read, no room to write.
        assert_eq!(one(device, request(Op::Read, 16, 0)).result(), Ok(0));
        assert_eq!(one(device, request(Op::Write, 16, 0)).result(), Err(Errno::ENOSPC));
    }
}

#[test]
fn block_devices_are_read_written_and_trimmed() {
    let disk = match LoopDevice::new() {
        Ok(disk) => disk,
        Err(why) => {
            println!("skipped: no loop device: {why}");
            return;
        }
    };
    let spec = OpenSpec { exclusive: true, ..spec(&[&disk.path], true) };
    {
        let files = FileSet::open(&spec).unwrap();
        assert_eq!(files.files()[0].kind, uring::Kind::Block);
        assert_eq!(files.files()[0].size, Some(Bytes::kib(64)));
        let held = FileSet::open(&spec).unwrap_err();
        assert!(matches!(held, OpenError::Open { errno: Errno(16), .. }), "EBUSY: {held}");
        assert!(held.hint().is_some());
    }
    on_each(&spec, true, BlockOps);
    // A back end that is gone holds nothing: the next exclusive opening succeeds at once.
    for requested in all(true).iter().cycle().take(48) {
        let files = Arc::new(FileSet::open(&spec).unwrap_or_else(|error| {
            panic!("{error}, before {requested:?}");
        }));
        let Ok(mut backend) = uring::open(&files, requested) else { continue };
        backend.visit(Expect(Op::Read, None));
    }
    assert_eq!(uring::block_device_size(&disk.path).unwrap(), Bytes::kib(64));
}
