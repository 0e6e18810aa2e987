// Whether it came to rest: rounds with SNIA's window, and the rate against bytes written.

import * as format from '../format';
import * as model from '../model';
import { tooltip, xAxis, yAxis, type Datum } from '../chart';
import { line } from '../dom';
import { ofOne } from '../palette';
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
  /** Since the run began. */
  written: number;
  rate: number;
}

/** What one cell and stream wrote; `null` where others wrote in between. */
interface Course {
  cell: model.PageCell;
  points: (Point | null)[];
}

interface Writes {
  courses: Course[];
  /** All that was written, also by what has no course. */
  all: number;
}

const POINTS_MIN = 10;
/** More lines than this nobody can tell apart. */
const LINES_MAX = 20;

type Visit = model.PageCell['visits'][number];

/**
 * What a visit had written by the end of each step of its course. A step at the end that the visit
 * did not last has no rate: what is left then is waited for, and no load.
 */
function steps(visit: Visit): { ns: number; rates: number[]; sums: number[] } | null {
  const { series, bytes, written, iops, elapsed_ns: time } = visit;
  if (!series || !bytes || !written || !iops || !time) return null;
  // Of a mix the course has reads and writes together.
  const per = written / (iops * (time / 1e9));
  let sum = 0;
  const rates = series.rate.map((rate) => rate * per);
  const sums = rates.map((rate) => {
    sum += (rate * series.step_ns) / 1e9;
    return Math.min(sum, written);
  });
  const whole = Math.max(1, Math.floor((time / series.step_ns) * (1 + 1e-6)));
  return { ns: series.step_ns, rates: rates.slice(0, whole), sums };
}

/** Rates of writes against what all cells and streams wrote before, in the order made. */
function writes(run: model.PageRun): Writes {
  const visits = run.cells
    .flatMap((cell) => cell.visits.map((visit) => ({ cell, visit })))
    .filter(({ visit }) => (visit.written ?? 0) > 0)
    .sort((a, b) => a.visit.order - b.visit.order);
  const courses = new Map<model.PageCell, Course & { end: number }>();
  let all = 0;
  for (const [, together] of model.by(visits, ({ visit }) => visit.order)) {
    const made = together.map((one) => ({ ...one, own: steps(one.visit) }));
    const start = all;
    all += together.reduce((sum, { visit }) => sum + (visit.written ?? 0), 0);
    // Streams write at the same time: what the others wrote by then counts, too.
    const until = (ns: number) =>
      made.reduce((sum, { own }) => {
        const at = own ? Math.min(Math.floor(ns / own.ns), own.sums.length) : 0;
        return sum + (own?.sums[at - 1] ?? 0);
      }, start);
    for (const { cell, own } of made) {
      if (!own) continue;
      const course = courses.get(cell) ?? { cell, points: [], end: start };
      courses.set(cell, course);
      if (course.end !== start) course.points.push(null);
      own.rates.forEach((rate, k) =>
        course.points.push({ written: until((k + 1) * own.ns), rate }),
      );
      course.end = all;
    }
  }
  const found = [...courses.values()];
  const points = found.reduce((sum, course) => sum + course.points.length, 0);
  return { courses: found.length <= LINES_MAX && points >= POINTS_MIN ? found : [], all };
}

function drawWritten(context: Context): Drawing {
  const { page, state, colors } = context;
  const scale = format.perUnit(state.unit);
  const table: Drawing['table'] = {
    head: ['run', 'cell', 'written_bytes', 'bytes_per_s'],
    rows: [],
  };
  const legend = new Map<string, Entry>();
  const runs = page.runs.map(writes);
  const means = runs.flatMap(({ courses }) =>
    courses.map(({ points }) => {
      const rates = points.flatMap((point) => point?.rate ?? []);
      return rates.reduce((sum, rate) => sum + rate, 0) / rates.length;
    }),
  );
  const least = means.reduce((a, b) => Math.min(a, b), Infinity);
  // Of streams that write little beside others nothing would be seen on a linear axis.
  const log = isLog(state, means.reduce((a, b) => Math.max(a, b), 0) > 30 * least);
  const panels = page.runs.flatMap((run, at): Panel[] => {
    const { courses, all } = runs[at] ?? { courses: [], all: 0 };
    if (courses.length === 0) return [];
    const lines = courses.flatMap(({ cell, points }) => {
      for (const point of points)
        if (point) table.rows.push([run.id, cell.name, point.written, point.rate]);
      const name = line(cell.name);
      const look = legend.get(name)?.look ?? ofOne(legend.size, colors.dark);
      legend.set(name, { name, look });
      if (!shown(state, name)) return [];
      return {
        type: 'line',
        name,
        color: look.color,
        symbol: 'none',
        symbolSize: 6,
        lineStyle: { color: look.color, width: 1.5, type: look.dash },
        data: points.map((point, k): Datum | null =>
          // A logarithm has no nought.
          point && (point.rate > 0 || !log)
            ? {
                // One without a neighbour is no line.
                ...(points[k - 1] || points[k + 1] ? {} : { symbol: look.symbol }),
                value: [point.written / 2 ** 30, point.rate / scale],
                place: model.address({ run: at, cell }),
                tip: {
                  title: cell.name,
                  rows: [
                    ['written by all', format.bytes(point.written)],
                    ['rate', format.bandwidth(point.rate, state.unit)],
                  ],
                },
              }
            : { value: null },
        ),
      };
    });
    return [
      {
        title: model.caption(page, run, ''),
        summary: `Write rate against bytes written of ${model.runName(page, run)}, ${courses.length} lines, ${format.bytes(all)} written, ${run.steady.cliffs.length} cliffs`,
        height: 300,
        wide: page.runs.length < 3,
        option: {
          tooltip: tooltip(colors, teller(context)),
          xAxis: xAxis(colors, {
            name: 'GiB written',
            min: 0,
            max: all / 2 ** 30,
            tell: format.tick,
          }),
          yAxis: yAxis(colors, {
            name: `${state.unit}/s`,
            log,
            min: log ? 10 ** Math.floor(Math.log10(least / scale / 3)) : 0,
          }),
          series: [
            ...lines,
            {
              // Cliffs stay where lines are left out.
              type: 'line',
              silent: true,
              data: [],
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
  return { panels, legend: [...legend.values()], table, log };
}

export const written: Figure = {
  id: 'written',
  title: 'Against bytes written',
  how: [
    'The write rate of each cell and stream against all that the run had written by then, by whatever cell. A line is broken where others wrote in between. A drive that was new or trimmed is fast until its spare blocks or its cache are used up: the cliff.',
    'What is right of the cliff is what a database server gets that writes all year.',
  ],
  controls: ['scale'],
  accepts: (page) => page.runs.some((run) => writes(run).courses.length > 0),
  draw: drawWritten,
};
