//! Files by number: what is made, looked at and removed as a whole in a directory of its own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Bytes;

use crate::check::{BLOCK_MAX, in_range, needs};
use crate::model::{Access, Directory, Mix, Names, Operation, Stream, SyncPolicy};
use crate::node::At;
use crate::raw::Size;
use crate::source::{Located, out_of_range};

/// Seven digits of them; directories of more measure something else.
const FILES_MAX: u32 = 10_000_000;

/// The directory as it is written.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "\"none\" or a table such as { files = 16384, names = \"random\" }"
)]
pub(crate) struct RawDirectory {
    /// How many files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<u32>,
    /// "sequential" (the default): numbers first, used in the directory's own order; "random":
    /// letters first, used in random order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<Names>,
    /// Bytes of each. 0B if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_size: Option<Size>,
}

impl RawDirectory {
    /// Details that were left out.
    pub(crate) fn fill(&mut self) {
        self.names.get_or_insert(Names::Sequential);
        self.file_size.get_or_insert(Size(Bytes::ZERO));
    }
}

/// The directory of a stream whose operation needs one; its class gets the length of the files.
///
/// * `whole_operation`: where `operation` was set; `at`: where the directory was.
pub(crate) fn directory(
    raw: Option<&RawDirectory>,
    mix: &mut Mix,
    access: &Access,
    (whole_operation, at): (At, At),
) -> Located<Option<Directory>> {
    let of_files = |op: Operation| op.in_directory();
    let Some(op) = mix.classes.iter().map(|class| class.op).find(|&op| of_files(op)) else {
        return Ok(None);
    };
    let what = format!("operation `{}`", op.name());
    if mix.classes.len() > 1 || matches!(access, Access::Replay { .. }) {
        return Err((whole_operation, needs(&what, "a stream of its own")));
    }
    let Some(raw) = raw else {
        let wanted = "a `directory`, such as { files = 16384 }";
        return Err((whole_operation, needs(&what, wanted)));
    };
    let files = raw.files.ok_or((at, needs("`directory`", "a number of `files`")))?;
    let files = in_range("directory.files", files, 1, FILES_MAX, at)?;
    let file_size = raw.file_size.map_or(Bytes::ZERO, |size| size.0);
    if file_size > BLOCK_MAX {
        return Err((at, out_of_range("directory.file_size", file_size.exact(), "0B to 1GiB")));
    }
    for class in &mut mix.classes {
        class.block_size = if op == Operation::Delete { Bytes::ZERO } else { file_size };
        class.line = None;
    }
    Ok(Some(Directory { files, names: raw.names.unwrap_or(Names::Sequential), file_size }))
}

/// How many operations there are, where the directory ends them: a file is made or removed once,
/// and looking at them ends after one time round if nothing else ends it.
pub(crate) fn operations(mix: &Mix, directory: Option<Directory>, otherwise: bool) -> Option<u64> {
    let files = u64::from(directory?.files);
    let once = mix.classes.iter().any(|class| class.op != Operation::Stat);
    (once || !otherwise).then_some(files)
}

/// Flushes of a directory are of all of it.
pub(crate) fn check_sync(mix: &Mix, sync: Option<SyncPolicy>, at: At) -> Located<()> {
    if sync.is_none_or(|policy| policy.op != Operation::SyncRange) {
        return Ok(());
    }
    let op = mix.classes.first().map_or("create", |class| class.op.name());
    let what = format!("sync of operation `{op}`");
    Err((at, needs(&what, "`fsync` or `fdatasync`: a directory has no ranges")))
}

/// Streams that run together do not disturb each other's files.
pub(crate) fn check_together(streams: &[Stream], at: At) -> Located<()> {
    let mut seen = Vec::new();
    for stream in streams {
        let Some(directory) = stream.directory() else { continue };
        if seen.contains(&directory.names) {
            let what = "a directory in which two streams work together";
            return Err((at, needs(what, "other `names` for each")));
        }
        seen.push(directory.names);
    }
    Ok(())
}

/// What is played before a visit is about blocks: what files a visit needs is made anyway.
pub(crate) fn check_before(before: Option<&Stream>, at: At) -> Located<()> {
    match before.and_then(|stream| stream.mix.classes.iter().find(|c| !c.op.is_of_blocks())) {
        Some(class) => {
            let what = format!("operation `{}` in `before`", class.op.name());
            Err((at, needs(&what, "a phase of its own")))
        }
        None => Ok(()),
    }
}
