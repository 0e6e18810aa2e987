// Questions that several figures ask of the page's data.

import type { Page, PageCell, PageRun } from './generated/page';
import * as format from './format';
import { line } from './dom';
import type { Metric, State } from './state';

export type { Page, PageCell, PageRun };

/** A cell and the run that it is of. */
export interface Place {
  run: number;
  cell: PageCell;
}

/** Cells that measure something, that is: not the fill. */
export function grid(run: PageRun): PageCell[] {
  return run.cells.filter((cell) => !cell.preparation);
}

/** Requests that the cell keeps in flight; 0 where nobody tells. */
export function inFlight(cell: PageCell): number {
  return (cell.threads ?? 1) * (cell.queue_depth ?? 1) || 0;
}

/** What a cell is called in a legend: its load without its block size. */
export function load(cell: PageCell): string {
  const { threads, queue_depth: depth } = cell;
  const count = [
    threads === null ? '' : threads === 1 ? '1 thread' : `${threads} threads`,
    depth !== null && depth > 1 ? `depth ${depth}` : '',
  ];
  return count.filter(Boolean).join(', ');
}

/** Axes that neither figure nor legend has: what is left of a cell's coordinates. */
export function others(cell: PageCell): string {
  const left = cell.coordinates.filter(({ field }) => isOther(cell, field));
  return left.map(({ field, value }) => `${line(field)} ${line(value)}`).join(', ');
}

/** What most figures have a place for, and what a cell tells of it. */
const PLACED = {
  block_size: 'block_bytes',
  threads: 'threads',
  processes: 'threads',
  jobs: 'threads',
  queue_depth: 'queue_depth',
} as const;

/**
 * Whether an axis is none of those that most figures have a place for. What is set for one stream
 * by its name, such as `log.queue_depth`, has that place in the cells of that stream only.
 */
export function isOther(cell: PageCell, field: string): boolean {
  const [, stream, name] = /^(?:(.*)\.)?([^.]*)$/.exec(field) ?? [];
  const own = stream === undefined || stream === cell.stream;
  const told = PLACED[name as keyof typeof PLACED] as (typeof PLACED)['block_size'] | undefined;
  return !own || told === undefined || cell[told] === null;
}

/** Letters of a name that are written out. */
const LETTERS_MAX = 100;

/** What is too long to be a name is cut. */
export function cut(text: string): string {
  return text.length <= LETTERS_MAX ? text : `${[...text].slice(0, LETTERS_MAX).join('')}…`;
}

/** Cells that differ in block size and load only. */
export function group(cell: PageCell): string {
  const stream = cell.streams > 1 ? ` – ${line(cell.stream)}` : '';
  return [line(cell.phase) + stream, others(cell)].filter(Boolean).join(', ');
}

/**
 * What a cell is called beside others.
 *
 * * `sized`: with its block size, where the others have another.
 */
export function label(cell: PageCell, sized = false): string {
  const size = sized && cell.block_bytes !== null ? format.blockSize(cell.block_bytes) : '';
  const plain = cell.streams === 1 && others(cell) === '';
  if (plain) return [group(cell), size, load(cell)].filter(Boolean).join(', ');
  const named = cell.coordinates.some(({ field }) => field.endsWith('block_size'));
  return [line(cell.name), named ? '' : size].filter(Boolean).join(', ');
}

/** Whether cells differ in their block size. */
export const areSized = (cells: PageCell[]): boolean => blocks(cells).length > 1;

export function unique<T>(values: Iterable<T>): T[] {
  return [...new Set(values)];
}

export function by<T, K>(values: Iterable<T>, key: (value: T) => K): Map<K, T[]> {
  const found = new Map<K, T[]>();
  for (const value of values) {
    const at = key(value);
    const known = found.get(at);
    if (known) known.push(value);
    else found.set(at, [value]);
  }
  return found;
}

export const rising = (a: number, b: number) => a - b;

/** Block sizes of a run's grid, rising. */
export function blocks(cells: PageCell[]): number[] {
  return unique(cells.flatMap((cell) => cell.block_bytes ?? [])).sort(rising);
}

/** The block size that a database reads by: 8 KiB, or what is there and nearest. */
export function pageSize(sizes: number[]): number {
  const far = (size: number) => Math.abs(Math.log2(size / 8192));
  return [...sizes].sort((a, b) => far(a) - far(b))[0] ?? 0;
}

