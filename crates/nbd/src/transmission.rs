//! Requests and replies, once there is an export.

use std::io::{Read, Write};

use units::{ByteOffset, Bytes};

use crate::error::{ExportError, NbdError};
use crate::export::Export;
use crate::session::ClientSession;
use crate::{Departure, MAX_REQUEST, wire};

/// A request without its data.
#[derive(Clone, Copy, Debug)]
struct Request {
    flags: u16,
    command: u16,
    /// The client's name for it.
    handle: u64,
    at: ByteOffset,
    length: Bytes,
}

impl<S: Read + Write, E: Export + ?Sized> ClientSession<'_, S, E> {
    /// Answers requests until the client leaves.
    pub fn answer_requests(&mut self) -> Result<Departure, NbdError> {
        while let Some(header) = self.connection.next(wire::REQUEST_LEN)? {
            let request = Request::parse(header)?;
            let lawful = request.check(self.size, self.block);
            let done = match request.command {
                wire::DISCONNECT => return Ok(Departure::Disconnected),
                wire::READ if lawful.is_ok() && request.length > Bytes::ZERO => {
                    self.read(&request)?;
                    continue;
                }
                wire::WRITE if request.length > MAX_REQUEST => {
                    self.reply(request.handle, Err(ExportError::Invalid))?;
                    let (seen, most) = (request.length, MAX_REQUEST);
                    return Err(NbdError::WriteTooLong { seen, most });
                }
                wire::WRITE => {
                    let data = self.connection.rest(request.length.get() as usize)?;
                    lawful.and_then(|()| request.change(self.export, data))
                }
                _ => lawful.and_then(|()| request.change(self.export, &[])),
            };
            self.reply(request.handle, done)?;
        }
        Ok(Departure::Closed)
    }

    /// Reads from the export into the reply.
    fn read(&mut self, request: &Request) -> Result<(), NbdError> {
        let length = wire::REPLY_LEN + request.length.get() as usize;
        let space = self.connection.space(length)?;
        let (header, data) = space.split_at_mut(wire::REPLY_LEN);
        let done = self.export.read(request.at, data);
        if done.is_ok() {
            header.copy_from_slice(&reply_header(request.handle, done));
            return Ok(());
        }
        // A reply with an error has no data.
        self.connection.take_back(length);
        self.reply(request.handle, done)
    }

    fn reply(&mut self, handle: u64, done: Result<(), ExportError>) -> Result<(), NbdError> {
        self.connection.put([&reply_header(handle, done)])
    }
}

impl Request {
    fn parse(header: &[u8]) -> Result<Self, NbdError> {
        let (seen, wanted) = (wire::integer(&header[..4]), wire::REQUEST.into());
        if seen != wanted {
            return Err(NbdError::Magic { what: "a request", seen, wanted });
        }
        Ok(Self {
            flags: wire::integer(&header[4..6]) as u16,
            command: wire::integer(&header[6..8]) as u16,
            handle: wire::integer(&header[8..16]),
            at: ByteOffset::new(wire::integer(&header[16..24])),
            length: Bytes::new(wire::integer(&header[24..28])),
        })
    }

    /// Whether an export of this size and unit may see it.
    fn check(&self, size: Bytes, block: Bytes) -> Result<(), ExportError> {
        let (at, length) = (Bytes::new(self.at.get()), self.length);
        let end = at.get().checked_add(length.get());
        let (flags, beyond) = match self.command {
            wire::READ if length <= MAX_REQUEST => (wire::FUA, ExportError::Invalid),
            wire::WRITE => (wire::FUA, ExportError::NoSpace),
            wire::TRIM => (wire::FUA, ExportError::Invalid),
            wire::WRITE_ZEROES => (wire::FUA | wire::NO_HOLE, ExportError::NoSpace),
            wire::FLUSH if end == Some(0) => (wire::FUA, ExportError::Invalid),
            _ => return Err(ExportError::Invalid),
        };
        if end.is_none_or(|end| end > size.get()) {
            return Err(beyond);
        }
        let is_whole = at.is_multiple_of(block) && length.is_multiple_of(block);
        if is_whole && self.flags & !flags == 0 { Ok(()) } else { Err(ExportError::Invalid) }
    }

    /// Does what changes an export. With forced unit access it is durable afterwards.
    fn change<E: Export + ?Sized>(&self, export: &E, data: &[u8]) -> Result<(), ExportError> {
        match self.command {
            wire::FLUSH => return export.flush(),
            _ if self.length == Bytes::ZERO => {}
            wire::WRITE => export.write(self.at, data)?,
            wire::TRIM => export.trim(self.at, self.length)?,
            wire::WRITE_ZEROES => export.zero(self.at, self.length)?,
            _ => return Err(ExportError::Invalid),
        }
        if self.flags & wire::FUA != 0 { export.flush() } else { Ok(()) }
    }
}

fn reply_header(handle: u64, done: Result<(), ExportError>) -> [u8; wire::REPLY_LEN] {
    let error = done.err().map_or(0, ExportError::code);
    let value = u128::from(wire::REPLY) << 96 | u128::from(error) << 64 | u128::from(handle);
    value.to_be_bytes()
}
