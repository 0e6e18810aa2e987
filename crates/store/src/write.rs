use record::{
    CellRecord, Imported, LedgerEntry, OpRecord, Reported, Run, RunHeader, RunState, StackTree,
    StreamRecord, VisitRecord, Warning, WorkerRecord,
};
use rusqlite::{ErrorCode, Transaction, TransactionBehavior, named_params, params};
use serde::Serialize;

use crate::seal::{self, Touched};
use crate::{Store, StoreError, blob, claim};

/// How the columns hold a u64: the i64 of the same bits.
const fn bits(n: u64) -> i64 {
    n.cast_signed()
}

fn optional_bits(n: Option<u64>) -> Option<i64> {
    n.map(bits)
}

/// JSON of texts and numbers, which cannot fail.
fn json<T: Serialize + ?Sized>(value: &T) -> rusqlite::Result<String> {
    serde_json::to_string(value)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

/// The name serde gives a variant without fields.
fn word<T: Serialize>(value: T) -> rusqlite::Result<String> {
    json(&value).map(|text| text.trim_matches('"').to_owned())
}

impl Store {
    /// Stores a new run with its cells and the header's warnings, in one transaction. The
    /// header's id does not count: the run's new id, `r17`, is returned. Ids are never used
    /// again, even after the run was removed.
    pub fn create_run(
        &mut self,
        header: &RunHeader,
        cells: &[CellRecord],
    ) -> Result<String, StoreError> {
        self.transaction(|t| {
            let run = insert_run(t, header, cells)?;
            seal::seal_new(t, run)?;
            Ok(format!("r{run}"))
        })
    }

    /// Stores whole runs, all or none. As with [`Self::create_run`], their ids are new: returned in
    /// the order of the runs.
    pub fn add_runs(&mut self, runs: &[Run]) -> Result<Vec<String>, StoreError> {
        self.transaction(|t| {
            let add = |run: &Run| {
                let number = insert_run(t, &run.header, &run.cells)?;
                run.visits.iter().try_for_each(|visit| insert_visit(t, number, visit))?;
                seal::seal_new(t, number)?;
                Ok(format!("r{number}"))
            };
            runs.iter().map(add).collect()
        })
    }

    /// Changes a run, all or nothing, in one transaction that is on the disk when this returns.
    pub fn apply(&mut self, id: &str, changes: &[Change]) -> Result<(), StoreError> {
        let run = self.number(id)?;
        changes.iter().try_for_each(|change| self.check(id, run, change))?;
        self.transaction(|t| changes.iter().try_for_each(|change| make(t, run, change)))
    }

    /// Adds a visit; see [`Change::Visit`].
    pub fn add_visit(&mut self, id: &str, visit: &VisitRecord) -> Result<(), StoreError> {
        self.apply(id, &[Change::Visit(Box::new(visit.clone()))])
    }

    /// Adds a doubt; see [`Change::Warning`].
    pub fn add_warning(&mut self, id: &str, warning: &Warning) -> Result<(), StoreError> {
        self.apply(id, &[Change::Warning(warning.clone())])
    }

    /// Says how the run stands.
    pub fn set_state(&mut self, id: &str, state: RunState) -> Result<(), StoreError> {
        self.apply(id, &[Change::State(state)])
    }

    /// Refuses what does not fit the run as it is.
    fn check(&self, id: &str, run: i64, change: &Change) -> Result<(), StoreError> {
        let (cell, order) = match change {
            Change::Visit(visit) => (visit.cell, Some(visit.order)),
            Change::Impossible(cell, _) => (*cell, None),
            _ => return Ok(()),
        };
        let query = "SELECT EXISTS (SELECT 1 FROM cell WHERE run = ?1 AND cell = ?2
                         AND (?3 IS NOT NULL OR impossible IS NULL)),
                     EXISTS (SELECT 1 FROM visit WHERE run = ?1 AND position = ?3)";
        let told = |row: &rusqlite::Row| Ok((row.get(0)?, row.get(1)?));
        let found = self.connection.query_row(query, params![run, cell, order], told);
        match (found.map_err(|e| self.sql(e))?, order) {
            ((false, _), _) => Err(StoreError::NoSuchCell { run: id.to_owned(), cell }),
            ((_, true), Some(order)) => Err(StoreError::VisitExists { run: id.to_owned(), order }),
            _ => Ok(()),
        }
    }

    /// Removes runs, all or none; gives their space back. A run that is under way is refused.
    pub fn remove(&mut self, ids: &[String]) -> Result<(), StoreError> {
        let mut numbers = Vec::with_capacity(ids.len());
        // Held until the runs are gone, so that nobody resumes one meanwhile.
        let mut claims = Vec::with_capacity(ids.len());
        for id in ids {
            // Of one whose row is lost the rest goes.
            let number = match self.lost_number(id)? {
                Some(number) => number,
                None => self.number(id)?,
            };
            if numbers.contains(&number) {
                continue;
            }
            claims.push(claim::claim(&self.path, id)?);
            numbers.push(number);
        }
        self.transaction(|t| {
            let mut delete = t.prepare("DELETE FROM run WHERE number = ?1")?;
            numbers.iter().try_for_each(|run| delete.execute([run]).map(|_| ()))?;
            // What the run's own row would have taken with it, where that row is lost.
            let parts = ["visit", "cell_stream", "cell", "warning", "imported", "run_seal"];
            parts.iter().try_for_each(|table| {
                let mut delete = t.prepare(&format!("DELETE FROM {table} WHERE run = ?1"))?;
                numbers.iter().try_for_each(|run| delete.execute([run]).map(|_| ()))
            })
        })?;
        // Only space: what fails here is tried again at the next removal.
        let _ = self.transaction(|t| t.execute_batch("PRAGMA incremental_vacuum"));
        drop(claims);
        Ok(())
    }

    pub(crate) fn transaction<T>(
        &mut self,
        work: impl FnOnce(&Transaction) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        self.is_there()?;
        let done = self.commit(work);
        // SQLite does not tell that the file was removed or renamed meanwhile, or calls it an error.
        self.is_there()?;
        done.map_err(|error| match error.sqlite_error_code() {
            // The journal, in a directory that may not be written.
            Some(ErrorCode::CannotOpen) => {
                StoreError::ReadOnly { path: self.path.clone(), source: Box::new(error) }
            }
            _ => self.sql(error),
        })
    }

    fn commit<T>(
        &mut self,
        work: impl FnOnce(&Transaction) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        // Immediate: a transaction that reads first and then finds another writer would fail at
        // once instead of waiting.
        let behavior = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(behavior)?;
        let done = work(&transaction)?;
        transaction.commit()?;
        Ok(done)
    }
}

