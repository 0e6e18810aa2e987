// Runs against a baseline: how many times its rate, cell by cell and over all.

import * as format from '../format';
import * as model from '../model';
import {
  beside,
  breadth,
  categories,
  tooltip,
  whiskers,
  xAxis,
  FONT,
  type Datum,
  type Render,
} from '../chart';
import { against, inkOn } from '../palette';
import { teller, type Context, type Drawing, type Figure, type Panel } from './figure';

interface Held {
  name: string;
  ratio: number;
  low: number | null;
  high: number | null;
  verdict: string;
  cell: model.PageCell;
}

type Run = model.PageRun;
type Told = model.Page['against'][number];

/**
 * What a run is held against: the run that the reader chose, where it measured the same; else the one that
 * the program did. Statistics are there where these are one.
 */
function baseOf({ page, state }: Context, run: Run): { base: Run; told: Told | undefined } | null {
  const chosen = page.runs[state.base] ?? page.runs[0];
  if (!chosen || run === chosen) return null;
  const told = page.against.find((one) => one.run === run.id);
  const turned = page.against.find((one) => one.run === chosen.id && one.reference === run.id);
  const pair = turned ?? (told?.reference === chosen.id ? told : undefined);
  if (run.suite === chosen.suite || (pair && pair.cells.length > 0))
    return { base: chosen, told: pair === told ? told : undefined };
  const base = page.runs.find((one) => one.id === told?.reference);
  return base ? { base, told } : null;
}

/** With statistics where the program held the runs against each other, else by the intervals alone. */
function held(
  run: Run,
  base: Run,
  told: Told | undefined,
): { overall: Held | null; cells: Held[]; known: boolean } {
  const cells = model.grid(run);
  if (told) {
    const found = told.cells.flatMap((one): Held[] => {
      const cell = cells.find(({ key }) => key === one.cell);
      const { ratio, low, high, verdict } = one.held;
      const other = base.cells.find(({ key }) => key === one.reference);
      if (!cell || ratio === null) return [];
      // What a cache did is neither better nor worse.
      const hit = [cell, other].some((one) => one && model.isCached(one));
      const [name, way] = hit ? [`${one.name} (cache)`, 'not compared'] : [one.name, verdict];
      return [{ name, ratio, low, high, verdict: way, cell }];
    });
    const { ratio, low, high, verdict } = told.overall;
    const first = cells[0];
    const overall =
      ratio !== null && first
        ? { name: told.overall_of ?? 'all cells', ratio, low, high, verdict, cell: first }
        : null;
    return { overall, cells: found, known: true };
  }
  const found = cells.flatMap((cell): Held[] => {
    const other = model.grid(base).find((one) => one.name === cell.name);
    if (!other || !cell.iops || !other.iops) return [];
    if (model.isCached(cell) || model.isCached(other)) return [];
    const end = (a: number | null, b: number | null) =>
      a === null || b === null || b <= 0 ? null : a / b;
    return [
      {
        name: cell.name,
        ratio: cell.iops / other.iops,
        low: end(cell.iops_low, other.iops_high),
        high: end(cell.iops_high, other.iops_low),
        verdict: '',
        cell,
      },
    ];
  });
  const mean = Math.exp(
    found.reduce((sum, one) => sum + Math.log(one.ratio), 0) / Math.max(found.length, 1),
  );
  const first = found[0];
  const overall = first
    ? { name: 'all cells', ratio: mean, low: null, high: null, verdict: '', cell: first.cell }
    : null;
  return { overall, cells: found, known: false };
}

const FEW = 30;
/** Width of a panel that has all of the page, and of one beside another. */
const WIDE = 1000;
const NARROW = 420;
const FAR = [1e-4, 1e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 1e3, 1e4];
const CLOSE = [0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 1.75, 2];

function rows(one: Held, known: boolean): [string, string][] {
  const ends =
    one.low !== null && one.high !== null
      ? `${format.times(one.low)} to ${format.times(one.high)}`
      : 'no interval';
  return [
    ['ratio', format.times(one.ratio)],
    [known ? '95 % interval' : 'by both intervals', ends],
    ['verdict', one.verdict || 'not tested: choose the first run of the suite as baseline'],
  ];
}

