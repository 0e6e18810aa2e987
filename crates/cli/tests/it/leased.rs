//! Files that people name and on which another process has a lease: opening them would end that process,
//! unless it expects the signal.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::world::{Done, World};

/// By the default action of `SIGIO` it ends when the kernel asks for the lease.
struct Holder(Child);

impl Holder {
    /// `None` where leases cannot be had.
    fn of(path: &Path, kind: &str) -> Option<Self> {
        let script = format!(
            "import fcntl, os, sys, time\n\
             fd = os.open(sys.argv[1], os.O_RDWR if '{kind}' == 'F_WRLCK' else os.O_RDONLY)\n\
             fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.{kind})\n\
             print('ready', flush=True)\ntime.sleep(60)\n"
        );
        let mut command = Command::new("python3");
        command.args(["-c", &script]).arg(path).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut holder = Self(command.spawn().ok()?);
        holder.0.stdout.as_mut().unwrap().read_exact(&mut [0; 5]).is_ok().then_some(holder)
    }

    #[track_caller]
    fn lives(&mut self, what: &[&str], done: &Done) {
        // The signal takes a moment.
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(self.0.try_wait().unwrap().is_none(), "{what:?} ended it: {done:?}");
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_leased_file_is_neither_read_nor_looked_at() {
    let world = World::with_two_runs();
    let list = "schema = 1\nname = \"l\"\n[[part]]\nsuite = \"leased.toml\"\n";
    std::fs::write(world.path("list.toml"), list).unwrap();
    let suite = "schema = 1\nname = \"a\"\n[[phase]]\nname = \"p\"\noperation = \"read\"\n";
    let leased = world.path("leased.toml");
    std::fs::write(&leased, suite).unwrap();
    let Some(mut holder) = Holder::of(&leased, "F_WRLCK") else {
        return println!("skipped: no python3, or no leases here");
    };
    for line in [
        "import leased.toml",
        "run ./leased.toml --target null:",
        "run random-read --target model:leased.toml",
        "suite show leased.toml",
        "suite show list.toml",
        "compare --live leased.toml leased.toml",
        "study leased.toml --dry-run",
    ] {
        let words: Vec<_> = line.split(' ').collect();
        let done = world.run(&words);
        holder.lives(&words, &done);
        assert_ne!(done.code, 0, "{words:?}: {done:?}");
        let who = format!("(pid {})", holder.0.id());
        assert!(done.err.contains(&who), "{words:?}: {done:?}");
    }
    drop(holder);
    assert_eq!(std::fs::read_to_string(&leased).unwrap(), suite);
}

/// A new file in the place of a leased one is not written into the old one.
#[test]
fn a_reader_s_lease_is_not_broken() {
    let world = World::with_two_runs();
    let path = world.path("result");
    std::fs::write(&path, "mine").unwrap();
    let Some(mut holder) = Holder::of(&path, "F_RDLCK") else {
        return println!("skipped: no python3, or no leases here");
    };
    let words = ["export", "r1", "--format", "json", "-o", "result", "--force"];
    let done = world.ok(&words);
    holder.lives(&words, &done);
    assert_ne!(std::fs::read(&path).unwrap(), b"mine");
}
