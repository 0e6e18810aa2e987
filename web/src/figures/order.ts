// Every visit in the order made, against its cell's mean: shows a transient for what it is.

import * as format from '../format';
import * as model from '../model';
import { tooltip, xAxis, yAxis, type Datum } from '../chart';
import { ofLoad } from '../palette';
import { teller, type Context, type Drawing, type Figure, type Panel } from './figure';

interface Dot {
  cell: model.PageCell;
  visit: model.PageCell['visits'][number];
  ratio: number;
}

function dots(run: model.PageRun): Dot[] {
  return run.cells.flatMap((cell) => {
    const own = cell.visits.filter(
      (visit) => visit.iops !== null && visit.iops > 0 && visit.end !== 'pilot',
    );
    if (own.length < 2) return [];
    const mean = Math.exp(
      own.reduce((sum, visit) => sum + Math.log(visit.iops ?? 1), 0) / own.length,
    );
    return own.map((visit) => ({ cell, visit, ratio: (visit.iops ?? 0) / mean }));
  });
}

const PER_RUN_MIN = 8;

/** Round ratios within a reach of logarithms: few enough to be read. */
function ratios(reach: number): number[] {
  const within = (steps: number[]) =>
    steps.flatMap((step) => [step, 1 / step]).filter((one) => Math.abs(Math.log(one)) <= reach);
  const fine = within([1.02, 1.05, 1.1, 1.2, 1.5, 2, 5, 10, 100, 1000, 1e4, 1e5]);
  const far = fine.filter((one) => Math.abs(Math.log(one)) >= reach / 4);
  return model.unique([1, ...far]).sort(model.rising);
}

function draw(context: Context): Drawing {
  const { page, colors, state } = context;
  const table: Drawing['table'] = {
    head: ['run', 'order', 'start_ns', 'cell', 'visit', 'iops', 'by_its_mean', 'counted'],
    rows: [],
  };
  const panels: Panel[] = [];
  page.runs.forEach((run, at) => {
    const all = dots(run);
    if (all.length < PER_RUN_MIN) return;
    const timed = all.every(({ visit }) => visit.start_ns !== null);
    const minutes = timed && Math.max(...all.map(({ visit }) => visit.start_ns ?? 0)) > 180e9;
    const scale = minutes ? 60e9 : 1e9;
    const x = (visit: Dot['visit']) => (timed ? (visit.start_ns ?? 0) / scale : visit.order);
    const far = Math.max(0.06, ...all.map(({ ratio }) => Math.abs(Math.log(ratio))));
    const reach = Math.min(far * 1.15, Math.log(1000));
    const series = [...model.by(all, ({ cell }) => cell.op)].map(([op, own], k) => {
      const look = ofLoad(op, 1, 2, colors.dark);
      return {
        type: 'scatter',
        name: op,
        symbol: ['circle', 'triangle', 'diamond', 'rect'][k % 4],
        symbolSize: all.length > 300 ? 5 : 8,
        itemStyle: { color: look.color, opacity: 0.85 },
        data: own.map(({ cell, visit, ratio }): Datum => ({
          value: [x(visit), ratio],
          place: model.address({ run: at, cell }),
          ...(visit.gaps.length > 0 || !visit.counted
            ? {
                itemStyle: {
                  color: visit.gaps.length > 0 ? colors.alarm : 'transparent',
                  borderColor: visit.gaps.length > 0 ? colors.alarm : look.color,
                  borderWidth: 1.5,
                },
              }
            : {}),
          tip: {
            title: cell.name,
            rows: [
              ['visit', `${visit.repeat + 1} of the cell, ${visit.order + 1} of the run`],
              [
                'rate',
                `${format.count(visit.iops)} IOPS, ${format.times(ratio)} of the cell's mean`,
              ],
              ...(visit.gaps.length > 0
                ? ([
                    ['▲ still', visit.gaps.map((gap) => format.time(gap.length_ns)).join(', ')],
                  ] as [string, string][])
                : []),
              ...(visit.counted ? [] : ([['not counted', visit.end]] as [string, string][])),
            ],
          },
        })),
      };
    });
    const steps = timed ? run.changes.filter((change) => change.cell === null) : [];
    const marks = {
      type: 'line',
      data: [],
      silent: true,
      markLine: {
        silent: true,
        symbol: 'none',
        animation: false,
        data: [
          {
            yAxis: 1,
            lineStyle: { color: colors.soft, width: 1, type: 'solid' },
            label: { show: false },
          },
          ...steps.map((step) => ({
            xAxis: step.at_ns / scale,
            lineStyle: { color: colors.alarm, width: 2, type: [6, 4] },
            label: {
              show: true,
              formatter: `all cells ${format.times(step.after)}`,
              color: colors.alarm,
              fontWeight: 600,
            },
          })),
        ],
      },
    };
    for (const { cell, visit, ratio } of all) {
      table.rows.push([
        run.id,
        visit.order,
        visit.start_ns,
        cell.name,
        visit.repeat,
        visit.iops,
        ratio,
        visit.counted ? 1 : 0,
      ]);
    }
    void state;
    const round = ratios(reach);
    panels.push({
      title: model.caption(page, run, `${all.length} visits`),
      summary: `Rate of each of ${all.length} visits by its cell's mean, in the order made, ${model.runName(page, run)}`,
      height: 260,
      wide: page.runs.length < 3,
      option: {
        tooltip: tooltip(colors, teller(context)),
        xAxis: xAxis(colors, {
          name: timed ? `${minutes ? 'minutes' : 'seconds'} into the run` : 'order',
          min: 0,
          tell: format.tick,
        }),
        yAxis: {
          ...yAxis(colors, {
            name: "rate by the cell's mean",
            log: true,
            min: Math.exp(-reach),
            max: Math.exp(reach),
          }),
          axisLabel: {
            color: colors.soft,
            hideOverlap: true,
            customValues: round,
            formatter: (v: number) => `x${format.tick(v)}`,
          },
          axisTick: { customValues: round },
        },
        series: [...series, marks],
      },
    });
  });
  return { panels, legend: [], table };
}

export const order: Figure = {
  id: 'order',
  title: 'In the order made',
  how: [
    'Each point is a visit: its rate by the mean of its own cell, so cells of all sizes can stand in one figure. Colour and mark are the operation; red points had a time in which nothing came back; hollow ones do not count.',
    'Points that spread around 1 without a pattern are noise. Points of many cells that leave 1 together at one time are something that happened then, not something about those cells.',
  ],
  controls: [],
  accepts: (page) => page.runs.some((run) => dots(run).length >= PER_RUN_MIN),
  draw,
};
