-- Runs, their cells and visits. See docs/formats.md for units and the binary columns.
--
-- u64 values are stored as the i64 of the same bits, so only above 8 EiB or 292 years do they
-- read negative in SQL. The seed uses all 64 bits and is text.

CREATE TABLE run (
    number             INTEGER PRIMARY KEY AUTOINCREMENT, -- AUTOINCREMENT: never used twice, even after rm
    id                 TEXT NOT NULL GENERATED ALWAYS AS ('r' || number) VIRTUAL,
    record_version     INTEGER NOT NULL,
    suite              TEXT NOT NULL,
    suite_text         TEXT NOT NULL,
    target_given       TEXT NOT NULL,
    target_resolved    TEXT NOT NULL,
    target_kind        TEXT NOT NULL,
    target_size_bytes  INTEGER NOT NULL,
    target_files       INTEGER NOT NULL,
    target_file_system TEXT,
    target_mount       TEXT,
    target_devices     TEXT NOT NULL CHECK (json_valid(target_devices)),
    target_alignment   INTEGER,
    target_remarks     TEXT NOT NULL CHECK (json_valid(target_remarks)),
    seed               TEXT NOT NULL,
    command_line       TEXT NOT NULL CHECK (json_valid(command_line)),
    program            TEXT NOT NULL,
    host               TEXT NOT NULL,
    kernel             TEXT NOT NULL,
    architecture       TEXT NOT NULL,
    processor          TEXT NOT NULL,
    processors         INTEGER NOT NULL,
    memory_bytes       INTEGER NOT NULL,
    started_unix_ns    INTEGER NOT NULL,
    state              TEXT NOT NULL CHECK (state IN ('running', 'complete', 'interrupted', 'failed')),
    visits_planned     INTEGER NOT NULL
) STRICT;

CREATE TABLE cell (
    run         INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    cell        INTEGER NOT NULL, -- index in the suite's order
    phase       TEXT NOT NULL,
    coordinates TEXT NOT NULL CHECK (json_valid(coordinates)), -- [["block_size","4KiB"],...]
    impossible  TEXT, -- why it cannot be measured here
    PRIMARY KEY (run, cell)
) STRICT;

CREATE TABLE cell_stream (
    run         INTEGER NOT NULL,
    cell        INTEGER NOT NULL,
    stream      INTEGER NOT NULL, -- position in the cell
    name        TEXT NOT NULL,
    op          TEXT NOT NULL,
    block_bytes INTEGER,
    threads     INTEGER NOT NULL,
    queue_depth INTEGER NOT NULL, -- per thread
    PRIMARY KEY (run, cell, stream),
    FOREIGN KEY (run, cell) REFERENCES cell ON DELETE CASCADE
) STRICT;

CREATE TABLE visit (
    visit           INTEGER PRIMARY KEY,
    run             INTEGER NOT NULL,
    cell            INTEGER NOT NULL,
    repeat          INTEGER NOT NULL,
    position        INTEGER NOT NULL, -- how many visits of the run came before
    started_unix_ns INTEGER NOT NULL,
    elapsed_ns      INTEGER NOT NULL,
    end             TEXT NOT NULL CHECK (end IN ('complete', 'interrupted', 'failed', 'hanging')),
    completions     BLOB NOT NULL, -- bitmap, one bit per ms
    host_stalls     BLOB NOT NULL, -- gaps
    UNIQUE (run, position),
    FOREIGN KEY (run, cell) REFERENCES cell ON DELETE CASCADE
) STRICT;
CREATE INDEX visit_by_cell ON visit (run, cell);

CREATE TABLE visit_stream (
    visit           INTEGER NOT NULL REFERENCES visit ON DELETE CASCADE,
    stream          INTEGER NOT NULL,
    name            TEXT NOT NULL,
    backend         TEXT NOT NULL,
    backend_flags   TEXT NOT NULL CHECK (json_valid(backend_flags)),
    backend_reasons TEXT NOT NULL CHECK (json_valid(backend_reasons)),
    direct          INTEGER NOT NULL CHECK (direct IN (0, 1)),
    ramp_requests   INTEGER NOT NULL,
    backlog         INTEGER NOT NULL,
    PRIMARY KEY (visit, stream)
) STRICT;

CREATE TABLE op (
    visit               INTEGER NOT NULL,
    stream              INTEGER NOT NULL,
    position            INTEGER NOT NULL,
    op                  TEXT NOT NULL,
    requests            INTEGER NOT NULL, -- completed in full
    bytes               INTEGER NOT NULL, -- moved by those
    errors              INTEGER NOT NULL,
    error_numbers       TEXT NOT NULL CHECK (json_valid(error_numbers)), -- [[errno, count],...]
    short               INTEGER NOT NULL,
    latency_ns_min      INTEGER NOT NULL,
    latency_ns_max      INTEGER NOT NULL,
    latency_ns_sum      INTEGER NOT NULL, -- low 63 bits of the sum
    latency_ns_sum_high INTEGER NOT NULL, -- the bits above: 0 below 292 years
    latency             BLOB NOT NULL, -- histogram
    series              BLOB NOT NULL,
    slow                BLOB NOT NULL,
    slow_dropped        INTEGER NOT NULL,
    PRIMARY KEY (visit, stream, position),
    FOREIGN KEY (visit, stream) REFERENCES visit_stream ON DELETE CASCADE
) STRICT;

