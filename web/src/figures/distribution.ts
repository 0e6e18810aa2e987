// How long requests take, on the axis of nines; and what a request meets that comes at any moment.

import * as format from '../format';
import * as model from '../model';
import { tooltip, xAxis, yAxis, type Datum } from '../chart';
import { ofLoad, ofOne, type Look } from '../palette';
import {
  some,
  shown,
  teller,
  type Context,
  type Drawing,
  type Entry,
  type Figure,
  type Panel,
} from './figure';

/** Block sizes to choose from. */
const sizes = ({ page }: Context, has: (cell: model.PageCell) => boolean): number[] => {
  const cells = page.runs.map((run) => model.grid(run).filter(has));
  return cells.some((own) => own.length > FEW) ? model.blocks(cells.flat()) : [];
};

interface Curve {
  run: number;
  name: string;
  look: Look;
  cell: model.PageCell;
  quantiles: [number, number][];
  longest: number | null;
  requests: number | null;
}

/** A curve, and those of the flushes beside it. */
function flushed(curve: Curve): Curve[] {
  const { flushes, op } = curve.cell;
  if (flushes.length === 0) return [curve];
  // As the writes' own, with points between: in grey, too, no other has them.
  const dash = typeof curve.look.dash === 'string' ? [] : curve.look.dash;
  const others = flushes
    .filter(({ quantiles }) => quantiles.length >= 2)
    .map(({ op, quantiles, latency_ns: { max: longest }, requests }, k): Curve => {
      const own = {
        ...curve.look,
        dash: [
          ...dash,
          ...Array(2 * k + 2)
            .fill(0)
            .map((_, at) => (at % 2 ? 3 : 1)),
        ],
      };
      return { ...curve, name: `${curve.name}: ${op}`, look: own, quantiles, longest, requests };
    });
  return [{ ...curve, name: `${curve.name}: ${op}` }, ...others];
}

const LINES_MAX = 16;
/** Cells of all block sizes, if there are no more. */
const FEW = 6;

/** Cells of the block size that is looked at, or all of a few. */
function curves(context: Context, has: (cell: model.PageCell) => boolean): Curve[] {
  const { page, state, colors } = context;
  const several = page.runs.length > 1;
  const all = page.runs.map((run, at) => {
    const cells = model.grid(run).filter(has);
    const size = model.focus(state, cells);
    const own =
      cells.length <= FEW
        ? cells
        : cells.filter((cell) => cell.block_bytes === size || cell.block_bytes === null);
    const sized = model.areSized(own);
    const loads = model.unique(own.map(model.inFlight)).sort(model.rising);
    // Operation and load tell the cells of a grid apart, and not the streams of a mix.
    const apart = model.unique(own.map((cell) => `${cell.op} ${model.inFlight(cell)}`));
    const grid =
      own.length > 1 &&
      apart.length === own.length &&
      own.every((cell) => cell.block_bytes !== null);
    return own.map((cell, k): Curve => {
      const what = model.label(cell, sized);
      const plain = grid
        ? ofLoad(cell.op, loads.indexOf(model.inFlight(cell)), loads.length, colors.dark)
        : ofOne(k, colors.dark);
      return {
        run: at,
        name: model.ofRun(page, run, what),
        look: several
          ? { ...ofOne(at, colors.dark), dash: plain.dash, symbol: plain.symbol }
          : plain,
        cell,
        quantiles: cell.quantiles,
        longest: cell.latency_ns.max,
        requests: cell.requests,
      };
    });
  });
  // By turns: where not all are drawn at once, there is one of every run beside those of the others.
  const most = Math.max(0, ...all.map((own) => own.length));
  return Array.from({ length: most }, (_, k) => all.flatMap((own) => own[k] ?? [])).flat();
}

/** Curves that are drawn at once: as many of every run. */
const each = ({ page }: Context): number =>
  Math.max(1, Math.floor(LINES_MAX / page.runs.length)) * Math.min(page.runs.length, LINES_MAX);

const legendOf = (found: Curve[]): Entry[] => found.map(({ name, look }) => ({ name, look }));

function sized(found: Curve[]): string {
  const size = found.find(({ cell }) => cell.block_bytes !== null)?.cell.block_bytes;
  const same = found.every(({ cell }) => cell.block_bytes === size);
  return same && size ? `${format.blockSize(size)} requests` : '';
}

const nines = (share: number) => -Math.log10(1 - share);
const NAMES: Record<number, string> = {
  0: '0 %',
  1: '90 %',
  2: '99 %',
  3: '99.9 %',
  4: '99.99 %',
  5: '99.999 %',
  6: '99.9999 %',
  7: '99.99999 %',
};

/** One panel with those of the curves that were chosen. */
function drawn(
  { drawn: found, left, parts }: ReturnType<typeof some<Curve>>,
  panel: Panel,
  table: Drawing['table'],
  sizes: number[],
): Drawing {
  const panels = found.length > 0 ? [panel] : [];
  return { panels, legend: legendOf(found), table, left, parts, sizes };
}

function percent(share: number): string {
  const digits = Math.max(0, Math.ceil(nines(share) - 1e-9) - 1);
  return `${(share * 100).toFixed(digits)} %`;
}

