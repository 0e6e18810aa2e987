//! Streams of transactions: what they are about, and what makes no sense in them.
#![allow(clippy::unwrap_used, clippy::panic)]

use suite::model::{Stream, TransactionLoad, Transactions, Work};
use suite::{CheckContext, check, parse};
use units::Bytes;

fn text(phase: &str) -> String {
    format!("schema = 1\nname = \"t\"\nmethod = \"classic\"\n[[phase]]\nname = \"main\"\n{phase}\n")
}

fn stream(phase: &str) -> Stream {
    let source = parse(&text(phase), "t.toml").unwrap();
    check(&source, &CheckContext::default()).unwrap().phases[0].cells[0].streams[0].clone()
}

fn refusal(phase: &str) -> String {
    let checked = parse(&text(phase), "t.toml").and_then(|s| check(&s, &CheckContext::default()));
    let Err(error) = checked else { panic!("this was accepted: {phase}") };
    error.to_string()
}

#[test]
fn they_have_a_load_and_a_scale() {
    let plain = stream("operation = \"transaction\"\ntransactions = { load = \"tpcc\" }\ntime = 1");
    let wanted = Transactions { load: TransactionLoad::Tpcc, scale: 1 };
    assert_eq!(plain.work, Work::Transactions(wanted));
    assert!(plain.modifies() && !plain.direct && plain.directory().is_none());
    assert_eq!(plain.mix.block_size_max(), Bytes::ZERO);
    assert_eq!(wanted.load.units(1), "1 warehouse");
    assert_eq!(TransactionLoad::Tpcb.units(7), "7 branches");
    assert_eq!(TransactionLoad::OltpReadOnly.units(25), "2.5 million rows");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let of = "operation = \"transaction\"\ntime = 1\n";
    let tpcc = "transactions = { load = \"tpcc\" }\n";
    for (phase, part) in [
        (of.to_owned(), "needs `transactions`"),
        (format!("{of}transactions = {{ scale = 3 }}"), "needs a `load`"),
        (
            format!("{of}transactions = {{ load = \"tpcx\" }}"),
            "`tpcc`, `tpcb`, `tpcb-select`, `oltp-read-write`",
        ),
        (format!("{of}transactions = {{ load = \"tpcc\", scale = 0 }}"), "transactions.scale"),
        (format!("{of}{tpcc}threads = 2"), "its sessions are its `queue_depth`"),
        (format!("{of}{tpcc}think = \"1ms\""), "without a pause"),
        (
            format!(
                "time = 1\n{tpcc}classes = [{{ operation = \"read\" }}, {{ operation = \"transaction\" }}]"
            ),
            "a stream of its own",
        ),
        (format!("operation = \"transaction\"\n{tpcc}bytes = \"1GiB\""), "a class that moves data"),
    ] {
        let said = refusal(&phase);
        assert!(said.contains(part), "{phase}\n{said}");
    }
}
