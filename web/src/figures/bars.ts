// Grouped bars: the same cells of every run, or the cells of one.

import * as format from '../format';
import * as model from '../model';
import {
  FONT,
  beside,
  breadth,
  categories,
  spot,
  tooltip,
  xAxis,
  yAxis,
  type Datum,
  type Render,
} from '../chart';
import { ofLoad, ofOne } from '../palette';
import { isLog, some, teller, type Context, type Drawing, type Figure, type Panel } from './figure';

/** More cells than this are too many for one figure: then one block size is shown. */
const FEW = 12;
const MOST = 24;
/** Letters of a name that fit under upright bars, all names together. */
const LETTERS = 130;
/** Width of a page that has room for those, and the least that a name has. */
const WIDE = 1000;
const NAME_MIN = 60;
const BAR_MAX = 42;
const BETWEEN = 0.2;
const APART = 0.25;

const told = ({ state }: Context, run: model.PageRun) =>
  model.grid(run).filter((cell) => model.value(cell, state.metric, state.unit));

/** Whether there are more cells than are drawn of all block sizes. */
const isLarge = (context: Context) =>
  context.page.runs.some((run) => told(context, run).length > FEW);

function chosen(context: Context): model.PageCell[][] {
  const { page, state } = context;
  return page.runs.map((run) => {
    const cells = told(context, run);
    if (cells.length <= FEW) return cells;
    const size = model.focus(state, cells);
    const own = cells.filter((cell) => cell.block_bytes === size || cell.block_bytes === null);
    return own;
  });
}

/** How bars of one colour are placed, as the library does it. */
interface Layout {
  at: number;
  of: number;
  across: boolean;
  numbered: boolean;
  /** Where the axis begins. */
  min: number;
}

/** Letters of a number on a bar, and the room around it. */
const LETTERS_OF_NUMBER = 11;
const SPARE = 5;

/** A number on a bar: at its foot if it fits there whole, else beyond its end, else nowhere. */
function numberOn(
  text: string,
  box: { x: number; y: number; width: number; height: number },
  bar: { foot: number; clear: number; end: number; middle: number; width: number },
  { across, colors }: { across: boolean; colors: Context['colors'] },
) {
  const long = breadth(text) * LETTERS_OF_NUMBER;
  const length = across ? long : LETTERS_OF_NUMBER;
  const thick = across ? LETTERS_OF_NUMBER : long;
  if (thick > bar.width * (1 + BETWEEN)) return [];
  const within = Math.abs(bar.clear - bar.foot) >= length + 2 * SPARE && thick <= bar.width;
  // Beyond the plot there is a little room for it.
  const room = across ? box.x + box.width + SPARE - bar.end : bar.end - box.y + SPARE;
  if (!within && room < length + SPARE) return [];
  const from = (within ? bar.foot : bar.end) + (across ? SPARE : -SPARE);
  const style = {
    text,
    x: across ? from : bar.middle,
    y: across ? bar.middle : from,
    fill: within ? (colors.dark ? '#10151b' : '#ffffff') : colors.ink,
    font: `${LETTERS_OF_NUMBER}px ${FONT}`,
    textAlign: across ? 'left' : 'center',
    textVerticalAlign: across ? 'middle' : 'bottom',
  };
  return [{ type: 'text', style, silent: true }];
}

