// What a study varied, and the cells at each of its levels.

import { line } from './dom';
import * as model from './model';

export interface Point {
  level: string;
  /** Levels of the other factors, in words. */
  rest: string;
  place: model.Place;
}

export interface Factor {
  name: string;
  /** In the study's order. */
  levels: string[];
  points: Point[];
}

/**
 * Factors of the runs' study with the cells of one block size. Each run of the base counts: the
 * others are held against it.
 */
export function factors(page: model.Page, block: number): Factor[] {
  const studies = page.runs.map((run) => run.part?.study ?? null);
  // Of a study of several suites each is for itself.
  const suites = page.runs.flatMap((run, at) => (studies[at] ? line(run.suite) : []));
  const several = model.unique(suites).length > 1;
  const names = model.unique(studies.flatMap((own) => own?.levels.map(({ name }) => name) ?? []));
  return names.map((name): Factor => {
    const points = page.runs.flatMap((run, at): Point[] => {
      const study = studies[at];
      const level = study?.levels.find((one) => one.name === name)?.value;
      if (!study || level === undefined) return [];
      const others = study.levels.filter((one) => one.name !== name);
      const words = others.map((one) => `${line(one.name)} ${line(one.value)}`);
      const suite = several ? line(run.suite) : '';
      const rest = [suite, ...words, line(study.state ?? '')].filter(Boolean).join(', ');
      const cells = model.grid(run).filter((cell) => cell.iops !== null);
      const size = model.focus({ block }, cells);
      const own = cells.filter((one) => [null, size].includes(one.block_bytes));
      return own.map((cell) => ({ level, rest, place: { run: at, cell } }));
    });
    return { name, levels: model.unique(points.map(({ level }) => level)), points };
  });
}

/** Whether what it varies is an amount, such as drives: then it is drawn against that. */
export const isAmount = ({ levels }: Factor): boolean =>
  levels.length >= 3 && levels.every((level) => level.trim() !== '' && Number.isFinite(+level));