/** Dots with whiskers on a line of ratios, a row for each. */
function dots(
  context: Context,
  all: Held[],
  at: number,
  known: boolean,
  row: number,
  { title, wide }: { title: string; wide: boolean },
): Panel {
  const { colors } = context;
  const room = Math.min(wide ? WIDE : NARROW, innerWidth - 80);
  const names = all.map(({ name }) => name).reverse();
  const labels = beside(colors, names, room);
  const ends = all
    .flatMap(({ ratio, low, high }) => [ratio, low ?? ratio, high ?? ratio])
    .filter((one) => one > 0);
  const [least, most] = [Math.min(0.9, ...ends), Math.max(1.1, ...ends)];
  // Room at both ends for the numbers of what stands there.
  const spare = Math.max(1.15, (most / least) ** 0.12);
  const min = Math.max(least / spare, 1e-6);
  const max = Math.min(most * spare, 1e6);
  const far = max / min > 3;
  const ticks = (far ? FAR : CLOSE).filter((tick) => tick >= min && tick <= max);
  const colour = (one: Held) =>
    one.verdict === 'slower' ? colors.alarm : one.verdict === 'faster' ? colors.good : colors.soft;
  return {
    title,
    summary: `${title}: ratio to the baseline, ${all.length} rows`,
    height: 80 + all.length * Math.max(row, labels.row),
    wide,
    option: {
      tooltip: tooltip(colors, teller(context)),
      grid: { left: 8, right: 24, top: 8, bottom: 8, containLabel: true },
      xAxis: {
        ...xAxis(colors, { name: "times the baseline's rate", log: true, min, max }),
        splitLine: { show: true, lineStyle: { color: colors.grid } },
        axisLabel: {
          color: colors.soft,
          hideOverlap: true,
          customValues: ticks,
          formatter: (v: number) => format.times(v),
        },
        axisTick: { customValues: ticks },
      },
      yAxis: {
        ...categories(colors, '', names, true),
        axisLabel: labels.label,
        axisTick: { show: false },
      },
      series: [
        whiskers(
          '',
          colors.soft,
          all.flatMap((one, k): [number, number, number][] =>
            one.low === null || one.high === null ? [] : [[all.length - 1 - k, one.low, one.high]],
          ),
          true,
        ),
        {
          type: 'scatter',
          symbolSize: 10,
          z: 5,
          data: all.map((one, k): Datum => ({
            value: [one.ratio, all.length - 1 - k],
            symbol:
              one.verdict === 'faster'
                ? 'triangle'
                : one.verdict === 'slower'
                  ? 'path://M0,0L4,0L2,4Z'
                  : 'circle',
            itemStyle: { color: colour(one) },
            label: {
              show: true,
              position: 'top',
              formatter: format.times(one.ratio),
              color: colors.ink,
              fontSize: 11,
            },
            ...(one.name === 'all cells'
              ? {}
              : { place: model.address({ run: at, cell: one.cell }) }),
            tip: { title: one.name, rows: rows(one, known) },
          })),
          markLine: {
            silent: true,
            symbol: 'none',
            lineStyle: { color: colors.ink, width: 1.5, type: 'solid' },
            label: { show: false },
            data: [{ xAxis: 1 }],
          },
        },
      ],
    },
  };
}

