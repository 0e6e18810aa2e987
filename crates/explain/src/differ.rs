//! What differs between two runs' stacks and plans.
