// Rate, bandwidth and latency against block size: a line for each load.

import * as format from '../format';
import * as model from '../model';
import { band, categories, ends, tooltip, yAxis, type Datum } from '../chart';
import { ofLoad } from '../palette';
import type { Metric } from '../state';
import {
  isLog,
  shown,
  teller,
  type Context,
  type Drawing,
  type Entry,
  type Figure,
  type Panel,
} from './figure';

interface Series {
  name: string;
  op: string;
  level: number;
  levels: number;
  cells: model.PageCell[];
}

/** Lines of a run: cells that differ in block size only. */
function series(run: model.PageRun): Series[] {
  const cells = model.grid(run).filter((cell) => cell.block_bytes !== null);
  const all: Series[] = [];
  for (const [group, members] of model.by(cells, model.group)) {
    for (const [load, line] of model.by(members, model.load)) {
      const first = line[0];
      if (!first || model.blocks(line).length < 3) continue;
      const name = [group, load].filter(Boolean).join(', ');
      all.push({ name, op: first.op, level: 0, levels: 1, cells: line });
    }
  }
  // Lines of one operation go from light to dark with what is in flight.
  for (const own of model.by(all, ({ op }) => op).values()) {
    const flight = ({ cells }: Series) => (cells[0] ? model.inFlight(cells[0]) : 0);
    const sorted = [...own].sort((x, y) => flight(x) - flight(y));
    sorted.forEach((line, level) => Object.assign(line, { level, levels: own.length }));
  }
  return all;
}

/** A point that a cache answered. */
const cached = (colors: Context['colors']) => ({
  itemStyle: { color: colors.cache, borderColor: colors.cache },
  label: { show: true, formatter: 'cache', color: colors.soft, fontSize: 10 },
});

const ALL: Metric[] = ['iops', 'bytes', 'latency', 'seconds'];

function draw(context: Context): Drawing {
  const { page, state, colors } = context;
  const lines = page.runs.map(series);
  const known = (metric: Metric) =>
    lines.flat().some(({ cells }) => cells.some((cell) => model.value(cell, metric, state.unit)));
  // A page of one run shows all there is; several are shown side by side by one metric.
  const metrics = page.runs.length === 1 ? ALL.filter(known) : [state.metric];
  const legend = new Map<string, Entry>();
  const table: Drawing['table'] = {
    head: [
      'run',
      'series',
      'block_bytes',
      'threads',
      'queue_depth',
      'iops',
      'iops_low',
      'iops_high',
      'bytes_per_s',
      'latency_ns_mean',
      'marks',
    ],
    rows: [],
  };
  const panels: Panel[] = [];
  for (const metric of metrics) {
    const drawn = lines.flat().filter(({ name }) => shown(state, name));
    const values = drawn.flatMap(({ cells }) =>
      cells.flatMap((cell) => {
        const found = model.value(cell, metric, state.unit);
        return found ? [found.value, found.low ?? found.value, found.high ?? found.value] : [];
      }),
    );
    const range = ends(values, isLog(state));
    page.runs.forEach((run, at) => {
      const own = lines[at] ?? [];
      if (own.length === 0) return;
      const sizes = model.blocks(own.flatMap(({ cells }) => cells));
      const options: unknown[] = [];
      for (const { name, op, level, levels, cells } of own) {
        const look = ofLoad(op, level, levels, colors.dark);
        legend.set(name, { name, look });
        if (!shown(state, name)) continue;
        const at_size = (size: number) => cells.find((cell) => cell.block_bytes === size);
        const points = sizes.map((size): Datum => {
          const cell = at_size(size);
          const found = cell && model.value(cell, metric, state.unit);
          return {
            value: found ? found.value : null,
            ...(cell ? { place: model.address({ run: at, cell }) } : {}),
            ...(cell && model.isCached(cell) ? cached(colors) : {}),
          };
        });
        const bounds = sizes.map((size, k): [number, number | null, number | null] => {
          const cell = at_size(size);
          const found = cell && model.value(cell, metric, state.unit);
          return [k, found?.low ?? null, found?.high ?? null];
        });
        options.push(band(name, look.color, bounds, own.length > 8 ? 0.08 : 0.18), {
          type: 'line',
          name,
          data: points,
          connectNulls: false,
          symbol: look.symbol,
          symbolSize: 6,
          color: look.color,
          lineStyle: { color: look.color, width: 2, type: look.dash },
          itemStyle: { color: look.color, borderColor: look.color },
          emphasis: { focus: 'series', lineStyle: { width: 3 } },
          z: 3,
        });
        const odd = points.flatMap((point, k) => {
          const cell = at_size(sizes[k] ?? 0);
          const grave = cell ? model.markOf(cell) === 'grave' : false;
          if (!grave) return [];
          const missing = point.value === null;
          // What has a rate is measured: nobody told this of it.
          if (missing && (cell?.iops ?? null) !== null) return [];
          // What has no figure stands at the foot, so that it is not overlooked.
          const foot = range.min !== undefined && range.min > 0 ? range.min : 0;
          return [
            {
              ...point,
              value: [k, missing ? foot : point.value],
              symbol: missing ? 'path://M0,0L4,4M4,0L0,4' : 'circle',
              symbolSize: missing ? 9 : 14,
              itemStyle: { color: 'transparent', borderColor: colors.alarm, borderWidth: 2 },
            },
          ];
        });
        if (odd.length > 0) options.push({ type: 'scatter', name, data: odd, z: 6 });
      }
      const what = model.metricName(metric, state.unit);
      panels.push({
        title: model.caption(page, run, what),
        summary: `${what} against block size of ${model.runName(page, run)}, ${own.length} lines`,
        height: page.runs.length > 2 ? 280 : 340,
        option: {
          tooltip: tooltip(colors, teller(context)),
          xAxis: categories(colors, 'block size', sizes.map(format.block)),
          yAxis: yAxis(colors, {
            name: model.axisName(metric, state.unit),
            log: isLog(state),
            ...range,
          }),
          series: options,
        },
      });
    });
  }
  page.runs.forEach((run, at) => {
    for (const { name, cells } of lines[at] ?? []) {
      for (const cell of cells) {
        table.rows.push([
          run.id,
          name,
          cell.block_bytes,
          cell.threads,
          cell.queue_depth,
          cell.iops,
          cell.iops_low,
          cell.iops_high,
          model.bytesPerSecond(cell),
          cell.latency_ns.mean,
          cell.marks.map(({ code }) => code).join(' '),
        ]);
      }
    }
  });
  return { panels, legend: [...legend.values()], table };
}

export const size: Figure = {
  id: 'size',
  title: 'Against block size',
  how: [
    'Each line is one load: its colour is the operation, its darkness, mark and dash how much is in flight. Bands are 95 % intervals; a line without a band has none.',
    'A flat stretch of IOPS on the left is a limit on requests; where IOPS fall by half with every doubling of the block size, bytes per second are the limit. Lines that meet have met a barrier.',
    'A red ring marks a point to look at twice: a gap, a stall, errors. A red cross at the foot of a broken line is a cell without a figure.',
  ],
  controls: (page) => (page.runs.length === 1 ? ['scale'] : ['metric', 'scale']),
  accepts: (page) => page.runs.some((run) => series(run).length > 0),
  draw,
};
