-- Runs of several targets: each by itself, as JSON. target_given and its like are of all together.
ALTER TABLE run ADD COLUMN targets TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(targets));
CREATE TRIGGER run_targets_are_kept BEFORE UPDATE OF targets ON run
BEGIN SELECT RAISE(ABORT, 'stored results are never rewritten'); END;
