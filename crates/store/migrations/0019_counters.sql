-- What a server that was measured counted over a visit: a database's log flushes, pages, processor time.
CREATE TABLE counter (
    visit    INTEGER NOT NULL REFERENCES visit ON DELETE CASCADE,
    position INTEGER NOT NULL,
    name     TEXT NOT NULL,
    unit     TEXT NOT NULL,
    value    INTEGER NOT NULL,
    PRIMARY KEY (visit, position)
) STRICT;
CREATE TRIGGER counter_is_kept BEFORE UPDATE ON counter
BEGIN SELECT RAISE(ABORT, 'stored results are never rewritten'); END;
