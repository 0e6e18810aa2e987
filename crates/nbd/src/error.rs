//! Why a request or a connection failed.

use std::io;

use units::Bytes;

/// Why an export did not do what it was asked, as far as the protocol can tell a client. The
/// connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    /// `EPERM`: it only reads.
    #[error("operation not permitted")]
    NotPermitted,
    /// `EIO`: what it lives on failed.
    #[error("input or output error")]
    Io,
    /// `ENOMEM`.
    #[error("out of memory")]
    NoMemory,
    /// `EINVAL`: the request makes no sense.
    #[error("invalid request")]
    Invalid,
    /// `ENOSPC`: no room, or beyond the end.
    #[error("no space left")]
    NoSpace,
    /// `EOVERFLOW`: too long.
    #[error("request too long")]
    Overflow,
    /// `ENOTSUP`: it cannot do this.
    #[error("not supported")]
    NotSupported,
    /// `ESHUTDOWN`: it is about to end.
    #[error("shutting down")]
    ShuttingDown,
}

impl ExportError {
    /// The number that stands for it in a reply. They are the protocol's own and the same on every
    /// system.
    pub const fn code(self) -> u32 {
        match self {
            Self::NotPermitted => 1,
            Self::Io => 5,
            Self::NoMemory => 12,
            Self::Invalid => 22,
            Self::NoSpace => 28,
            Self::Overflow => 75,
            Self::NotSupported => 95,
            Self::ShuttingDown => 108,
        }
    }
}

/// Why a connection ended before the client wanted it to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NbdError {
    /// The stream failed.
    #[error("the connection failed")]
    Stream(#[from] io::Error),
    /// The client went away within a message.
    #[error("the client closed the connection {seen} into a part of a message of {wanted}")]
    Vanished {
        /// What has come of the part.
        seen: Bytes,
        /// Its length.
        wanted: Bytes,
    },
    /// The client speaks something else, or its messages and ours are out of step.
    #[error("{what} begins with {seen:#x}, wanted {wanted:#x}")]
    Magic {
        /// What should have come.
        what: &'static str,
        /// Its first bytes.
        seen: u64,
        /// As they should be.
        wanted: u64,
    },
    /// The client wants a form of handshake that is not known.
    #[error("the client set flags {seen:#x}, wanted none but {known:#x}")]
    ClientFlags {
        /// What it set.
        seen: u32,
        /// What it may.
        known: u32,
    },
    /// More data than any option has.
    #[error("option {option} has {seen} of data, wanted at most {most}")]
    OptionTooLong {
        /// Its number.
        option: u32,
        /// Its length.
        seen: Bytes,
        /// The limit.
        most: Bytes,
    },
    /// The client chose an export in the way that allows no answer but to hang up.
    #[error("the client wants export {seen:?}, wanted {wanted:?} or no name")]
    UnknownExport {
        /// What it wants, with marks for what is no text.
        seen: String,
        /// What there is.
        wanted: String,
    },
    /// A write whose data are not worth waiting for. It was answered with `EINVAL`.
    #[error("a write of {seen}, wanted at most {most}")]
    WriteTooLong {
        /// Its length.
        seen: Bytes,
        /// The limit.
        most: Bytes,
    },
}