/** The block size that is looked at. */
export function focus(state: Pick<State, 'block'>, cells: PageCell[]): number {
  const sizes = blocks(cells);
  return sizes.includes(state.block) ? state.block : pageSize(sizes);
}

/**
 * Mean latency of a data request in ns, with its share of the flushes after it: whoever commits
 * waits for both. `null` where nobody tells one of them.
 */
export function waited(cell: PageCell): number | null {
  const { flushes, requests } = cell;
  return flushes.reduce((sum: number | null, one) => {
    const mean = one.latency_ns.mean;
    if (sum === null || mean === null || one.requests === null || !requests) return null;
    return sum + (mean * one.requests) / requests;
  }, cell.latency_ns.mean);
}

/** Whether what the cell writes is made durable by requests of their own. */
export const isFlushed = (cell: PageCell): boolean => cell.flushes.length > 0;

/** Figures of latencies with what they are of; nothing where none is known. */
export function waits({ mean, p50, p90, p99, p999, max }: PageCell['latency_ns']): string {
  const all: [string, number | null][] = [
    ['mean', mean],
    ['50 %', p50],
    ['90 %', p90],
    ['99 %', p99],
    ['99.9 %', p999],
    ['longest', max],
  ];
  return all
    .flatMap(([name, ns]) => (ns === null ? [] : [`${name} ${format.time(ns)}`]))
    .join(', ');
}

export interface Value {
  value: number;
  low: number | null;
  high: number | null;
}

/** A cell's figure of a metric with its interval, in the unit of the axis. */
export function value(cell: PageCell, metric: Metric, unit: format.Unit): Value | null {
  const { iops, iops_low: low, iops_high: high } = cell;
  if (metric === 'latency') {
    const mean = waited(cell) ?? cell.latency_ns.p50;
    return mean !== null && mean > 0 ? { value: mean / 1e6, low: null, high: null } : null;
  }
  if (metric === 'iops') {
    return iops !== null && iops > 0 ? { value: iops, low, high } : null;
  }
  // Bytes go with requests where those are all alike: so does their interval.
  const per = cell.block_bytes !== null && iops !== null ? cell.block_bytes : null;
  const own = per !== null && iops !== null ? iops * per : cell.bytes_per_s;
  if (own === null || !(own > 0)) return null;
  const end = (rate: number | null) => (rate === null || per === null ? null : rate * per);
  const rate = { value: own, low: end(low), high: end(high) };
  if (metric === 'seconds') return seconds(cell.job_bytes, rate);
  const scale = (one: number | null) => (one === null ? null : one / format.perUnit(unit));
  return { value: own / format.perUnit(unit), low: scale(rate.low), high: scale(rate.high) };
}

/** How long it takes to move so many bytes: the higher the rate, the sooner. */
function seconds(job: number | null, rate: Value): Value | null {
  const at = (one: number | null) => (job === null || one === null || one <= 0 ? null : job / one);
  const value = at(rate.value);
  return value === null ? null : { value, low: at(rate.high), high: at(rate.low) };
}

/** Bytes per second by the same mean as its IOPS: over visits, where there are some. */
export function bytesPerSecond(cell: PageCell): number | null {
  const found = value(cell, 'bytes', 'MB');
  return found ? found.value * format.perUnit('MB') : null;
}

export function metricName(metric: Metric, unit: format.Unit): string {
  return { iops: 'IOPS', bytes: `${unit}/s`, latency: 'mean latency, ms', seconds: 'seconds' }[
    metric
  ];
}

/** The same for an axis: where less is better, it says so. */
export function axisName(metric: Metric, unit: format.Unit): string {
  const name = metricName(metric, unit);
  return isCost(metric) ? `${name} – lower is better` : name;
}

/** Whether less of it is better. */
export const isCost = (metric: Metric) => metric === 'latency' || metric === 'seconds';

/** What a run was made on, for people: the drives where they are known, else the target as it was named. */
export function hardware(run: PageRun): string {
  const given = line(run.target.given);
  const model = /^model:(?:.*\/)?([^/]+?)(?:\.toml)?$/.exec(given)?.[1];
  if (model) return `${model} (simulated)`;
  const drives = (run.stack?.layers ?? []).flatMap(({ what }) =>
    what.is === 'disk' ? [what.vendor, what.model].filter(Boolean).join(' ') : [],
  );
  const all = unique(drives.filter(Boolean).map(line)).slice(0, 3).join(', ');
  return all ? `${given} (${all})` : given;
}

