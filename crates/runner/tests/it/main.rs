//! Whole runs through the runner: on twins and on real files, all without root.

mod faults;
mod files;
mod help;
mod resume;
mod whole;