function drawDistribution(context: Context): Drawing {
  const { colors } = context;
  const has = (cell: model.PageCell) => cell.quantiles.length >= 2;
  const all = curves(context, has).flatMap(flushed);
  const part = some(context, 'distribution', all, { what: 'curves', each: each(context) });
  const found = part.drawn;
  const table: Drawing['table'] = { head: ['run', 'series', 'share', 'latency_ns'], rows: [] };
  const below = ({ quantiles }: Curve) => quantiles.filter(([share]) => share < 1);
  for (const curve of all.filter(({ name }) => shown(context.state, name)))
    for (const [share, ns] of below(curve))
      table.rows.push([context.page.runs[curve.run]?.id, curve.name, share, ns]);
  const series = found
    .filter(({ name }) => shown(context.state, name))
    .map((curve) => {
      const { run, name, look, cell, longest, requests } = curve;
      const points = below(curve);
      return {
        type: 'line',
        name,
        data: points.map(([share, ns]): Datum => ({
          value: [nines(share), ns],
          place: model.address({ run, cell }),
          tip: {
            title: name,
            rows: [
              [percent(share), `within ${format.time(ns)}`],
              ['longest', format.time(longest)],
              ['requests', format.count(requests)],
            ],
          },
        })),
        symbol: look.symbol,
        symbolSize: 4,
        showSymbol: true,
        color: look.color,
        lineStyle: { color: look.color, width: 2, type: look.dash },
        emphasis: { focus: 'series' },
      };
    });
  const most = Math.max(
    2,
    ...found.flatMap((curve) => below(curve).map(([share]) => nines(share))),
  );
  const panel: Panel = {
    title: sized(found),
    summary: `Latency by share of requests, ${found.length} cells`,
    height: 360,
    wide: true,
    option: {
      tooltip: tooltip(colors, teller(context)),
      xAxis: {
        ...xAxis(colors, {
          name: 'share of requests that took no longer',
          min: 0,
          max: Math.ceil(most),
          tell: (v) => NAMES[v] ?? '',
        }),
        interval: 1,
      },
      yAxis: yAxis(colors, { name: 'latency', log: true, tell: format.timeTick }),
      series,
    },
  };
  return drawn(part, panel, table, sizes(context, has));
}

export const distribution: Figure = {
  id: 'distribution',
  title: 'How long requests take',
  how: [
    'Across: the share of requests, with as much room for each further nine as for the one before, so that the rare long ones can be seen. Up: how long the slowest of that share took.',
    'A curve that runs level and then climbs has two kinds of requests. Curves end where fewer than ten requests are left: beyond that a percentile is a guess.',
    'Where writes are flushed, writes and flushes have a curve each: whoever commits waits for both.',
  ],
  controls: ['block', 'part'],
  accepts: (page) =>
    page.runs.some((run) => model.grid(run).some((cell) => cell.quantiles.length >= 2)),
  draw: drawDistribution,
};

/** From the last point at which the chance is still as good as 1. */
function falling(points: [number, number][]): [number, number][] {
  const level = points.findLastIndex(([, share]) => share > 0.98);
  return points.slice(Math.max(level, 0));
}

function drawExposure(context: Context): Drawing {
  const { colors } = context;
  const has = (cell: model.PageCell) => cell.exposure.length >= 2;
  const all = curves(context, has);
  const part = some(context, 'exposure', all, { what: 'curves', each: each(context) });
  const found = part.drawn;
  const table: Drawing['table'] = { head: ['run', 'series', 'wait_ns', 'chance'], rows: [] };
  const told = ({ cell }: Curve) => falling(cell.exposure).filter(([, share]) => share >= 1e-6);
  for (const curve of all.filter(({ name }) => shown(context.state, name)))
    for (const [ns, share] of told(curve))
      table.rows.push([context.page.runs[curve.run]?.id, curve.name, ns, share]);
  const series = found
    .filter(({ name }) => shown(context.state, name))
    .map((curve) => {
      const { run, name, look, cell } = curve;
      const points = told(curve);
      return {
        type: 'line',
        name,
        data: points.map(([ns, share]): Datum => ({
          value: [ns, share],
          place: model.address({ run, cell }),
          tip: {
            title: name,
            rows: [
              ['longer than', format.time(ns)],
              ['chance', chance(share)],
            ],
          },
        })),
        symbol: look.symbol,
        symbolSize: 4,
        color: look.color,
        lineStyle: { color: look.color, width: 2, type: look.dash },
        emphasis: { focus: 'series' },
      };
    });
  const shares = found.flatMap(({ cell }) => cell.exposure.map(([, share]) => share));
  const least =
    10 ** Math.floor(Math.log10(Math.min(0.05, ...shares.filter((share) => share >= 1e-6))));
  const first = Math.min(...found.flatMap(({ cell }) => falling(cell.exposure).map(([ns]) => ns)));
  const panel: Panel = {
    title: sized(found),
    summary: `Chance of a longer wait at a random moment, ${found.length} cells`,
    height: 360,
    wide: true,
    option: {
      tooltip: tooltip(colors, teller(context)),
      xAxis: { ...xAxis(colors, { name: 'wait', log: true, min: first, tell: format.timeTick }) },
      yAxis: yAxis(colors, {
        name: 'chance of waiting longer',
        log: true,
        min: least,
        max: 1,
        tell: chance,
      }),
      series,
    },
  };
  return drawn(part, panel, table, sizes(context, has));
}

function chance(share: number): string {
  return share >= 0.001
    ? `${format.tick(share * 100)} %`
    : `1 in ${format.short(Math.round(1 / share))}`;
}

export const exposure: Figure = {
  id: 'exposure',
  title: 'What a random moment meets',
  how: [
    'The chance that a request which arrives at a random moment, where a worker is busy, waits longer than so long. Percentiles count requests, and a freeze is few of those; people count moments.',
    'A curve that falls steeply is a device that answers evenly. A shoulder far to the right is a freeze: rare among requests, not rare among moments.',
  ],
  controls: ['block', 'part'],
  accepts: (page) =>
    page.runs.some((run) => model.grid(run).some((cell) => cell.exposure.length >= 2)),
  draw: drawExposure,
};
