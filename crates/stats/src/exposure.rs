//! How long a request that arrives at a random moment waits.
