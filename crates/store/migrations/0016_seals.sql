-- Checksums over rows: of a run by parts, each the sum of the checksums of its rows, so that a row that is
-- added or changed changes the sum without the others being read. Whoever reads a part compares.
-- Runs that were stored before are sealed as they are found now; is_sealed is 0 where one could not be read.
CREATE TABLE run_seal (
    run         INTEGER PRIMARY KEY REFERENCES run ON DELETE CASCADE,
    is_sealed   INTEGER NOT NULL,
    header      INTEGER NOT NULL, -- run
    imported    INTEGER NOT NULL, -- imported
    cells       INTEGER NOT NULL, -- cell
    plans       INTEGER NOT NULL, -- cell_stream
    warnings    INTEGER NOT NULL, -- warning, those of the run as a whole
    visits      INTEGER NOT NULL, -- visit, but for its binary columns
    measured    INTEGER NOT NULL, -- those, and visit_stream, op, reported, worker, ledger, warnings of visits
    visits_made INTEGER NOT NULL, -- as `list` counts them
    warned      INTEGER NOT NULL, -- how many warnings, of the run and of its visits
    own         INTEGER NOT NULL  -- checksum of this row
) STRICT;
CREATE TABLE calibration_seal (
    number INTEGER PRIMARY KEY REFERENCES calibration ON DELETE CASCADE,
    seal   INTEGER NOT NULL -- checksum of the row in calibration
) STRICT;
