//! A volume on a Unix socket.

use std::fs::File;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use std::{fmt, io};

use layer::{LayerError, LogVolume};
use nbd::{Export, ExportError};
use units::{ByteOffset, Bytes};

use crate::{VolumeError, VolumeFile};

/// What was written is on the device this much later, whether anybody flushes or not.
const FLUSH_AFTER: Duration = Duration::from_secs(1);

/// A volume that is served.
#[derive(Clone, Debug)]
pub struct ServedVolume(Arc<SharedVolume>);

pub(crate) struct SharedVolume {
    size: Bytes,
    file: Arc<File>,
    /// `None` once it is closed.
    volume: Mutex<Option<LogVolume<VolumeFile>>>,
    tell: Tell,
}

/// Is told what went wrong, a line each.
pub type Tell = Box<dyn Fn(&str) + Send + Sync>;

impl fmt::Debug for SharedVolume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedVolume").field("size", &self.size).finish_non_exhaustive()
    }
}

/// Takes a name for a socket. One that a killed server left is replaced.
pub fn listen(path: &Path) -> Result<UnixListener, VolumeError> {
    let failed = |source| VolumeError::File { what: "listen on", path: path.to_path_buf(), source };
    match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            // A file that is no socket refuses connections, too.
            let is_socket =
                std::fs::symlink_metadata(path).map_err(failed)?.file_type().is_socket();
            let is_stale = matches!(UnixStream::connect(path), Err(error)
                if error.kind() == io::ErrorKind::ConnectionRefused);
            if !(is_socket && is_stale) {
                return Err(failed(error));
            }
            std::fs::remove_file(path).map_err(failed)?;
            UnixListener::bind(path).map_err(failed)
        }
        bound => bound.map_err(failed),
    }
}

impl ServedVolume {
    /// Has it flushed now and then, from a thread of its own.
    pub fn start(volume: LogVolume<VolumeFile>, tell: Tell) -> io::Result<Self> {
        // Without the right to it, only where memory is short this process may wait for itself.
        let _ = kernel::answers_writes();
        let (size, file) = (volume.size(), volume.device().shared());
        let served =
            Self(Arc::new(SharedVolume { size, file, volume: Mutex::new(Some(volume)), tell }));
        let ours = served.clone();
        thread::Builder::new().name("flush".to_owned()).spawn(move || ours.flush_now_and_then())?;
        Ok(served)
    }

    /// Answers clients, from threads of its own.
    pub fn listen(&self, listener: UnixListener) -> io::Result<()> {
        let ours = self.clone();
        let accept = move || ours.accept(&listener);
        thread::Builder::new().name("accept".to_owned()).spawn(accept).map(drop)
    }

    pub(crate) fn shared(&self) -> Arc<SharedVolume> {
        Arc::clone(&self.0)
    }

    /// Makes all durable, writes a checkpoint and lets go of the device. Clients get errors from here on.
    pub fn close(&self) -> Result<(), LayerError> {
        let volume = self.0.volume.lock().unwrap_or_else(PoisonError::into_inner).take();
        volume.map(LogVolume::close).transpose().map(drop)
    }

    fn accept(&self, listener: &UnixListener) {
        for stream in listener.incoming() {
            let ours = self.clone();
            let served = stream.and_then(|stream| {
                let answer = move || {
                    if let Err(error) = nbd::serve(stream, "", &*ours.0) {
                        (ours.0.tell)(&format!("a client was disconnected: {error}"));
                    }
                };
                thread::Builder::new().name("client".to_owned()).spawn(answer)
            });
            if let Err(error) = served {
                (self.0.tell)(&format!("a client could not be served: {error}"));
                // Out of descriptors or threads: others may end.
                thread::sleep(FLUSH_AFTER);
            }
        }
    }

    fn flush_now_and_then(&self) {
        loop {
            thread::sleep(FLUSH_AFTER);
            let mut volume = self.0.volume.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(volume) = volume.as_mut() else { return };
            if let Err(error) = volume.settle() {
                (self.0.tell)(&format!("it only reads from here on: {error}"));
                return;
            }
        }
    }
}

impl SharedVolume {
    fn with<T>(
        &self,
        ask: impl FnOnce(&mut LogVolume<VolumeFile>) -> Result<T, LayerError>,
    ) -> Result<T, ExportError> {
        let mut volume = self.volume.lock().map_err(|_| ExportError::Io)?;
        ask(volume.as_mut().ok_or(ExportError::ShuttingDown)?).map_err(|error| match error {
            LayerError::ReadOnly { .. } => ExportError::NotPermitted,
            LayerError::NoRoom => ExportError::NoSpace,
            LayerError::Unaligned { .. } | LayerError::OutOfRange { .. } => ExportError::Invalid,
            other => {
                (self.tell)(&other.to_string());
                ExportError::Io
            }
        })
    }
}

impl Export for SharedVolume {
    fn size(&self) -> Bytes {
        self.size
    }

    fn can_multi_conn(&self) -> bool {
        true
    }

    /// Without the others having to wait, where the data lie on the device in one piece. A write that moves
    /// them meanwhile shows, and then it is read again.
    fn read(&self, at: ByteOffset, into: &mut [u8]) -> Result<(), ExportError> {
        let length = Bytes::new(into.len() as u64);
        let place = self.with(|volume| Ok(volume.place_of(at, length)))?;
        let is_read = place.is_some_and(|place| self.file.read_exact_at(into, place.get()).is_ok());
        self.with(|volume| match is_read && volume.is_as_written(at, into) {
            true => Ok(()),
            false => volume.read_bytes(at, into),
        })
    }

    fn write(&self, at: ByteOffset, from: &[u8]) -> Result<(), ExportError> {
        self.with(|volume| volume.write_bytes(at, from))
    }

    fn flush(&self) -> Result<(), ExportError> {
        self.with(LogVolume::flush)
    }

    fn trim(&self, at: ByteOffset, length: Bytes) -> Result<(), ExportError> {
        self.with(|volume| volume.trim_within(at, length))
    }

    fn zero(&self, at: ByteOffset, length: Bytes) -> Result<(), ExportError> {
        self.with(|volume| volume.zero_bytes(at, length))
    }
}