/// What changes in a run that is under way. All else stays as it was stored: what is different when a
/// run is resumed (another kernel, another version) is a warning.
#[derive(Clone, Debug)]
pub enum Change {
    /// A cell more. Its visits come with later changes.
    Cell(Box<CellRecord>),
    /// A visit more.
    Visit(Box<VisitRecord>),
    /// A doubt about the run as a whole.
    Warning(Warning),
    /// Why the cell of that index cannot be measured here. Only once, and not of a cell that has one.
    Impossible(u32, String),
    /// The unit of direct I/O on files that the run made itself. Only where it was not known before.
    DirectAlignment(u32),
    /// What lies below the targets as the first visit begins. Only where it was not known before.
    Stack(Box<StackTree>),
    /// How many visits the plan has.
    VisitsPlanned(u32),
    /// How the run stands.
    State(RunState),
}

/// Makes a change, and changes the run's seal by as much.
fn make(t: &Transaction, run: i64, change: &Change) -> rusqlite::Result<()> {
    let header = |sql: &str, value: &dyn rusqlite::ToSql| {
        seal::changing(t, run, Touched::Header, || t.execute(sql, params![run, value]).map(drop))
    };
    match change {
        Change::Cell(cell) => {
            seal::changing(t, run, Touched::Cell(cell.index), || insert_cell(t, run, cell))
        }
        Change::Visit(visit) => {
            seal::changing(t, run, Touched::Visit(visit.order), || insert_visit(t, run, visit))
        }
        Change::Warning(warning) => {
            seal::changing(t, run, Touched::Warnings, || insert_warning(t, run, None, warning))
        }
        Change::Impossible(cell, why) => seal::changing(t, run, Touched::Cell(*cell), || {
            let sql = "UPDATE cell SET impossible = ?3 WHERE run = ?1 AND cell = ?2";
            t.execute(sql, params![run, cell, why]).map(drop)
        }),
        Change::DirectAlignment(bytes) => header(
            "UPDATE run SET target_alignment = ?2 WHERE number = ?1 AND target_alignment IS NULL",
            bytes,
        ),
        Change::Stack(stack) => {
            header("UPDATE run SET stack = ?2 WHERE number = ?1 AND stack IS NULL", &json(stack)?)
        }
        Change::VisitsPlanned(visits) => {
            header("UPDATE run SET visits_planned = ?2 WHERE number = ?1", visits)
        }
        Change::State(state) => {
            header("UPDATE run SET state = ?2 WHERE number = ?1", &kept(*state))
        }
    }
}

