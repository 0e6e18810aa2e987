use device::{Device, Errno, Fault, TwinSpec, VanishSeen};
use units::{Bytes, Nanos};

use crate::drive::{rate, read, run, scatter, write};

const SHIPPED: [(&str, &str); 5] = [
    ("sata-ssd", include_str!("../../../../models/sata-ssd.toml")),
    ("nvme", include_str!("../../../../models/nvme.toml")),
    ("disk", include_str!("../../../../models/disk.toml")),
    ("raid-controller", include_str!("../../../../models/raid-controller.toml")),
    ("failing-ssd", include_str!("../../../../models/failing-ssd.toml")),
];

fn shipped(name: &str) -> TwinSpec {
    let text = SHIPPED.iter().find(|shipped| shipped.0 == name).unwrap().1;
    toml::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn shipped_models_open_and_read_back() {
    for (name, _) in SHIPPED {
        let spec = shipped(name);
        assert_eq!(spec.name, name);
        assert!(spec.why.len() > 40, "{name} says where it comes from");
        let written = toml::to_string(&spec).unwrap();
        let again: TwinSpec = toml::from_str(&written).unwrap_or_else(|e| panic!("{e}\n{written}"));
        assert_eq!(again, spec, "{written}");
        let mut device = spec.open(4, 1).unwrap_or_else(|error| panic!("{name}: {error}"));
        device.begin_visit(1);
        let events = run(&mut device, 4, 500, |n, slot| {
            if n % 2 == 0 { read(n << 12, 4096, slot) } else { write(n << 12, 4096, slot) }
        });
        assert_eq!(events.len(), 500);
    }
}

/// The figures of the DVD study's table: bm-flash reads on twelve disks, a file of 4 GiB in the
/// controller's 4 GiB of cache. Noise off, since the law is asked.
#[test]
fn raid_controller_reads_as_the_study_did() {
    let mut spec = shipped("raid-controller");
    spec.model.noise = device::model::NoiseSpec::default();
    for (length, depth, wanted) in
        [(8192u32, 1, 30_170.0), (4096, 10, 63_113.0), (1 << 20, 10, 1736.0)]
    {
        let mut device = spec.open(depth, 1).unwrap();
        let blocks = (4u64 << 30) / u64::from(length);
        // Filled, as the study did; the write cache is given time to drain.
        run(&mut device, 1, 4096, |n, slot| write(n << 20, 1 << 20, slot));
        let idle = device.now() + Nanos::secs(60);
        device.reap(1, idle, &mut Vec::with_capacity(1)).unwrap();
        let seen = rate(&mut device, depth, Nanos::ZERO, Nanos::secs(1), |n, slot| {
            read(scatter(n, blocks) * u64::from(length), length, slot)
        });
        let ratio = seen / wanted;
        assert!((ratio - 1.0).abs() < 0.02, "{length} B x {depth}: {seen}, wanted {wanted}");
    }
}

/// A visit that gave up leaves requests behind: late ones, lost ones, and those of a slow device.
#[test]
fn what_an_earlier_visit_left_in_flight_never_comes_back() {
    for what in [r#"{ late = "3s" }"#, r#""lost""#, r#"{ corrupt-bits = 1 }"#] {
        let text = format!(
            "schema = 1\nname = \"x\"\n[model.read]\nlatency = \"2s\"\n[[fault]]\nwhat = {what}\n"
        );
        let spec: TwinSpec = toml::from_str(&text).unwrap();
        let mut device = spec.open(4, 1).unwrap();
        device.begin_visit(1);
        for slot in 0..4 {
            device.submit(read(u64::from(slot) << 16, 65_536, slot)).unwrap();
        }
        let mut done = Vec::with_capacity(8);
        let given_up = device.now() + Nanos::secs(1);
        device.reap(1, given_up, &mut done).unwrap();
        assert_eq!(done, [], "{what}");
        let before = device.inner().stages();
        device.begin_visit(2);
        let after = device.inner().stages();
        assert_eq!((before[0].in_flight, after[0].in_flight), (4, 0), "{what}");
        assert_eq!(after[0].weighted_time, before[0].weighted_time, "{what}: counters only grow");
        // All of its slots are free, and what comes back is this visit's.
        for slot in 0..4 {
            device.submit(write(u64::from(slot) << 16, 4096, slot)).unwrap();
        }
        let end = device.now() + Nanos::secs(20);
        device.reap(8, end, &mut done).unwrap();
        let moved: Vec<_> = done.iter().map(|done| done.result()).collect();
        assert!(
            done.len() <= 4 && moved.iter().all(|moved| *moved == Ok(4096)),
            "{what}: {done:?}"
        );
    }
}

#[test]
fn every_fault_is_read_from_text() {
    let head = "schema = 1\nname = \"x\"\n[model.read]\nlatency = \"100us\"\n";
    for (text, what) in [
        (r#"{ error = "EIO" }"#, Fault::Error(Errno::EIO)),
        ("{ error = 200 }", Fault::Error(Errno(200))),
        (r#"{ short = "512B" }"#, Fault::Short(Bytes::new(512))),
        (r#"{ no-space-after = "1GiB" }"#, Fault::NoSpaceAfter(Bytes::gib(1))),
        (r#""lost""#, Fault::Lost),
        (r#"{ late = "2s" }"#, Fault::Late(Nanos::secs(2))),
        ("{ corrupt-bits = 1 }", Fault::CorruptBits(1)),
        (
            r#"{ vanish = { errno = "ENODEV", seen = "device" } }"#,
            Fault::Vanish { errno: Errno::ENODEV, seen: VanishSeen::Device },
        ),
    ] {
        let text = format!(
            "{head}[[fault]]\nwhat = {text}\nops = [\"read\", \"sync-range\"]\nsince = \"3s\"\n\
             range = {{ start = \"1MiB\", length = \"4K\" }}\n"
        );
        let spec: TwinSpec =
            toml::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(spec.faults[0].what, what);
        spec.check().unwrap();
        let written = toml::to_string(&spec).unwrap();
        assert_eq!(toml::from_str::<TwinSpec>(&written).unwrap(), spec, "{written}");
    }
}

#[test]
fn what_is_no_twin_is_refused() {
    let good = "schema = 1\nname = \"x\"\n[model.read]\nlatency = \"100us\"\n";
    assert!(toml::from_str::<TwinSpec>(good).unwrap().check().is_ok());
    for (bad, wanted) in [
        (good.replace("latency", "latenzy"), "latenzy"),
        (good.replace("name", "nome"), "nome"),
        (format!("{good}[[fault]]\nwhat = {{ error = \"EWHAT\" }}"), "EWHAT"),
        (format!("{good}[[fault]]\nwhat = {{ error = 0 }}"), "not an error number"),
        (format!("{good}[[fault]]\nwhat = \"lost\"\nnth = 0"), "nonzero"),
        (format!("{good}[[fault]]\nwhat = \"loost\""), "loost"),
    ] {
        let message = toml::from_str::<TwinSpec>(&bad).map(|_| ()).unwrap_err().to_string();
        assert!(message.contains(wanted), "{message}");
    }
    let later: TwinSpec = toml::from_str(&good.replace("schema = 1", "schema = 2")).unwrap();
    let error = later.check().unwrap_err();
    assert_eq!(error.to_string(), "schema is 2, this version reads 1");
    assert!(error.hint().is_some());
}
