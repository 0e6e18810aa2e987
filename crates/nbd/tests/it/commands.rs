//! What is asked of an export.

use nbd::{Departure, ExportError};
use units::Bytes;

use crate::client::{
    DISC, FLUSH, FUA, READ, Script, TRIM, WRITE, WRITE_ZEROES, opening, request, talk, visit,
};
use crate::memory::{Call, Memory, SIZE};

const EINVAL: u32 = 22;
const ENOSPC: u32 = 28;

#[test]
fn each_command_does_what_it_says() {
    let memory = Memory::new(SIZE);
    let served = talk(&memory, |client| {
        client.go();
        assert_eq!(client.ask(0, WRITE, 3, 5, b"hello"), 0);
        assert_eq!(client.ask(0, READ, 2, 7, &[]), 0);
        assert_eq!(&client.bytes(), b"\x02hello\x08");
        assert_eq!(client.ask(0, WRITE_ZEROES, 4, 2, &[]), 0);
        assert_eq!(client.ask(0, READ, 3, 4, &[]), 0);
        assert_eq!(&client.bytes(), b"h\0\0l");
        assert_eq!(client.ask(0, TRIM, 4096, 8192, &[]), 0);
        assert_eq!(client.ask(0, FLUSH, 0, 0, &[]), 0);
        client.send(&request(0, DISC, 1, 0, 0));
        assert!(client.is_closed());
    });
    assert_eq!(served.unwrap(), Departure::Disconnected);
    let wanted = [
        Call::Write(3, 5),
        Call::Read(2, 7),
        Call::Zero(4, 2),
        Call::Read(3, 4),
        Call::Trim(4096, 8192),
        Call::Flush,
    ];
    assert_eq!(memory.calls(), wanted);
}

#[test]
fn forced_unit_access_flushes() {
    let memory = Memory::new(SIZE);
    visit(&memory, |client| {
        client.go();
        assert_eq!(client.ask(FUA, WRITE, 0, 1, b"x"), 0);
        assert_eq!(client.ask(FUA, TRIM, 0, 1, &[]), 0);
        // With and without holes.
        assert_eq!(client.ask(FUA | 2, WRITE_ZEROES, 0, 1, &[]), 0);
        assert_eq!(client.ask(FUA, READ, 0, 1, &[]), 0);
        client.data(1);
    });
    let calls = memory.calls();
    let wanted = [Call::Write(0, 1), Call::Flush, Call::Trim(0, 1), Call::Flush];
    assert_eq!(calls[..4], wanted);
    assert_eq!(calls[4..], [Call::Zero(0, 1), Call::Flush, Call::Read(0, 1)]);
}

#[test]
fn errors_have_the_numbers_of_the_protocol() {
    let numbers = [
        (ExportError::NotPermitted, 1),
        (ExportError::Io, 5),
        (ExportError::NoMemory, 12),
        (ExportError::Invalid, 22),
        (ExportError::NoSpace, 28),
        (ExportError::Overflow, 75),
        (ExportError::NotSupported, 95),
        (ExportError::ShuttingDown, 108),
    ];
    for (error, number) in numbers {
        let memory = Memory { fails: Some(error), ..Memory::new(SIZE) };
        let served = talk(&memory, |client| {
            client.go();
            // A failed read has no data: the next reply follows at once.
            for command in [READ, TRIM, WRITE_ZEROES] {
                assert_eq!(client.ask(0, command, 0, 4096, &[]), number);
            }
            assert_eq!(client.ask(0, WRITE, 0, 4, b"data"), number);
            assert_eq!(client.ask(FUA, WRITE, 0, 4, b"data"), number);
            assert_eq!(client.ask(0, FLUSH, 0, 0, &[]), number);
        });
        assert_eq!(served.unwrap(), Departure::Closed);
    }
}