/// The number of the new run.
fn insert_run(t: &Transaction, header: &RunHeader, cells: &[CellRecord]) -> rusqlite::Result<i64> {
    insert_header(t, header)?;
    let run = t.last_insert_rowid();
    header.imported.iter().try_for_each(|imported| insert_imported(t, run, imported))?;
    cells.iter().try_for_each(|cell| insert_cell(t, run, cell))?;
    header.warnings.iter().try_for_each(|w| insert_warning(t, run, None, w))?;
    Ok(run)
}

fn insert_imported(t: &Transaction, run: i64, imported: &Imported) -> rusqlite::Result<()> {
    t.execute(
        "INSERT INTO imported VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            run,
            imported.tool,
            imported.version,
            imported.file,
            bits(imported.bytes),
            imported.xxh3,
            json(&imported.settings)?,
            json(&imported.remarks)?
        ],
    )
    .map(|_| ())
}

fn insert_header(t: &Transaction, header: &RunHeader) -> rusqlite::Result<()> {
    let (target, machine) = (&header.target, &header.machine);
    t.execute(
        "INSERT INTO run (record_version, suite, suite_text, target_given, target_resolved,
             target_kind, target_size_bytes, target_files, target_file_system, target_mount,
             target_devices, target_alignment, target_remarks, seed, command_line, program, host,
             kernel, architecture, processor, processors, memory_bytes, started_unix_ns, state,
             visits_planned, blocks_group, blocks_side, blocks_looks,
             blocks_controls, blocks_is_control,
             target_link, target_link_rate, target_cache_bytes,
             part_group, part_list, part_number, part_of, part_study, targets,
             stack, target_model)
         VALUES (:record_version, :suite, :suite_text, :given, :resolved, :kind, :size_bytes,
             :files, :file_system, :mount, :devices, :alignment, :remarks, :seed, :command_line,
             :program, :host, :kernel, :architecture, :processor, :processors, :memory_bytes,
             :started_unix_ns, :state, :visits_planned, :blocks_group, :blocks_side,
             :blocks_looks, :blocks_controls, :blocks_is_control,
             :link, :link_rate, :cache_bytes,
             :part_group, :part_list, :part_number, :part_of,
             :part_study, :targets, :stack, :model)",
        named_params! {
            ":record_version": header.version,
            ":suite": header.suite,
            ":suite_text": header.suite_text,
            ":given": target.given,
            ":resolved": target.resolved,
            ":kind": word(target.kind)?,
            ":size_bytes": bits(target.size_bytes),
            ":files": target.files,
            ":file_system": target.file_system,
            ":mount": target.mount,
            ":devices": json(&target.devices)?,
            ":alignment": target.direct_alignment,
            ":remarks": json(&target.remarks)?,
            ":model": target.model,
            ":seed": header.seed.to_string(),
            ":command_line": json(&header.command_line)?,
            ":program": header.program,
            ":host": machine.host,
            ":kernel": machine.kernel,
            ":architecture": machine.architecture,
            ":processor": machine.processor,
            ":processors": machine.processors,
            ":memory_bytes": bits(machine.memory_bytes),
            ":started_unix_ns": header.started_unix_ns,
            ":state": kept(header.state),
            ":visits_planned": header.visits_planned,
            ":link": target.link.as_ref().map(|link| &link.name),
            ":link_rate": optional_bits(target.link.as_ref().map(|link| link.bytes_per_second)),
            ":cache_bytes": optional_bits(target.cache_bytes),
            ":targets": json(&header.targets)?,
            ":stack": header.stack.as_ref().map(json).transpose()?,
            ":part_group": header.part.as_ref().map(|part| &part.group),
            ":part_list": header.part.as_ref().map(|part| &part.list),
            ":part_number": header.part.as_ref().map(|part| part.number),
            ":part_of": header.part.as_ref().map(|part| part.of),
            ":part_study": header
                .part
                .as_ref()
                .and_then(|part| part.study.as_ref())
                .map(json)
                .transpose()?,
            ":blocks_group": header.blocks.as_ref().map(|b| &b.group),
            ":blocks_side": header.blocks.as_ref().map(|b| &b.side),
            ":blocks_looks": header.blocks.as_ref().map_or(1, |b| b.looks),
            ":blocks_controls": json(header.blocks.as_ref().map_or(&[][..], |b| &b.controls))?,
            ":blocks_is_control": header.blocks.as_ref().is_some_and(|b| b.is_control),
        },
    )
    .map(|_| ())
}

