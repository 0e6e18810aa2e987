//! What limits how many threads there can be, for who wanted more of them.

use std::path::{Path, PathBuf};

/// The limits of this process, each by the name under which it is raised: `ulimit -u`, `pids.max` of
/// its control groups. Those that are not known or that there are none of are left out.
pub(crate) fn limits() -> Vec<String> {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let own = read(Path::new("/proc/self/limits")).and_then(|text| of_user(&text));
    let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let groups = group_files(&groups).into_iter();
    let of_groups = groups.filter_map(|path| {
        let most = read(&path)?.trim().to_owned();
        (most != "max").then(|| format!("{} = {most}", path.display()))
    });
    own.map(|most| format!("`ulimit -u` = {most}")).into_iter().chain(of_groups).collect()
}

/// The soft limit of processes; none where it is unlimited.
fn of_user(limits: &str) -> Option<String> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max processes"))?;
    let soft = line.split_whitespace().next()?;
    (soft != "unlimited").then(|| soft.to_owned())
}

/// Where the control groups of a process say how many tasks they may have, its own first.
fn group_files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let top = match controllers {
            "" => "/sys/fs/cgroup",
            all if all.split(',').any(|one| one == "pids") => "/sys/fs/cgroup/pids",
            _ => continue,
        };
        let group = Path::new(top).join(path.trim_start_matches('/'));
        let up = group.ancestors().take_while(|group| group.starts_with(top));
        files.extend(up.map(|group| group.join("pids.max")));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_the_kernel_writes_them() {
        let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
                    Max processes             4096                 63289                processes \n\
                    Max open files            1024                 524288               files     \n";
        assert_eq!(of_user(text).as_deref(), Some("4096"));
        assert_eq!(of_user(&text.replace("4096", "unlimited")), None);
        assert_eq!(of_user(""), None);
    }

    #[test]
    fn control_groups_are_asked_up_to_the_top() {
        let names = |text: &str| -> Vec<String> {
            group_files(text).iter().map(|path| path.display().to_string()).collect()
        };
        assert_eq!(
            names("0::/user.slice/run-1.scope\n"),
            [
                "/sys/fs/cgroup/user.slice/run-1.scope/pids.max",
                "/sys/fs/cgroup/user.slice/pids.max",
                "/sys/fs/cgroup/pids.max"
            ]
        );
        assert_eq!(
            names("8:memory:/a\n3:cpu,pids:/a\n"),
            ["/sys/fs/cgroup/pids/a/pids.max", "/sys/fs/cgroup/pids/pids.max"]
        );
        assert_eq!(names("nonsense"), Vec::<String>::new());
    }
}
