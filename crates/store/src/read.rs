use std::cell::Cell;
use std::collections::BTreeMap;

use record::{
    BackendRecord, Bitmap, Blocks, CellRecord, Counter, Gap, Imported, LedgerEntry, Link, Machine,
    OpRecord, PartOf, Purpose, Reported, ReportedLatency, Run, RunHeader, RunState, RunSummary,
    StackTree, StreamPlan, StreamRecord, TargetRecord, VisitEnd, VisitRecord, Warning,
    WorkerRecord,
};
use rusqlite::{Connection, OptionalExtension, Row};
use serde::de::DeserializeOwned;

use crate::blob::{self, BlobError};
use crate::seal::{self, Part, Sums, Table};
use crate::{Store, StoreError, claim};

/// What scratch files are called.
const SCRATCH: &str = "plimsoll-scratch.dat";

/// What a listing has of a run.
pub type Line = Result<RunSummary, StoreError>;

/// A run that cannot be read: its id, and what is wrong with it.
pub type DamagedRun = (String, StoreError);

impl Store {
    /// Every run on a line, newest last. One that is damaged fails all: what follows from which runs
    /// there are would not hold without it.
    pub fn list(&self) -> Result<Vec<RunSummary>, StoreError> {
        self.lines()?.into_iter().map(|(_, line)| line).collect()
    }

    /// The same for whom each run counts by itself: its id, and its line or what is wrong with it. A
    /// run of which only a part is left has a line, too.
    pub fn lines(&self) -> Result<Vec<(String, Line)>, StoreError> {
        self.is_there()?;
        let query = "SELECT *,
                 (SELECT count(DISTINCT cell || '/' || repeat) FROM visit
                      WHERE run = number AND end <> 'interrupted' AND purpose = 'measure')
                      AS visits_made,
                 (SELECT count(*) FROM warning WHERE run = number) AS warnings,
                 (SELECT tool FROM imported WHERE run = number) AS imported
             FROM run ORDER BY number";
        // All in one snapshot: seals change with what they seal.
        let snapshot = self.connection.unchecked_transaction().map_err(|e| self.sql(e))?;
        let mut statement = snapshot.prepare(query).map_err(|e| self.sql(e))?;
        let mut rows = statement.query([]).map_err(|e| self.sql(e))?;
        let mut lines = BTreeMap::new();
        while let Some(row) = rows.next().map_err(|e| self.sql(e))? {
            let number: i64 = row.get("number").map_err(|e| self.sql(e))?;
            let id = format!("r{number}");
            let columns = Columns { store: self, run: &id, row };
            let line = columns.summary().and_then(|line| {
                self.check_summary(&id, row)?;
                Ok(line)
            });
            match line {
                Ok(_) | Err(StoreError::BadValue { .. }) => lines.insert(number, (id, line)),
                // Not of this run alone.
                Err(error) => return Err(error),
            };
        }
        for number in self.lost()? {
            let id = format!("r{number}");
            let line = Err(self.row_is_lost(&id));
            lines.insert(number, (id, line));
        }
        Ok(lines.into_values().collect())
    }

    /// Every run on a line that can be read, newest last, and of the others what is wrong with them.
    pub fn readable(&self) -> Result<(Vec<RunSummary>, Vec<DamagedRun>), StoreError> {
        let (mut runs, mut damaged) = (Vec::new(), Vec::new());
        for (id, line) in self.lines()? {
            match line {
                Ok(run) => runs.push(run),
                Err(error) => damaged.push((id, error)),
            }
        }
        Ok((runs, damaged))
    }

    fn check_summary(&self, id: &str, row: &Row) -> Result<(), StoreError> {
        let failed = |error| self.sql(error);
        let run = (id, row.get("number").map_err(failed)?);
        let mut sums = Sums::default();
        sums.add(seal::RUN, row).map_err(failed)?;
        sums.add_all(&self.connection, seal::IMPORTED, "run = ?1", &[run.1]).map_err(failed)?;
        self.check_parts(run, &sums, &[Part::Header, Part::Imported])?;
        let counts =
            (row.get("visits_made").map_err(failed)?, row.get("warnings").map_err(failed)?);
        self.check_counts(run, counts)
    }

