-- Text of the model that a simulated device was made by. NULL for all other targets, and in runs that
-- were stored before.
ALTER TABLE run ADD COLUMN target_model TEXT;
CREATE TRIGGER run_model_is_kept BEFORE UPDATE OF target_model ON run
BEGIN SELECT RAISE(ABORT, 'stored results are never rewritten'); END;
