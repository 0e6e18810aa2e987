// How long requests take, on the axis of nines; and what a request meets that comes at any moment.

import * as format from '../format';
import * as model from '../model';
import { tooltip, xAxis, yAxis, type Datum } from '../chart';
import { ofLoad, ofOne, type Look } from '../palette';
import {
  more,
  shown,
  teller,
  type Context,
  type Drawing,
  type Entry,
  type Figure,
  type Panel,
} from './figure';

interface Curve {
  run: number;
  name: string;
  look: Look;
  cell: model.PageCell;
}

const LINES_MAX = 16;

/** Cells of the block size that is looked at, or all of a few. */
function curves(context: Context, has: (cell: model.PageCell) => boolean): Curve[] {
  const { page, state, colors } = context;
  const several = page.runs.length > 1;
  const all = page.runs.flatMap((run, at) => {
    const cells = model.grid(run).filter(has);
    const size = model.focus(state, cells);
    const own =
      cells.length <= 6
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
      };
    });
  });
  return all;
}

const legendOf = (found: Curve[]): Entry[] => found.map(({ name, look }) => ({ name, look }));

function sized(context: Context, found: Curve[]): string {
  const size = found.find(({ cell }) => cell.block_bytes !== null)?.cell.block_bytes;
  const same = found.every(({ cell }) => cell.block_bytes === size);
  void context;
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

function percent(share: number): string {
  const digits = Math.max(0, Math.ceil(nines(share) - 1e-9) - 1);
  return `${(share * 100).toFixed(digits)} %`;
}

function drawDistribution(context: Context): Drawing {
  const { colors } = context;
  const all = curves(context, (cell) => cell.quantiles.length >= 2);
  const found = all.slice(0, LINES_MAX);
  const table: Drawing['table'] = { head: ['run', 'series', 'share', 'latency_ns'], rows: [] };
  const series = found
    .filter(({ name }) => shown(context.state, name))
    .map(({ run, name, look, cell }) => {
      const points = cell.quantiles.filter(([share]) => share < 1);
      for (const [share, ns] of points)
        table.rows.push([context.page.runs[run]?.id, name, share, ns]);
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
              ['longest', format.time(cell.latency_ns.max)],
              ['requests', format.count(cell.requests)],
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
    ...found.flatMap(({ cell }) => cell.quantiles.map(([share]) => (share < 1 ? nines(share) : 0))),
  );
  const panel: Panel = {
    title: sized(context, found),
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
  const left = more(all.length, found.length, 'curves');
  return { panels: found.length > 0 ? [panel] : [], legend: legendOf(found), table, left };
}

export const distribution: Figure = {
  id: 'distribution',
  title: 'How long requests take',
  how: [
    'Across: the share of requests, with as much room for each further nine as for the one before, so that the rare long ones can be seen. Up: how long the slowest of that share took.',
    'A curve that runs level and then climbs has two kinds of requests. Curves end where fewer than ten requests are left: beyond that a percentile is a guess.',
  ],
  controls: ['block'],
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
  const all = curves(context, (cell) => cell.exposure.length >= 2);
  const found = all.slice(0, LINES_MAX);
  const table: Drawing['table'] = { head: ['run', 'series', 'wait_ns', 'chance'], rows: [] };
  const series = found
    .filter(({ name }) => shown(context.state, name))
    .map(({ run, name, look, cell }) => {
      const points = falling(cell.exposure).filter(([, share]) => share >= 1e-6);
      for (const [ns, share] of points)
        table.rows.push([context.page.runs[run]?.id, name, ns, share]);
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
    title: sized(context, found),
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
  const left = more(all.length, found.length, 'curves');
  return { panels: found.length > 0 ? [panel] : [], legend: legendOf(found), table, left };
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
  controls: ['block'],
  accepts: (page) =>
    page.runs.some((run) => model.grid(run).some((cell) => cell.exposure.length >= 2)),
  draw: drawExposure,
};