/** A field for each cell of a grid. */
function fields(
  context: Context,
  cells: Held[],
  at: number,
  known: boolean,
  name: string,
): Panel[] {
  const { colors, page } = context;
  const drawn = [
    ...model.by(
      cells.filter(({ cell }) => cell.block_bytes !== null),
      ({ cell }) => model.group(cell),
    ),
  ];
  const far = Math.max(0.05, ...cells.map(({ ratio }) => Math.abs(Math.log(ratio))));
  const reach = Math.min(far, Math.log(8));
  return drawn.map(([group, own]): Panel => {
    const sizes = model.blocks(own.map(({ cell }) => cell));
    const loads = model.unique(
      [...own]
        .sort((a, b) => model.inFlight(b.cell) - model.inFlight(a.cell))
        .map(({ cell }) => model.load(cell)),
    );
    const render: Render = (params, api) => {
      const one = own[params.dataIndex];
      if (!one) return null;
      const [x, y] = api.coord([api.value(0), api.value(1)]);
      const [width, height] = api.size([1, 1]);
      const fill = against(0.5 + Math.log(one.ratio) / reach / 2);
      const sure = one.verdict === 'faster' || one.verdict === 'slower';
      // In a narrow field as short as it can be read, and in small letters.
      const { text, size, weight } = [
        { text: format.times(one.ratio), size: 11, weight: sure ? 700 : 400 },
        { text: format.tight(one.ratio), size: 10, weight: 400 },
      ].find(
        ({ text, size, weight }) => breadth(text) * size * (weight > 400 ? 1.1 : 1) < width,
      ) ?? {
        text: '',
        size: 10,
        weight: 400,
      };
      return {
        type: 'group',
        children: [
          {
            type: 'rect',
            shape: {
              x: x - width / 2 + 1,
              y: y - height / 2 + 1,
              width: width - 2,
              height: height - 2,
              r: 2,
            },
            style: { fill, stroke: sure ? colors.ink : 'none', lineWidth: sure ? 2 : 0 },
          },
          {
            type: 'text',
            style: {
              text,
              x,
              y,
              fill: inkOn(fill),
              font: `${weight} ${size}px ${FONT}`,
              textAlign: 'center',
              textVerticalAlign: 'middle',
            },
          },
        ],
      };
    };
    return {
      title: `${name}: ${group}`,
      summary: `Ratio of ${name} to the baseline by requests in flight and block size, ${group}`,
      height: 74 + loads.length * 44,
      wide: page.runs.length === 2,
      option: {
        tooltip: tooltip(colors, teller(context)),
        grid: { left: 8, right: 8, top: 4, bottom: 8, containLabel: true },
        xAxis: {
          ...categories(colors, 'block size', sizes.map(format.block)),
          axisTick: { show: false },
          axisLine: { show: false },
        },
        yAxis: {
          ...categories(colors, '', loads, true),
          axisTick: { show: false },
          axisLine: { show: false },
        },
        series: [
          {
            type: 'custom',
            renderItem: render,
            encode: { x: 0, y: 1 },
            data: own.map((one): Datum => ({
              value: [
                sizes.indexOf(one.cell.block_bytes ?? 0),
                loads.indexOf(model.load(one.cell)),
              ],
              place: model.address({ run: at, cell: one.cell }),
              tip: { title: one.name, rows: rows(one, known) },
            })),
          },
        ],
      },
    };
  });
}

function draw(context: Context): Drawing {
  const { page } = context;
  const table: Drawing['table'] = {
    head: ['run', 'baseline', 'cell', 'ratio', 'low', 'high', 'verdict'],
    rows: [],
  };
  const found = page.runs.flatMap((run, at) => {
    const one = baseOf(context, run);
    return one
      ? [{ run, at, base: one.base, told: one.told, ...held(run, one.base, one.told) }]
      : [];
  });
  const panels: Panel[] = [];
  for (const [base, own] of model.by(found, (one) => one.base)) {
    const over = own.flatMap(({ run, overall, told }) =>
      overall
        ? [
            {
              ...overall,
              name: [model.runName(page, run), told?.overall_of].filter(Boolean).join(' · '),
            },
          ]
        : [],
    );
    if (over.length === 0 || own.some(({ told }) => told?.overall_of)) continue;
    const title = `All cells together, against ${model.runName(page, base)}`;
    const known = own.every((one) => one.known);
    panels.push(dots(context, over, -1, known, 34, { title, wide: true }));
  }
  for (const { run, at, base, cells, known } of found) {
    for (const one of cells)
      table.rows.push([run.id, base.id, one.name, one.ratio, one.low, one.high, one.verdict]);
    const title = model.runName(page, run);
    const grid =
      cells.length > FEW && cells.filter(({ cell }) => cell.block_bytes !== null).length > FEW;
    if (grid) panels.push(...fields(context, cells, at, known, title));
    else if (cells.length > 0) {
      const wide = page.runs.length === 2;
      panels.push(dots(context, cells, at, known, 30, { title, wide }));
    }
  }
  return { panels, legend: [], table };
}

export const compare: Figure = {
  id: 'compare',
  title: 'Times the baseline',
  how: [
    "How many times the baseline's rate a run has: x2 is twice as fast, x0.5 half. The axis is such that twice and half are as far from 1. Whiskers are 95 % intervals.",
    'Green triangles up and red triangles down are differences that are sure; grey is the same within the margin, or cannot be told. In a grid, orange is slower, blue faster, and a frame is a difference that is sure.',
    'Each suite has a baseline of its own. Against one other than its first run, ratios are bounded by both intervals and not tested.',
  ],
  controls: ['base'],
  accepts: (page) => page.runs.length > 1 && page.against.some(({ cells }) => cells.length > 0),
  draw,
};
