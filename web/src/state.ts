// What the reader chose. It lives in the address, so an address shows what its sender saw.

import type { Unit } from './format';

const METRICS = ['iops', 'bytes', 'latency', 'seconds'] as const;

export type Metric = (typeof METRICS)[number];

export interface State {
  /** Index of the run that others are held against. */
  base: number;
  /** Index of the run that figures of one run are of. */
  run: number;
  metric: Metric;
  /** Logarithmic or linear; `null` where each figure chooses. */
  log: boolean | null;
  unit: Unit;
  theme: 'auto' | 'light' | 'dark';
  /** Block size that figures of one block size are of; 0 where the page chooses. */
  block: number;
  /** Factor of a study that bars are grouped by; empty where the page chooses. */
  factor: string;
  /** Key of the cell whose course is drawn; empty where the page chooses. */
  course: string;
  /** `run:key` of the cell that is open. */
  cell: string;
  /** Names of series that are not drawn. */
  off: string[];
  /** Of figures that cannot draw all at once which part each draws: `bars:1`, from 0. */
  part: string[];
}

const START: State = {
  base: 0,
  run: 0,
  metric: 'iops',
  log: null,
  unit: 'MB',
  theme: 'auto',
  block: 0,
  factor: '',
  course: '',
  cell: '',
  off: [],
  part: [],
};

type Listener = (state: State, changed: Set<keyof State>) => void;

let state: State = { ...START };
const listeners: Listener[] = [];

const whole = (text: string, below: number) => {
  const number = Number(text);
  return Number.isSafeInteger(number) && number >= 0 && number < below ? number : 0;
};

/** Reads an address; what makes no sense in it counts as not said. */
function read(hash: string, runs: number): State {
  const said = new URLSearchParams(hash.replace(/^#/, ''));
  const one = <T extends string>(name: string, known: readonly T[], otherwise: T): T => {
    const value = said.get(name);
    return known.find((word) => word === value) ?? otherwise;
  };
  return {
    base: whole(said.get('base') ?? String(START.base), runs),
    run: whole(said.get('run') ?? '', runs),
    metric: one('metric', METRICS, START.metric),
    log:
      one('scale', ['auto', 'log', 'linear'], 'auto') === 'auto'
        ? null
        : said.get('scale') === 'log',
    unit: one('unit', ['MB', 'MiB'], START.unit),
    theme: one('theme', ['auto', 'light', 'dark'], START.theme),
    block: whole(said.get('block') ?? '', Number.MAX_SAFE_INTEGER),
    factor: said.get('factor') ?? '',
    course: said.get('course') ?? '',
    cell: said.get('cell') ?? '',
    off: said.getAll('off'),
    part: said.getAll('part'),
  };
}

function written(state: State): string {
  const said = new URLSearchParams();
  if (state.base !== START.base) said.set('base', String(state.base));
  if (state.run !== START.run) said.set('run', String(state.run));
  if (state.metric !== START.metric) said.set('metric', state.metric);
  if (state.log !== null) said.set('scale', state.log ? 'log' : 'linear');
  if (state.unit !== START.unit) said.set('unit', state.unit);
  if (state.theme !== START.theme) said.set('theme', state.theme);
  if (state.block !== START.block) said.set('block', String(state.block));
  if (state.factor !== '') said.set('factor', state.factor);
  if (state.course !== '') said.set('course', state.course);
  if (state.cell !== '') said.set('cell', state.cell);
  for (const name of state.off) said.append('off', name);
  for (const one of state.part) said.append('part', one);
  return said.toString();
}

/** Which part of a figure is drawn; the first where that is not there. */
export function partOf({ part }: Pick<State, 'part'>, figure: string, parts: number): number {
  const own = part.find((one) => one.startsWith(`${figure}:`));
  return whole(own?.slice(figure.length + 1) ?? '', parts);
}

export const get = (): Readonly<State> => state;

export function listen(listener: Listener): void {
  listeners.push(listener);
}

export function set(change: Partial<State>): void {
  take({ ...state, ...change });
  const words = written(state);
  // Not a step to go back by: a reader who leaves wants to leave.
  history.replaceState(null, '', words ? `#${words}` : location.pathname + location.search);
}

function take(next: State): void {
  const keys = Object.keys(next) as (keyof State)[];
  const changed = new Set(keys.filter((key) => String(next[key]) !== String(state[key])));
  state = next;
  if (changed.size > 0) for (const listener of listeners) listener(state, changed);
}

/**
 * Takes the address over, now and whenever it changes.
 *
 * - `base`: the baseline, where the address says none.
 */
export function start(runs: number, base = 0): void {
  START.base = base;
  state = read(location.hash, runs);
  addEventListener('hashchange', () => {
    // Links within the page lead to an element, and say nothing of the state.
    if (location.hash === '' || location.hash.includes('=')) take(read(location.hash, runs));
  });
}