fn insert_cell(t: &Transaction, run: i64, cell: &CellRecord) -> rusqlite::Result<()> {
    t.prepare_cached("INSERT INTO cell VALUES (?1, ?2, ?3, ?4, ?5)")?.execute(params![
        run,
        cell.index,
        cell.phase,
        json(&cell.coordinates)?,
        cell.impossible
    ])?;
    let mut insert =
        t.prepare_cached("INSERT INTO cell_stream VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?;
    for (position, stream) in (0i64..).zip(&cell.streams) {
        insert.execute(params![
            run,
            cell.index,
            position,
            stream.name,
            stream.op,
            optional_bits(stream.block_bytes),
            stream.threads,
            stream.queue_depth
        ])?;
    }
    Ok(())
}

fn insert_visit(t: &Transaction, run: i64, visit: &VisitRecord) -> rusqlite::Result<()> {
    t.prepare_cached(
        "INSERT INTO visit (run, cell, repeat, position, started_unix_ns, elapsed_ns, end,
             completions, host_stalls, purpose, ramp_ns, waited_ns, quiet, resident_before,
             resident_after, load_ns)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
    )?
    .execute(params![
        run,
        visit.cell,
        visit.repeat,
        visit.order,
        visit.started_unix_ns,
        bits(visit.elapsed_ns),
        visit.end.name(),
        blob::write_bitmap(&visit.completions),
        blob::write_gaps(&visit.host_stalls),
        visit.purpose.name(),
        bits(visit.ramp_ns),
        bits(visit.waited_ns),
        visit.quiet,
        visit.resident_before,
        visit.resident_after,
        optional_bits(visit.load_ns)
    ])?;
    let key = t.last_insert_rowid();
    for (position, stream) in (0i64..).zip(&visit.streams) {
        insert_stream(t, (key, position), stream)?;
    }
    for (position, entry) in (0i64..).zip(&visit.ledger) {
        insert_ledger(t, (key, position), entry)?;
    }
    let mut insert = t.prepare_cached("INSERT INTO counter VALUES (?1, ?2, ?3, ?4, ?5)")?;
    for (position, one) in (0i64..).zip(&visit.counters) {
        insert.execute(params![key, position, one.name, one.unit, bits(one.value)])?;
    }
    visit.warnings.iter().try_for_each(|w| insert_warning(t, run, Some(key), w))
}

