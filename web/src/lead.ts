// Above the fold: the answer, the numbers that somebody asks for first, and the figure that shows it.

import { h, line } from './dom';
import * as format from './format';
import * as model from './model';
import * as state from './state';

/** A large number with what it is of. */
interface Key {
  value: string;
  what: string;
  /** Its interval, where it was measured, what stands against it. */
  under: string[];
}

const KEYS_MAX = 4;
/** Runs that one number names. */
const RUNS_MAX = 3;

/** What a rate is of, for people. */
const NAMES: Record<string, string> = {
  commit: 'commits/s',
  read: 'reads/s',
  write: 'writes/s',
  mixed: 'reads and writes/s',
  trim: 'trims/s',
};

type Pick = (cell: model.PageCell) => number | null;
type Best = { what: string; of: Pick; text: (cell: model.PageCell) => string; isRate: boolean };

/** What can be a winner: no cache answered, and nothing is missing of it, unless that is all there is. */
function sound(run: model.PageRun): model.PageCell[] {
  const all = model.grid(run).filter(({ iops }) => iops !== null);
  const own = all.filter((cell) => !model.isCached(cell) && model.markOf(cell) !== 'grave');
  return own.length > 0 ? own : all.filter((cell) => !model.isCached(cell));
}

const highest = (cells: model.PageCell[], of: Pick): model.PageCell | undefined =>
  cells.reduce<model.PageCell | undefined>(
    (best, cell) => ((of(cell) ?? -Infinity) > ((best && of(best)) ?? -Infinity) ? cell : best),
    undefined,
  );

/** Which numbers the cells have, the first that are asked for first. */
function kinds(cells: model.PageCell[]): Best[] {
  const { unit } = state.get();
  const ops = model.unique(cells.map(({ op }) => op));
  const rank = (op: string) => (Object.keys(NAMES).indexOf(op) + 1 || 9) - 1;
  const rates = ops
    .sort((a, b) => rank(a) - rank(b))
    .map((op): Best => ({
      what: NAMES[op] ?? `${line(op)}, requests/s`,
      of: (cell) => (cell.op === op ? cell.iops : null),
      text: ({ iops }) => format.count(iops),
      isRate: true,
    }));
  const jobs = cells.some(({ job_bytes: job }) => job);
  const seconds: Best = {
    what: 'for the whole job',
    of: (cell) => {
      const taken = model.value(cell, 'seconds', unit);
      return taken && -taken.value;
    },
    text: (cell) => format.time((model.value(cell, 'seconds', unit)?.value ?? 0) * 1e9),
    isRate: false,
  };
  const commit: Best = {
    what: 'per commit, mean',
    of: ({ op, latency_ns: { mean } }) => (op === 'commit' && mean !== null ? -mean : null),
    text: ({ latency_ns: { mean } }) => format.time(mean),
    isRate: false,
  };
  const bytes: Best = {
    what: 'highest bandwidth',
    of: model.bytesPerSecond,
    text: (cell) => format.bandwidth(model.bytesPerSecond(cell), unit),
    isRate: true,
  };
  const [first, ...others] = rates;
  const isCommits = ops.includes('commit');
  const all = [jobs && seconds, first, isCommits && commit, ...others];
  const known = all
    .flatMap((one) => one || [])
    .filter(({ of }) => cells.some((c) => of(c) !== null));
  return [...known.slice(0, KEYS_MAX - 1), bytes];
}

function ofOne(run: model.PageRun): Key[] {
  const cells = sound(run);
  return kinds(cells).flatMap(({ what, of, text, isRate }): Key[] => {
    const best = highest(cells, of);
    if (!best || of(best) === null) return [];
    const { iops, iops_low: low, iops_high: high } = best;
    const reach = isRate && iops !== null ? format.reach(iops, low, high) : '';
    return [{ value: text(best), what, under: [reach, model.label(best, true)].filter(Boolean) }];
  });
}

const within = (low: number | null | undefined, high: number | null | undefined) =>
  typeof low === 'number' && typeof high === 'number'
    ? `${format.times(low)} to ${format.times(high)}`
    : '';

