-- What a visit was made for and what came before it; sides of comparisons; calibrations.

ALTER TABLE visit ADD COLUMN purpose TEXT NOT NULL DEFAULT 'measure'
    CHECK (purpose IN ('measure', 'pilot'));
ALTER TABLE visit ADD COLUMN ramp_ns INTEGER NOT NULL DEFAULT 0;
ALTER TABLE visit ADD COLUMN waited_ns INTEGER NOT NULL DEFAULT 0;
ALTER TABLE visit ADD COLUMN quiet INTEGER CHECK (quiet IN (0, 1)); -- NULL: nobody could look
-- Thousandths of the files in the page cache; NULL: not known.
ALTER TABLE visit ADD COLUMN resident_before INTEGER;
ALTER TABLE visit ADD COLUMN resident_after INTEGER;

ALTER TABLE run ADD COLUMN target_link TEXT;
ALTER TABLE run ADD COLUMN target_link_rate INTEGER
    CHECK ((target_link IS NULL) = (target_link_rate IS NULL)); -- bytes per second
ALTER TABLE run ADD COLUMN target_cache_bytes INTEGER; -- as declared by the user
ALTER TABLE run ADD COLUMN blocks_group TEXT;
ALTER TABLE run ADD COLUMN blocks_side TEXT CHECK ((blocks_side IS NULL) = (blocks_group IS NULL));
CREATE INDEX run_by_group ON run (blocks_group) WHERE blocks_group IS NOT NULL;

-- What a machine's own noise is: one row per `calibrate`.
CREATE TABLE calibration (
    number          INTEGER PRIMARY KEY AUTOINCREMENT,
    machine         TEXT NOT NULL, -- which machine it holds for
    started_unix_ns INTEGER NOT NULL,
    version         INTEGER NOT NULL, -- of the body
    body            TEXT NOT NULL CHECK (json_valid(body))
) STRICT;
CREATE INDEX calibration_by_machine ON calibration (machine);

CREATE TRIGGER run_blocks_are_kept BEFORE UPDATE OF blocks_group, blocks_side,
    target_link, target_link_rate, target_cache_bytes ON run
BEGIN SELECT RAISE(ABORT, 'stored results are never rewritten'); END;
CREATE TRIGGER calibration_is_kept BEFORE UPDATE ON calibration
BEGIN SELECT RAISE(ABORT, 'stored results are never rewritten'); END;

DROP VIEW figure;
CREATE VIEW figure AS
SELECT run.id AS run, run.suite, cell.cell, cell.phase, cell.coordinates, visit.repeat,
       visit_stream.name AS stream, op.op, cell_stream.block_bytes, cell_stream.threads,
       cell_stream.queue_depth, visit.end, visit.purpose, visit.elapsed_ns, op.requests, op.bytes,
       op.errors, op.short, visit_stream.backend, visit_stream.direct,
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
