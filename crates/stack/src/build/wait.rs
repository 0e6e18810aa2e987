//! How far an array is in coming into step.

use std::time::Duration;

use layout::Wait;

use crate::build::act::run;
use crate::build::there::array;
use crate::host::Host;

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Progress {
    /// Nothing goes on any more.
    Idle,
    /// Under way; the share that is done, where that is told.
    Going(Option<f64>),
    /// Nothing goes on, but members are missing: just after an array is made its filling has not
    /// begun yet.
    Lacking,
    /// It cannot be seen any more.
    Gone,
}

/// How far what goes on by itself is.
pub fn progress(host: &Host, wait: &Wait) -> Progress {
    match wait {
        Wait::MdSync { path } => {
            let Some(name) = array(host, path) else { return Progress::Gone };
            let attribute = |file: &str| host.line(format!("/sys/class/block/{name}/md/{file}"));
            match attribute("sync_action").as_deref() {
                None | Some("idle" | "frozen") => match attribute("degraded").as_deref() {
                    None | Some("0") => Progress::Idle,
                    Some(_) => Progress::Lacking,
                },
                Some(_) => Progress::Going(attribute("sync_completed").and_then(|t| share(&t))),
            }
        }
        Wait::LvmSync { group, volume } => {
            let name = format!("{group}/{volume}");
            let words = ["lvs", "--noheadings", "-o", "sync_percent", &name];
            let argv: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let Ok(said) = run(&argv, Duration::from_secs(60)) else { return Progress::Gone };
            match said.out.trim().parse::<f64>() {
                Ok(percent) if percent >= 100.0 => Progress::Idle,
                Ok(percent) => Progress::Going(Some(percent / 100.0)),
                Err(_) => Progress::Going(None),
            }
        }
        Wait::BtrfsReplace { path } => {
            said_by(&["btrfs", "replace", "status", "-1", path], |said| {
                if said.contains("finished on") {
                    Progress::Idle
                } else if said.contains('%') {
                    Progress::Going(percent(said))
                } else {
                    Progress::Lacking
                }
            })
        }
        Wait::ZfsResilver { pool } => said_by(&["zpool", "status", pool], |said| {
            match said.lines().find(|line| line.contains("resilver in progress")) {
                Some(_) => Progress::Going(percent(said)),
                None if said.contains("resilver") => Progress::Idle,
                None => Progress::Lacking,
            }
        }),
    }
}

fn said_by(words: &[&str], read: impl Fn(&str) -> Progress) -> Progress {
    let argv: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    run(&argv, Duration::from_secs(60)).map_or(Progress::Gone, |said| read(&said.out))
}

/// The first number before a `%`, as a share.
fn percent(text: &str) -> Option<f64> {
    let (before, _) = text.split_once('%')?;
    let from = before.rfind(|c: char| !c.is_ascii_digit() && c != '.').map_or(0, |at| at + 1);
    let percent = before.get(from..)?.parse::<f64>().ok()?;
    Some((percent / 100.0).clamp(0.0, 1.0))
}

/// `1024 / 4096`, in sectors.
fn share(text: &str) -> Option<f64> {
    let (done, all) = text.split_once('/')?;
    let (done, all) = (done.trim().parse::<f64>().ok()?, all.trim().parse::<f64>().ok()?);
    (all > 0.0).then(|| (done / all).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_tell_percents() {
        assert_eq!(percent("12.5% done, 0 write errs"), Some(0.125));
        assert_eq!(percent("resilver in progress for 0h0m, 40.00% done"), Some(0.4));
        assert_eq!(percent("Never started"), None);
        assert_eq!(percent("% done"), None);
    }

    #[test]
    fn shares_are_of_sectors() {
        assert_eq!(share("1024 / 4096"), Some(0.25));
        assert_eq!(share("none"), None);
        assert_eq!(share("0 / 0"), None);
    }
}