    /// Runs that were imported from a file of this content, oldest first.
    ///
    /// * `xxh3`: as in [`Imported::xxh3`].
    pub fn imported_from(&self, xxh3: &str) -> Result<Vec<String>, StoreError> {
        let query = "SELECT id FROM run JOIN imported ON imported.run = run.number
             WHERE xxh3 = ?1 ORDER BY number";
        let mut statement = self.connection.prepare(query).map_err(|e| self.sql(e))?;
        let ids = statement.query_map([xxh3], |row| row.get(0)).map_err(|e| self.sql(e))?;
        ids.collect::<Result<_, _>>().map_err(|e| self.sql(e))
    }

    /// All of a run, as of one moment even while another process adds to it.
    ///
    /// * `id`: as [`Self::create_run`] and [`Self::resolve`] give it.
    pub fn load(&self, id: &str) -> Result<Run, StoreError> {
        // Who reads a run back after it ended says where it is stored.
        self.is_there()?;
        let number = self.number(id)?;
        // Deferred: it takes its snapshot at the first read and holds it.
        let snapshot = self.connection.unchecked_transaction().map_err(|e| self.sql(e))?;
        Reader::new(self, &snapshot, (id, number), true).run()
    }

    /// As [`Self::load`], without what cells ask for and what visits measured: enough to tell how
    /// the run stands, and quick.
    pub fn outline(&self, id: &str) -> Result<Run, StoreError> {
        let number = self.number(id)?;
        let snapshot = self.connection.unchecked_transaction().map_err(|e| self.sql(e))?;
        Reader::new(self, &snapshot, (id, number), false).run()
    }

    /// The number of a run that exists.
    pub(crate) fn number(&self, id: &str) -> Result<i64, StoreError> {
        self.connection
            .query_row("SELECT number FROM run WHERE id = ?1", [id], |row| row.get(0))
            .optional()
            .map_err(|e| self.sql(e))?
            .ok_or_else(|| match self.lost_number(id) {
                Ok(Some(_)) => self.row_is_lost(id),
                _ => self.no_such_run(id),
            })
    }
}

/// Reads one run within one snapshot.
struct Reader<'a> {
    store: &'a Store,
    connection: &'a Connection,
    run: &'a str,
    number: i64,
    /// With what cells ask for and what visits measured.
    whole: bool,
    /// How many bits bitmaps may still have: see [`blob::read_bitmap`].
    bits_left: Cell<u64>,
    /// Of the rows read so far.
    sums: Cell<Sums>,
}

fn named(given: &str, resolved: &str) -> String {
    let scratch = format!("/{SCRATCH}");
    match resolved.strip_suffix(&scratch) {
        Some(directory) if !given.ends_with(SCRATCH) => format!("{directory}/ (scratch)"),
        _ => given.to_owned(),
    }
}

/// One row, with errors that name run and column.
struct Columns<'a> {
    store: &'a Store,
    run: &'a str,
    row: &'a Row<'a>,
}

