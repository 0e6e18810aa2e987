// What a kind of figure is. Each is a file of its own beside this one.

import type { Option, Told, Datum } from '../chart';
import type { Table } from '../dom';
import type { Page, Place } from '../model';
import { find, lines, ofRun } from '../model';
import { line } from '../dom';
import type { Colors, Look } from '../palette';
import { partOf, type State } from '../state';

export interface Context {
  page: Page;
  state: Readonly<State>;
  colors: Colors;
}

/** One drawing. */
export interface Panel {
  title?: string;
  /** What a listener hears of it. */
  summary: string;
  height: number;
  option?: Option;
  /** Instead of a drawing of the library. */
  node?: () => Element;
  /** As wide as the page allows. */
  wide?: boolean;
}

export interface Entry {
  name: string;
  look: Look;
}

/** What is more than can be drawn at once: `each` of them are. */
export interface Parts {
  /** `cells`, `curves`. */
  what: string;
  all: number;
  each: number;
}

export type Control =
  'metric' | 'scale' | 'block' | 'part' | 'run' | 'base' | 'factor' | 'course' | 'heat';

export interface Drawing {
  panels: Panel[];
  /** Series that can be left out. */
  legend: Entry[];
  /** The numbers that are drawn. */
  table: Table;
  /** Whether the axis of figures is logarithmic, where a reader may choose. */
  log?: boolean;
  /** What is not drawn, and why, in a sentence. */
  left?: string;
  /** For the choice of what is drawn of many. */
  parts?: Parts;
  /** Block sizes to choose from; those of all cells where the figure does not say. */
  sizes?: number[];
}

export interface Figure {
  /** As verdicts name it. */
  id: string;
  title: string;
  /** How to read it, in sentences. */
  how: string[];
  controls: Control[] | ((page: Page) => Control[]);
  accepts: (page: Page) => boolean;
  draw: (context: Context) => Drawing;
}

/** What is said of a point: its own words, or what is known of its cell. */
export function teller({ page, state }: Context): (datum: Datum) => Told | null {
  return (datum) => {
    if (datum.tip) return typeof datum.tip === 'function' ? datum.tip() : datum.tip;
    const place = datum.place === undefined ? null : find(page, datum.place);
    return place ? ofCell(page, place, state) : null;
  };
}

export function ofCell(page: Page, place: Place, state: Readonly<State>): Told {
  const run = page.runs[place.run];
  return { title: ofRun(page, run, line(place.cell.name)), rows: lines(place.cell, state.unit) };
}

/** Whether an axis is logarithmic: as the reader chose, or else because that is best. */
export const isLog = (state: Readonly<State>, best = true): boolean => state.log ?? best;

/** What is said of means where some are of writes that are flushed. */
export const FLUSHED =
  'Where writes are flushed, the mean is that of a write with its share of the flushes: what a commit of one write waits.';

/** The part of all that is drawn, and what is said of the others. */
export function some<T>(
  { state }: Context,
  figure: string,
  all: T[],
  { what, each }: Omit<Parts, 'all'>,
): { drawn: T[]; left: string; parts: Parts } {
  const start = partOf(state, figure, Math.ceil(all.length / each)) * each;
  const drawn = all.slice(start, start + each);
  const which =
    start === 0 ? `The first ${drawn.length}` : `${start + 1} to ${start + drawn.length}`;
  const left =
    all.length > drawn.length
      ? `${which} of ${all.length} ${what} are drawn: choose above which. The CSV has all.`
      : '';
  return { drawn, left, parts: { what, each, all: all.length } };
}

/**
 * The same of the lines of several panels, which all draw the same part of their own.
 *
 * * `counts`: lines of each panel.
 */
export function someLines(
  context: Context,
  figure: string,
  counts: number[],
  each: number,
): { of: <T>(lines: T[]) => T[]; left: string; parts: Parts } {
  const all = Math.max(0, ...counts);
  const several = counts.length > 1;
  const places = Array.from({ length: all }, (_, k) => k);
  const part = some(context, figure, places, {
    what: several ? 'lines of a panel' : 'lines',
    each,
  });
  const start = part.drawn[0] ?? 0;
  return {
    of: (lines) => lines.slice(start, start + each),
    left: part.left,
    parts: { ...part.parts, what: 'lines' },
  };
}

export const shown = (state: Readonly<State>, name: string): boolean => !state.off.includes(name);
