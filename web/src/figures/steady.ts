// Whether it came to rest: rounds with SNIA's window, and the rate against bytes written.

import * as format from '../format';
import * as model from '../model';
import { tooltip, xAxis, yAxis, type Datum } from '../chart';
import { ofOne } from '../palette';
import { teller, type Context, type Drawing, type Figure, type Panel } from './figure';

const WINDOW = 5;

function drawRounds(context: Context): Drawing {
  const { page, colors } = context;
  const panels: Panel[] = [];
  const table: Drawing['table'] = { head: ['run', 'cell', 'round', 'iops'], rows: [] };
  page.runs.forEach((run, at) => {
    for (const series of run.steady.series) {
      const look = ofOne(at, colors.dark);
      const rounds = series.rounds;
      rounds.forEach((rate, k) => table.rows.push([run.id, series.cell_name, k + 1, rate]));
      const last = rounds.slice(-WINDOW);
      const mean = last.reduce((sum, rate) => sum + rate, 0) / Math.max(last.length, 1);
      const first = rounds.length - last.length + 1;
      // Ends of the line that fits the last five best: what SNIA's second test is about.
      const middle = (last.length - 1) / 2;
      const slope =
        last.reduce((sum, rate, k) => sum + (k - middle) * (rate - mean), 0) /
        Math.max(
          1,
          last.reduce((sum, _, k) => sum + (k - middle) ** 2, 0),
        );
      const test = series.snia;
      const verdict = test
        ? `${test.holds ? 'holds' : 'fails'}: range ${format.three(test.range * 100)} % of at most 20 %, rise ${format.three(Math.abs(test.rise) * 100)} % of at most 10 %`
        : 'needs more rounds';
      panels.push({
        title: model.ofRun(page, run, `${series.cell_name}: SNIA's test ${verdict}`),
        summary: `Rate of ${rounds.length} rounds of ${series.cell_name}; SNIA's test ${verdict}`,
        height: 300,
        wide: run.steady.series.length < 2,
        option: {
          tooltip: tooltip(colors, teller(context)),
          xAxis: {
            ...xAxis(colors, {
              name: 'round',
              min: 0.5,
              max: Math.max(rounds.length, 2) + 0.5,
              tell: (v) => (Number.isInteger(v) ? String(v) : ''),
            }),
          },
          yAxis: yAxis(colors, { name: 'IOPS', min: 0 }),
          series: [
            {
              type: 'line',
              color: look.color,
              symbol: 'circle',
              symbolSize: 7,
              lineStyle: { color: look.color, width: 2 },
              data: rounds.map((rate, k): Datum => ({
                value: [k + 1, rate],
                tip: { title: `round ${k + 1}`, rows: [['rate', `${format.count(rate)} IOPS`]] },
              })),
              markArea: {
                silent: true,
                itemStyle: { color: test?.holds ? colors.good : colors.doubt, opacity: 0.14 },
                data: test
                  ? [[{ coord: [first, mean * 0.9] }, { coord: [rounds.length, mean * 1.1] }]]
                  : [],
              },
            },
            {
              type: 'line',
              symbol: 'none',
              silent: true,
              lineStyle: { color: colors.ink, width: 1.5, type: [6, 4] },
              data: test
                ? [
                    [first, mean - slope * middle],
                    [rounds.length, mean + slope * middle],
                  ]
                : [],
            },
          ],
        },
      });
    }
  });
  return { panels, legend: [], table };
}

export const rounds: Figure = {
  id: 'rounds',
  title: 'Rounds until steady',
  how: [
    "Each point is a round. The field is SNIA's window: the last five rounds, 10 % up and down of their mean; the dashed line fits them. Steady by SNIA: all five within the field, and the line rises or falls by 10 % at most.",
    'That they hold says nothing of what is slower than the rounds looked at.',
  ],
  controls: [],
  accepts: (page) => page.runs.some((run) => run.steady.series.length > 0),
  draw: drawRounds,
};