impl Columns<'_> {
    fn get<T: rusqlite::types::FromSql>(&self, column: &'static str) -> Result<T, StoreError> {
        self.row.get(column).map_err(|error| match error {
            // Types and ranges that this program never writes; SQLite itself checks the rest.
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..) => self.bad(column, error.to_string()),
            other => self.store.sql(other),
        })
    }

    fn blocks(&self) -> Result<Option<Blocks>, StoreError> {
        Ok(match (self.get("blocks_group")?, self.get("blocks_side")?) {
            (Some(group), Some(side)) => {
                let looks = self.get("blocks_looks")?;
                let controls = self.json("blocks_controls")?;
                let is_control = self.get("blocks_is_control")?;
                Some(Blocks { group, side, looks, controls, is_control })
            }
            _ => None,
        })
    }

    fn part(&self) -> Result<Option<PartOf>, StoreError> {
        let names = (self.get("part_group")?, self.get("part_list")?);
        let numbers = (self.get("part_number")?, self.get("part_of")?);
        Ok(match (names, numbers) {
            ((Some(group), Some(list)), (Some(number), Some(of))) => {
                let study = self.get::<Option<String>>("part_study")?;
                let study = study.map(|_| self.json("part_study")).transpose()?;
                Some(PartOf { group, list, number, of, study })
            }
            _ => None,
        })
    }

    fn u64(&self, column: &'static str) -> Result<u64, StoreError> {
        self.get(column).map(i64::cast_unsigned)
    }

    fn optional_u64(&self, column: &'static str) -> Result<Option<u64>, StoreError> {
        Ok(self.get::<Option<i64>>(column)?.map(i64::cast_unsigned))
    }

    fn json<T: DeserializeOwned>(&self, column: &'static str) -> Result<T, StoreError> {
        let text: String = self.get(column)?;
        serde_json::from_str(&text).map_err(|error| self.bad(column, error.to_string()))
    }

    /// A variant by its serde name.
    fn word<T: DeserializeOwned>(&self, column: &'static str) -> Result<T, StoreError> {
        let text: String = self.get(column)?;
        serde_json::from_value(serde_json::Value::String(text))
            .map_err(|error| self.bad(column, error.to_string()))
    }

    fn blob<T>(
        &self,
        column: &'static str,
        read: impl FnOnce(&[u8]) -> Result<T, BlobError>,
    ) -> Result<T, StoreError> {
        let bytes: Vec<u8> = self.get(column)?;
        read(&bytes).map_err(|error| StoreError::blob(&self.store.path, column, self.run, error))
    }

    fn bad(&self, column: &'static str, why: String) -> StoreError {
        StoreError::bad(&self.store.path, column, self.run, why)
    }

    /// As the user named it; a scratch file by the directory that it was made in, since `.` is
    /// another one tomorrow.
    fn named_target(&self) -> Result<String, StoreError> {
        let targets: Vec<TargetRecord> = self.json("targets")?;
        if targets.is_empty() {
            return Ok(named(
                &self.get::<String>("target_given")?,
                &self.get::<String>("target_resolved")?,
            ));
        }
        let names = targets.iter().map(|target| named(&target.given, &target.resolved));
        Ok(names.collect::<Vec<_>>().join(", "))
    }

    /// How the run stands: of one that says it is under way the kernel knows whether it is.
    fn state(&self) -> Result<RunState, StoreError> {
        let state = self.word::<RunState>("state")?;
        Ok(state.held(state == RunState::Running && claim::is_claimed(&self.store.path, self.run)))
    }

    fn summary(&self) -> Result<RunSummary, StoreError> {
        let imported: Option<String> = self.get("imported")?;
        let started: i64 = self.get("started_unix_ns")?;
        let state = self.state()?;
        Ok(RunSummary {
            id: self.run.to_owned(),
            suite: self.get("suite")?,
            target: self.named_target()?,
            started_unix_ns: (imported.is_none() || started != 0).then_some(started),
            imported,
            live: claim::is_claimed(&self.store.path, self.run),
            state,
            visits_made: self.get("visits_made")?,
            visits_planned: self.get("visits_planned")?,
            warnings: self.get("warnings")?,
            part: self.part()?,
        })
    }

    fn header(
        &self,
        warnings: Vec<Warning>,
        imported: Option<Imported>,
    ) -> Result<RunHeader, StoreError> {
        let seed: String = self.get("seed")?;
        Ok(RunHeader {
            id: self.run.to_owned(),
            version: self.get("record_version")?,
            suite: self.get("suite")?,
            suite_text: self.get("suite_text")?,
            target: self.target()?,
            targets: self.json("targets")?,
            seed: seed.parse().map_err(|_| self.bad("seed", format!("`{seed}` is no seed")))?,
            command_line: self.json("command_line")?,
            program: self.get("program")?,
            stack: self.stack()?,
            machine: self.machine()?,
            started_unix_ns: self.get("started_unix_ns")?,
            state: self.state()?,
            visits_planned: self.get("visits_planned")?,
            blocks: self.blocks()?,
            part: self.part()?,
            imported,
            warnings,
        })
    }

    fn imported(&self) -> Result<Imported, StoreError> {
        Ok(Imported {
            tool: self.get("tool")?,
            version: self.get("version")?,
            file: self.get("file")?,
            bytes: self.u64("bytes")?,
            xxh3: self.get("xxh3")?,
            settings: self.json("settings")?,
            remarks: self.json("remarks")?,
        })
    }

    /// What another tool says, and the position of the operation that it says it of.
    fn reported(&self) -> Result<(u32, Reported), StoreError> {
        let latency = ReportedLatency {
            min: self.optional_u64("latency_ns_min")?,
            mean: self.get("latency_ns_mean")?,
            max: self.optional_u64("latency_ns_max")?,
            sd: self.get("latency_ns_sd")?,
            quantiles: self.json("quantiles")?,
            buckets: self.json("buckets")?,
        };
        let reported = Reported {
            requests: self.optional_u64("requests")?,
            bytes: self.optional_u64("bytes")?,
            iops: self.get("iops")?,
            bytes_per_s: self.get("bytes_per_s")?,
            cpu_percent: self.get("cpu_percent")?,
            latency,
        };
        Ok((self.get("position")?, reported))
    }

    fn target(&self) -> Result<TargetRecord, StoreError> {
        Ok(TargetRecord {
            given: self.get("target_given")?,
            resolved: self.get("target_resolved")?,
            kind: self.word("target_kind")?,
            size_bytes: self.u64("target_size_bytes")?,
            files: self.get("target_files")?,
            file_system: self.get("target_file_system")?,
            mount: self.get("target_mount")?,
            devices: self.json("target_devices")?,
            direct_alignment: self.get("target_alignment")?,
            link: self.link()?,
            cache_bytes: self.optional_u64("target_cache_bytes")?,
            remarks: self.json("target_remarks")?,
            model: self.get("target_model")?,
        })
    }

    fn stack(&self) -> Result<Option<StackTree>, StoreError> {
        let text: Option<String> = self.get("stack")?;
        text.map(|text| serde_json::from_str(&text))
            .transpose()
            .map_err(|error| self.bad("stack", error.to_string()))
    }

    fn link(&self) -> Result<Option<Link>, StoreError> {
        let name: Option<String> = self.get("target_link")?;
        let rate = self.optional_u64("target_link_rate")?;
        Ok(name.zip(rate).map(|(name, bytes_per_second)| Link { name, bytes_per_second }))
    }

    fn machine(&self) -> Result<Machine, StoreError> {
        Ok(Machine {
            host: self.get("host")?,
            kernel: self.get("kernel")?,
            architecture: self.get("architecture")?,
            processor: self.get("processor")?,
            processors: self.get("processors")?,
            memory_bytes: self.u64("memory_bytes")?,
        })
    }

    fn stream_plan(&self) -> Result<StreamPlan, StoreError> {
        Ok(StreamPlan {
            name: self.get("name")?,
            op: self.get("op")?,
            block_bytes: self.optional_u64("block_bytes")?,
            threads: self.get("threads")?,
            queue_depth: self.get("queue_depth")?,
        })
    }

    fn op(&self) -> Result<OpRecord, StoreError> {
        let high = u128::from(self.u64("latency_ns_sum_high")?) << 63;
        Ok(OpRecord {
            op: self.get("op")?,
            requests: self.u64("requests")?,
            bytes: self.u64("bytes")?,
            errors: self.json("error_numbers")?,
            short: self.u64("short")?,
            latency: self.blob("latency", blob::read_histogram)?,
            latency_ns_min: self.u64("latency_ns_min")?,
            latency_ns_max: self.u64("latency_ns_max")?,
            latency_ns_sum: high | u128::from(self.u64("latency_ns_sum")?),
            series: self.blob("series", blob::read_series)?,
            slow: self.blob("slow", blob::read_slow)?,
            slow_dropped: self.u64("slow_dropped")?,
            late_requests: self.u64("late_requests")?,
            late_bytes: self.u64("late_bytes")?,
            reported: None,
        })
    }

    fn worker(&self) -> Result<WorkerRecord, StoreError> {
        let closing =
            (self.optional_u64("closing_start_ns")?, self.optional_u64("closing_length_ns")?);
        Ok(WorkerRecord {
            requests: self.u64("requests")?,
            cpu_user_ns: self.optional_u64("cpu_user_ns")?,
            cpu_system_ns: self.optional_u64("cpu_system_ns")?,
            switches_voluntary: self.optional_u64("switches_voluntary")?,
            switches_involuntary: self.optional_u64("switches_involuntary")?,
            gaps: self.blob("gaps", blob::read_gaps)?,
            batch_max: self.get("batch_max")?,
            stamp_error_ns_max: self.u64("stamp_error_ns_max")?,
            closing_sync: closing
                .0
                .zip(closing.1)
                .map(|(start_ns, length_ns)| Gap { start_ns, length_ns }),
        })
    }

    fn ledger(&self) -> Result<LedgerEntry, StoreError> {
        Ok(LedgerEntry {
            device: self.get("device")?,
            depth: self.get("depth")?,
            reads: self.u64("reads")?,
            read_bytes: self.u64("read_bytes")?,
            writes: self.u64("writes")?,
            write_bytes: self.u64("write_bytes")?,
            discards: self.u64("discards")?,
            discard_bytes: self.u64("discard_bytes")?,
            flushes: self.u64("flushes")?,
            queue_ms: self.u64("queue_ms")?,
            in_flight_end: self.u64("in_flight_end")?,
        })
    }

    fn counter(&self) -> Result<Counter, StoreError> {
        let value = self.u64("value")?;
        Ok(Counter { name: self.get("name")?, unit: self.get("unit")?, value })
    }

    fn warning(&self) -> Result<Warning, StoreError> {
        Ok(Warning { code: self.get("code")?, text: self.get("text")? })
    }
}

