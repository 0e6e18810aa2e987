-- The load of a visit that ends by time is over before its last request is back. NULL where it lasted
-- until then, and in visits that were stored before.
ALTER TABLE visit ADD COLUMN load_ns INTEGER;
-- Of an operation's requests and bytes, those that came back later.
ALTER TABLE op ADD COLUMN late_requests INTEGER NOT NULL DEFAULT 0;
ALTER TABLE op ADD COLUMN late_bytes INTEGER NOT NULL DEFAULT 0;
