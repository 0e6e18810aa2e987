//! 256 MiB of memory on a Unix socket: `cargo run --release -p plimsoll-nbd --example memory -- SOCKET`.

use std::error::Error;
use std::os::unix::net::UnixListener;
use std::sync::RwLock;

use nbd::{Export, ExportError};
use units::{ByteOffset, Bytes};

struct Memory(RwLock<Vec<u8>>);

impl Memory {
    fn change(
        &self,
        at: ByteOffset,
        length: usize,
        make: impl FnOnce(&mut [u8]),
    ) -> Result<(), ExportError> {
        let mut all = self.0.write().map_err(|_| ExportError::Io)?;
        make(&mut all[at.get() as usize..][..length]);
        Ok(())
    }
}

impl Export for Memory {
    fn size(&self) -> Bytes {
        Bytes::mib(256)
    }

    fn can_multi_conn(&self) -> bool {
        true
    }

    fn read(&self, at: ByteOffset, into: &mut [u8]) -> Result<(), ExportError> {
        let all = self.0.read().map_err(|_| ExportError::Io)?;
        into.copy_from_slice(&all[at.get() as usize..][..into.len()]);
        Ok(())
    }

    fn write(&self, at: ByteOffset, from: &[u8]) -> Result<(), ExportError> {
        self.change(at, from.len(), |part| part.copy_from_slice(from))
    }

    fn flush(&self) -> Result<(), ExportError> {
        Ok(())
    }

    fn trim(&self, _: ByteOffset, _: Bytes) -> Result<(), ExportError> {
        Ok(())
    }

    fn zero(&self, at: ByteOffset, length: Bytes) -> Result<(), ExportError> {
        self.change(at, length.get() as usize, |part| part.fill(0))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("wanted: memory SOCKET")?;
    let memory = Memory(RwLock::new(vec![0; 256 << 20]));
    std::thread::scope(|scope| {
        for stream in UnixListener::bind(path)?.incoming() {
            let (stream, memory) = (stream?, &memory);
            scope.spawn(move || nbd::serve(stream, "memory", memory));
        }
        Ok(())
    })
}