impl<'a> Reader<'a> {
    /// * `run`: its id and its number.
    fn new(
        store: &'a Store,
        connection: &'a Connection,
        (run, number): (&'a str, i64),
        whole: bool,
    ) -> Self {
        let bits_left = Cell::new(blob::UNPACKED_BITS_MAX);
        let sums = Cell::new(Sums::default());
        Self { store, connection, run, number, whole, bits_left, sums }
    }

    fn sum(&self, add: impl FnOnce(&mut Sums) -> rusqlite::Result<()>) -> Result<(), StoreError> {
        let mut sums = self.sums.get();
        add(&mut sums).map_err(|error| self.store.sql(error))?;
        self.sums.set(sums);
        Ok(())
    }

    /// * `query`: of all columns, for the table's checksum.
    fn rows<T>(
        &self,
        table: Table,
        query: &str,
        parameters: &[i64],
        mut read: impl FnMut(&Columns) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let failed = |error| self.store.sql(error);
        let mut statement = self.connection.prepare_cached(query).map_err(failed)?;
        let parameters = rusqlite::params_from_iter(parameters);
        let mut rows = statement.query(parameters).map_err(failed)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(failed)? {
            found.push(read(&Columns { store: self.store, run: self.run, row })?);
            self.sum(|sums| sums.add(table, row))?;
        }
        Ok(found)
    }

    fn run(&self) -> Result<Run, StoreError> {
        let warnings = self.rows(
            seal::RUN_WARNING,
            "SELECT * FROM warning WHERE run = ?1 AND visit IS NULL ORDER BY warning",
            &[self.number],
            |c| c.warning(),
        )?;
        let imported = self
            .rows(seal::IMPORTED, "SELECT * FROM imported WHERE run = ?1", &[self.number], |c| {
                c.imported()
            })?
            .pop();
        let header = self
            .rows(seal::RUN, "SELECT * FROM run WHERE number = ?1", &[self.number], |columns| {
                columns.header(warnings.clone(), imported.clone())
            })?
            .pop()
            .ok_or_else(|| self.store.no_such_run(self.run))?;
        let cells = self.rows(
            seal::CELL,
            "SELECT * FROM cell WHERE run = ?1 ORDER BY cell",
            &[self.number],
            |columns| self.cell(columns),
        )?;
        let visits = self.rows(
            seal::VISIT,
            "SELECT * FROM visit WHERE run = ?1 ORDER BY position",
            &[self.number],
            |columns| {
                let order: u32 = columns.get("position")?;
                self.visit(order, columns).map_err(|error| error.of_visit(order))
            },
        )?;
        let all = [
            Part::Header,
            Part::Imported,
            Part::Cells,
            Part::Warnings,
            Part::Visits,
            Part::Plans,
            Part::Measured,
        ];
        let parts = if self.whole { &all[..] } else { &all[..5] };
        self.store.check_parts((self.run, self.number), &self.sums.get(), parts)?;
        Ok(Run { header, cells, visits })
    }

    fn cell(&self, columns: &Columns) -> Result<CellRecord, StoreError> {
        let index: u32 = columns.get("cell")?;
        let streams = match self.whole {
            true => self.rows(
                seal::CELL_STREAM,
                "SELECT * FROM cell_stream WHERE run = ?1 AND cell = ?2 ORDER BY stream",
                &[self.number, i64::from(index)],
                |c| c.stream_plan(),
            )?,
            false => Vec::new(),
        };
        Ok(CellRecord {
            index,
            phase: columns.get("phase")?,
            coordinates: columns.json("coordinates")?,
            streams,
            impossible: columns.get("impossible")?,
        })
    }

    fn visit(&self, order: u32, columns: &Columns) -> Result<VisitRecord, StoreError> {
        let visit = VisitRecord {
            cell: columns.get("cell")?,
            repeat: columns.get("repeat")?,
            order,
            started_unix_ns: columns.get("started_unix_ns")?,
            elapsed_ns: columns.u64("elapsed_ns")?,
            load_ns: columns.optional_u64("load_ns")?,
            end: columns.word::<VisitEnd>("end")?,
            purpose: columns.word::<Purpose>("purpose")?,
            ramp_ns: columns.u64("ramp_ns")?,
            waited_ns: columns.u64("waited_ns")?,
            quiet: columns.get("quiet")?,
            resident_before: columns.get("resident_before")?,
            resident_after: columns.get("resident_after")?,
            streams: Vec::new(),
            completions: Bitmap::default(),
            ledger: Vec::new(),
            counters: Vec::new(),
            host_stalls: Vec::new(),
            warnings: Vec::new(),
        };
        if !self.whole {
            return Ok(visit);
        }
        let key: i64 = columns.get("visit")?;
        self.sum(|sums| sums.add_blobs(columns.row))?;
        Ok(VisitRecord {
            streams: self.rows(
                seal::VISIT_STREAM,
                "SELECT * FROM visit_stream WHERE visit = ?1 ORDER BY stream",
                &[key],
                |columns| self.stream(key, columns),
            )?,
            completions: columns.blob("completions", |bytes| {
                let mut left = self.bits_left.get();
                let map = blob::read_bitmap(bytes, &mut left);
                self.bits_left.set(left);
                map
            })?,
            ledger: self.rows(
                seal::LEDGER,
                "SELECT * FROM ledger WHERE visit = ?1 ORDER BY position",
                &[key],
                |c| c.ledger(),
            )?,
            counters: self.rows(
                seal::COUNTER,
                "SELECT * FROM counter WHERE visit = ?1 ORDER BY position",
                &[key],
                |c| c.counter(),
            )?,
            host_stalls: columns.blob("host_stalls", blob::read_gaps)?,
            warnings: self.rows(
                seal::WARNING,
                "SELECT * FROM warning WHERE visit = ?1 ORDER BY warning",
                &[key],
                |c| c.warning(),
            )?,
            ..visit
        })
    }

    fn stream(&self, visit: i64, columns: &Columns) -> Result<StreamRecord, StoreError> {
        let key = [visit, columns.get("stream")?];
        let mut ops = self.rows(
            seal::OP,
            "SELECT * FROM op WHERE visit = ?1 AND stream = ?2 ORDER BY position",
            &key,
            |c| c.op(),
        )?;
        let reported = self.rows(
            seal::REPORTED,
            "SELECT * FROM reported WHERE visit = ?1 AND stream = ?2",
            &key,
            |c| c.reported(),
        )?;
        for (position, reported) in reported {
            if let Some(op) = ops.get_mut(position as usize) {
                op.reported = Some(reported);
            }
        }
        Ok(StreamRecord {
            name: columns.get("name")?,
            backend: BackendRecord {
                name: columns.get("backend")?,
                flags: columns.json("backend_flags")?,
                reasons: columns.json("backend_reasons")?,
                direct: columns.get("direct")?,
            },
            ops,
            workers: self.rows(
                seal::WORKER,
                "SELECT * FROM worker WHERE visit = ?1 AND stream = ?2 ORDER BY worker",
                &key,
                |c| c.worker(),
            )?,
            ramp_requests: columns.u64("ramp_requests")?,
            backlog: columns.u64("backlog")?,
        })
    }
}