#[test]
fn what_breaks_the_rules_is_refused_and_the_next_request_is_served() {
    let memory = Memory { block: Bytes::new(512), ..Memory::new(SIZE) };
    let data = vec![7; 1024];
    visit(&memory, |client| {
        client.go();
        for (flags, command, at, length, error) in [
            // Beyond the end, by one block and by all that there is.
            (0, READ, SIZE - 512, 1024, EINVAL),
            (0, READ, u64::MAX - 511, 512, EINVAL),
            (0, READ, u64::MAX - 511, 1024, EINVAL),
            (0, WRITE, SIZE - 512, 1024, ENOSPC),
            (0, WRITE, u64::MAX - 511, 1024, ENOSPC),
            (0, WRITE_ZEROES, SIZE, 512, ENOSPC),
            (0, TRIM, 0, SIZE as u32 + 512, EINVAL),
            // No whole blocks.
            (0, READ, 1, 512, EINVAL),
            (0, READ, 0, 511, EINVAL),
            (0, WRITE, 256, 512, EINVAL),
            (0, WRITE, 0, 256, EINVAL),
            (0, TRIM, 0, 1, EINVAL),
            (0, WRITE_ZEROES, 1, 512, EINVAL),
            // A flush of a part.
            (0, FLUSH, 512, 0, EINVAL),
            (0, FLUSH, 0, 512, EINVAL),
            // Flags that no such command has, commands that there are not.
            (2, WRITE, 0, 512, EINVAL),
            (4, READ, 0, 512, EINVAL),
            (16, WRITE_ZEROES, 0, 512, EINVAL),
            (0, 5, 0, 512, EINVAL),
            (0, 7, 0, 512, EINVAL),
            (0, u16::MAX, 0, u32::MAX, EINVAL),
            // Longer than any request.
            (0, READ, 0, u32::MAX, EINVAL),
            // Nothing, anywhere within.
            (0, READ, SIZE, 0, 0),
            (0, WRITE, 0, 0, 0),
            (0, TRIM, 512, 0, 0),
        ] {
            let data = if command == WRITE { &data[..length as usize] } else { &[] };
            let seen = client.ask(flags, command, at, length, data);
            assert_eq!(seen, error, "{flags} {command} {at} {length}");
        }
        assert_eq!(memory.calls(), []);
        assert_eq!(client.ask(0, READ, SIZE - 512, 512, &[]), 0);
        client.data(512);
    });
}

#[test]
fn pipelined_requests_are_answered_in_batches() {
    let mut input = opening();
    for number in 0..64u64 {
        input.extend(request(0, WRITE, number, number * 4096, 4096));
        input.extend([number as u8; 4096]);
    }
    for number in 0..64 {
        input.extend(request(0, READ, 1000 + number, number * 4096, 4096));
    }
    input.extend(request(0, DISC, 0, 0, 0));
    let length = input.len();
    let mut script = Script::new(input, usize::MAX);
    let served = nbd::serve(&mut script, "volume", &Memory::new(SIZE)).unwrap();
    assert_eq!((served, script.input.position()), (Departure::Disconnected, length as u64));
    // The greeting; what each read of the stream made possible; what went with the last request.
    assert!(script.writes.len() <= 6, "{:?}", script.writes.iter().map(Vec::len));
    let written = script.writes.concat();
    let replies = &written[written.len() - 64 * (16 + 16 + 4096)..];
    let (writes, reads) = replies.split_at(64 * 16);
    for (number, reply) in writes.chunks(16).enumerate() {
        assert_eq!(reply[..8], [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0]);
        assert_eq!(reply[8..], (number as u64).to_be_bytes());
    }
    for (number, reply) in reads.chunks(16 + 4096).enumerate() {
        assert_eq!(reply[..8], [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0]);
        assert_eq!(reply[8..16], (1000 + number as u64).to_be_bytes());
        assert_eq!(reply[16..], [number as u8; 4096]);
    }
}

#[test]
fn a_reply_does_not_wait_for_the_rest_of_the_next_request() {
    visit(&Memory::new(SIZE), |client| {
        client.go();
        let (first, second) = (request(0, READ, 1, 0, 4), request(0, WRITE, 2, 0, 4));
        client.send(&[&first, &second[..], b"da"].concat());
        assert_eq!(client.reply(), (0, 1));
        client.data(4);
        client.send(b"ta");
        assert_eq!(client.reply(), (0, 2));
    });
}

#[test]
fn requests_may_be_as_long_as_was_said() {
    let longest = 32 << 20;
    let data: Vec<u8> = (0..longest).map(|at: usize| (at % 241) as u8).collect();
    visit(&Memory::new(longest as u64 + 1), |client| {
        client.go();
        assert_eq!(client.ask(0, WRITE, 0, longest as u32, &data), 0);
        assert_eq!(client.ask(0, READ, 0, longest as u32 + 1, &[]), EINVAL);
        assert_eq!(client.ask(0, READ, 0, longest as u32, &[]), 0);
        assert!(client.data(longest) == data);
        // And short ones after it.
        assert_eq!(client.ask(0, READ, 1, 2, &[]), 0);
        assert_eq!(client.bytes(), [1, 2]);
    });
}

#[test]
fn clients_share_an_export() {
    let memory = Memory::new(SIZE);
    visit(&memory, |one| {
        one.go();
        visit(&memory, |other| {
            other.go();
            assert_eq!(one.ask(0, WRITE, 0, 3, b"one"), 0);
            assert_eq!(other.ask(0, READ, 0, 3, &[]), 0);
            assert_eq!(&other.bytes(), b"one");
        });
    });
}
