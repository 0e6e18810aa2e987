-- The unit of direct I/O on files that the run itself makes is known when they are there: after the
-- run is. It may be added once.
DROP TRIGGER run_is_kept;
CREATE TRIGGER run_is_kept BEFORE UPDATE OF number, record_version, suite, suite_text,
    target_given, target_resolved, target_kind, target_size_bytes, target_files,
    target_file_system, target_mount, target_devices, target_remarks, seed,
    command_line, program, host, kernel, architecture, processor, processors, memory_bytes,
    started_unix_ns ON run
BEGIN SELECT RAISE(ABORT, 'stored results are never rewritten'); END;
CREATE TRIGGER run_alignment_is_kept BEFORE UPDATE OF target_alignment ON run
WHEN old.target_alignment IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'stored results are never rewritten'); END;
