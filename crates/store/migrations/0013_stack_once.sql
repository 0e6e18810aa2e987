-- What lies below the targets is stored when the first visit begins, after the files are made and an array
-- was brought into the state that is measured. Until then it is NULL; what is there is kept.
DROP TRIGGER run_stack_is_kept;
CREATE TRIGGER run_stack_is_kept BEFORE UPDATE OF stack ON run WHEN OLD.stack IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'stored results are never rewritten'); END;