/** The highest of each run beside the others, after how many times the first each is. */
function ofSeveral(page: model.Page): Key[] {
  const ratios = page.against.filter(({ overall }) => overall.ratio !== null).slice(0, 2);
  const times = ratios.map(({ run, reference, overall, overall_of: stream, cells }): Key => ({
    value: format.times(overall.ratio),
    what: `the rate of ${line(run)} by that of ${line(reference)}`,
    under: [
      within(overall.low, overall.high),
      stream ? `of ${stream}` : `over ${format.several(cells.length, 'cell')}`,
    ],
  }));
  const [first] = page.runs;
  if (!first || page.runs.some(({ suite }) => suite !== first.suite)) return times;
  const each = page.runs.slice(0, RUNS_MAX).map((run) => ({ run, cells: sound(run) }));
  const told = kinds(sound(first)).flatMap(({ what, of, text }): Key[] => {
    const all = each.map(({ run, cells }) => {
      const best = highest(cells, of);
      return `${line(run.id)}: ${best && of(best) !== null ? text(best) : 'no figure'}`;
    });
    const own = highest(sound(first), of);
    return own
      ? [{ value: text(own), what: `${what}, ${line(first.id)}`, under: all.slice(1) }]
      : [];
  });
  return [...times, ...told].slice(0, KEYS_MAX);
}

/** The figures of the place that was chosen, by those of the others. */
function ofPlaces({ run, places, ratios }: NonNullable<model.Page['which']>): Key[] {
  const chosen = places.find((place) => place.run === run);
  const figures = chosen?.figures.filter(({ cached }) => !cached) ?? [];
  return figures.slice(0, KEYS_MAX).map(({ what, rate: { value, low, high } }) => {
    const others = ratios.filter((one) => one.what === what).slice(0, RUNS_MAX);
    const by = others.map(
      ({ of, ratio: { value: by, low: least, high: most } }) =>
        `${format.times(by)} of ${line(of)} (${within(least, most)})`,
    );
    const reach = format.reach(value, low ?? null, high ?? null);
    return { value: format.count(value), what: line(what), under: [reach, ...by].filter(Boolean) };
  });
}

/** What each stream has beside the others, of what it has alone. */
const ofTogether = (run: model.PageRun): Key[] =>
  run.together.slice(0, KEYS_MAX).map(({ stream, op, rate, alone, ratio, burst }): Key => {
    const under = [`${format.times(ratio.value)} of alone, ${within(ratio.low, ratio.high)}`];
    if (burst !== null)
      return {
        value: format.time((burst / rate) * 1e9),
        what: `${line(stream)}, beside all others`,
        under: [`${format.time((burst / alone) * 1e9)} alone`],
      };
    const unit = op === 'commit' ? 'commits/s' : `${line(op)}s/s`;
    return {
      value: format.count(rate),
      what: `${line(stream)}: ${unit} beside all others`,
      under: [`${format.count(alone)} alone`, ...under],
    };
  });

/** The line, what it leaves free, and where queues have no end. */
function ofLine({ rate, spare, capacity, level }: NonNullable<model.PageRun['line']>): Key[] {
  if (!rate || !spare) return [];
  const { value, low, high } = rate;
  const keys: Key[] = [
    {
      value: format.count(spare.value),
      what: 'transactions/s to plan with',
      under: ['30 % kept free, of the low end of the line'],
    },
    {
      value: format.count(value),
      what: 'transactions/s, the load line',
      under: [format.reach(value, low ?? null, high ?? null), line(level)],
    },
  ];
  if (capacity)
    keys.push({
      value: format.count(capacity.low ?? capacity.value),
      what: 'transactions/s, from where a backlog grows',
      under: [],
    });
  return keys;
}

function ofRun(run: model.PageRun): Key[] {
  if (run.line) return ofLine(run.line);
  return run.together.length > 0 ? ofTogether(run) : ofOne(run);
}

export function keys(page: model.Page): HTMLElement | null {
  const [only] = page.runs;
  const all = page.which
    ? ofPlaces(page.which)
    : page.runs.length === 1 && only
      ? ofRun(only)
      : ofSeveral(page);
  if (all.length === 0) return null;
  return h(
    'ul',
    { class: 'keys', 'aria-label': 'Key numbers' },
    ...all.map(({ value, what, under }) =>
      h(
        'li',
        {},
        h('strong', {}, value),
        h('span', {}, what),
        ...under.map((text) => h('small', {}, text)),
      ),
    ),
  );
}

/** Which figure shows the answer best, of those that are drawn. */
export function leading<T extends { id: string }>(page: model.Page, drawn: T[]): T | undefined {
  const one = ['line', 'together', 'size', 'levels', 'scaling', 'load'];
  const wanted = page.which ? ['bars'] : page.runs.length > 1 ? ['compare', 'bars'] : one;
  return wanted.flatMap((id) => drawn.find((one) => one.id === id) ?? [])[0] ?? drawn[0];
}
