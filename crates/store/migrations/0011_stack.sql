-- Everything below the targets that could be seen, as JSON; NULL in imported runs, of twins, and in runs
-- that were stored before.
ALTER TABLE run ADD COLUMN stack TEXT CHECK (stack IS NULL OR json_valid(stack));
CREATE TRIGGER run_stack_is_kept BEFORE UPDATE OF stack ON run
BEGIN SELECT RAISE(ABORT, 'stored results are never rewritten'); END;
