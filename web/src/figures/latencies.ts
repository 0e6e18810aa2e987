// How long requests took at every time: a field for each length of time and band of latency.

import * as format from '../format';
import * as model from '../model';
import { ends, tooltip, xAxis, yAxis, type Datum, type Render, type Told } from '../chart';
import { much } from '../palette';
import { laid, worth } from './course';
import { teller, type Context, type Drawing, type Figure } from './figure';

/** More columns than this nobody can see: then several are drawn as one. */
const COLUMNS_MAX = 220;

interface Column {
  /** Seconds on the axis. */
  from: number;
  to: number;
  /** Of the visit, for words. */
  visit: number;
  at: number;
  counts: Map<number, number>;
  requests: number;
}

export const hasHeat = (cell: model.PageCell): boolean =>
  cell.visits.some((visit) => (visit.heat?.columns.length ?? 0) > 0);

/** The cell that is looked at: the one whose course is drawn, if it has this. */
export function place({ page, state }: Pick<Context, 'page' | 'state'>): model.Place | null {
  const chosen = model.find(page, state.course) ?? worth(page);
  if (chosen && hasHeat(chosen.cell)) return chosen;
  for (const [run, { cells }] of page.runs.entries()) {
    const cell = cells.find(hasHeat);
    if (cell) return { run, cell };
  }
  return null;
}

function columns(cell: model.PageCell): Column[] {
  const visits = laid(cell.visits.filter((visit) => visit.heat));
  const all = visits.reduce((sum, { visit }) => sum + (visit.heat?.columns.length ?? 0), 0);
  const merged = Math.max(1, Math.ceil(all / COLUMNS_MAX));
  return visits.flatMap(({ visit, start }) => {
    const own = visit.heat;
    if (!own) return [];
    const end = (visit.elapsed_ns ?? own.columns.length * own.step_ns) / 1e9;
    const step = (own.step_ns * merged) / 1e9;
    const found: Column[] = [];
    for (let k = 0; k * merged < own.columns.length; k += 1) {
      const counts = new Map<number, number>();
      for (const column of own.columns.slice(k * merged, (k + 1) * merged))
        for (const [band, count] of column) counts.set(band, (counts.get(band) ?? 0) + count);
      const requests = [...counts.values()].reduce((sum, count) => sum + count, 0);
      const to = start + Math.min((k + 1) * step, end);
      const from = start + k * step;
      // What came back after the end of the measured time has no room of its own.
      if (to > from) found.push({ from, to, visit: visit.repeat, at: k * step, counts, requests });
    }
    return found;
  });
}

function draw(context: Context): Drawing {
  const { page, colors } = context;
  const table: Drawing['table'] = {
    head: ['run', 'cell', 'visit', 'at_s', 'to_s', 'latency_ns_from', 'latency_ns_to', 'requests'],
    rows: [],
  };
  const found = place(context);
  const run = found && page.runs[found.run];
  if (!found || !run) return { panels: [], legend: [], table };
  const { cell } = found;
  const all = columns(cell);
  const bands = cell.bands as [number, number][];
  const fields = all.flatMap((column) =>
    [...column.counts].map(([band, count]) => ({ column, band, count })),
  );
  for (const { column, band, count } of fields) {
    const [from, to] = bands[band] ?? [0, 0];
    const { visit, at } = column;
    table.rows.push([run.id, cell.name, visit, at, at + column.to - column.from, from, to, count]);
  }
  const rate = ({ column, count }: (typeof fields)[number]) => count / (column.to - column.from);
  const rates = fields.map(rate);
  const [low, high] = [
    rates.reduce((a, b) => Math.min(a, b), Infinity),
    rates.reduce((a, b) => Math.max(a, b), 0),
  ];
  const share = (value: number) =>
    high > low ? (Math.log(value) - Math.log(low)) / (Math.log(high) - Math.log(low)) : 1;
  const said = ({ column, band, count }: (typeof fields)[number]): Told => {
    const [from, to] = bands[band] ?? [0, 0];
    return {
      title: `visit ${column.visit + 1}, at ${format.time(column.at * 1e9)}`,
      rows: [
        ['latency', `${format.time(from)} to ${format.time(to)}`],
        ['requests', `${count}`],
        ['share', `${format.three((count / column.requests) * 100)} % of those of this time`],
      ],
    };
  };
  const render: Render = (params, api) => {
    const field = fields[params.dataIndex];
    if (!field) return null;
    const [from, to] = bands[field.band] ?? [1, 1];
    const [x0, y0] = api.coord([field.column.from, Math.max(from, 1)]); // A logarithm has no nought.
    const [x1, y1] = api.coord([field.column.to, to + 1]);
    // The darkest would be lost on a dark ground.
    const least = colors.dark ? 0.25 : 0;
    const fill = much(least + (1 - least) * share(rate(field)));
    return {
      type: 'rect',
      shape: { x: x0, y: y1, width: Math.max(x1 - x0, 0.8), height: Math.max(y0 - y1, 0.8) },
      style: { fill },
    };
  };
  const used = fields.map(({ band }) => band);
  const lowest = bands[used.reduce((a, b) => Math.min(a, b), bands.length)]?.[0] ?? 1;
  const longest = bands[used.reduce((a, b) => Math.max(a, b), 0)]?.[1] ?? 1;
  const visits = cell.visits.filter((visit) => visit.heat).length;
  const panel = {
    title: `${model.runName(page, run)}: ${cell.name}`,
    summary: `How long requests took over time in ${cell.name}, ${visits} visits, from ${format.time(lowest)} to ${format.time(longest)}`,
    height: 320,
    wide: true,
    option: {
      tooltip: tooltip(colors, teller(context)),
      xAxis: xAxis(colors, {
        name: 'seconds measured',
        min: 0,
        max: all[all.length - 1]?.to,
        tell: format.tick,
      }),
      yAxis: yAxis(colors, {
        name: 'latency',
        log: true,
        ...ends([lowest, longest + 1], true),
        tell: format.timeTick,
      }),
      series: [
        {
          type: 'custom',
          renderItem: render,
          encode: { x: 0, y: 1 },
          clip: true,
          data: fields.map((field): Datum => ({
            value: [field.column.from, bands[field.band]?.[0] ?? 1],
            place: model.address(found),
            tip: () => said(field),
          })),
        },
      ],
    },
  };
  return { panels: fields.length > 0 ? [panel] : [], legend: [], table };
}

export const latencies: Figure = {
  id: 'latencies',
  title: 'Latency over time',
  how: [
    'Across: the measured time of one cell, visit after visit, as above. Up: how long requests took, as many fields to each doubling. The brighter a field, the more requests a second took so long then; the scale of brightness is logarithmic, so a single slow request can be seen beside a million.',
    'One bright band is storage with one way of answering; two bands are a cache beside a device, or a device that does something else now and then. A band that climbs is a queue that grows. Columns that are empty had nothing come back.',
    'Requests stand where they came back: one that took a second began a second to the left.',
  ],
  controls: ['heat'],
  accepts: (page) => page.runs.some((run) => run.cells.some(hasHeat)),
  draw,
};
