//! Clients that mean harm, or nothing at all.

use nbd::{Departure, NbdError};
use proptest::prelude::*;
use units::Bytes;

use crate::client::{DISC, READ, Script, Served, WRITE, opening, request, talk};
use crate::memory::{Memory, SIZE};

/// What comes of a client that sends this and no more.
fn serve(input: &[u8], piece: usize) -> (Served, Vec<Vec<u8>>) {
    let mut script = Script::new(input.to_vec(), piece);
    let served = nbd::serve(&mut script, "volume", &Memory::new(4096));
    (served, script.writes)
}

fn after_opening(bytes: &[u8]) -> (Served, Vec<Vec<u8>>) {
    serve(&[opening(), bytes.to_vec()].concat(), usize::MAX)
}

#[test]
fn what_is_another_protocol_is_hung_up_on() {
    let (served, _) = serve(b"GET / HTTP/1.1\r\n\r\n", usize::MAX);
    assert!(matches!(served, Err(NbdError::ClientFlags { seen: 0x4745_5420, known: 3 })));
    let (served, _) = serve(b"\0\0\0\x03IHAVEOTP\0\0\0\x03\0\0\0\0", usize::MAX);
    let text = "an option begins with 0x49484156454f5450, wanted 0x49484156454f5054";
    assert_eq!(served.unwrap_err().to_string(), text);
    let (served, _) = after_opening(&[7; 28]);
    let error = served.unwrap_err();
    assert_eq!(error.to_string(), "a request begins with 0x7070707, wanted 0x25609513");
}

#[test]
fn lengths_are_not_believed() {
    // An option of 4 GiB.
    let (served, _) = serve(b"\0\0\0\x03IHAVEOPT\0\0\0\x03\xff\xff\xff\xff", usize::MAX);
    let error = served.unwrap_err();
    assert_eq!(error.to_string(), "option 3 has 4 GiB of data, wanted at most 8 KiB");
    // A write of 4 GiB: it is answered, and then nothing more is read.
    let bytes = [request(0, WRITE, 9, 0, u32::MAX), request(0, READ, 1, 0, 1)].concat();
    let (served, writes) = after_opening(&bytes);
    let Err(NbdError::WriteTooLong { seen, most }) = served else { panic!("{served:?}") };
    assert_eq!((seen, most), (Bytes::new(u32::MAX.into()), Bytes::mib(32)));
    let reply = [&0x67446698u32.to_be_bytes()[..], &[0, 0, 0, 22], &9u64.to_be_bytes()].concat();
    assert!(writes.concat().ends_with(&reply));
}

#[test]
fn memory_grows_with_what_comes_and_not_with_what_is_announced() {
    for (sent, most) in [(1, 1 << 20), (2 << 20, 8 << 20)] {
        let input = [opening(), request(0, WRITE, 1, 0, 32 << 20), vec![0; sent]].concat();
        let (mut script, memory) = (Script::new(input, usize::MAX), Memory::new(32 << 20));
        let allocated = allocation_counter::measure(|| {
            let served = nbd::serve(&mut script, "volume", &memory);
            assert!(matches!(served, Err(NbdError::Vanished { .. })), "{served:?}");
        });
        assert!(allocated.bytes_max < most, "{allocated:?}");
    }
}

#[test]
fn a_client_may_vanish_anywhere() {
    let whole = [
        opening(),
        request(0, WRITE, 1, 0, 4),
        b"data".to_vec(),
        request(0, READ, 2, 0, 4),
        request(0, DISC, 3, 0, 0),
    ]
    .concat();
    let opening = opening().len();
    // Between two messages; the header of an option and its data are one.
    let borders = [0, 4, opening, opening + 32, opening + 60];
    for length in 0..=whole.len() {
        let (served, _) = serve(&whole[..length], usize::MAX);
        match served {
            Ok(Departure::Disconnected) => assert_eq!(length, whole.len()),
            Ok(departure) => {
                assert_eq!(departure, Departure::Closed);
                assert!(borders.contains(&length), "{length}");
            }
            Err(NbdError::Vanished { .. }) => assert!(!borders.contains(&length), "{length}"),
            Err(error) => panic!("{length}: {error:?}"),
        }
    }
    let (served, _) = after_opening(&[request(0, WRITE, 1, 0, 4), b"da".to_vec()].concat());
    let text = "the client closed the connection 2 B into a part of a message of 4 B";
    assert_eq!(served.unwrap_err().to_string(), text);
}

#[test]
fn a_client_that_does_not_take_its_replies_ends_the_connection() {
    let served = talk(&Memory::new(SIZE), |client| {
        client.go();
        client.stream.shutdown(std::net::Shutdown::Read).unwrap();
        client.send(&request(0, READ, 1, 0, 4096));
    });
    assert!(matches!(served, Err(NbdError::Stream(_))), "{served:?}");
}

/// Requests that are nearly right, and bytes between them.
fn requests() -> impl Strategy<Value = Vec<u8>> {
    let small = prop_oneof![0u32..5000, any::<u32>()];
    let at = prop_oneof![0u64..5000, any::<u64>()];
    let one = (0u16..4, 0u16..9, any::<u64>(), at, small, any::<bool>()).prop_map(
        |(flags, command, handle, at, length, with_data)| {
            let mut bytes = request(flags, command, handle, at, length);
            if with_data && command == WRITE && length < 5000 {
                bytes.resize(bytes.len() + length as usize, 1);
            }
            bytes
        },
    );
    proptest::collection::vec(one, 0..12).prop_map(|all| all.concat())
}

proptest! {
    #[test]
    fn any_bytes_end(input in proptest::collection::vec(any::<u8>(), 0..400), piece in 1usize..50) {
        // As all that comes, after the greeting, after the handshake.
        let _ = serve(&input, piece);
        let _ = serve(&[&[0, 0, 0, 3], &input[..]].concat(), piece);
        let _ = after_opening(&input);
    }

    #[test]
    fn any_data_of_an_option_end(
        option in 0u8..9,
        name in prop_oneof![Just(vec![]), Just(vec![0, 0, 0, 6])],
        data in proptest::collection::vec(0u8..9, 0..20),
    ) {
        let length = (name.len() + data.len()) as u8;
        let header = [&b"\0\0\0\x03IHAVEOPT\0\0\0"[..], &[option, 0, 0, 0, length]].concat();
        let _ = serve(&[header, name, data].concat(), usize::MAX);
    }

    #[test]
    fn how_it_is_cut_makes_no_difference(requests in requests(), piece in 1usize..5000) {
        let input = [opening(), requests].concat();
        let (whole, whole_written) = serve(&input, usize::MAX);
        let (cut, cut_written) = serve(&input, piece);
        prop_assert_eq!(whole_written.concat(), cut_written.concat());
        prop_assert_eq!(format!("{whole:?}"), format!("{cut:?}"));
    }
}
