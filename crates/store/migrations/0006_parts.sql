-- Runs that were played one after the other, as parts of a list of suites.
ALTER TABLE run ADD COLUMN part_group TEXT; -- the same for all runs of one sequence
ALTER TABLE run ADD COLUMN part_list TEXT CHECK ((part_list IS NULL) = (part_group IS NULL));
ALTER TABLE run ADD COLUMN part_number INTEGER
    CHECK ((part_number IS NULL) = (part_group IS NULL)); -- from 1, repeats counted
ALTER TABLE run ADD COLUMN part_of INTEGER CHECK ((part_of IS NULL) = (part_group IS NULL));
CREATE INDEX run_by_part ON run (part_group) WHERE part_group IS NOT NULL;
CREATE TRIGGER run_parts_are_kept BEFORE UPDATE OF part_group, part_list, part_number, part_of ON run
BEGIN SELECT RAISE(ABORT, 'stored results are never rewritten'); END;
