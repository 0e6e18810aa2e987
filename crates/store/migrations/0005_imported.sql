-- Runs that another tool made: where they came from, and what that tool says where our own runs are
-- counted. What it does not say is NULL here, and 0 or empty in the tables of before.

CREATE TABLE imported (
    run      INTEGER PRIMARY KEY REFERENCES run ON DELETE CASCADE,
    tool     TEXT NOT NULL,
    version  TEXT, -- of the tool
    file     TEXT NOT NULL, -- as the user named it
    bytes    INTEGER NOT NULL, -- of the file
    xxh3     TEXT NOT NULL, -- of those bytes, 16 hex digits
    settings TEXT NOT NULL CHECK (json_valid(settings)), -- [[name, value],...]
    remarks  TEXT NOT NULL CHECK (json_valid(remarks))
) STRICT;
CREATE INDEX imported_by_content ON imported (xxh3);

CREATE TABLE reported (
    visit           INTEGER NOT NULL,
    stream          INTEGER NOT NULL,
    position        INTEGER NOT NULL,
    requests        INTEGER,
    bytes           INTEGER,
    iops            REAL,
    bytes_per_s     REAL,
    cpu_percent     REAL,
    latency_ns_min  INTEGER,
    latency_ns_mean REAL,
    latency_ns_max  INTEGER,
    latency_ns_sd   REAL,
    quantiles       TEXT NOT NULL CHECK (json_valid(quantiles)), -- [[share, ns],...]
    buckets         TEXT NOT NULL CHECK (json_valid(buckets)), -- [[ns, count],...]
    PRIMARY KEY (visit, stream, position),
    FOREIGN KEY (visit, stream, position) REFERENCES op ON DELETE CASCADE
) STRICT;

CREATE TRIGGER imported_is_kept BEFORE UPDATE ON imported
BEGIN SELECT RAISE(ABORT, 'stored results are never rewritten'); END;
CREATE TRIGGER reported_is_kept BEFORE UPDATE ON reported
BEGIN SELECT RAISE(ABORT, 'stored results are never rewritten'); END;

-- As before, and what other tools say in its place where they said it.
DROP VIEW figure;
CREATE VIEW figure AS
SELECT run.id AS run, run.suite, imported.tool AS imported, cell.cell, cell.phase,
       cell.coordinates, visit.repeat, visit_stream.name AS stream, op.op,
       cell_stream.block_bytes, nullif(cell_stream.threads, 0) AS threads,
       nullif(cell_stream.queue_depth, 0) AS queue_depth, visit.end, visit.purpose,
       CASE WHEN imported.run IS NULL OR visit.elapsed_ns > 0 THEN visit.elapsed_ns END
           AS elapsed_ns,
       CASE WHEN told.visit IS NULL THEN op.requests ELSE told.requests END AS requests,
       CASE WHEN told.visit IS NULL THEN op.bytes ELSE told.bytes END AS bytes,
       op.errors, op.short, visit_stream.backend, visit_stream.direct,
       CASE WHEN told.iops IS NOT NULL THEN told.iops
            WHEN told.visit IS NOT NULL AND told.requests IS NULL THEN NULL
            WHEN visit.elapsed_ns > 0 THEN op.requests * 1e9 / visit.elapsed_ns END AS iops,
       CASE WHEN told.bytes_per_s IS NOT NULL THEN told.bytes_per_s
            WHEN told.visit IS NOT NULL AND told.bytes IS NULL THEN NULL
            WHEN visit.elapsed_ns > 0 THEN op.bytes * 1e9 / visit.elapsed_ns END AS bytes_per_s,
       CASE WHEN told.visit IS NOT NULL THEN told.latency_ns_mean
            WHEN op.requests > 0 THEN (op.latency_ns_sum_high * 9223372036854775808.0
                + op.latency_ns_sum) / op.requests END AS latency_ns_mean,
       CASE WHEN told.visit IS NULL THEN op.latency_ns_min ELSE told.latency_ns_min END
           AS latency_ns_min,
       CASE WHEN told.visit IS NULL THEN op.latency_ns_max ELSE told.latency_ns_max END
           AS latency_ns_max
FROM op
JOIN visit_stream USING (visit, stream)
JOIN visit USING (visit)
JOIN cell ON cell.run = visit.run AND cell.cell = visit.cell
JOIN run ON run.number = visit.run
LEFT JOIN imported ON imported.run = run.number
LEFT JOIN reported AS told ON told.visit = op.visit AND told.stream = op.stream
     AND told.position = op.position
LEFT JOIN cell_stream ON cell_stream.run = cell.run AND cell_stream.cell = cell.cell
     AND cell_stream.stream = op.stream;
