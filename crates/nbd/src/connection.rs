//! A stream with a buffer on each side.

use std::io::{ErrorKind, Read, Write};

use units::Bytes;

use crate::error::NbdError;

/// The length of both buffers until a longer request comes.
const BUFFER_LEN: usize = crate::BATCH.get() as usize;

/// A stream whose input is buffered, and whose output is sent before anything is waited for.
#[derive(Debug)]
pub struct Connection<S> {
    stream: S,
    /// Unread is from `begin` to `end`. What lies beyond keeps its old bytes: to clear it again for
    /// each read would cost as much as to copy the data.
    input: Vec<u8>,
    begin: usize,
    end: usize,
    /// Unsent are the first `filled` bytes.
    output: Vec<u8>,
    filled: usize,
}

impl<S: Read + Write> Connection<S> {
    pub fn new(stream: S) -> Self {
        let [input, output] = [(); 2].map(|()| vec![0; BUFFER_LEN]);
        Self { stream, input, begin: 0, end: 0, output, filled: 0 }
    }

    /// The next `length` bytes; `None` if the stream ends before the first. Waits for them, and sends
    /// before it waits.
    pub fn next(&mut self, length: usize) -> Result<Option<&[u8]>, NbdError> {
        while self.end - self.begin < length {
            self.send()?;
            match self.receive(length) {
                Ok(0) if self.end == 0 => return Ok(None),
                Ok(0) => return Err(vanished(self.end, length)),
                Ok(count) => self.end += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.begin += length;
        Ok(Some(&self.input[self.begin - length..self.begin]))
    }

    /// The next `length` bytes of a message that has begun.
    pub fn rest(&mut self, length: usize) -> Result<&[u8], NbdError> {
        self.next(length)?.ok_or_else(|| vanished(0, length))
    }

    /// One read from the stream, with what is unread moved to the front.
    fn receive(&mut self, length: usize) -> std::io::Result<usize> {
        self.input.copy_within(self.begin..self.end, 0);
        (self.begin, self.end) = (0, self.end - self.begin);
        if self.end == self.input.len() {
            // It doubles as data come, and does not take the client's word for the length.
            let longer = length.min(2 * self.end);
            self.input.reserve_exact(longer - self.end);
            self.input.resize(longer, 0);
        }
        self.stream.read(&mut self.input[self.end..])
    }

    /// Space for `length` bytes of output, to be filled by the caller. It holds old bytes.
    pub fn space(&mut self, length: usize) -> Result<&mut [u8], NbdError> {
        if self.output.len() - self.filled < length {
            self.send()?;
            if self.output.len() < length {
                self.output.resize(length, 0);
            }
        }
        self.filled += length;
        Ok(&mut self.output[self.filled - length..self.filled])
    }

    /// Takes back the last `length` bytes of space.
    pub fn take_back(&mut self, length: usize) {
        self.filled -= length;
    }

    /// Output that is a row of parts.
    pub fn put<const N: usize>(&mut self, parts: [&[u8]; N]) -> Result<(), NbdError> {
        let mut space = self.space(parts.iter().map(|part| part.len()).sum())?;
        for part in parts {
            let (here, after) = space.split_at_mut(part.len());
            here.copy_from_slice(part);
            space = after;
        }
        Ok(())
    }

    /// Writes all output to the stream. What failed is not tried again.
    pub fn send(&mut self) -> Result<(), NbdError> {
        let filled = std::mem::take(&mut self.filled);
        if filled > 0 {
            self.stream.write_all(&self.output[..filled])?;
            self.stream.flush()?;
        }
        Ok(())
    }
}

fn vanished(seen: usize, wanted: usize) -> NbdError {
    NbdError::Vanished { seen: Bytes::new(seen as u64), wanted: Bytes::new(wanted as u64) }
}
