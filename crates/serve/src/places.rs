//! Connections: so many at a time, and whoever is not being answered makes room for whoever comes.
//!
//! A client that says nothing, or its request letter by letter, or that reads nothing of its
//! answer, costs nobody else a wait: of those that are not being answered the one goes that has
//! not been for longest.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// All places, and who has them without being answered.
#[derive(Debug)]
pub struct Places {
    free: Arc<Semaphore>,
    quiet: Mutex<Quiet>,
    /// Somebody is not being answered any more.
    fell_quiet: Notify,
}

/// Those that are not being answered, in the order in which that began.
#[derive(Debug, Default)]
struct Quiet {
    next: u64,
    all: BTreeMap<u64, Arc<Notify>>,
}

/// A connection's place; free again when it is dropped.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    told_to_go: Arc<Notify>,
    state: Mutex<State>,
    _permit: OwnedSemaphorePermit,
}

#[derive(Debug, Default)]
struct State {
    /// How many requests of it are being answered.
    answers: usize,
    /// Where it stands among those that are quiet.
    quiet: Option<u64>,
}

/// A request that is being answered, until it is dropped.
#[derive(Debug)]
pub struct Answering(Arc<Place>);

impl Places {
    /// * `most`: connections at a time.
    pub fn new(most: usize) -> Arc<Self> {
        let free = Arc::new(Semaphore::new(most));
        Arc::new(Self { free, quiet: Mutex::default(), fell_quiet: Notify::new() })
    }

    /// A place for one more; `None` when there will be none any more.
    pub async fn take(self: &Arc<Self>) -> Option<Arc<Place>> {
        let permit = loop {
            // Listened for before anybody is looked for, so that nobody is missed.
            let fell_quiet = self.fell_quiet.notified();
            let free = Arc::clone(&self.free);
            if let Ok(permit) = Arc::clone(&free).try_acquire_owned() {
                break permit;
            }
            if self.dismiss() {
                break free.acquire_owned().await.ok()?;
            }
            tokio::select! {
                permit = free.acquire_owned() => break permit.ok()?,
                () = fell_quiet => {}
            }
        };
        let place = Place {
            places: Arc::clone(self),
            told_to_go: Arc::default(),
            state: Mutex::default(),
            _permit: permit,
        };
        place.fall_quiet(&mut locked(&place.state));
        Some(Arc::new(place))
    }

    /// Tells the one to go that has been quiet for longest; whether there was one.
    pub fn dismiss(&self) -> bool {
        let first = locked(&self.quiet).all.pop_first();
        first.inspect(|(_, go)| go.notify_one()).is_some()
    }
}

impl Place {
    /// Until the returned value is dropped it is not told to go.
    pub fn answer(self: &Arc<Self>) -> Answering {
        let mut state = locked(&self.state);
        state.answers += 1;
        self.leave_quiet(&mut state);
        Answering(Arc::clone(self))
    }

    /// Waits until somebody else has more need of it.
    pub async fn told_to_go(&self) {
        self.told_to_go.notified().await;
    }

    fn fall_quiet(&self, state: &mut State) {
        let mut quiet = locked(&self.places.quiet);
        let at = quiet.next;
        quiet.next += 1;
        quiet.all.insert(at, Arc::clone(&self.told_to_go));
        state.quiet = Some(at);
        self.places.fell_quiet.notify_waiters();
    }

    fn leave_quiet(&self, state: &mut State) {
        if let Some(at) = state.quiet.take() {
            locked(&self.places.quiet).all.remove(&at);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leave_quiet(&mut locked(&self.state));
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let mut state = locked(&self.0.state);
        state.answers -= 1;
        if state.answers == 0 {
            self.0.fall_quiet(&mut state);
        }
    }
}

/// Whoever panicked with it left it whole: each change is one step.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// What comes of a future without waiting.
    fn now<F: Future>(future: F) -> Option<F::Output> {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    fn place(places: &Arc<Places>) -> Arc<Place> {
        now(places.take()).unwrap().unwrap()
    }

    #[test]
    fn who_is_quiet_for_longest_makes_room() {
        let places = Places::new(3);
        let [first, second, third] = [0; 3].map(|_| place(&places));
        let answering = first.answer();
        let mut fourth = pin!(places.take());
        assert!(now(fourth.as_mut()).is_none());
        assert!(now(second.told_to_go()).is_some());
        assert!(now(first.told_to_go()).is_none() && now(third.told_to_go()).is_none());
        drop(second);
        let fourth = now(fourth).unwrap().unwrap();
        // Answered since: it is behind the others now.
        drop(answering);
        assert!(places.dismiss() && now(third.told_to_go()).is_some());
        assert!(places.dismiss() && now(fourth.told_to_go()).is_some());
        assert!(places.dismiss() && now(first.told_to_go()).is_some());
        assert!(!places.dismiss());
    }

    #[test]
    fn who_is_answered_stays_until_it_is() {
        let places = Places::new(1);
        let only = place(&places);
        let (one, two) = (only.answer(), only.answer());
        let mut next = pin!(places.take());
        assert!(now(next.as_mut()).is_none());
        drop(one);
        assert!(now(next.as_mut()).is_none() && now(only.told_to_go()).is_none());
        drop(two);
        assert!(now(next.as_mut()).is_none() && now(only.told_to_go()).is_some());
        drop(only);
        assert!(now(next).is_some());
    }

    #[test]
    fn who_went_by_itself_is_not_told_to() {
        let places = Places::new(2);
        drop(place(&places));
        assert!(!places.dismiss());
        let [_one, _two] = [0; 2].map(|_| place(&places));
        assert!(now(places.take()).is_none());
    }
}
