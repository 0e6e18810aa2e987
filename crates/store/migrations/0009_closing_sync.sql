-- The flush at the end of a stream, told apart from its load: with the worker that made it. NULL where
-- there was none, where it did not count, and in visits that were stored before.
ALTER TABLE worker ADD COLUMN closing_start_ns INTEGER;
ALTER TABLE worker ADD COLUMN closing_length_ns INTEGER
    CHECK ((closing_length_ns IS NULL) = (closing_start_ns IS NULL));
