// The one place that knows the chart library.

import { use, init, type EChartsCoreOption, type EChartsType } from 'echarts/core';
import { BarChart, CustomChart, LineChart, ScatterChart } from 'echarts/charts';
import {
  AxisPointerComponent,
  GridComponent,
  MarkAreaComponent,
  MarkLineComponent,
  TooltipComponent,
} from 'echarts/components';
import { SVGRenderer } from 'echarts/renderers';
import { download, h, line } from './dom';
import * as format from './format';
import type { Colors } from './palette';

use([
  AxisPointerComponent,
  BarChart,
  CustomChart,
  GridComponent,
  LineChart,
  MarkAreaComponent,
  MarkLineComponent,
  SVGRenderer,
  ScatterChart,
  TooltipComponent,
]);

export type Option = EChartsCoreOption;
export type Row = [string, string];

/** What hangs on a point that is drawn. */
export interface Told {
  title: string;
  rows: Row[];
}

/** A point with what it is of. */
export interface Datum {
  value: unknown;
  /** `run:key` of the cell that a click opens. */
  place?: string;
  /** What is said of it; where it is missing, what is known of the cell. */
  tip?: Told | (() => Told);
  [more: string]: unknown;
}

export const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

/** About how wide a short number is, in sizes of its letters. */
export const breadth = (text: string): number =>
  [...text].reduce((sum, one) => sum + (one === '.' ? 0.35 : 0.66), 0);

/** A tooltip made of elements: no text of a run is read as markup. */
export function card({ title, rows }: Told): HTMLElement {
  const body = rows.flatMap(([name, value]) => [
    h('span', { class: name.startsWith('▲') ? 'tip-mark' : 'tip-name' }, line(name)),
    h('span', { class: 'tip-value' }, line(value)),
  ]);
  return h(
    'div',
    { class: 'tip' },
    h('strong', {}, line(title)),
    h('div', { class: 'tip-rows' }, ...body),
  );
}

export function base(colors: Colors): Option {
  return {
    animation: false,
    backgroundColor: 'transparent',
    textStyle: { fontFamily: FONT, color: colors.ink, fontSize: 12 },
    grid: { left: 8, right: 18, top: 34, bottom: 8, containLabel: true },
  };
}

export function tooltip(colors: Colors, tell: (datum: Datum) => Told | null) {
  return {
    trigger: 'item',
    confine: true,
    transitionDuration: 0,
    backgroundColor: colors.panel,
    borderColor: colors.soft,
    borderWidth: 1,
    padding: 10,
    textStyle: { color: colors.ink, fontFamily: FONT, fontSize: 12 },
    formatter: (point: { data?: Datum }) => {
      const told = point.data ? tell(point.data) : null;
      return told ? card(told) : '';
    },
  };
}

const axisLook = (colors: Colors, name: string) => ({
  name: line(name),
  nameTextStyle: { color: colors.soft, fontSize: 12 },
  axisLabel: { color: colors.soft, hideOverlap: true },
  axisLine: { show: true, lineStyle: { color: colors.soft } },
  axisTick: { show: true, lineStyle: { color: colors.soft } },
  splitLine: { show: true, lineStyle: { color: colors.grid, width: 1 } },
  minorSplitLine: { show: false },
});

interface Scale {
  name: string;
  log?: boolean;
  min?: number | undefined;
  max?: number | undefined;
  tell?: (value: number) => string;
}

/** A vertical axis: its name stands above it, level, so it can be read. */
export function yAxis(colors: Colors, { name, log, min, max, tell = format.short }: Scale) {
  const look = axisLook(colors, name);
  return {
    ...look,
    type: log ? 'log' : 'value',
    nameLocation: 'end',
    nameGap: 12,
    nameTextStyle: { ...look.nameTextStyle, align: 'left', padding: [0, 0, 0, -30] },
    axisLabel: { ...look.axisLabel, formatter: tell },
    ...(min === undefined ? {} : { min }),
    ...(max === undefined ? {} : { max }),
  };
}

