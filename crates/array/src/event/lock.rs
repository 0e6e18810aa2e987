//! Locks of files: who holds one, who waits for it.

/// No request.
const NOBODY: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct LockLine {
    is_held: bool,
    first: u32,
    last: u32,
    since: u64,
}

/// One lock for each file, taken in the order of asking.
#[derive(Debug)]
pub(super) struct FileLocks {
    lines: Vec<LockLine>,
    /// The request behind each request that waits.
    behind: Vec<u32>,
    /// Sum over all files, in ns.
    held: u64,
    taken: u64,
}

impl FileLocks {
    /// For requests of numbers below `slots`.
    pub(super) fn new(files: u32, slots: u32) -> Self {
        let free = LockLine { is_held: false, first: NOBODY, last: NOBODY, since: 0 };
        Self {
            lines: vec![free; files as usize],
            behind: vec![NOBODY; slots as usize],
            held: 0,
            taken: 0,
        }
    }

    /// Whether the request has the lock at once; else it waits.
    pub(super) fn take(&mut self, file: u32, request: u32, now: u64) -> bool {
        let line = &mut self.lines[file as usize];
        self.taken += 1;
        if !line.is_held {
            (line.is_held, line.since) = (true, now);
            return true;
        }
        match line.last {
            NOBODY => line.first = request,
            last => self.behind[last as usize] = request,
        }
        line.last = request;
        false
    }

    /// The holder gives it up; returns who has it now.
    pub(super) fn release(&mut self, file: u32, now: u64) -> Option<u32> {
        let line = &mut self.lines[file as usize];
        self.held += now - line.since;
        line.since = now;
        let next = line.first;
        if next == NOBODY {
            line.is_held = false;
            return None;
        }
        line.first = std::mem::replace(&mut self.behind[next as usize], NOBODY);
        if line.first == NOBODY {
            line.last = NOBODY;
        }
        Some(next)
    }

    /// Mean time that a lock was held, in ns.
    pub(super) fn busy(&self) -> u64 {
        self.held / self.lines.len() as u64
    }

    pub(super) fn visits(&self) -> u64 {
        self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_first_has_it_first() {
        let mut locks = FileLocks::new(2, 4);
        assert!(locks.take(0, 0, 10) && locks.take(1, 1, 10));
        assert!(!locks.take(0, 2, 11) && !locks.take(0, 3, 12));
        assert_eq!(locks.release(0, 20), Some(2));
        assert!(!locks.take(0, 0, 21));
        assert_eq!([0; 3].map(|_| locks.release(0, 30)), [Some(3), Some(0), None]);
        assert_eq!(locks.release(1, 30), None);
        assert_eq!((locks.busy(), locks.visits()), (20, 5));
    }
}
