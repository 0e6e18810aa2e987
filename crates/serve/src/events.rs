//! What is told while it happens: server-sent events, each a `plimsoll.live/1`.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::Stream;
use futures_util::stream::unfold;
use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::keeper::Snapshot;
use crate::places::Answering;

/// Something is sent at least so often, so that both sides find out when the other is gone.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

struct Teller {
    news: watch::Receiver<Arc<Snapshot>>,
    known: Option<u64>,
    /// One of so many who may listen.
    _place: OwnedSemaphorePermit,
    /// The connection is not one that waits to be asked something.
    _answering: Arc<Answering>,
}

/// All runs first, then what changes. Who listens slowly misses steps in between, never the last one.
///
/// * `now`: the store as it is.
pub fn tell(
    news: watch::Receiver<Arc<Snapshot>>,
    now: &Snapshot,
    place: OwnedSemaphorePermit,
    answering: Arc<Answering>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>> + use<>> {
    let first = (event(now, None), Some(now.version()));
    let teller = Teller { news, known: None, _place: place, _answering: answering };
    let stream = unfold((teller, Some(first)), |(mut teller, first)| async move {
        if let Some((event, known)) = first {
            teller.known = known;
            return Some((Ok(event), (teller, None)));
        }
        loop {
            teller.news.changed().await.ok()?;
            let snapshot = Arc::clone(&teller.news.borrow_and_update());
            if teller.known.is_some_and(|known| known >= snapshot.version()) {
                continue;
            }
            let event = event(&snapshot, teller.known);
            teller.known = Some(snapshot.version());
            return Some((Ok(event), (teller, None)));
        }
    });
    Sse::new(stream).keep_alive(KeepAlive::new().interval(SIGN_OF_LIFE).text("still here"))
}

fn event(snapshot: &Snapshot, known: Option<u64>) -> Event {
    // JSON of plain numbers, texts and lists can always be written, and on one line.
    let text = serde_json::to_string(&snapshot.since(known)).unwrap_or_default();
    Event::default().event("runs").data(text)
}
