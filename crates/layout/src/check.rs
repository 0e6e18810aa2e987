//! Which stacks can be.

use crate::array::{Array, Level};
use crate::stack::{ArrayState, FileSystemKind, Leg, Maker, StackError, StackSpec, Stripe};

/// All but the names of devices, which are judged over the whole stack.
pub fn stack(stack: &StackSpec) -> Result<(), StackError> {
    if stack.legs.is_empty() {
        return Err(StackError::NoLegs);
    }
    for (number, leg) in stack.legs.iter().enumerate() {
        check_leg(number, leg)?;
    }
    join(stack)?;
    file_system(stack)?;
    settings(stack)?;
    state(stack)?;
    wal(stack)
}

fn check_leg(number: usize, leg: &Leg) -> Result<(), StackError> {
    if leg.maker == Maker::Device {
        let plain = leg.level.is_none() && leg.chunk.is_none() && leg.spares.is_empty();
        let fits = plain && leg.members.len() == 1;
        return if fits { Ok(()) } else { Err(StackError::DeviceLeg(number)) };
    }
    let Some(level) = leg.level else {
        return Err(StackError::LevelMissing { leg: number, maker: leg.maker });
    };
    let array = leg.array().map_err(|source| StackError::Array { leg: number, source })?;
    let cannot = |what: String| Err(StackError::CannotMake { leg: number, maker: leg.maker, what });
    if !leg.spares.is_empty() && !level.is_redundant() {
        return cannot(format!("spares for {level}, which cannot lose a member"));
    }
    match (leg.maker, array) {
        (Maker::Lvm, Some(array)) => lvm_cannot(&array, leg).map_or(Ok(()), cannot),
        (Maker::Btrfs | Maker::Zfs, _) if leg.chunk.is_some() => {
            cannot("a chunk of your choice: it chooses its own".to_owned())
        }
        (Maker::Btrfs, _) if level == Level::Raid01 => cannot("raid01".to_owned()),
        (Maker::Btrfs, _) if level == Level::Raid1 && leg.members.len() > 4 => {
            cannot(format!("{} copies: it keeps 2, 3 or 4", leg.members.len()))
        }
        (Maker::Btrfs, _) if !leg.spares.is_empty() => cannot("spares".to_owned()),
        (Maker::Zfs, Some(array)) => zfs_cannot(&array).map_or(Ok(()), cannot),
        _ => Ok(()),
    }
}

/// What LVM would refuse of an array that md would take.
fn lvm_cannot(array: &Array, leg: &Leg) -> Option<String> {
    let level = array.level();
    let members = array.members();
    if level == Level::Raid01 {
        return Some("raid01".to_owned());
    }
    if level == Level::Raid0 && members < 2 {
        return Some("raid0 of one member".to_owned());
    }
    if level == Level::Raid10 && (members < 4 || !members.is_multiple_of(2)) {
        return Some(format!("raid10 of {members} members: it takes even numbers from 4"));
    }
    if level == Level::Raid6 && members < 5 {
        return Some(format!("raid6 of {members} members: it takes 5 or more"));
    }
    if array.chunk().is_some_and(|chunk| !chunk.get().is_power_of_two()) {
        return Some("chunks that are no power of two".to_owned());
    }
    (leg.spares.len() > members as usize).then(|| "more spares than members".to_owned())
}

fn zfs_cannot(array: &Array) -> Option<String> {
    match array.level() {
        Level::Raid01 => Some("raid01: it stripes over mirrors".to_owned()),
        Level::Linear => Some("linear: it always stripes".to_owned()),
        Level::Raid10 if !array.members().is_multiple_of(2) => {
            Some(format!("raid10 of {} members: mirrors are pairs", array.members()))
        }
        _ => None,
    }
}

fn join(stack: &StackSpec) -> Result<(), StackError> {
    let makers: Vec<Maker> = stack.legs.iter().map(|leg| leg.maker).collect();
    let by = makers.first().copied().unwrap_or(Maker::Device);
    let several = makers.len() > 1;
    let Some(stripe) = &stack.stripe else {
        // A pool stripes over its legs by itself.
        let pool = makers.iter().all(|maker| *maker == Maker::Zfs);
        return if several && !pool {
            Err(StackError::StripeMissing(makers.len()))
        } else {
            Ok(())
        };
    };
    if !several {
        return Err(StackError::StripeOverOne);
    }
    let odd = |by: Maker, why: &str| {
        Err(StackError::StripeOdd { maker: stripe.maker, by, why: why.to_owned() })
    };
    if !matches!(stripe.level, Level::Raid0 | Level::Raid1) {
        return odd(by, "legs are joined by raid0 or raid1");
    }
    if let Some(other) = makers.iter().find(|maker| {
        (**maker == Maker::Zfs) != (stripe.maker == Maker::Zfs) || **maker == Maker::Btrfs
    }) {
        return odd(*other, "it does not lie over that");
    }
    match stripe.maker {
        Maker::Device | Maker::Btrfs => odd(by, "it is done by md, lvm or zfs"),
        Maker::Zfs if stripe.level != Level::Raid0 || stripe.chunk.is_some() => {
            odd(by, "a pool only stripes, in its own way")
        }
        Maker::Lvm if makers.contains(&Maker::Lvm) => {
            odd(Maker::Lvm, "it does not look for its members among its own volumes")
        }
        Maker::Md | Maker::Lvm => stripe_array(stack, stripe),
        Maker::Zfs => Ok(()),
    }
}

