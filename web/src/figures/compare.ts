// Runs against a baseline: how many times its rate, cell by cell and over all.

import * as format from '../format';
import * as model from '../model';
import { categories, tooltip, whiskers, xAxis, FONT, type Datum, type Render } from '../chart';
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

/** With statistics where the program held the runs against each other, else by the intervals alone. */
function held(
  { page, state }: Context,
  at: number,
): { overall: Held | null; cells: Held[]; known: boolean } {
  const [base, run] = [page.runs[state.base], page.runs[at]];
  const told = state.base === 0 ? page.against.find((one) => one.run === run?.id) : undefined;
  const cells = run ? model.grid(run) : [];
  if (told && run) {
    const found = told.cells.flatMap((one): Held[] => {
      const cell = cells.find(({ key }) => key === one.cell);
      const { ratio, low, high, verdict } = one.held;
      return cell && ratio !== null ? [{ name: one.name, ratio, low, high, verdict, cell }] : [];
    });
    const { ratio, low, high, verdict } = told.overall;
    const first = cells[0];
    const overall =
      ratio !== null && first
        ? { name: 'all cells', ratio, low, high, verdict, cell: first }
        : null;
    return { overall, cells: found, known: true };
  }
  const found = cells.flatMap((cell): Held[] => {
    const other = base && model.grid(base).find((one) => one.name === cell.name);
    if (!other || !cell.iops || !other.iops) return [];
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
    ['verdict', one.verdict || 'not tested: choose the first run as baseline'],
  ];
}

/** Dots with whiskers on a line of ratios, a row for each. */
function dots(
  context: Context,
  all: Held[],
  at: number,
  known: boolean,
  height: number,
  title: string,
): Panel {
  const { colors } = context;
  const ends = all
    .flatMap(({ ratio, low, high }) => [ratio, low ?? ratio, high ?? ratio])
    .filter((one) => one > 0);
  const min = Math.max(Math.min(0.9, ...ends) / 1.15, 1e-6);
  const max = Math.min(Math.max(1.1, ...ends) * 1.15, 1e6);
  const far = max / min > 3;
  const ticks = (far ? FAR : CLOSE).filter((tick) => tick >= min && tick <= max);
  const colour = (one: Held) =>
    one.verdict === 'slower' ? colors.alarm : one.verdict === 'faster' ? colors.good : colors.soft;
  return {
    title,
    summary: `${title}: ratio to the baseline, ${all.length} rows`,
    height,
    wide: context.page.runs.length === 2,
    option: {
      tooltip: tooltip(colors, teller(context)),
      grid: { left: 8, right: 24, top: 8, bottom: 8, containLabel: true },
      xAxis: {
        ...xAxis(colors, { name: "times the baseline's rate", log: true, min, max }),
        splitLine: { show: true, lineStyle: { color: colors.grid } },
        axisLabel: {
          color: colors.soft,
          customValues: ticks,
          formatter: (v: number) => format.times(v),
        },
        axisTick: { customValues: ticks },
      },
      yAxis: {
        ...categories(colors, '', all.map(({ name }) => name).reverse(), true),
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
              text: width > 30 ? format.times(one.ratio) : '',
              x,
              y,
              fill: inkOn(fill),
              font: `${sure ? 700 : 400} 11px ${FONT}`,
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
  const { page, state } = context;
  const table: Drawing['table'] = {
    head: ['run', 'baseline', 'cell', 'ratio', 'low', 'high', 'verdict'],
    rows: [],
  };
  const base = page.runs[state.base];
  const found = page.runs.flatMap((run, at) =>
    at === state.base ? [] : [{ run, at, ...held(context, at) }],
  );
  const panels: Panel[] = [];
  const over = found.flatMap(({ run, overall }) =>
    overall ? [{ ...overall, name: model.runName(page, run) }] : [],
  );
  if (over.length > 0) {
    const title = `All cells together, against ${base ? model.runName(page, base) : 'the baseline'}`;
    panels.push({
      ...dots(
        context,
        over.map((one) => ({ ...one })),
        -1,
        found.every(({ known }) => known),
        80 + over.length * 34,
        title,
      ),
      wide: true,
    });
  }
  for (const { run, at, cells, known } of found) {
    for (const one of cells)
      table.rows.push([run.id, base?.id, one.name, one.ratio, one.low, one.high, one.verdict]);
    const grid =
      cells.length > FEW && cells.filter(({ cell }) => cell.block_bytes !== null).length > FEW;
    if (grid) panels.push(...fields(context, cells, at, known, model.runName(page, run)));
    else if (cells.length > 0)
      panels.push(
        dots(context, cells, at, known, 80 + cells.length * 30, model.runName(page, run)),
      );
  }
  return { panels, legend: [], table };
}

export const compare: Figure = {
  id: 'compare',
  title: 'Times the baseline',
  how: [
    "How many times the baseline's rate a run has: ×2 is twice as fast, ×0.5 half. The axis is such that twice and half are as far from 1. Whiskers are 95 % intervals.",
    'Green triangles up and red triangles down are differences that are sure; grey is the same within the margin, or cannot be told. In a grid, orange is slower, blue faster, and a frame is a difference that is sure.',
    'Against a baseline other than the first run, ratios are bounded by both intervals and not tested.',
  ],
  controls: ['base'],
  accepts: (page) => page.runs.length > 1 && page.against.some(({ cells }) => cells.length > 0),
  draw,
};
