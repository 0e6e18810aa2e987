//! Settings of queues.

use super::words::{run, step};
use super::{Action, DeviceFacts, Expectation, Stage, Step, StepsError, Undo, top_device};
use crate::names::Names;
use crate::stack::{DeviceId, Leg, Maker, StackSpec};

/// Scheduler and its depth, on every member and spare.
pub fn of_members(stack: &StackSpec, facts: &DeviceFacts) -> Result<Vec<Step>, StepsError> {
    let settings = &stack.settings;
    let depth = settings.nr_requests.map(|n| n.to_string());
    // The scheduler first: another one resets the depth.
    let wanted = [("scheduler", settings.scheduler.clone()), ("nr_requests", depth)];
    let mut steps = Vec::new();
    let mut done = Vec::new();
    for device in stack.legs.iter().flat_map(Leg::devices) {
        for (setting, value) in &wanted {
            let Some(value) = value else { continue };
            let path = queue_file(device, facts, setting)?;
            // Two partitions of a disk share its queue.
            if !done.contains(&path) {
                steps.push(write(device, setting, &path, value));
                done.push(path);
            }
        }
    }
    Ok(steps)
}

/// Read-ahead of the topmost device.
pub fn of_top(
    stack: &StackSpec,
    names: &Names,
    facts: &DeviceFacts,
) -> Result<Vec<Step>, StepsError> {
    let Some(read_ahead) = stack.settings.read_ahead else { return Ok(Vec::new()) };
    let Some(top) = top_device(stack, names) else { return Ok(Vec::new()) };
    let is_made =
        stack.stripe.is_some() || stack.legs.first().is_some_and(|leg| leg.maker != Maker::Device);
    if !is_made {
        let path = queue_file(&top, facts, "read_ahead_kb")?;
        let kib = (read_ahead.get() >> 10).to_string();
        return Ok(vec![write(&top, "read_ahead_kb", &path, &kib)]);
    }
    // It goes away with the device, so nothing has to be put back.
    let sectors = (read_ahead.get() >> 9).to_string();
    let what = format!("set read-ahead of {top} to {}", read_ahead.exact());
    let action = run(["blockdev", "--setra", &sectors, top.as_str()]);
    Ok(vec![step(Stage::Arrays, what, action)])
}

fn queue_file(
    device: &DeviceId,
    facts: &DeviceFacts,
    setting: &'static str,
) -> Result<String, StepsError> {
    let fact = facts.get(device).ok_or_else(|| StepsError::Unknown(device.clone()))?;
    let queue = fact
        .queue
        .as_ref()
        .ok_or_else(|| StepsError::NoQueue { device: device.clone(), setting })?;
    Ok(format!("/sys/block/{queue}/queue/{setting}"))
}

fn write(device: &DeviceId, setting: &str, path: &str, value: &str) -> Step {
    let path = path.to_owned();
    Step {
        undo: vec![Undo::always(Action::PutBack { path: path.clone() })],
        expect: vec![Expectation::Setting { path: path.clone(), value: value.to_owned() }],
        ..step(
            Stage::Settings,
            format!("set {setting} of {device} to {value}"),
            Action::WriteFile { path, value: value.to_owned() },
        )
    }
}
