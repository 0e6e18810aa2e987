-- Binds a log to its store. Every transaction replaces `now` and keeps what it was in `before`, so a log
-- begins where its file ended, or the file ended somewhere in the log: any other log is another copy's.
-- `what` is searched for in the pages of a log; columns and lengths stay as they are (see src/mark.rs).
CREATE TABLE mark (
    mark   INTEGER PRIMARY KEY CHECK (mark = 1),
    what   TEXT NOT NULL,
    now    BLOB NOT NULL,
    before BLOB NOT NULL -- zeros: there was none
) STRICT;
INSERT INTO mark VALUES (1, 'plimsoll store mark', randomblob(16), zeroblob(16));