export function xAxis(colors: Colors, { name, log, min, max, tell = format.short }: Scale) {
  const look = axisLook(colors, name);
  return {
    ...look,
    type: log ? 'log' : 'value',
    nameLocation: 'middle',
    nameGap: 26,
    splitLine: { show: false },
    axisLabel: { ...look.axisLabel, formatter: tell },
    ...(min === undefined ? {} : { min }),
    ...(max === undefined ? {} : { max }),
  };
}

/** An axis of names, or of block sizes that follow each other by doubling. */
export function categories(colors: Colors, name: string, names: string[], every = false) {
  const look = axisLook(colors, name);
  return {
    ...look,
    type: 'category',
    data: names.map(line),
    nameLocation: 'middle',
    nameGap: 26,
    splitLine: { show: false },
    axisLabel: { ...look.axisLabel, hideOverlap: !every, ...(every ? { interval: 0 } : {}) },
  };
}

/** Pixels of a letter of a name, and of a line of them. */
const LETTER = 6.5;
const LINE = 14;

/**
 * Names that stand beside a drawing, in lines, with the height that a row has to have for them. A name
 * takes a third of the width at most, on a phone more.
 *
 * * `room`: width of names and drawing together.
 */
export function beside(colors: Colors, names: string[], room: number) {
  const most = Math.max(140, Math.floor(room / 3));
  const lengths = names.map((one) => one.length * LETTER * 1.3);
  const width = Math.min(most, Math.ceil(Math.max(LETTER, ...lengths)));
  // Lines end early, at spaces: there are more of them than letters alone would take.
  const lines = lengths.map((length) => Math.ceil(length / width));
  const label = { color: colors.soft, interval: 0, lineHeight: LINE, width, overflow: 'break' };
  return { label, row: 4 + LINE * Math.max(1, ...lines) };
}

/** Powers of ten around values; on a linear axis from nothing. */
export function ends(
  values: number[],
  log: boolean,
): { min: number | undefined; max: number | undefined } {
  const real = values.filter((value) => Number.isFinite(value) && value > 0);
  if (real.length === 0) return { min: undefined, max: undefined };
  const [low, high] = [Math.min(...real), Math.max(...real)];
  if (!log) return { min: 0, max: undefined };
  return {
    min: 10 ** Math.floor(Math.log10(low) + 1e-9),
    max: 10 ** Math.ceil(Math.log10(high) - 1e-9),
  };
}

interface Api {
  value(dimension: number): number;
  coord(point: (number | string)[]): [number, number];
  size(range: number[]): [number, number];
  style(): Record<string, unknown>;
}
interface CustomParams {
  dataIndex: number;
  coordSys: { x: number; y: number; width: number; height: number };
}
export type Render = (params: CustomParams, api: Api) => unknown;

/**
 * Where a value stands at a place of the other axis. An interval may reach down to nothing, for which
 * a logarithmic axis has no place: then it reaches to the end of the axis.
 */
export function spot(
  { coordSys: box }: CustomParams,
  api: Api,
  [at, value]: [number | string, number],
  across = false,
): [number, number] {
  const [x, y] = api.coord(across ? [value, at] : [at, value]);
  if (across) return [Number.isFinite(x) ? x : box.x, y];
  return [x, Number.isFinite(y) ? y : box.y + box.height];
}

/** A band between the ends of intervals: values are (x, low, high), a gap where one is missing. */
export function band(
  name: string,
  color: string,
  points: [number | string, number | null, number | null][],
  opacity = 0.18,
) {
  const runs: [number | string, number, number][][] = [[]];
  for (const [x, low, high] of points) {
    if (low === null || high === null) runs.push([]);
    else runs[runs.length - 1]?.push([x, low, high]);
  }
  const drawn = runs.filter((run) => run.length > 0);
  const render: Render = (params, api) => {
    const run = drawn[params.dataIndex] ?? [];
    const up = run.map(([x, , high]) => spot(params, api, [x, high]));
    const down = run.map(([x, low]) => spot(params, api, [x, low])).reverse();
    if (run.length === 1) {
      const [[x, y0] = [0, 0], [, y1] = [0, 0]] = [up[0], down[0]];
      return {
        type: 'line',
        shape: { x1: x, y1: y0, x2: x, y2: y1 },
        style: { stroke: color, lineWidth: 5, opacity: 0.3 },
        silent: true,
      };
    }
    return {
      type: 'polygon',
      shape: { points: [...up, ...down] },
      style: { fill: color, opacity },
      silent: true,
    };
  };
  return {
    type: 'custom',
    name,
    renderItem: render,
    clip: true,
    silent: true,
    z: 1,
    tooltip: { show: false },
    data: drawn.map((run) => [run[0]?.[0] ?? 0, run[0]?.[1] ?? 0]),
    encode: { x: 0, y: 1 },
  };
}