fn stripe_array(stack: &StackSpec, stripe: &Stripe) -> Result<(), StackError> {
    let legs = u32::try_from(stack.legs.len()).unwrap_or(u32::MAX);
    let chunk = crate::whole::stripe_chunk(stack, stripe);
    let array = Array::new(stripe.level, legs, chunk).map_err(StackError::StripeArray)?;
    let odd = array.chunk().is_some_and(|chunk| !chunk.get().is_power_of_two());
    if odd && stripe.maker == Maker::Lvm {
        let why = "its stripes are powers of two".to_owned();
        return Err(StackError::StripeOdd { maker: Maker::Lvm, by: stack.legs[0].maker, why });
    }
    Ok(())
}

fn file_system(stack: &StackSpec) -> Result<(), StackError> {
    let kind = stack.file_system.as_ref().map(|fs| fs.kind);
    let own = stack.legs.iter().map(|leg| leg.maker).find_map(|maker| match maker {
        Maker::Btrfs => Some((maker, FileSystemKind::Btrfs)),
        Maker::Zfs => Some((maker, FileSystemKind::Zfs)),
        _ => None,
    });
    if let Some((maker, own)) = own
        && kind != Some(own)
    {
        let found = kind.map_or("none".to_owned(), |kind| kind.to_string());
        return Err(StackError::FileSystemOdd { maker, found });
    }
    if kind.is_none() && !stack.mount_options.is_empty() {
        return Err(StackError::NothingToMount);
    }
    if kind == Some(FileSystemKind::Zfs) && !stack.mount_options.is_empty() {
        let what = "zfs, which mounts by itself".to_owned();
        return Err(StackError::NoEffect { setting: "a mount option", what });
    }
    for option in &stack.mount_options {
        let odd = |c: char| c == ',' || c.is_whitespace() || c.is_control();
        if option.is_empty() || option.starts_with('-') || option.chars().any(odd) {
            return Err(StackError::SettingOdd {
                setting: "mount option",
                value: option.clone(),
                wanted: "one option",
            });
        }
    }
    Ok(())
}

fn settings(stack: &StackSpec) -> Result<(), StackError> {
    let settings = &stack.settings;
    if let Some(scheduler) = &settings.scheduler {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if scheduler.is_empty() || !scheduler.chars().all(plain) {
            return Err(StackError::SettingOdd {
                setting: "scheduler",
                value: scheduler.clone(),
                wanted: "a name such as none, mq-deadline, kyber or bfq",
            });
        }
    }
    let kind = stack.file_system.as_ref().map(|fs| fs.kind);
    if let Some(read_ahead) = settings.read_ahead {
        if let Some(kind @ (FileSystemKind::Btrfs | FileSystemKind::Zfs)) = kind {
            let what = format!("{kind}, which reads ahead by itself");
            return Err(StackError::NoEffect { setting: "read-ahead", what });
        }
        if !read_ahead.is_multiple_of(units::Bytes::kib(4)) && read_ahead.get() != 0 {
            return Err(StackError::SettingOdd {
                setting: "read-ahead",
                value: read_ahead.exact(),
                wanted: "a multiple of 4KiB",
            });
        }
    }
    if settings.nr_requests == Some(0) {
        return Err(StackError::SettingOdd {
            setting: "nr_requests",
            value: "0".to_owned(),
            wanted: "1 or more",
        });
    }
    Ok(())
}

fn state(stack: &StackSpec) -> Result<(), StackError> {
    if stack.state == ArrayState::Healthy {
        return Ok(());
    }
    let Some(leg) = stack.legs.first() else { return Err(StackError::NoLegs) };
    if leg.level.is_some_and(Level::is_redundant) {
        return Ok(());
    }
    let found = leg.level.map_or("a device as it is".to_owned(), |level| level.to_string());
    Err(StackError::CannotDegrade { state: stack.state, found })
}

fn wal(stack: &StackSpec) -> Result<(), StackError> {
    let Some(wal) = &stack.wal else { return Ok(()) };
    if wal.wal.is_some() {
        return Err(StackError::WalOfWal);
    }
    if wal.file_system.is_none() {
        return Err(StackError::WalWithoutFileSystem);
    }
    self::stack(wal).map_err(|error| StackError::Wal(Box::new(error)))
}
