//! Questions to the kernel that may never be answered: what a loop device is over may be on another machine, or
//! belong to a program that has stopped.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// An answer takes microseconds. So long is waited for one, and once only.
const PATIENCE: Duration = Duration::from_secs(3);

/// Questions that have no answer yet; whether it has come.
static OPEN: Mutex<BTreeMap<String, Arc<AtomicBool>>> = Mutex::new(BTreeMap::new());

/// Asks in a thread of its own. An error of kind `TimedOut` if no answer comes; it is asked again only when the
/// first question has been answered.
///
/// * `what`: names the question.
pub(crate) fn ask<T: Send + 'static>(
    what: &str,
    question: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let silent = || io::Error::new(io::ErrorKind::TimedOut, format!("{what}: no answer"));
    let open = || OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if open().get(what).is_some_and(|is_answered| !is_answered.load(Ordering::Acquire)) {
        return Err(silent());
    }
    let (send, receive) = channel();
    let is_answered = Arc::new(AtomicBool::new(false));
    let here = Arc::clone(&is_answered);
    // It stays in the kernel as long as it must, and ends with the process.
    std::thread::Builder::new().name("asks".to_owned()).spawn(move || {
        let answer = question();
        here.store(true, Ordering::Release);
        let _ = send.send(answer);
    })?;
    receive.recv_timeout(PATIENCE).unwrap_or_else(|_| {
        open().insert(what.to_owned(), is_answered);
        Err(silent())
    })
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_question_without_an_answer_ends_and_is_not_asked_again_meanwhile() {
        let (go, wait) = channel::<()>();
        let asked = ask("stuck", move || {
            let _ = wait.recv();
            Ok(1)
        });
        assert_eq!(asked.unwrap_err().kind(), io::ErrorKind::TimedOut);
        // At once: nobody waits for the second.
        let start = Instant::now();
        assert_eq!(ask("stuck", || Ok(2)).unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(start.elapsed() < PATIENCE);
        assert_eq!(ask("other", || Ok(3)).unwrap(), 3);
        // The server is back.
        go.send(()).unwrap();
        let again = (0..500).find_map(|_| {
            std::thread::sleep(Duration::from_millis(10));
            ask("stuck", || Ok(4)).ok()
        });
        assert_eq!(again, Some(4));
    }
}
