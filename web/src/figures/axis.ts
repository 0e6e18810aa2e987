// Rates against whatever else a suite varies: mixes of reads and writes, working sets, rates offered.

import * as format from '../format';
import * as model from '../model';
import { band, categories, ends, tooltip, yAxis, type Datum } from '../chart';
import { line } from '../dom';
import { ofOne } from '../palette';
import {
  isLog,
  shown,
  someLines,
  teller,
  type Context,
  type Drawing,
  type Entry,
  type Figure,
  type Panel,
} from './figure';

interface Axis {
  field: string;
  values: string[];
  /** What is alike but for the axis and the block size. */
  group: string;
  lines: { name: string; cells: model.PageCell[] }[];
}

const LINES_MAX = 14;

const at = (cell: model.PageCell, field: string) =>
  cell.coordinates.find((one) => one.field === field)?.value ??
  (field === 'region' && cell.region_bytes !== null ? format.size(cell.region_bytes) : undefined);

const name = (cell: model.PageCell) =>
  [cell.block_bytes === null ? '' : format.blockSize(cell.block_bytes), model.load(cell)]
    .filter(Boolean)
    .join(', ');

function axes(run: model.PageRun): Axis[] {
  // Its rates are drawn as the load line.
  if (run.line) return [];
  const cells = model.grid(run);
  const fields = model.unique(cells.flatMap((cell) => cell.coordinates.map(({ field }) => field)));
  return fields.flatMap((field): Axis[] => {
    const own = cells.filter((cell) => at(cell, field) !== undefined && model.isOther(cell, field));
    const rest = (cell: model.PageCell) =>
      [
        line(cell.phase),
        cell.streams > 1 ? line(cell.stream) : '',
        ...cell.coordinates
          .filter((one) => one.field !== field && model.isOther(cell, one.field))
          .map((one) => `${line(one.field)} ${line(one.value)}`),
      ]
        .filter(Boolean)
        .join(', ');
    return [...model.by(own, rest)].flatMap(([group, members]): Axis[] => {
      const values = model.unique(members.map((cell) => at(cell, field) ?? ''));
      const lines = [...model.by(members, name)]
        .map(([one, cells]) => ({ name: one, cells }))
        .filter((one) => one.cells.length >= 3);
      if (values.length < 3 || lines.length === 0) return [];
      return [{ field, values, group, lines }];
    });
  });
}

/** Letters of names that fit under a panel, all names together. */
const LETTERS = 60;
const NAME_MAX = 200;

/** An axis with every name on it: long ones aslant, and the title says what they are of. */
function named(colors: Context['colors'], name: string, values: string[]) {
  if (values.join('').length <= LETTERS) return categories(colors, name, values);
  const own = categories(colors, '', values, true);
  const look = { rotate: 30, width: NAME_MAX, overflow: 'truncate', fontSize: 10 };
  return { ...own, axisLabel: { ...own.axisLabel, ...look } };
}

/**
 * Phases that go to parts of the files of different size and are alike otherwise: `read-1`,
 * `read-2`, as suites are written that look for the end of a cache.
 */
function regions(run: model.PageRun): Axis[] {
  const stem = ({ phase }: model.PageCell) => line(phase).replace(/[-_ ]?\d+$/, '');
  const like = (cell: model.PageCell) =>
    [
      stem(cell),
      cell.streams > 1 ? line(cell.stream) : '',
      cell.op,
      ...cell.coordinates.map(({ field, value }) => `${line(field)} ${line(value)}`),
    ]
      .filter(Boolean)
      .join(', ');
  const own = model.grid(run).filter((cell) => cell.region_bytes !== null);
  return [...model.by(own, (cell) => `${like(cell)} ${name(cell)}`)].flatMap(
    ([, cells]): Axis[] => {
      const [first] = cells;
      const sizes = model.unique(cells.map((cell) => cell.region_bytes ?? 0)).sort(model.rising);
      // Two of one size differ by something that is not known here.
      if (!first || sizes.length < 3 || sizes.length < cells.length) return [];
      return [
        {
          field: 'region',
          values: sizes.map(format.size),
          group: stem(first),
          lines: [{ name: name(first), cells }],
        },
      ];
    },
  );
}

