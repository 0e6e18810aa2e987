-- Comparisons in blocks: how often they were to be looked at, and so how strict each look is.
ALTER TABLE run ADD COLUMN blocks_looks INTEGER NOT NULL DEFAULT 1;
CREATE TRIGGER run_looks_are_kept BEFORE UPDATE OF blocks_looks ON run
BEGIN SELECT RAISE(ABORT, 'stored results are never rewritten'); END;
