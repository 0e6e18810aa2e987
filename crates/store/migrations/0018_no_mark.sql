-- Stores are no longer kept in WAL mode: there is no log that a mark could bind to its store.
DROP TABLE mark;
