//! A small client, written from the protocol and not from the server.

use std::io::{self, Cursor, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nbd::{Departure, Export, NbdError};

pub const READ: u16 = 0;
pub const WRITE: u16 = 1;
pub const DISC: u16 = 2;
pub const FLUSH: u16 = 3;
pub const TRIM: u16 = 4;
pub const WRITE_ZEROES: u16 = 6;
pub const FUA: u16 = 1;

pub const EXPORT_NAME: u32 = 1;
pub const ABORT: u32 = 2;
pub const LIST: u32 = 3;
pub const INFO: u32 = 6;
pub const GO: u32 = 7;
pub const ACK: u32 = 1;

/// What [`serve`](nbd::serve) returned.
pub type Served = Result<Departure, NbdError>;

pub struct Client {
    pub stream: UnixStream,
}

/// Lets a client talk to a server of `export` and hangs up.
pub fn talk(export: &(impl Export + Sync), talk: impl FnOnce(&mut Client)) -> Served {
    let (ours, theirs) = UnixStream::pair().unwrap();
    // A server that does not answer fails the test and does not hang it.
    ours.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    std::thread::scope(|scope| {
        let server = scope.spawn(move || nbd::serve(theirs, "volume", export));
        let mut client = Client { stream: ours };
        talk(&mut client);
        drop(client);
        server.join().unwrap()
    })
}

/// The same for a client that breaks no rule, and leaves without a word.
pub fn visit(export: &(impl Export + Sync), visit: impl FnOnce(&mut Client)) {
    assert_eq!(talk(export, visit).unwrap(), Departure::Closed);
}

impl Client {
    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    pub fn data(&mut self, length: usize) -> Vec<u8> {
        let mut data = vec![0; length];
        self.stream.read_exact(&mut data).unwrap();
        data
    }

    /// Whether the server has hung up, with nothing left to read.
    pub fn is_closed(&mut self) -> bool {
        match self.stream.read(&mut [0]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }

    pub fn greet(&mut self, flags: u32) {
        assert_eq!(&self.bytes(), b"NBDMAGICIHAVEOPT");
        assert_eq!(self.bytes(), 3u16.to_be_bytes(), "fixed newstyle, no zeroes");
        self.send(&flags.to_be_bytes());
    }

    pub fn option(&mut self, option: u32, data: &[u8]) {
        self.send(b"IHAVEOPT");
        self.send(&option.to_be_bytes());
        self.send(&(data.len() as u32).to_be_bytes());
        self.send(data);
    }

    /// The kind of a reply to this option, and its data.
    pub fn option_reply(&mut self, option: u32) -> (u32, Vec<u8>) {
        assert_eq!(self.bytes(), 0x3e889045565a9u64.to_be_bytes());
        assert_eq!(self.bytes(), option.to_be_bytes());
        let kind = u32::from_be_bytes(self.bytes());
        let length = u32::from_be_bytes(self.bytes());
        (kind, self.data(length as usize))
    }

    /// Greets and agrees on the export with GO.
    pub fn go(&mut self) {
        self.greet(3);
        self.option(GO, &name_and_infos("", &[]));
        while self.option_reply(GO).0 != ACK {}
    }

    /// A request, and the error of its reply.
    pub fn ask(&mut self, flags: u16, command: u16, at: u64, length: u32, data: &[u8]) -> u32 {
        let handle = 0x1234_5678_9abc_def0 ^ at;
        self.send(&[&request(flags, command, handle, at, length)[..], data].concat());
        let (error, seen) = self.reply();
        assert_eq!(seen, handle);
        error
    }

    /// The error and the handle of a reply.
    pub fn reply(&mut self) -> (u32, u64) {
        assert_eq!(self.bytes(), 0x67446698u32.to_be_bytes());
        (u32::from_be_bytes(self.bytes()), u64::from_be_bytes(self.bytes()))
    }
}

pub fn request(flags: u16, command: u16, handle: u64, at: u64, length: u32) -> Vec<u8> {
    let mut bytes = 0x25609513u32.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend(command.to_be_bytes());
    bytes.extend(handle.to_be_bytes());
    bytes.extend(at.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes
}

/// The data of GO and INFO.
pub fn name_and_infos(name: &str, infos: &[u16]) -> Vec<u8> {
    let mut bytes = (name.len() as u32).to_be_bytes().to_vec();
    bytes.extend(name.bytes());
    bytes.extend((infos.len() as u16).to_be_bytes());
    bytes.extend(infos.iter().flat_map(|info| info.to_be_bytes()));
    bytes
}

/// All that a client sends, known beforehand; it comes in pieces of at most `piece` bytes, and each
/// second read is interrupted. What the server says is kept, with its writes apart.
pub struct Script {
    pub input: Cursor<Vec<u8>>,
    pub piece: usize,
    pub writes: Vec<Vec<u8>>,
    is_interrupted: bool,
}

impl Script {
    pub fn new(input: Vec<u8>, piece: usize) -> Self {
        Self { input: Cursor::new(input), piece, writes: Vec::new(), is_interrupted: false }
    }
}

impl Read for Script {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.is_interrupted = !self.is_interrupted;
        if self.is_interrupted {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let length = into.len().min(self.piece);
        self.input.read(&mut into[..length])
    }
}

impl Write for Script {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.writes.push(from.to_vec());
        Ok(from.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The client's side of a handshake that ends in the transmission phase.
pub fn opening() -> Vec<u8> {
    let data = name_and_infos("volume", &[]);
    let length = (data.len() as u32).to_be_bytes();
    [&3u32.to_be_bytes()[..], b"IHAVEOPT", &GO.to_be_bytes(), &length, &data].concat()
}
