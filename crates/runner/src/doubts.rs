//! What is doubtful about a plan, known before anything is measured.

use record::Warning;
use stats::steady::LAST_HALF_ROUNDS_MIN;
use suite::model::{CacheStep, Cell, Operation, Pacing, Phase, Stream, Suite};
use units::Bytes;

use crate::prepare::counted;

/// Doubts about a suite.
///
/// * `memory`: of the machine; 0 where no page cache is involved.
pub(crate) fn doubts(suite: &Suite, memory: Bytes) -> Vec<Warning> {
    let mut found: Vec<Warning> = suite.phases.iter().filter_map(too_few_rounds).collect();
    for short in suite.cells().filter_map(too_short) {
        if !found.contains(&short) {
            found.push(short);
        }
    }
    found.extend(in_memory(suite, memory));
    found
}

/// That a phase cannot be shown to be steady, however it goes.
fn too_few_rounds(phase: &Phase) -> Option<Warning> {
    let most = phase.steady?.rounds_max as usize;
    (most < LAST_HALF_ROUNDS_MIN).then(|| {
        let rounds = counted(most, "round");
        let text = format!(
            "phase {}: {rounds} at most cannot show whether it is steady, which takes \
             {LAST_HALF_ROUNDS_MIN}: its figures are a moment's (steady.rounds_max)",
            phase.name
        );
        Warning::new("rounds-few", text)
    })
}

/// That visits may fall between the bursts of a stream, as between checkpoints.
fn too_short(cell: &Cell) -> Option<Warning> {
    let rests = |stream: &Stream| {
        let Pacing::Closed { think, .. } = stream.pacing else { return None };
        let time = stream.stop.time.filter(|time| *time <= think)?;
        let text = format!(
            "stream {}: a visit measures {time}, and the pause between two bursts is {think}: some \
             visits have no burst; longer visits help",
            stream.name
        );
        Some(Warning::new("visit-short", text))
    };
    cell.streams.iter().find_map(rests)
}

/// That the page cache can hold what is read through it.
fn in_memory(suite: &Suite, memory: Bytes) -> Option<Warning> {
    let total = suite.files.total();
    let is_kept = |phase: &&Phase| phase.caches.iter().all(|step| *step == CacheStep::Flush);
    let mut streams =
        suite.phases.iter().filter(is_kept).flat_map(|p| &p.cells).flat_map(|c| &c.streams);
    let reads = |stream: &Stream| {
        !stream.direct && stream.mix.classes.iter().any(|class| class.op == Operation::Read)
    };
    (total < memory && streams.any(reads)).then(|| {
        let text = format!(
            "reads go through the page cache, and memory ({memory}) can hold all files ({total}): \
             what is measured may be memory (--size, --set direct=true)"
        );
        Warning::new("files-in-memory", text)
    })
}

#[cfg(test)]
mod tests {
    use suite::{CheckContext, Found};

    use super::*;

    fn codes(name: &str, set: &[&str], memory: Bytes) -> Vec<String> {
        let builtin = suite::find_builtin(name).unwrap();
        let Found::Suite(mut source) = suite::read(builtin.text, builtin.file).unwrap() else {
            panic!("{name} is one suite");
        };
        set.iter().for_each(|set| source.set(set).unwrap());
        let suite = suite::check(&source, &CheckContext::default()).unwrap();
        doubts(&suite, memory).into_iter().map(|warning| warning.code).collect()
    }

    #[test]
    fn visits_without_a_burst_are_told_before() {
        assert_eq!(codes("which", &[], Bytes::ZERO), [""; 0]);
        assert_eq!(codes("which", &["time=500ms"], Bytes::ZERO), ["visit-short"]);
        assert_eq!(codes("database-server", &["server.time=5s"], Bytes::ZERO), ["visit-short"]);
    }

    #[test]
    fn reads_that_memory_can_hold_are_told_before() {
        let (small, large) = (Bytes::mib(512), Bytes::mib(2048));
        let buffered = ["direct=false"];
        assert_eq!(codes("random-read", &buffered, large), ["files-in-memory"]);
        assert_eq!(codes("random-read", &buffered, small), [""; 0]);
        assert_eq!(codes("random-read", &[], large), [""; 0], "around the page cache");
        let purged = ["direct=false", "caches=flush,purge"];
        assert_eq!(codes("random-read", &purged, large), [""; 0]);
        assert_eq!(codes("wal", &[], large), [""; 0], "nothing is read");
    }
}