/** What a run is called: with its suite where the page has several. */
export function runName(page: Page, run: PageRun): string {
  const levels = run.part?.study?.levels.map(({ value }) => line(value)).join(' ');
  const letter = page.which?.places.find((place) => place.run === run.id)?.label ?? '';
  const given = hardware(run);
  const suite = line(run.suite);
  const isOne = page.runs.every((other) => other.suite === run.suite);
  const target = levels || given || suite;
  const names = isOne || target === suite ? [target] : [suite, target];
  return [line(letter), line(run.id), ...names.map(cut)].filter(Boolean).join(' · ');
}

/** What is said of a run, with its name before it where others are on the page. */
export function ofRun(page: Page, run: PageRun | undefined, text: string): string {
  return page.runs.length > 1 && run ? `${runName(page, run)}: ${text}` : text;
}

/** What stands above a run's panel: its name where others are on the page. */
export function caption(page: Page, run: PageRun, alone: string): string {
  return page.runs.length > 1 ? runName(page, run) : alone;
}

/** Marks that a reader must see before anything else. */
export const GRAVE = new Set([
  'gap',
  'stalled',
  'not-measured',
  'nothing-completed',
  'errors',
  'failed',
  'hanging',
  'overloaded',
]);

/** Whether a cache answered, so that it is no figure of the storage. */
export const isCached = (cell: PageCell): boolean =>
  cell.marks.some(({ code }) => /^(partly-)?cached\b/.test(code));

export function markOf(cell: PageCell): 'grave' | 'doubt' | null {
  const codes = cell.marks.map(({ code }) => code.split(':')[0] ?? '');
  if (codes.some((code) => GRAVE.has(code) || code === 'not-possible-here')) return 'grave';
  const mild = new Set(['within-one-visit', 'cache-unknown', 'not-converged']);
  return codes.some((code) => !mild.has(code)) ? 'doubt' : null;
}

/** What the measurements of a cell are, in lines for whoever points at it. */
export function lines(cell: PageCell, unit: format.Unit): [string, string][] {
  const rows: [string, string][] = [];
  if (cell.iops !== null) {
    const reach = format.reach(cell.iops, cell.iops_low, cell.iops_high);
    rows.push(['IOPS', [format.count(cell.iops), reach].filter(Boolean).join(' ')]);
  } else {
    rows.push(['IOPS', 'no figure']);
  }
  const bytes = value(cell, 'bytes', unit);
  if (bytes) rows.push(['bandwidth', format.bandwidth(bytes.value * format.perUnit(unit), unit)]);
  const told = (name: string, { mean, p99, max }: PageCell['latency_ns']) => {
    const own: string[] = [];
    if (mean !== null) own.push(`mean ${format.time(mean)}`);
    if (p99 !== null) own.push(`99 % within ${format.time(p99)}`);
    if (max !== null) own.push(`longest ${format.time(max)}`);
    own.forEach((text, k) => rows.push([k === 0 ? name : '', text]));
  };
  // Where writes are flushed, either is named: a commit waits for both.
  told(isFlushed(cell) ? line(cell.op) : 'latency', cell.latency_ns);
  for (const flush of cell.flushes) told(line(flush.op), flush.latency_ns);
  const both = isFlushed(cell) ? waited(cell) : null;
  if (both !== null) rows.push(['together', `mean ${format.time(both)}`]);
  const counted = cell.visits.filter((visit) => visit.counted);
  const rates = counted.flatMap((visit) => visit.iops ?? []);
  const which =
    rates.length > 1 && rates.length <= 8 ? `: ${rates.map(format.count).join(', ')}` : '';
  rows.push([counted.length === 1 ? 'visit' : 'visits', `${counted.length}${which}`]);
  for (const { code, meaning } of cell.marks) {
    const [word, ...why] = code.split(':');
    rows.push(['▲ ' + (word ?? ''), line(meaning || why.join(':').trim())]);
  }
  return rows;
}

export function find(page: Page, address: string): Place | null {
  const [run, key] = [Number(address.split(':')[0]), address.split(':').slice(1).join(':')];
  const cell = page.runs[run]?.cells.find((candidate) => candidate.key === key);
  return cell ? { run, cell } : null;
}

export const address = ({ run, cell }: Place): string => `${run}:${cell.key}`;
