// Made from schema/plimsoll.live-1.schema.json by `npm run types`; do not edit.

import type { PartOf } from "./page";

/**
 * Runs as they stand, newest last.
 */
export interface Live {
  /**
   * Version of the program that serves.
   */
  program: string;
  /**
   * The runs.
   */
  runs: LiveRun[];
  /**
   * Always `plimsoll.live/1`.
   */
  schema: "plimsoll.live/1";
  /**
   * The file that the runs are in.
   */
  store: string;
  /**
   * Why the store cannot be read now; null where it can.
   */
  trouble: Trouble | null;
  /**
   * Rises with every change that is told.
   */
  version: number;
  /**
   * Whether these are all runs; else only those that changed, and the others are as before.
   */
  whole: boolean;
}
/**
 * A run on one line.
 */
export interface LiveRun {
  /**
   * Its id in its store.
   */
  id: string;
  /**
   * The tool that made it, if it was imported.
   */
  imported: string | null;
  /**
   * Its place in a list of suites.
   */
  part: PartOf | null;
  /**
   * How it stands, in the word of all heads: `running` while a process works on it, else `killed`,
   * `complete`, `out of time`, `interrupted`, `failed` or `imported`; `damaged` of one that cannot be
   * read, of which only the id is known.
   */
  standing: string;
  /**
   * Wall clock at the start, ns since 1970; null where nobody tells.
   */
  started_unix_ns: number | null;
  /**
   * The suite's name.
   */
  suite: string;
  /**
   * What was measured, as the user named it.
   */
  target: string;
  /**
   * The [`Live::version`] with which it changed last.
   */
  version: number;
  /**
   * How many visits count, as `plimsoll list` says.
   */
  visits_made: number;
  /**
   * How many there were to be.
   */
  visits_planned: number;
  /**
   * How many warnings it has, its visits' included.
   */
  warnings: number;
}
/**
 * Which of a study's stacks a run was made on.
 */
export interface OfStudy {
  /**
   * The base once more, made only to see noise and drift.
   */
  again: boolean;
  /**
   * What the study varies, with the level here.
   */
  levels: Setting[];
  /**
   * Which stack of the study's plan, from 1.
   */
  stack: number;
  /**
   * In which state its arrays were measured: `degraded`, `rebuilding`; null for healthy ones.
   */
  state: string | null;
}
/**
 * A setting of another tool.
 */
export interface Setting {
  /**
   * As the tool names it.
   */
  name: string;
  /**
   * As it prints it.
   */
  value: string;
}
/**
 * Something that keeps an answer back.
 */
export interface Trouble {
  /**
   * What is wrong.
   */
  error: string;
  /**
   * What to do about it.
   */
  hint: string | null;
}
