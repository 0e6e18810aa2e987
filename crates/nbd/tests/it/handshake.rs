//! Until there is an export.

use nbd::{Departure, NbdError};
use units::Bytes;

use crate::client::{
    ABORT, ACK, DISC, EXPORT_NAME, GO, INFO, LIST, READ, name_and_infos, request, talk,
};
use crate::memory::{Memory, SIZE};

/// Flags, flush, forced unit access, trim, zeroes.
const FLAGS: u16 = 0b110_1101;

fn unsupported() -> u32 {
    (1 << 31) + 1
}

#[test]
fn the_old_way_to_choose_an_export() {
    for (flags, zeroes) in [(3, 0), (1, 124), (0, 124)] {
        let memory = Memory { multi: true, ..Memory::new(SIZE) };
        let served = talk(&memory, |client| {
            client.greet(flags);
            client.option(EXPORT_NAME, b"volume");
            assert_eq!(client.bytes(), SIZE.to_be_bytes());
            assert_eq!(client.bytes(), (FLAGS | 1 << 8).to_be_bytes());
            assert_eq!(client.data(zeroes), vec![0; zeroes]);
            assert_eq!(client.ask(0, READ, 5, 3, &[]), 0);
            assert_eq!(client.bytes(), [5, 6, 7]);
            client.send(&request(0, DISC, 1, 0, 0));
            assert!(client.is_closed());
        });
        assert_eq!(served.unwrap(), Departure::Disconnected);
    }
}

#[test]
fn the_new_way_tells_sizes_of_blocks() {
    for (block, preferred) in [(1u32, 4096u32), (512, 4096), (16384, 16384)] {
        let memory = Memory { block: Bytes::new(block.into()), ..Memory::new(SIZE) };
        let served = talk(&memory, |client| {
            client.greet(3);
            // INFO leaves the handshake going, GO ends it.
            for option in [INFO, GO] {
                client.option(option, &name_and_infos("volume", &[3]));
                let export = [&[0, 0][..], &SIZE.to_be_bytes(), &FLAGS.to_be_bytes()].concat();
                assert_eq!(client.option_reply(option), (3, export));
                let sizes = [block, preferred, 32 << 20].map(u32::to_be_bytes).concat();
                assert_eq!(client.option_reply(option), (3, [&[0, 3][..], &sizes].concat()));
                assert_eq!(client.option_reply(option), (ACK, vec![]));
            }
            assert_eq!(client.ask(0, READ, 0, block, &[]), 0);
            client.data(block as usize);
        });
        assert_eq!(served.unwrap(), Departure::Closed);
    }
}

#[test]
fn the_list_has_one_name() {
    let served = talk(&Memory::new(SIZE), |client| {
        client.greet(3);
        client.option(LIST, &[]);
        assert_eq!(client.option_reply(LIST), (2, [&[0, 0, 0, 6], &b"volume"[..]].concat()));
        assert_eq!(client.option_reply(LIST), (ACK, vec![]));
        client.option(LIST, b"x");
        assert_eq!(client.option_reply(LIST).0, (1 << 31) + 3);
        client.option(ABORT, &[]);
        assert_eq!(client.option_reply(ABORT), (ACK, vec![]));
        assert!(client.is_closed());
    });
    assert_eq!(served.unwrap(), Departure::Aborted);
}

#[test]
fn a_client_that_gives_up_need_not_wait_for_the_answer() {
    let served = talk(&Memory::new(SIZE), |client| {
        client.greet(3);
        client.stream.shutdown(std::net::Shutdown::Read).unwrap();
        client.option(ABORT, &[]);
    });
    assert_eq!(served.unwrap(), Departure::Aborted);
}

#[test]
fn options_that_are_not_known_are_refused() {
    let served = talk(&Memory::new(SIZE), |client| {
        client.greet(3);
        // Encryption, structured replies, contexts, extended headers, none at all.
        for option in [0, 4, 5, 8, 9, 10, 11, u32::MAX] {
            client.option(option, b"something");
            assert_eq!(client.option_reply(option), (unsupported(), vec![]));
        }
        for bad in [&b""[..], b"\0\0\0\x09volume\0\0", b"\0\0\0\0\0\x01", b"\0\0\0\0\0\0\0"] {
            client.option(GO, bad);
            assert_eq!(client.option_reply(GO).0, (1 << 31) + 3, "{bad:?}");
        }
        client.option(GO, &name_and_infos("other", &[]));
        assert_eq!(client.option_reply(GO).0, (1 << 31) + 6);
        client.option(GO, &name_and_infos("", &[]));
        assert_eq!([(); 3].map(|()| client.option_reply(GO).0), [3, 3, ACK]);
    });
    assert_eq!(served.unwrap(), Departure::Closed);
}

#[test]
fn the_old_way_to_choose_what_is_not_there_is_hung_up_on() {
    let served = talk(&Memory::new(SIZE), |client| {
        client.greet(3);
        client.option(EXPORT_NAME, b"other\x1b");
        assert!(client.is_closed());
    });
    let error = served.unwrap_err();
    assert!(matches!(error, NbdError::UnknownExport { .. }), "{error:?}");
    let text = "the client wants export \"other\\u{1b}\", wanted \"volume\" or no name";
    assert_eq!(error.to_string(), text);
}
