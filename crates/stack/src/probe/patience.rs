//! Asking what may never answer.

use std::io::{self, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// More is not read.
const OUTPUT_MAX: u64 = 4 << 20;

/// Does what may hang in the kernel, in a thread of its own that is left behind if it does.
pub(crate) fn within<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (send, receive) = mpsc::channel();
    std::thread::Builder::new().spawn(move || {
        // Nobody waits any more: then nobody needs it.
        let _ = send.send(work());
    })?;
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, "no answer within 5 s");
    receive.recv_timeout(PATIENCE).map_err(late)?
}

/// What a program prints; a failure is what it complains about.
pub(super) fn output(program: &str, arguments: &[&str]) -> io::Result<String> {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut child = Command::new(program)
        .args(arguments)
        // Where such programs are, also for users who do not usually call them.
        .env("PATH", format!("{path}:/usr/local/sbin:/usr/sbin:/sbin"))
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let outputs = (child.stdout.take().map(reader), child.stderr.take().map(reader));
    let since = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if since.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.try_wait();
            let text = format!("{program} did not end within 5 s");
            return Err(io::Error::new(io::ErrorKind::TimedOut, text));
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let text = |from: Option<mpsc::Receiver<Vec<u8>>>| {
        let bytes = from.and_then(|from| from.recv_timeout(PATIENCE).ok()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let (out, complaint) = (text(outputs.0), text(outputs.1));
    if status.success() {
        return Ok(out);
    }
    Err(io::Error::other(format!("{program}: {}", super::cut(complaint.trim()))))
}

/// Reads on while the program runs, so that it never waits for a reader.
fn reader(from: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.take(OUTPUT_MAX).read_to_end(&mut bytes);
        let _ = send.send(bytes);
    });
    receive
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_heard_and_their_complaints_are_failures() {
        assert_eq!(output("echo", &["a b"]).unwrap(), "a b\n");
        let failed = output("ls", &["/no/such/place"]).unwrap_err().to_string();
        assert!(failed.contains("/no/such/place"), "{failed}");
        let missing = output("no-such-program-anywhere", &[]).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