/** Whiskers at single points: values are (x, low, high). */
export function whiskers(
  name: string,
  color: string,
  points: [number | string, number, number][],
  across = false,
) {
  const render: Render = (params, api) => {
    const [x, low, high] = points[params.dataIndex] ?? [0, 0, 0];
    const [a, b] = [low, high].map((value) => spot(params, api, [x, value], across)) as [
      [number, number],
      [number, number],
    ];
    const cap = (p: [number, number]) =>
      across
        ? { x1: p[0], y1: p[1] - 4, x2: p[0], y2: p[1] + 4 }
        : { x1: p[0] - 4, y1: p[1], x2: p[0] + 4, y2: p[1] };
    const style = { stroke: color, lineWidth: 1.5 };
    const stroke = (shape: object) => ({ type: 'line', shape, style, silent: true });
    return {
      type: 'group',
      silent: true,
      children: [
        stroke({ x1: a[0], y1: a[1], x2: b[0], y2: b[1] }),
        stroke(cap(a)),
        stroke(cap(b)),
      ],
    };
  };
  return {
    type: 'custom',
    name,
    renderItem: render,
    silent: true,
    clip: true,
    z: 4,
    tooltip: { show: false },
    encode: across ? { x: 1, y: 0 } : { x: 0, y: 1 },
    data: points.map(([x, low]) => [x, low]),
  };
}

const charts = new WeakMap<Element, EChartsType>();

/** Drawings are as wide as their places, whatever makes these wider: windows, scroll bars, grids. */
const widths = new ResizeObserver((places) => {
  // What is made for paper is as wide as that.
  if (document.documentElement.classList.contains('paper')) return;
  for (const { target } of places) {
    const chart = charts.get(target);
    const width = target.clientWidth;
    if (!chart || chart.isDisposed()) widths.unobserve(target);
    else if (width > 0 && width !== chart.getWidth()) chart.resize({ width });
  }
});

export function open(element: HTMLElement, height: number): EChartsType {
  const width = element.clientWidth || 640;
  const chart = init(element, null, { renderer: 'svg', width, height });
  charts.set(element, chart);
  widths.observe(element);
  return chart;
}

/** The drawing as a file of its own, with a background so that it can be put anywhere. */
export function asSvg(chart: EChartsType, colors: Colors): string {
  const drawn = chart.getDom().querySelector('svg');
  const copy = drawn?.cloneNode(true) as SVGElement | null;
  if (!copy) return '';
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  copy.setAttribute('viewBox', `0 0 ${chart.getWidth()} ${chart.getHeight()}`);
  const ground = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
  ground.setAttribute('width', '100%');
  ground.setAttribute('height', '100%');
  ground.setAttribute('fill', colors.panel);
  copy.prepend(ground);
  return new XMLSerializer().serializeToString(copy);
}

/** The drawing as pixels, three to a point. */
export function savePng(name: string, chart: EChartsType, colors: Colors): void {
  const image = new Image();
  const url = URL.createObjectURL(new Blob([asSvg(chart, colors)], { type: 'image/svg+xml' }));
  image.addEventListener('load', () => {
    const canvas = h('canvas', { width: chart.getWidth() * 3, height: chart.getHeight() * 3 });
    canvas.getContext('2d')?.drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(url);
    canvas.toBlob((blob) => blob && download(name, 'image/png', blob), 'image/png');
  });
  image.src = url;
}
