//! Addresses, and what is answered at each.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, Path, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
    REFERRER_POLICY, RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use report::page::{LiveRun, Served, Trouble, links_only, tables_only};
use tokio::sync::Semaphore;

use crate::events;
use crate::guard::{Asked, Guard, Refused};
use crate::ids::Ids;
use crate::keeper::{Desk, Failed};
use crate::places::Answering;

/// Who may listen to changes at a time: a browser tab each.
pub const LISTENERS_MAX: usize = 32;

/// As of which `plimsoll.live/1` version a page is.
const VERSION: HeaderName = HeaderName::from_static("plimsoll-version");
/// In how many ms a newer page can be had, where there is one.
const FRESH_IN: HeaderName = HeaderName::from_static("plimsoll-fresh-in-ms");

/// A page without a program: nothing in it runs, and nothing is loaded.
const BARE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'";

/// What all requests are answered with.
#[derive(Debug)]
pub struct Room {
    pub guard: Guard,
    /// The program that draws, where it was built.
    pub page: Option<Served>,
    pub desk: Desk,
    pub places: Arc<Semaphore>,
}

type Shared = State<Arc<Room>>;

pub fn router(room: Arc<Room>) -> Router {
    Router::new()
        .route("/", get(front))
        .route("/runs/{ids}", get(runs))
        .route("/api/runs", get(list))
        .route("/api/page/{ids}", get(page))
        .route("/api/table/{ids}", get(table))
        .route("/api/events", get(listen))
        .route("/favicon.ico", get(|| async { StatusCode::NO_CONTENT }))
        .fallback(|| async { refusal(StatusCode::NOT_FOUND, "there is nothing here", None) })
        .layer(middleware::from_fn_with_state(Arc::clone(&room), guarded))
        .with_state(room)
}

/// Everything passes here, also what is nowhere.
async fn guarded(State(room): Shared, request: Request, next: Next) -> Response {
    let judged = judge(&room, request.method(), request.uri(), request.headers());
    let mut response = match judged {
        Ok(()) => next.run(request).await,
        Err(refused) => refuse(&refused, asked(&room, request.uri())),
    };
    dress(response.headers_mut());
    response
}

fn judge(room: &Room, method: &Method, uri: &Uri, head: &HeaderMap) -> Result<(), Refused> {
    room.guard.judge(method, head, asked(room, uri))
}

fn asked(room: &Room, uri: &Uri) -> Asked {
    match uri.path() {
        path if path.starts_with("/api/") => Asked::Data,
        "/favicon.ico" => Asked::Program,
        _ if room.page.is_some() => Asked::Program,
        _ => Asked::Bare,
    }
}

fn refuse(refused: &Refused, asked: Asked) -> Response {
    let mut response = refusal(refused.status(), &refused.to_string(), refused.hint());
    // Without a program in the page only the browser itself can ask for the token.
    if *refused == Refused::Token && asked == Asked::Bare {
        let challenge = HeaderValue::from_static("Basic realm=\"Plimsoll: any name, the token\"");
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    response
}

/// What holds for every answer.
fn dress(head: &mut HeaderMap) {
    let fixed = [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in fixed {
        head.insert(name, HeaderValue::from_static(value));
    }
    if !head.contains_key(CONTENT_SECURITY_POLICY) {
        head.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(BARE_POLICY));
    }
}

fn text(kind: &'static str, body: impl Into<axum::body::Body>) -> Response {
    let mut response = Response::new(body.into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn html(body: impl Into<axum::body::Body>) -> Response {
    text("text/html; charset=utf-8", body)
}

/// An answer that says why there is none, for programs and people.
fn refusal(status: StatusCode, error: &str, hint: Option<&str>) -> Response {
    let trouble = Trouble { error: error.to_owned(), hint: hint.map(str::to_owned) };
    let body = serde_json::to_string(&trouble).unwrap_or_default() + "\n";
    let mut response = text("application/json", body);
    *response.status_mut() = status;
    response
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let told =
            |status, trouble: &Trouble| refusal(status, &trouble.error, trouble.hint.as_deref());
        let mut response = match &self {
            Self::NoRun(trouble) => return told(StatusCode::NOT_FOUND, trouble),
            Self::Trouble(trouble) => told(StatusCode::SERVICE_UNAVAILABLE, trouble),
            Self::Busy => busy(),
        };
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("2"));
        response
    }
}

fn busy() -> Response {
    refusal(StatusCode::SERVICE_UNAVAILABLE, "too many ask at once", Some("ask again later"))
}

#[expect(clippy::result_large_err, reason = "the answer itself, once a request")]
fn ids(text: &str) -> Result<Ids, Response> {
    Ids::parse(text).map_err(|error| refusal(StatusCode::NOT_FOUND, &error.to_string(), None))
}

/// The page's program, with its own policy.
fn program(served: &Served) -> Response {
    let mut response = html(served.html.clone());
    if let Ok(policy) = HeaderValue::from_str(&served.policy) {
        response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
    response
}

async fn front(State(room): Shared) -> Result<Response, Failed> {
    if let Some(served) = &room.page {
        return Ok(program(served));
    }
    let live = room.desk.look().await?.since(None);
    let link = |run: &LiveRun| {
        let visits = format!("{} of {} visits", run.visits_made, run.visits_planned);
        let said = [run.suite.as_str(), &run.target, &run.standing, &visits].join(" · ");
        (format!("/runs/{}", run.id), run.id.clone(), report::plain(&said))
    };
    let links: Vec<_> = live.runs.iter().rev().map(link).collect();
    Ok(html(links_only(&links)))
}

async fn runs(State(room): Shared, Path(text): Path<String>) -> Result<Response, Response> {
    let ids = ids(&text)?;
    if let Some(served) = &room.page {
        // The browser has the program to read first. For who may not see the page nothing is done.
        if room.guard.token.is_none() {
            room.desk.ahead(ids);
        }
        return Ok(program(served));
    }
    let tables = room.desk.tables(ids).await.map_err(Failed::into_response)?;
    Ok(html(tables_only(&tables)))
}

async fn list(State(room): Shared) -> Result<Response, Failed> {
    let live = room.desk.look().await?.since(None);
    let body = serde_json::to_vec(&live).unwrap_or_default();
    Ok(text("application/json", body))
}

async fn page(State(room): Shared, Path(words): Path<String>) -> Result<Response, Response> {
    let ids = ids(&words)?;
    let made = room.desk.page(ids).await.map_err(Failed::into_response)?;
    let mut response = text("application/json", made.json);
    let head = response.headers_mut();
    head.insert(VERSION, HeaderValue::from(made.version));
    if let Some(wait) = made.fresh_in {
        let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        head.insert(FRESH_IN, HeaderValue::from(ms));
    }
    Ok(response)
}

async fn table(State(room): Shared, Path(words): Path<String>) -> Result<Response, Response> {
    let ids = ids(&words)?;
    let tables = room.desk.tables(ids).await.map_err(Failed::into_response)?;
    let body: String =
        tables.iter().map(|(title, table)| format!("{title}\n\n{table}\n")).collect();
    Ok(text("text/plain; charset=utf-8", body))
}

async fn listen(
    State(room): Shared,
    Extension(answering): Extension<Arc<Answering>>,
) -> Result<Response, Failed> {
    let Ok(place) = Arc::clone(&room.places).try_acquire_owned() else { return Ok(busy()) };
    // Subscribed before it is looked, so that nothing falls between.
    let news = room.desk.watch();
    let now = room.desk.look().await?;
    Ok(events::tell(news, &now, place, answering).into_response())
}
