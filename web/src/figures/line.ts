// The load line: response time against the rate that was offered, with the level and the line.

import * as format from '../format';
import * as model from '../model';
import { tooltip, xAxis, yAxis, ends, type Datum } from '../chart';
import { ofOne } from '../palette';
import { shown, type Context, type Drawing, type Entry, type Figure, type Panel } from './figure';

type Line = NonNullable<model.PageRun['line']>;

const lined = (page: model.Page) =>
  page.runs.flatMap((run) =>
    run.line && run.line.rates.length > 1 ? [{ run, told: run.line }] : [],
  );

const share = (part: number) => `${(100 * part).toFixed(2)} %`;

/** Until a little past the rate from which a backlog grows: beyond it times have no end. */
function most({ rate, capacity, rates }: Line): number {
  const last = rates[rates.length - 1]?.load ?? 0;
  return Math.min(last, 1.3 * (capacity?.high ?? rate?.high ?? last));
}

function panel({ colors, page, state }: Context, run: model.PageRun, told: Line): Panel {
  const { limits, rate, spare, capacity } = told;
  const end = most(told);
  const rates = told.rates.filter(({ load }) => load <= end);
  const upright = (at: number, name: string, width: number) => ({
    xAxis: at,
    lineStyle: { color: colors.ink, type: 'solid', width },
    label: { formatter: name, color: colors.ink, position: 'end' },
  });
  const series = limits.map(({ stream, percent, within_ns: within }, k) => {
    const look = ofOne(k, colors.dark);
    const data = rates.flatMap(({ load, p99_ns, late_shares, visits }): Datum[] => {
      const p99 = p99_ns[k];
      if (typeof p99 !== 'number') return [];
      const rows: [string, string][] = [
        ['99 % within', format.time(p99)],
        [`later than ${format.time(within)}`, share(late_shares[k] ?? 0)],
        ['visits', `${visits}`],
      ];
      return [{ value: [load, p99], tip: { title: `${stream} at ${format.count(load)}/s`, rows } }];
    });
    const level = {
      yAxis: within,
      lineStyle: { color: look.color, type: 'dashed', width: 1 },
      label: {
        formatter: `${stream} p${percent} ${format.time(within)}`,
        color: look.color,
        position: 'insideStartTop',
      },
    };
    const known = k === 0 && rate;
    return {
      type: 'line',
      name: stream,
      data: shown(state, stream) ? data : [],
      color: look.color,
      symbolSize: 6,
      symbol: look.symbol,
      lineStyle: { color: look.color, width: 2 },
      markLine: {
        symbol: 'none',
        silent: true,
        data: [
          level,
          ...(known ? [upright(rate.value, `line ${format.count(rate.value)}/s`, 2)] : []),
          ...(known && spare
            ? [upright(spare.value, `plan ${format.count(spare.value)}/s`, 1)]
            : []),
        ],
      },
      markArea: known
        ? {
            silent: true,
            itemStyle: { color: colors.soft, opacity: 0.25 },
            data: [[{ xAxis: rate.low ?? rate.value }, { xAxis: rate.high ?? rate.value }]],
          }
        : undefined,
    };
  });
  const times = rates.flatMap(({ p99_ns }) => p99_ns.flatMap((ns) => ns ?? []));
  const backlog = capacity
    ? `; a backlog grows from ${format.count(capacity.low ?? capacity.value)}/s`
    : '';
  return {
    title: `${model.runName(page, run)}: ${told.level}${backlog}`,
    summary: `99th percentile of latency against transactions a second, ${rates.length} rates`,
    height: 360,
    wide: true,
    option: {
      tooltip: tooltip(colors, (datum) => (typeof datum.tip === 'object' ? datum.tip : null)),
      xAxis: xAxis(colors, { name: 'transactions a second', min: 0, max: end }),
      yAxis: yAxis(colors, {
        name: 'p99',
        log: true,
        ...ends([...times, ...limits.map((one) => one.within_ns)], true),
        tell: format.timeTick,
      }),
      series,
    },
  };
}

function draw(context: Context): Drawing {
  const found = lined(context.page);
  const streams = model.unique(found.flatMap(({ told }) => told.limits.map((one) => one.stream)));
  const legend = streams.map((name, k): Entry => ({ name, look: ofOne(k, context.colors.dark) }));
  const rows = found.flatMap(({ run, told }) =>
    told.rates.flatMap(({ load, visits, p99_ns, late_shares }) =>
      told.limits.map((one, k) => [run.id, load, visits, one.stream, p99_ns[k], late_shares[k]]),
    ),
  );
  return {
    panels: found.map(({ run, told }) => panel(context, run, told)),
    legend,
    table: {
      head: ['run', 'transactions_per_s', 'visits', 'stream', 'p99_ns', 'late_share'],
      rows,
    },
  };
}

export const line: Figure = {
  id: 'line',
  title: 'Load line',
  how: [
    'Each point is one rate of transactions, offered whatever the storage does: how long 99 % of the requests took, from when they were due.',
    'Dashed: the time that each limit allows. Upright: the highest rate at which every limit holds, with its 95 % interval. Load the storage to the left of it.',
  ],
  controls: [],
  accepts: (page) => lined(page).length > 0,
  draw,
};