/** Ends of intervals and numbers on bars: where the library puts those is worked out again. */
function onBars(
  name: string,
  found: (model.Value | null)[],
  { at, of, across, numbered, min }: Layout,
  colors: Context['colors'],
) {
  const points = found.flatMap((one, k) => (one ? [{ k, one }] : []));
  const render: Render = (params, api) => {
    const point = points[params.dataIndex];
    if (!point) return null;
    const { k, one } = point;
    const full = across ? api.size([0, 1])[1] : api.size([1, 0])[0];
    const width = Math.min((full * (1 - APART)) / (of + (of - 1) * BETWEEN), BAR_MAX);
    const start = -(of * width + (of - 1) * width * BETWEEN) / 2;
    const off = start + at * width * (1 + BETWEEN) + width / 2;
    const end = (value: number): [number, number] => {
      const [x, y] = spot(params, api, [k, Math.max(value, min)], across);
      return across ? [x, y + off] : [x + off, y];
    };
    const [low, high] = [end(one.low ?? one.value), end(one.high ?? one.value)];
    const cap = ([x, y]: [number, number]): [number, number, number, number] =>
      across ? [x, y - 4, x, y + 4] : [x - 4, y, x + 4, y];
    const isPlain = one.low === null || one.high === null;
    // On a halo: ends within a dark bar are seen, too.
    const lines = [
      { stroke: colors.panel, lineWidth: 3.4 },
      { stroke: colors.ink, lineWidth: 1.4 },
    ].flatMap((style) =>
      [[...low, ...high], cap(low), cap(high)].map(([x1, y1, x2, y2]) => ({
        type: 'line',
        shape: { x1, y1, x2, y2 },
        style,
        silent: true,
      })),
    );
    const along = (place: [number, number]) => place[across ? 0 : 1];
    const tip = end(one.value);
    const box = params.coordSys;
    const foot = across ? box.x : box.y + box.height;
    const [nearest, furthest] = across ? [Math.min, Math.max] : [Math.max, Math.min];
    const bar = {
      foot,
      clear: nearest(along(low), along(tip)),
      end: furthest(along(high), along(tip)),
      middle: tip[across ? 1 : 0],
      width,
    };
    const text = numbered ? numberOn(format.short(one.value), box, bar, { across, colors }) : [];
    return { type: 'group', silent: true, children: [...(isPlain ? [] : lines), ...text] };
  };
  return {
    type: 'custom',
    name,
    renderItem: render,
    silent: true,
    z: 5,
    tooltip: { show: false },
    encode: across ? { x: [1, 2], y: 0 } : { x: 0, y: [1, 2] },
    // A logarithmic axis has no place for nothing: it would not be drawn at all.
    data: points.map(({ k, one }) => [
      k,
      Math.max(one.low ?? one.value, min),
      Math.max(one.high ?? one.value, min),
    ]),
  };
}

export interface Bar extends model.Value {
  place: model.Place;
  color?: string;
}

/** Bars of one colour: one at each name, or none. */
export interface Group {
  name: string;
  color: string;
  bars: (Bar | null)[];
}

/** The shortest bar or interval is drawn whole, unless its end is less than so much of all bars. */
const LEAST = 1 / 100;

/**
 * Least and most that a logarithmic scale has to reach. It has no place for nothing: a bar or an
 * interval that ends there ends with the axis.
 */
function reach(groups: Group[]): { least: number; most: number } | null {
  const all = groups.flatMap(({ bars }) => bars.flatMap((one) => one ?? []));
  const values = all.map(({ value }) => value).filter((value) => value > 0);
  if (values.length === 0) return null;
  const floor = Math.min(...values) * LEAST;
  const lows = all.flatMap(({ low }) => (low !== null && low >= floor && low > 0 ? [low] : []));
  return { least: Math.min(...values, ...lows), most: Math.max(...values) };
}

/** Whether bars lie so far apart that the short ones cannot be seen on a linear scale. */
export function areFar(groups: Group[]): boolean {
  const found = reach(groups);
  return found !== null && found.most / found.least > 30;
}

/** Groups of bars with intervals, as a drawing; `null` where there is none to draw. */
export function grouped(
  context: Context,
  what: {
    title: string;
    summary: string;
    axis: string;
    names: string[];
    wide: boolean;
    log: boolean;
  },
  groups: Group[],
): Panel | null {
  const { colors } = context;
  const { title, summary, axis, names, wide } = what;
  if (groups.every(({ bars }) => bars.every((one) => !one))) return null;
  const found = reach(groups);
  const log = what.log && found !== null;
  const min = log ? 10 ** Math.floor(Math.log10(found.least) - 0.2) : 0;
  const room = Math.min(wide ? WIDE : 420, innerWidth - 80);
  const across = names.join('').length > (LETTERS * room) / WIDE || room / names.length < NAME_MIN;
  const numbered = across ? groups.length < 3 : names.length * groups.length <= 16;
  const bar = (one: Bar | null): Datum | null =>
    one && {
      value: Math.max(one.value, min),
      place: model.address(one.place),
      ...(one.color ? { itemStyle: { color: one.color } } : {}),
    };
  const series = groups.flatMap(({ name, color, bars }, at) => [
    {
      type: 'bar',
      name,
      barMaxWidth: BAR_MAX,
      barGap: `${BETWEEN * 100}%`,
      barCategoryGap: `${APART * 100}%`,
      itemStyle: { color, borderRadius: 2 },
      emphasis: { focus: 'series' },
      data: bars.map(bar),
    },
    onBars(name, bars, { at, of: groups.length, across, numbered, min }, colors),
  ]);
  // Else bars of a logarithmic axis begin at 1.
  const from = log ? { startValue: min } : {};
  const under = Math.max(NAME_MIN, Math.floor(room / Math.max(names.length, 1)));
  const { label, row: lines } = beside(colors, names, room);
  const row = Math.max(10 + 16 * groups.length, lines);
  return {
    title,
    summary,
    height: across ? 90 + names.length * row : 360,
    wide,
    option: {
      tooltip: tooltip(colors, teller(context)),
      ...(across
        ? {
            grid: { top: 8 },
            xAxis: { ...xAxis(colors, { name: axis, log, min }), ...from },
            yAxis: { ...categories(colors, '', names, true), inverse: true, axisLabel: label },
          }
        : {
            xAxis: {
              ...categories(colors, '', names, true),
              axisLabel: { ...label, width: under },
            },
            yAxis: { ...yAxis(colors, { name: axis, log, min }), ...from },
          }),
      series,
    },
  };
}