/// `key`: visit, position of the stream.
fn insert_stream(t: &Transaction, key: (i64, i64), stream: &StreamRecord) -> rusqlite::Result<()> {
    let backend = &stream.backend;
    t.prepare_cached("INSERT INTO visit_stream VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?
        .execute(params![
            key.0,
            key.1,
            stream.name,
            backend.name,
            json(&backend.flags)?,
            json(&backend.reasons)?,
            backend.direct,
            bits(stream.ramp_requests),
            bits(stream.backlog)
        ])?;
    for (position, op) in (0i64..).zip(&stream.ops) {
        insert_op(t, (key.0, key.1, position), op)?;
    }
    for (position, worker) in (0i64..).zip(&stream.workers) {
        insert_worker(t, (key.0, key.1, position), worker)?;
    }
    Ok(())
}

/// `key`: visit, position of the stream, position of the operation.
fn insert_op(t: &Transaction, key: (i64, i64, i64), op: &OpRecord) -> rusqlite::Result<()> {
    let sum_low = (op.latency_ns_sum & u128::from(i64::MAX.cast_unsigned())) as i64;
    let sum_high = bits((op.latency_ns_sum >> 63) as u64);
    t.prepare_cached(
        "INSERT INTO op VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,
             ?16, ?17, ?18, ?19)",
    )?
    .execute(params![
        key.0,
        key.1,
        key.2,
        op.op,
        bits(op.requests),
        bits(op.bytes),
        bits(op.errors.iter().fold(0, |sum, &(_, n)| sum.saturating_add(n))),
        json(&op.errors)?,
        bits(op.short),
        bits(op.latency_ns_min),
        bits(op.latency_ns_max),
        sum_low,
        sum_high,
        blob::write_histogram(&op.latency),
        blob::write_series(&op.series),
        blob::write_slow(&op.slow),
        bits(op.slow_dropped),
        bits(op.late_requests),
        bits(op.late_bytes)
    ])?;
    op.reported.iter().try_for_each(|reported| insert_reported(t, key, reported))
}

/// `key`: as of the operation.
fn insert_reported(
    t: &Transaction,
    key: (i64, i64, i64),
    reported: &Reported,
) -> rusqlite::Result<()> {
    let latency = &reported.latency;
    t.prepare_cached(
        "INSERT INTO reported VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    )?
    .execute(params![
        key.0,
        key.1,
        key.2,
        optional_bits(reported.requests),
        optional_bits(reported.bytes),
        reported.iops,
        reported.bytes_per_s,
        reported.cpu_percent,
        optional_bits(latency.min),
        latency.mean,
        optional_bits(latency.max),
        latency.sd,
        json(&latency.quantiles)?,
        json(&latency.buckets)?
    ])
    .map(|_| ())
}

/// `key`: visit, position of the stream, number of the worker.
fn insert_worker(
    t: &Transaction,
    key: (i64, i64, i64),
    worker: &WorkerRecord,
) -> rusqlite::Result<()> {
    t.prepare_cached(
        "INSERT INTO worker VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    )?
    .execute(params![
        key.0,
        key.1,
        key.2,
        bits(worker.requests),
        optional_bits(worker.cpu_user_ns),
        optional_bits(worker.cpu_system_ns),
        optional_bits(worker.switches_voluntary),
        optional_bits(worker.switches_involuntary),
        blob::write_gaps(&worker.gaps),
        worker.batch_max,
        bits(worker.stamp_error_ns_max),
        optional_bits(worker.closing_sync.map(|sync| sync.start_ns)),
        optional_bits(worker.closing_sync.map(|sync| sync.length_ns))
    ])
    .map(|_| ())
}

/// `key`: visit, position of the entry.
fn insert_ledger(t: &Transaction, key: (i64, i64), entry: &LedgerEntry) -> rusqlite::Result<()> {
    t.prepare_cached(
        "INSERT INTO ledger VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    )?
    .execute(params![
        key.0,
        key.1,
        entry.device,
        entry.depth,
        bits(entry.reads),
        bits(entry.read_bytes),
        bits(entry.writes),
        bits(entry.write_bytes),
        bits(entry.discards),
        bits(entry.discard_bytes),
        bits(entry.flushes),
        bits(entry.queue_ms),
        bits(entry.in_flight_end)
    ])
    .map(|_| ())
}

fn insert_warning(
    t: &Transaction,
    run: i64,
    visit: Option<i64>,
    warning: &Warning,
) -> rusqlite::Result<()> {
    t.prepare_cached("INSERT INTO warning (run, visit, code, text) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![run, visit, warning.code, warning.text])
        .map(|_| ())
}

/// How a run stands in a store: whether one that is under way was killed is told anew by who reads.
const fn kept(state: RunState) -> &'static str {
    match state {
        RunState::Killed => RunState::Running.name(),
        other => other.name(),
    }
}
