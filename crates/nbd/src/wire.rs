//! The numbers of the protocol. All integers are big-endian.

/// The server's first word.
pub const GREETING: u64 = 0x4e42_444d_4147_4943;
/// Its second, and what an option begins with.
pub const OPTION: u64 = 0x4948_4156_454f_5054;
/// What the reply to an option begins with.
pub const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
/// What a request begins with.
pub const REQUEST: u32 = 0x2560_9513;
/// What a simple reply begins with.
pub const REPLY: u32 = 0x6744_6698;

/// An option without its data: magic, number, length.
pub const OPTION_LEN: usize = 16;
/// A request without its data: magic, flags, command, handle, offset, length.
pub const REQUEST_LEN: usize = 28;
/// A reply without its data: magic, error, handle.
pub const REPLY_LEN: usize = 16;

// Flags of the handshake, the same for server and client.
pub const FIXED_NEWSTYLE: u16 = 1;
pub const NO_ZEROES: u16 = 1 << 1;

// Options.
pub const EXPORT_NAME: u32 = 1;
pub const ABORT: u32 = 2;
pub const LIST: u32 = 3;
pub const INFO: u32 = 6;
pub const GO: u32 = 7;

// Kinds of replies to them.
pub const REP_ACK: u32 = 1;
pub const REP_SERVER: u32 = 2;
pub const REP_INFO: u32 = 3;
pub const REP_UNSUPPORTED: u32 = (1 << 31) + 1;
pub const REP_INVALID: u32 = (1 << 31) + 3;
pub const REP_UNKNOWN: u32 = (1 << 31) + 6;

// Kinds of infos.
pub const INFO_EXPORT: u16 = 0;
pub const INFO_BLOCK_SIZE: u16 = 3;

// What an export can.
pub const HAS_FLAGS: u16 = 1;
pub const SEND_FLUSH: u16 = 1 << 2;
pub const SEND_FUA: u16 = 1 << 3;
pub const SEND_TRIM: u16 = 1 << 5;
pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
pub const CAN_MULTI_CONN: u16 = 1 << 8;

// Commands.
pub const READ: u16 = 0;
pub const WRITE: u16 = 1;
pub const DISCONNECT: u16 = 2;
pub const FLUSH: u16 = 3;
pub const TRIM: u16 = 4;
pub const WRITE_ZEROES: u16 = 6;

// Flags of commands.
pub const FUA: u16 = 1;
pub const NO_HOLE: u16 = 1 << 1;

/// The integer that at most 8 bytes are.
pub fn integer(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, &byte| value << 8 | u64::from(byte))
}