CREATE TABLE worker (
    visit                INTEGER NOT NULL,
    stream               INTEGER NOT NULL,
    worker               INTEGER NOT NULL,
    requests             INTEGER NOT NULL,
    cpu_user_ns          INTEGER,
    cpu_system_ns        INTEGER,
    switches_voluntary   INTEGER,
    switches_involuntary INTEGER,
    gaps                 BLOB NOT NULL,
    batch_max            INTEGER NOT NULL,
    stamp_error_ns_max   INTEGER NOT NULL,
    PRIMARY KEY (visit, stream, worker),
    FOREIGN KEY (visit, stream) REFERENCES visit_stream ON DELETE CASCADE
) STRICT;

CREATE TABLE ledger (
    visit         INTEGER NOT NULL REFERENCES visit ON DELETE CASCADE,
    position      INTEGER NOT NULL,
    device        TEXT NOT NULL,
    depth         INTEGER NOT NULL,
    reads         INTEGER NOT NULL,
    read_bytes    INTEGER NOT NULL,
    writes        INTEGER NOT NULL,
    write_bytes   INTEGER NOT NULL,
    discards      INTEGER NOT NULL,
    discard_bytes INTEGER NOT NULL,
    flushes       INTEGER NOT NULL,
    queue_ms      INTEGER NOT NULL,
    in_flight_end INTEGER NOT NULL,
    PRIMARY KEY (visit, position)
) STRICT;

CREATE TABLE warning (
    warning INTEGER PRIMARY KEY,
    run     INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    visit   INTEGER REFERENCES visit ON DELETE CASCADE, -- NULL: of the run as a whole
    code    TEXT NOT NULL,
    text    TEXT NOT NULL
) STRICT;
CREATE INDEX warning_by_run ON warning (run);
CREATE INDEX warning_by_visit ON warning (visit);

-- For people with an SQL prompt: one row per visit, stream and operation.
CREATE VIEW figure AS
SELECT run.id AS run, run.suite, cell.cell, cell.phase, cell.coordinates, visit.repeat,
       visit_stream.name AS stream, op.op, cell_stream.block_bytes, cell_stream.threads,
       cell_stream.queue_depth, visit.end, visit.elapsed_ns, op.requests, op.bytes, op.errors,
       op.short, visit_stream.backend, visit_stream.direct,
       CASE WHEN visit.elapsed_ns > 0 THEN op.requests * 1e9 / visit.elapsed_ns END AS iops,
       CASE WHEN visit.elapsed_ns > 0 THEN op.bytes * 1e9 / visit.elapsed_ns END AS bytes_per_s,
       CASE WHEN op.requests > 0 THEN (op.latency_ns_sum_high * 9223372036854775808.0
            + op.latency_ns_sum) / op.requests END AS latency_ns_mean,
       op.latency_ns_min, op.latency_ns_max
FROM op
JOIN visit_stream USING (visit, stream)
JOIN visit USING (visit)
JOIN cell ON cell.run = visit.run AND cell.cell = visit.cell
JOIN run ON run.number = visit.run
LEFT JOIN cell_stream ON cell_stream.run = cell.run AND cell_stream.cell = cell.cell
     AND cell_stream.stream = op.stream;

-- Stored results are never rewritten: only how a run stands may change, and a reason why a cell
-- is impossible may be added once.
CREATE TRIGGER run_is_kept BEFORE UPDATE OF number, record_version, suite, suite_text,
    target_given, target_resolved, target_kind, target_size_bytes, target_files,
    target_file_system, target_mount, target_devices, target_alignment, target_remarks, seed,
    command_line, program, host, kernel, architecture, processor, processors, memory_bytes,
    started_unix_ns ON run
BEGIN SELECT RAISE(ABORT, 'stored results are never rewritten'); END;
CREATE TRIGGER cell_is_kept BEFORE UPDATE ON cell
WHEN old.impossible IS NOT NULL OR new.run != old.run OR new.cell != old.cell
    OR new.phase != old.phase OR new.coordinates != old.coordinates
BEGIN SELECT RAISE(ABORT, 'stored results are never rewritten'); END;
CREATE TRIGGER cell_stream_is_kept BEFORE UPDATE ON cell_stream
BEGIN SELECT RAISE(ABORT, 'stored results are never rewritten'); END;
CREATE TRIGGER visit_is_kept BEFORE UPDATE ON visit
BEGIN SELECT RAISE(ABORT, 'stored results are never rewritten'); END;
CREATE TRIGGER visit_stream_is_kept BEFORE UPDATE ON visit_stream
BEGIN SELECT RAISE(ABORT, 'stored results are never rewritten'); END;
CREATE TRIGGER op_is_kept BEFORE UPDATE ON op
BEGIN SELECT RAISE(ABORT, 'stored results are never rewritten'); END;
CREATE TRIGGER worker_is_kept BEFORE UPDATE ON worker
BEGIN SELECT RAISE(ABORT, 'stored results are never rewritten'); END;
CREATE TRIGGER ledger_is_kept BEFORE UPDATE ON ledger
BEGIN SELECT RAISE(ABORT, 'stored results are never rewritten'); END;
CREATE TRIGGER warning_is_kept BEFORE UPDATE ON warning
BEGIN SELECT RAISE(ABORT, 'stored results are never rewritten'); END;