interface Point {
  written: number;
  rate: number;
  cell: model.PageCell;
}

const POINTS_MIN = 10;

/** Rate of writes against what was written before, in the order made. */
function writes(run: model.PageRun): Point[] {
  const visits = run.cells
    .filter((cell) => cell.op === 'write' && cell.streams === 1)
    .flatMap((cell) => cell.visits.map((visit) => ({ cell, visit })))
    .sort((a, b) => a.visit.order - b.visit.order);
  // Of one load only: the rate of different loads differs by itself.
  const loads = model.unique(
    visits.map(({ cell }) => `${cell.block_bytes} ${model.inFlight(cell)}`),
  );
  let written = 0;
  const points: Point[] = [];
  for (const { cell, visit } of visits) {
    const own = visit.series;
    const per =
      visit.bytes !== null && visit.iops && visit.elapsed_ns
        ? visit.bytes / (visit.iops * (visit.elapsed_ns / 1e9))
        : 0;
    const start = written;
    if (own && per > 0) {
      own.rate.forEach((rate) => {
        written += (rate * per * own.step_ns) / 1e9;
        points.push({ written, rate: rate * per, cell });
      });
    }
    written = start + (visit.bytes ?? 0);
  }
  return loads.length <= 2 && points.length >= POINTS_MIN ? points : [];
}

function drawWritten(context: Context): Drawing {
  const { page, state, colors } = context;
  const scale = format.perUnit(state.unit);
  const table: Drawing['table'] = {
    head: ['run', 'cell', 'written_bytes', 'bytes_per_s'],
    rows: [],
  };
  const panels = page.runs.flatMap((run, at): Panel[] => {
    const points = writes(run);
    if (points.length === 0) return [];
    for (const { written, rate, cell } of points)
      table.rows.push([run.id, cell.name, written, rate]);
    return [
      {
        title: model.caption(page, run, ''),
        summary: `Write rate against bytes written of ${model.runName(run)}, ${run.steady.cliffs.length} cliffs`,
        height: 300,
        wide: page.runs.length < 3,
        option: {
          tooltip: tooltip(colors, teller(context)),
          xAxis: xAxis(colors, { name: 'GiB written', min: 0, tell: format.tick }),
          yAxis: yAxis(colors, { name: `${state.unit}/s`, min: 0 }),
          series: [
            {
              type: 'line',
              color: ofOne(1, colors.dark).color,
              showSymbol: false,
              lineStyle: { color: ofOne(1, colors.dark).color, width: 1.5 },
              data: points.map(({ written, rate, cell }): Datum => ({
                value: [written / 2 ** 30, rate / scale],
                place: model.address({ run: at, cell }),
                tip: {
                  title: cell.name,
                  rows: [
                    ['written', format.bytes(written)],
                    ['rate', format.bandwidth(rate, state.unit)],
                  ],
                },
              })),
              markLine: {
                silent: true,
                symbol: 'none',
                animation: false,
                lineStyle: { color: colors.alarm, width: 2, type: [6, 4] },
                data: run.steady.cliffs.map((cliff) => ({
                  xAxis: cliff.at_bytes / 2 ** 30,
                  label: {
                    formatter: `cliff ${format.times(cliff.after / cliff.before)}`,
                    color: colors.alarm,
                    fontWeight: 600,
                  },
                })),
              },
            },
          ],
        },
      },
    ];
  });
  return { panels, legend: [], table };
}

export const written: Figure = {
  id: 'written',
  title: 'Against bytes written',
  how: [
    'The write rate against all that was written before. A drive that was new or trimmed is fast until its spare blocks or its cache are used up: the cliff.',
    'What is right of the cliff is what a database server gets that writes all year.',
  ],
  controls: [],
  accepts: (page) => page.runs.some((run) => writes(run).length > 0),
  draw: drawWritten,
};
