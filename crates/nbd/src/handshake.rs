//! Until client and server agree on an export.

use std::io::{Read, Write};
use std::ops::ControlFlow::{self, Break, Continue};

use units::Bytes;

use crate::error::NbdError;
use crate::export::Export;
use crate::session::ClientSession;
use crate::{Departure, MAX_REQUEST, wire};

/// The longest data of an option: a name has at most 4096 bytes, and little comes with it.
const MAX_OPTION: u32 = 8192;

/// What clients are advised to read and write at least.
const PREFERRED: Bytes = Bytes::kib(4);

impl<S: Read + Write, E: Export + ?Sized> ClientSession<'_, S, E> {
    /// Goes on to the export, unless the client leaves before it has chosen it.
    pub fn shake_hands(&mut self) -> Result<ControlFlow<Departure>, NbdError> {
        let known = wire::FIXED_NEWSTYLE | wire::NO_ZEROES;
        let words = [wire::GREETING, wire::OPTION].map(u64::to_be_bytes);
        self.connection.put([words.as_flattened(), &known.to_be_bytes()])?;
        let Some(flags) = self.connection.next(4)? else {
            return Ok(Break(Departure::Closed));
        };
        let flags = wire::integer(flags) as u32;
        if flags & !u32::from(known) != 0 {
            return Err(NbdError::ClientFlags { seen: flags, known: known.into() });
        }
        let has_zeroes = flags & u32::from(wire::NO_ZEROES) == 0;
        while let Some(header) = self.connection.next(wire::OPTION_LEN)? {
            let seen = wire::integer(&header[..8]);
            let [option, length] = [8, 12].map(|at| wire::integer(&header[at..at + 4]) as u32);
            if seen != wire::OPTION {
                return Err(NbdError::Magic { what: "an option", seen, wanted: wire::OPTION });
            }
            if length > MAX_OPTION {
                let [seen, most] = [length, MAX_OPTION].map(|length| Bytes::new(length.into()));
                return Err(NbdError::OptionTooLong { option, seen, most });
            }
            let data = self.connection.rest(length as usize)?.to_vec();
            if let Some(end) = self.answer_option(option, &data, has_zeroes)? {
                return Ok(end);
            }
        }
        Ok(Break(Departure::Closed))
    }

    /// `Some` if it was the last.
    fn answer_option(
        &mut self,
        option: u32,
        data: &[u8],
        has_zeroes: bool,
    ) -> Result<Option<ControlFlow<Departure>>, NbdError> {
        let (size_and_flags, block_info) = (self.size_and_flags(), self.block_info());
        let mut reply = |kind, data: &[u8]| {
            let [option, kind, length] = [option, kind, data.len() as u32].map(u32::to_be_bytes);
            let magic = wire::OPTION_REPLY.to_be_bytes();
            self.connection.put([&magic, &option, &kind, &length, data])
        };
        let is_called = |name: &[u8]| name.is_empty() || name == self.name.as_bytes();
        match option {
            wire::EXPORT_NAME if is_called(data) => {
                let zeroes = if has_zeroes { &[0; 124][..] } else { &[] };
                self.connection.put([&size_and_flags, zeroes])?;
                return Ok(Some(Continue(())));
            }
            wire::EXPORT_NAME => {
                let seen = String::from_utf8_lossy(data).into_owned();
                return Err(NbdError::UnknownExport { seen, wanted: self.name.to_owned() });
            }
            wire::ABORT => {
                reply(wire::REP_ACK, &[])?;
                return Ok(Some(Break(Departure::Aborted)));
            }
            wire::LIST if data.is_empty() => {
                let length = (self.name.len() as u32).to_be_bytes();
                reply(wire::REP_SERVER, &[&length, self.name.as_bytes()].concat())?;
                reply(wire::REP_ACK, &[])?;
            }
            wire::INFO | wire::GO => match asked_for(data) {
                Some(name) if is_called(name) => {
                    let export = [&wire::INFO_EXPORT.to_be_bytes()[..], &size_and_flags];
                    reply(wire::REP_INFO, &export.concat())?;
                    reply(wire::REP_INFO, &block_info)?;
                    reply(wire::REP_ACK, &[])?;
                    return Ok((option == wire::GO).then_some(Continue(())));
                }
                Some(_) => reply(wire::REP_UNKNOWN, b"no such export")?,
                None => reply(wire::REP_INVALID, b"lengths do not fit")?,
            },
            wire::LIST => reply(wire::REP_INVALID, b"a list takes no data")?,
            _ => reply(wire::REP_UNSUPPORTED, &[])?,
        }
        Ok(None)
    }

    fn size_and_flags(&self) -> Vec<u8> {
        let several = if self.export.can_multi_conn() { wire::CAN_MULTI_CONN } else { 0 };
        let changes = wire::SEND_FUA | wire::SEND_TRIM | wire::SEND_WRITE_ZEROES;
        let flags = wire::HAS_FLAGS | wire::SEND_FLUSH | changes | several;
        [&self.size.get().to_be_bytes()[..], &flags.to_be_bytes()].concat()
    }

    fn block_info(&self) -> Vec<u8> {
        let sizes = [self.block, self.block.max(PREFERRED), MAX_REQUEST];
        let sizes = sizes.map(|size| (size.get() as u32).to_be_bytes());
        [&wire::INFO_BLOCK_SIZE.to_be_bytes()[..], sizes.as_flattened()].concat()
    }
}

/// The name in the data of [`wire::INFO`] or [`wire::GO`]: its length, itself, a count and as many
/// numbers of infos. Which infos are asked for is not heeded: all are given, as the protocol allows.
fn asked_for(data: &[u8]) -> Option<&[u8]> {
    let (length, rest) = data.split_at_checked(4)?;
    let (name, rest) = rest.split_at_checked(wire::integer(length) as usize)?;
    let (count, infos) = rest.split_at_checked(2)?;
    (infos.len() as u64 == 2 * wire::integer(count)).then_some(name)
}