function draw(context: Context): Drawing {
  const { page, state, colors } = context;
  const what = model.metricName(state.metric, state.unit);
  const panels: Panel[] = [];
  const legend = new Map<string, Entry>();
  const table: Drawing['table'] = {
    head: ['run', 'group', 'axis', 'level', 'series', what, 'low', 'high'],
    rows: [],
  };
  const found = page.runs.map((run) => [...axes(run), ...regions(run)]);
  const counts = found.flat().map(({ lines }) => lines.length);
  const part = someLines(context, 'axis', counts, LINES_MAX);
  page.runs.forEach((run, place) => {
    for (const { field, values, group, lines } of found[place] ?? []) {
      const drawn = part.of(lines);
      const options: unknown[] = [];
      const all: number[] = [];
      lines.forEach((own) => {
        const { name, cells } = own;
        // The panels have one legend: what has a name there looks so in all of them.
        const look = legend.get(name)?.look ?? ofOne(legend.size, colors.dark);
        const isDrawn = drawn.includes(own);
        if (isDrawn) legend.set(name, { name, look });
        if (isDrawn && !shown(state, name)) return;
        const found = values.map((level) => {
          const cell = cells.find((one) => at(one, field) === level);
          const value = cell ? model.value(cell, state.metric, state.unit) : null;
          return cell && value ? { cell, ...value } : null;
        });
        found.forEach((one, level) => {
          if (!one) return;
          if (isDrawn) all.push(one.value, one.low ?? one.value, one.high ?? one.value);
          table.rows.push([
            run.id,
            group,
            field,
            values[level],
            name,
            one.value,
            one.low,
            one.high,
          ]);
        });
        if (!isDrawn) return;
        const bounds = found.map((one, k): [number, number | null, number | null] => [
          k,
          one?.low ?? null,
          one?.high ?? null,
        ]);
        options.push(band(name, look.color, bounds, drawn.length > 6 ? 0.08 : 0.16), {
          type: 'line',
          name,
          data: found.map((one): Datum => ({
            value: one?.value ?? null,
            ...(one ? { place: model.address({ run: place, cell: one.cell }) } : {}),
          })),
          symbol: look.symbol,
          symbolSize: 7,
          color: look.color,
          lineStyle: { color: look.color, width: 2, type: look.dash },
          emphasis: { focus: 'series' },
          z: 3,
        });
      });
      // Another panel has more lines.
      if (drawn.length === 0) continue;
      panels.push({
        title: model.ofRun(page, run, `${group}: ${what} against ${field.replaceAll('_', ' ')}`),
        summary: `${what} against ${field} of ${group}, ${drawn.length} lines`,
        height: 340,
        option: {
          tooltip: tooltip(colors, teller(context)),
          xAxis: named(colors, field.replaceAll('_', ' '), values),
          yAxis: yAxis(colors, {
            name: model.axisName(state.metric, state.unit),
            log: isLog(state),
            ...ends(all, isLog(state)),
          }),
          series: options,
        },
      });
    }
  });
  const { left, parts } = part;
  return { panels, legend: [...legend.values()], table, left, parts };
}

export const axis: Figure = {
  id: 'axis',
  title: 'Against what else was varied',
  how: [
    'Each line is one block size and load; across is what the suite varies besides, in its own order: a mix of reads and writes, a working set, a rate offered.',
    'A line that sags in the middle of a mix costs more than its parts: reads and writes disturb each other.',
  ],
  controls: ['metric', 'part', 'scale'],
  accepts: (page) => page.runs.some((run) => axes(run).length > 0 || regions(run).length > 0),
  draw,
};
