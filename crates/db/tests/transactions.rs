//! TPC-C on real databases: what is loaded, played by several sessions, and what must hold afterwards.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests")]

use std::os::unix::fs::PermissionsExt;

use db::{DbError, Engine, Plan, Server, look};
use tpcc::{Oltp, OltpScript, RowLaw, Scale, Seconds, Tpcb, Tpcc, Workload};
use units::Bytes;

const LOADED: Seconds = Seconds(1_700_000_000);
const NOW: Seconds = Seconds(1_800_000_000);

fn small() -> Tpcc {
    let scale = Scale::new(2).unwrap().with_items(500).unwrap().with_customers(60).unwrap();
    Tpcc::new(scale, 11, LOADED)
}

fn transfers() -> Tpcb {
    Tpcb::new(3, false).with_accounts(1000)
}

/// Each engine that is installed, on a database of its own.
fn on_each(mut test: impl FnMut(Engine, &mut Server)) {
    for engine in Engine::ALL {
        let directory = tempfile::tempdir().unwrap();
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(directory.path(), open).unwrap();
        let on = directory.path().into();
        let (memory, data) = (Bytes::mib(32), Bytes::ZERO);
        let key = 0xfeed_1000 + engine as u64;
        let ready = match look(&Plan { engine, on, log_on: None, memory, data, key }) {
            Err(DbError::NoProgram { program, .. }) => {
                println!("skipped: no {program}");
                continue;
            }
            ready => ready.unwrap(),
        };
        let mut server = ready.start(8, &|| false).unwrap().unwrap();
        test(engine, &mut server);
        server.stop().unwrap();
    }
}

fn violated(server: &Server, workload: &dyn Workload) -> Vec<&'static str> {
    let found = server.violations(workload).unwrap();
    found.into_iter().map(|violation| violation.condition).collect()
}

/// Plays so many transactions in each of some sessions; how often one was tried again.
fn play(server: &Server, workload: &dyn Workload, sessions: u32, count: usize) -> usize {
    let session = |number: u32| {
        let mut client = server.client().unwrap();
        client.prepare(&workload.statements(client.dialect())).unwrap();
        let mut player = workload.player(number, 5 + u64::from(number));
        let mut repeated = 0;
        for _ in 0..count {
            assert!(player.draw() < workload.operations().len());
            let played = player.play(client.as_mut(), NOW);
            assert_eq!(played.failed, None);
            repeated += played.repeated.len();
        }
        repeated
    };
    std::thread::scope(|scope| {
        let all: Vec<_> =
            (0..sessions).map(|number| scope.spawn(move || session(number))).collect();
        all.into_iter().map(|one| one.join().unwrap()).sum()
    })
}

/// The orders that were loaded.
fn orders(workload: &Tpcc) -> u64 {
    let at = workload.tables().iter().position(|table| table.name == "orders").unwrap();
    (1..=workload.parts()).map(|part| workload.rows(at, part).count() as u64).sum()
}

#[test]
fn what_is_loaded_is_the_same_everywhere_and_consistent_after_sessions_played() {
    let mut sums = Vec::new();
    on_each(|engine, server| {
        let mut told = Vec::new();
        let loaded = server.load(&small(), &mut |done, all| {
            told.push(done);
            done <= all
        });
        assert!(loaded.unwrap(), "{engine}");
        assert!(told.is_sorted() && told.len() > 2, "{told:?}");
        let mut client = server.client().unwrap();
        let count = |table: &tpcc::TableText| format!("select count(*) from {}", table.name);
        let rows =
            small().tables().iter().map(|table| client.count(&count(table)).unwrap()).sum::<i64>();
        assert_eq!(small().count(), rows as u64, "{engine}");
        assert_eq!(violated(server, &small()), [""; 0], "{engine}: after the load");
        let repeated = play(server, &small(), 6, 300);
        println!("{engine}: {repeated} tried again");
        assert_eq!(violated(server, &small()), [""; 0], "{engine}: after the sessions");
        let more = format!("select count(*) - {} from orders", orders(&small()));
        assert!(client.count(&more).unwrap() > 6 * 100, "{engine}");
        for (fault, conditions) in [
            ("update warehouse set w_ytd = w_ytd + 1 where w_id = 2", vec!["1", "8"]),
            (
                "delete from order_line where ol_o_id = 30 and ol_w_id = 1 and ol_d_id = 3 and ol_number = 1",
                vec!["4", "6"],
            ),
        ] {
            client.batch(fault).unwrap();
            let found = violated(server, &small());
            for condition in conditions {
                assert!(found.contains(&condition), "{engine}: {fault}: {found:?}");
            }
        }
        assert!(server.size() > Bytes::mib(1), "{}", server.size());
    });
    // Played one after the other, the same inputs leave the same data on every engine.
    on_each(|engine, server| {
        assert!(server.load(&small(), &mut |_, _| true).unwrap());
        play(server, &small(), 1, 400);
        let mut client = server.client().unwrap();
        let sums_of = [
            "select sum(s_quantity * s_i_id + s_ytd) from stock",
            "select sum(c_id * c_payment_cnt + c_delivery_cnt + length(c_data)) from customer",
            "select sum(d_next_o_id * d_id) from district",
            "select count(*) from history",
        ];
        let cast = if engine == Engine::Postgres { "::bigint" } else { "" };
        let all = sums_of
            .map(|sql| client.count(&sql.replacen(" from", &format!("{cast} from"), 1)).unwrap());
        sums.push(all);
    });
    assert!(sums.windows(2).all(|two| two[0] == two[1]), "{sums:?}");
}

#[test]
fn a_load_that_is_stopped_leaves_no_rows_of_its_table() {
    on_each(|engine, server| {
        let loaded = server.load(&small(), &mut |done, _| done < 3000);
        assert!(!loaded.unwrap(), "{engine}");
    });
}

#[test]
fn transfers_add_up() {
    on_each(|engine, server| {
        assert!(server.load(&transfers(), &mut |_, _| true).unwrap());
        assert_eq!(violated(server, &transfers()), [""; 0], "{engine}");
        play(server, &transfers(), 6, 200);
        assert_eq!(violated(server, &transfers()), [""; 0], "{engine}");
        let mut client = server.client().unwrap();
        assert_eq!(client.count("select count(*) from pgbench_history").unwrap(), 1200);
        play(server, &Tpcb::new(3, true).with_accounts(1000), 2, 200);
        client.batch("delete from pgbench_history where tid = 7").unwrap();
        assert_eq!(violated(server, &transfers()), ["accounts", "tellers", "branches"], "{engine}");
    });
}

#[test]
fn rows_that_are_deleted_come_back() {
    let oltp = |script, law| Oltp::new(1, script, law, 3).with_rows(2000);
    on_each(|engine, server| {
        let whole = oltp(OltpScript::ReadWrite, RowLaw::Special);
        assert!(server.load(&whole, &mut |_, _| true).unwrap());
        // Fifteen rows take most of what six sessions change.
        let repeated = play(server, &whole, 6, 100);
        println!("{engine}: {repeated} tried again");
        for script in [OltpScript::ReadOnly, OltpScript::WriteOnly, OltpScript::PointSelect] {
            play(server, &oltp(script, RowLaw::Uniform), 2, 50);
        }
        assert_eq!(violated(server, &whole), [""; 0], "{engine}");
        server.client().unwrap().batch("delete from sbtest1 where id = 7").unwrap();
        assert_eq!(violated(server, &whole), ["rows"], "{engine}");
    });
}
