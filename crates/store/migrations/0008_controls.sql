-- Comparisons in blocks: which blocks hold the reference against itself, and the run that is the
-- reference once more, for those.
ALTER TABLE run ADD COLUMN blocks_controls TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(blocks_controls));
ALTER TABLE run ADD COLUMN blocks_is_control INTEGER NOT NULL DEFAULT 0;
CREATE TRIGGER run_controls_are_kept BEFORE UPDATE OF blocks_controls, blocks_is_control ON run
BEGIN SELECT RAISE(ABORT, 'stored results are never rewritten'); END;
