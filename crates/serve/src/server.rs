//! A socket, and who is let in.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use report::page::Served;
use tokio::runtime;
use tokio::sync::{Semaphore, oneshot};

use crate::Makers;
use crate::guard::Guard;
use crate::http::{LISTENERS_MAX, Room, router};
use crate::keeper;
use crate::places::Places;

/// Connections at a time: for more, those make room that are not being answered.
const CONNECTIONS_MAX: usize = 96;
/// A request has to be there after so long; a connection without one is closed.
const HEAD_MAX: Duration = Duration::from_secs(10);
/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// How long the end may wait for a page that is being made.
const GRACE: Duration = Duration::from_millis(500);
/// The system is out of file descriptors or the like.
const PAUSE: Duration = Duration::from_millis(200);

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Somebody else listens there.
    #[error("{0} is in use: another program listens there")]
    InUse(SocketAddr),
    /// Below 1024, as a rule.
    #[error("{0} may not be listened on")]
    NotAllowed(SocketAddr),
    /// An address of another machine.
    #[error("{0} is no address of this machine")]
    NotHere(SocketAddr),
    /// Anything else about the socket.
    #[error("cannot listen on {address}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// No thread, or no timer.
    #[error("cannot start the server")]
    Start(#[source] io::Error),
}

impl ServeError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        let of = |address: &SocketAddr, port: u16| SocketAddr::new(address.ip(), port);
        match self {
            Self::InUse(address) => Some(format!(
                "perhaps it is served already; `--listen {}` takes a port that is free",
                of(address, 0)
            )),
            Self::NotAllowed(address) => {
                Some(format!("take a port from 1024 on, such as `--listen {}`", of(address, 8080)))
            }
            Self::NotHere(_) => Some("`ip address` shows those that are".to_owned()),
            _ => None,
        }
    }
}

/// What is served.
#[derive(Debug)]
pub struct Setup {
    /// Who is answered.
    pub guard: Guard,
    /// The program that draws; without it there are tables.
    pub page: Option<Served>,
    /// The runs.
    pub store: PathBuf,
    /// What is made of them.
    pub makers: Makers,
}

/// A server that has its address, and does not answer yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
}

/// A server that answers, until it is told to stop.
#[derive(Debug)]
pub struct Running {
    stop: oneshot::Sender<()>,
    ended: mpsc::Receiver<()>,
}

impl Server {
    /// Takes an address.
    pub fn bind(address: SocketAddr) -> Result<Self, ServeError> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => ServeError::InUse(address),
            io::ErrorKind::PermissionDenied => ServeError::NotAllowed(address),
            io::ErrorKind::AddrNotAvailable => ServeError::NotHere(address),
            _ => ServeError::Listen { address, source },
        };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Begins to answer, in threads of its own.
    pub fn start(self, setup: Setup) -> Result<Running, ServeError> {
        let (desk, keeper) = keeper::start(setup.store, setup.makers).map_err(ServeError::Start)?;
        let places = Arc::new(Semaphore::new(LISTENERS_MAX));
        let room = Room { guard: setup.guard, page: setup.page, desk, places };
        let router = router(Arc::new(room));
        let runtime = runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(ServeError::Start)?;
        let (stop, stopped) = oneshot::channel();
        let (end, ended) = mpsc::channel();
        let work = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = serve(self.listener, router) => {}
                    _ = stopped => {}
                }
            });
            // With it goes every connection, and the keeper's desk with the last of them.
            drop(runtime);
            let _ = keeper.join();
            let _ = end.send(());
        };
        let thread = thread::Builder::new().name("server".to_owned()).spawn(work);
        thread.map_err(ServeError::Start)?;
        Ok(Running { stop, ended })
    }
}

impl Running {
    /// Ends it at once: connections are cut, and the store is closed.
    pub fn stop(self) {
        let _ = self.stop.send(());
        // A page that is being made is waited for, so that the store is left tidy; not for long.
        let _ = self.ended.recv_timeout(GRACE);
    }
}

async fn serve(listener: TcpListener, router: Router) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let places = Places::new(CONNECTIONS_MAX);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_MAX).max_buf_size(HEAD_BYTES_MAX);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            places.dismiss();
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let Some(place) = places.take().await else { return };
        let _ = stream.set_nodelay(true);
        let (router, asking) = (TowerToHyperService::new(router.clone()), Arc::clone(&place));
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            // What is told for longer than a page takes with it.
            let answering = Arc::new(asking.answer());
            request.extensions_mut().insert(Arc::clone(&answering));
            let answer = router.call(request);
            async move {
                let answer = answer.await;
                drop(answering);
                answer
            }
        });
        let connection = http.serve_connection(TokioIo::new(stream), service);
        tokio::spawn(async move {
            tokio::select! {
                // How a connection ends is the other side's matter.
                _ = connection => {}
                () = place.told_to_go() => {}
            }
        });
    }
}
