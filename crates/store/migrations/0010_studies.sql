-- Studies: which stack a run was made on, and the levels of the factors there. NULL for all others.
ALTER TABLE run ADD COLUMN part_study TEXT
    CHECK (part_study IS NULL OR (part_group IS NOT NULL AND json_valid(part_study)));
CREATE TRIGGER run_studies_are_kept BEFORE UPDATE OF part_study ON run
BEGIN SELECT RAISE(ABORT, 'stored results are never rewritten'); END;
