//! An export in memory that writes down what it is asked, and fails where it is told to.

use std::sync::Mutex;

use nbd::{Export, ExportError};
use units::{ByteOffset, Bytes};

pub const SIZE: u64 = 1 << 20;

/// What an export was asked: position and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Read(u64, u64),
    Write(u64, u64),
    Flush,
    Trim(u64, u64),
    Zero(u64, u64),
}

pub struct Memory {
    pub data: Mutex<Vec<u8>>,
    pub calls: Mutex<Vec<Call>>,
    pub fails: Option<ExportError>,
    pub block: Bytes,
    pub multi: bool,
}

impl Memory {
    pub fn new(size: u64) -> Self {
        Self {
            data: Mutex::new((0..size).map(|at| (at % 251) as u8).collect()),
            calls: Mutex::default(),
            fails: None,
            block: Bytes::new(1),
            multi: false,
        }
    }

    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    fn called(&self, call: Call) -> Result<(), ExportError> {
        self.calls.lock().unwrap().push(call);
        self.fails.map_or(Ok(()), Err)
    }

    fn change(&self, at: ByteOffset, length: usize, make: impl FnOnce(&mut [u8])) {
        make(&mut self.data.lock().unwrap()[at.get() as usize..][..length]);
    }
}

impl Export for Memory {
    fn size(&self) -> Bytes {
        Bytes::new(self.data.lock().unwrap().len() as u64)
    }

    fn block(&self) -> Bytes {
        self.block
    }

    fn can_multi_conn(&self) -> bool {
        self.multi
    }

    fn read(&self, at: ByteOffset, into: &mut [u8]) -> Result<(), ExportError> {
        self.called(Call::Read(at.get(), into.len() as u64))?;
        self.change(at, into.len(), |part| into.copy_from_slice(part));
        Ok(())
    }

    fn write(&self, at: ByteOffset, from: &[u8]) -> Result<(), ExportError> {
        self.called(Call::Write(at.get(), from.len() as u64))?;
        self.change(at, from.len(), |part| part.copy_from_slice(from));
        Ok(())
    }

    fn flush(&self) -> Result<(), ExportError> {
        self.called(Call::Flush)
    }

    fn trim(&self, at: ByteOffset, length: Bytes) -> Result<(), ExportError> {
        self.called(Call::Trim(at.get(), length.get()))
    }

    fn zero(&self, at: ByteOffset, length: Bytes) -> Result<(), ExportError> {
        self.called(Call::Zero(at.get(), length.get()))?;
        self.change(at, length.get() as usize, |part| part.fill(0));
        Ok(())
    }
}
