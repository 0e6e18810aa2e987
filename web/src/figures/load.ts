// Load curves: what more in flight gives, and what it costs.

import * as format from '../format';
import * as model from '../model';
import { ends, tooltip, xAxis, yAxis, type Datum } from '../chart';
import { ofLoad, ofOne } from '../palette';
import {
  FLUSHED,
  isLog,
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
  group: string;
  op: string;
  cells: model.PageCell[];
}

function curves({ page, state }: Pick<Context, 'page' | 'state'>): Curve[] {
  return page.runs.flatMap((run, at) => {
    const cells = model.grid(run).filter((cell) => cell.iops !== null && model.inFlight(cell) > 0);
    const size = model.focus(state, cells);
    const own = cells.filter((cell) => cell.block_bytes === null || cell.block_bytes === size);
    return [...model.by(own, model.group)].flatMap(([group, members]): Curve[] => {
      const sorted = [...members].sort((a, b) => model.inFlight(a) - model.inFlight(b));
      const loads = model.unique(sorted.map(model.inFlight));
      const name = model.ofRun(page, run, group);
      return loads.length >= 3
        ? [{ run: at, name, group, op: sorted[0]?.op ?? '', cells: sorted }]
        : [];
    });
  });
}

function draw(context: Context): Drawing {
  const { page, state, colors } = context;
  const found = curves(context);
  const table: Drawing['table'] = {
    head: [
      'run',
      'series',
      'in_flight',
      'iops',
      'iops_low',
      'iops_high',
      'latency_ns_mean',
      'latency_ns_mean_with_flushes',
      'latency_ns_p99',
    ],
    rows: [],
  };
  const groups = model.unique(found.map(({ group }) => group));
  const looks = ({ run, group, op }: Curve) => {
    // Several of one operation, such as two phases that read, are told apart as loads are.
    const alike = model.unique(found.filter((one) => one.op === op).map((one) => one.group));
    const alone = alike.length === 1;
    const own = ofLoad(
      op,
      alone ? 1 : alike.indexOf(group),
      Math.max(alike.length, 2),
      colors.dark,
    );
    if (page.runs.length === 1) return own;
    return { ...ofOne(run, colors.dark), dash: ofLoad(op, groups.indexOf(group), 2, false).dash };
  };
  const legend: Entry[] = found.map((curve) => ({ name: curve.name, look: looks(curve) }));
  const lookOf = (name: string) => legend.find((entry) => entry.name === name)?.look;
  const drawn = found.filter(({ name }) => shown(state, name));
  const line = (curve: Curve, point: (cell: model.PageCell) => [number, number] | null) => {
    const look = lookOf(curve.name);
    return {
      type: 'line',
      name: curve.name,
      data: curve.cells.flatMap((cell): Datum[] => {
        const value = point(cell);
        return value ? [{ value, place: model.address({ run: curve.run, cell }) }] : [];
      }),
      symbol: look?.symbol,
      symbolSize: 7,
      color: look?.color,
      lineStyle: { color: look?.color, width: 2, type: look?.dash },
      emphasis: { focus: 'series' },
    };
  };
  for (const { run, name, cells } of found) {
    for (const cell of cells) {
      table.rows.push([
        page.runs[run]?.id,
        name,
        model.inFlight(cell),
        cell.iops,
        cell.iops_low,
        cell.iops_high,
        cell.latency_ns.mean,
        model.waited(cell),
        cell.latency_ns.p99,
      ]);
    }
  }
  const flights = model
    .unique(drawn.flatMap(({ cells }) => cells.map(model.inFlight)))
    .sort(model.rising);
  const across = {
    ...xAxis(colors, {
      name: 'requests in flight',
      log: true,
      min: flights[0],
      max: flights[flights.length - 1],
    }),
    logBase: 2,
    axisLabel: { color: colors.soft, customValues: flights },
    axisTick: { customValues: flights },
  };
  const rates = ends(
    drawn.flatMap(({ cells }) => cells.flatMap((cell) => cell.iops ?? [])),
    isLog(state),
  );
  const latency = drawn.flatMap(({ cells }) => cells.flatMap((cell) => model.waited(cell) ?? []));
  const panels: Panel[] = [
    {
      title: 'what more in flight gives',
      summary: `Requests per second against requests in flight, ${found.length} curves`,
      height: 320,
      option: {
        tooltip: tooltip(colors, teller(context)),
        xAxis: across,
        yAxis: yAxis(colors, { name: 'IOPS', log: isLog(state), ...rates }),
        series: drawn.map((curve) => line(curve, (cell) => [model.inFlight(cell), cell.iops ?? 0])),
      },
    },
  ];
  if (latency.length > 0) {
    panels.push({
      title: 'what it costs',
      summary: 'Mean latency against requests per second',
      height: 320,
      option: {
        tooltip: tooltip(colors, teller(context)),
        xAxis: xAxis(colors, { name: 'IOPS', min: 0 }),
        yAxis: yAxis(colors, {
          name: 'mean latency',
          log: isLog(state),
          ...ends(latency, isLog(state)),
          tell: format.timeTick,
        }),
        series: drawn.map((curve) =>
          line(curve, (cell) => {
            const waited = model.waited(cell);
            return waited === null ? null : [cell.iops ?? 0, waited];
          }),
        ),
      },
    });
  }
  const isFlushed = drawn.some(({ cells }) => cells.some(model.isFlushed));
  return { panels, legend, table, left: isFlushed ? FLUSHED : '' };
}

export const load: Figure = {
  id: 'load',
  title: 'Load curves',
  how: [
    'Left: requests per second against requests in flight. Where the curve turns level, more in flight only waits.',
    'Right: the price. Each point is one number in flight; a curve that turns upwards has found the load that this storage takes.',
  ],
  controls: ['block', 'scale'],
  accepts: (page) => curves({ page, state: { block: 0 } as Context['state'] }).length > 0,
  draw,
};