function draw(context: Context): Drawing {
  const { page, state, colors } = context;
  const several = page.runs.length > 1;
  const cells = chosen(context);
  const sizes = model.blocks(cells.flat());
  const sized = sizes.length > 1;
  const regions = model.unique(cells.flat().flatMap((cell) => cell.region_bytes ?? []));
  // Bars of one name stand together: it is said where one of them is a cache's.
  const hit = new Set(
    cells
      .flat()
      .filter(model.isCached)
      .map(({ name }) => name),
  );
  const isCached = ({ name }: model.PageCell) => hit.has(name);
  const label = (cell: model.PageCell) => {
    const region = regions.length > 1 && cell.region_bytes !== null;
    const over = region ? `over ${format.size(cell.region_bytes)}` : '';
    const cache = isCached(cell) ? 'cache' : '';
    return [model.label(cell, sized), over, cache].filter(Boolean).join(', ');
  };
  const known = model.unique(cells.flatMap((own) => own.map(label)));
  const part = some(context, 'bars', known, { what: 'cells', each: MOST });
  const names = part.drawn;
  const what = model.metricName(state.metric, state.unit);
  const table: Drawing['table'] = { head: ['run', 'cell', what, 'low', 'high'], rows: [] };
  const groups = page.runs.flatMap((run, at): Group[] => {
    const name = model.runName(page, run);
    if (several && state.off.includes(name)) return [];
    const found = new Map<string, Bar>();
    for (const cell of cells[at] ?? []) {
      const value = model.value(cell, state.metric, state.unit);
      if (!value || found.has(label(cell))) continue;
      const own = several ? {} : { color: ofLoad(cell.op, 1, 2, colors.dark).color };
      const color = model.isCached(cell) ? { color: colors.cache } : own;
      found.set(label(cell), { ...value, ...color, place: { run: at, cell } });
      table.rows.push([run.id, label(cell), value.value, value.low, value.high]);
    }
    const bars = names.map((one) => found.get(one) ?? null);
    return [{ name, color: ofOne(at, colors.dark).color, bars }];
  });
  const isMany = isLarge(context);
  const one = isMany && !sized;
  const at = one && sizes[0] ? ` at ${format.blockSize(sizes[0])}` : '';
  const better = model.isCost(state.metric) ? 'lower is better' : 'more is better';
  const log = isLog(state, areFar(groups));
  const panel = grouped(
    context,
    {
      title: `${what}${at}, ${better}`,
      summary: `${what} of ${names.length} cells in ${page.runs.length} runs`,
      axis: model.axisName(state.metric, state.unit),
      names,
      wide: true,
      log,
    },
    groups,
  );
  const legend = page.runs.map((run, at) => ({
    name: model.runName(page, run),
    look: { ...ofOne(at, colors.dark), symbol: 'rect', dash: 'none' },
  }));
  return {
    panels: panel ? [panel] : [],
    legend: several ? legend : [],
    table,
    log,
    left: part.left,
    parts: part.parts,
    sizes: isMany ? model.blocks(page.runs.flatMap(model.grid)) : [],
  };
}

export const bars: Figure = {
  id: 'bars',
  title: 'Side by side',
  how: [
    'Bars of the cells that stand beside each other, with 95 % intervals. Of a large grid only one block size is shown: choose it above.',
    'Bars whose intervals do not touch differ for sure; whether those that touch do is said under “Times the baseline”.',
    'Where figures lie far apart the scale is logarithmic: then compare the ends of bars, not their lengths.',
  ],
  controls: ['metric', 'block', 'part', 'scale'],
  accepts: (page) =>
    page.runs.some((run) => model.grid(run).filter((cell) => cell.iops !== null).length >= 2),
  draw,
};
