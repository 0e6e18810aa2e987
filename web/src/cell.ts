// A cell in full: its numbers, visits, course and histogram.

import type { EChartsType } from 'echarts/core';
import { base, categories, open, tooltip, xAxis, yAxis, type Datum, type Option } from './chart';
import { h, line, plain } from './dom';
import { hasCourse, option as course } from './figures/course';
import { teller, type Context } from './figures/figure';
import * as format from './format';
import * as model from './model';
import { ofLoad } from './palette';
import * as state from './state';

let charts: EChartsType[] = [];
let before: Element | null = null;

/** All requests by all the time, where that is another figure than the mean over visits. */
function overall(cell: model.PageCell, unit: format.Unit): string {
  const [all, mean] = [cell.bytes_per_s, model.bytesPerSecond(cell)];
  if (all === null || mean === null || Math.abs(all / mean - 1) < 0.01) return '';
  const iops = cell.block_bytes === null ? '' : `${format.count(all / cell.block_bytes)} IOPS, `;
  return `${iops}${format.bandwidth(all, unit)}: visits that took longer count more`;
}

function numbers(cell: model.PageCell): HTMLElement {
  const { unit } = state.get();
  const rows: [string, string][] = [
    [
      'IOPS',
      cell.iops === null
        ? 'no figure'
        : [format.count(cell.iops), format.reach(cell.iops, cell.iops_low, cell.iops_high)].join(
            ' ',
          ),
    ],
    ['exactly', cell.iops === null ? '' : `${cell.iops}`],
    [
      '95 % interval',
      cell.iops_low === null
        ? 'none'
        : `${format.count(cell.iops_low)} to ${format.count(cell.iops_high)}${cell.basis === 'one-visit' ? ', within one visit' : ''}`,
    ],
    ['bandwidth', format.bandwidth(model.bytesPerSecond(cell), unit)],
    ['over all its time', overall(cell, unit)],
    [model.isFlushed(cell) ? line(cell.op) : 'latency', model.waits(cell.latency_ns) || 'not told'],
    ...cell.flushes.map((flush): [string, string] => [
      line(flush.op),
      [model.waits(flush.latency_ns), flush.requests === null ? '' : `${flush.requests} completed`]
        .filter(Boolean)
        .join(', '),
    ]),
    [
      'together',
      !model.isFlushed(cell) || model.waited(cell) === null
        ? ''
        : `mean ${format.time(model.waited(cell))}: a ${line(cell.op)} and its share of the flushes`,
    ],
    ['region', cell.region_bytes === null ? '' : format.bytes(cell.region_bytes)],
    [
      'requests',
      `${cell.requests ?? 'not counted'}${cell.errors > 0 ? `, ${cell.errors} failed` : ''}`,
    ],
  ];
  const { user, system } = cell.cpu_ns_per_io;
  if (user !== null && system !== null)
    rows.push(['CPU a request', `${format.time(user)} user, ${format.time(system)} system`]);
  return h(
    'dl',
    { class: 'numbers' },
    ...rows
      .filter(([, text]) => text !== '')
      .flatMap(([name, text]) => [h('dt', {}, name), h('dd', {}, text)]),
  );
}

function marks(cell: model.PageCell): HTMLElement | null {
  if (cell.marks.length === 0) return null;
  const one = ({ code, meaning, evidence }: model.PageCell['marks'][number]) =>
    h(
      'li',
      {},
      h('strong', {}, line(code)),
      meaning ? ` – ${line(meaning)}` : '',
      ...evidence.map((text) => h('div', { class: 'soft' }, line(text))),
    );
  return h(
    'section',
    {},
    h('h3', {}, 'Marks'),
    h('ul', { class: 'marks' }, ...cell.marks.map(one)),
  );
}

function visits(cell: model.PageCell): HTMLElement {
  const { unit } = state.get();
  const head = [
    'visit',
    'in the run',
    'IOPS',
    'bandwidth',
    '50 %',
    '99 %',
    'longest',
    'measured',
    '',
  ];
  const row = (visit: model.PageCell['visits'][number]) => {
    const notes = [
      visit.counted ? '' : `not counted: ${visit.end}`,
      ...visit.gaps.map((gap) => `still for ${format.time(gap.length_ns)}`),
      ...visit.host_stalls.map((stall) => `host still for ${format.time(stall.length_ns)}`),
      ...visit.warnings.map(({ text }) => line(text)),
    ].filter(Boolean);
    const fields = [
      visit.repeat + 1,
      visit.order + 1,
      format.count(visit.iops),
      format.bandwidth(visit.bytes_per_s, unit),
      format.time(visit.p50_ns),
      format.time(visit.p99_ns),
      format.time(visit.max_ns),
      format.time(visit.elapsed_ns),
      notes.join('; '),
    ];
    return h('tr', {}, ...fields.map((text) => h('td', {}, String(text))));
  };
  return h(
    'div',
    { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Visits' },
    h(
      'table',
      {},
      h('thead', {}, h('tr', {}, ...head.map((text) => h('th', { scope: 'col' }, text)))),
      h('tbody', {}, ...cell.visits.map(row)),
    ),
  );
}

function histogram(context: Context, cell: model.PageCell) {
  const { colors } = context;
  const all = cell.histogram.reduce((sum, [, , count]) => sum + count, 0);
  return {
    ...base(colors),
    tooltip: tooltip(colors, teller(context)),
    xAxis: categories(
      colors,
      'latency',
      cell.histogram.map(([from, to]) => format.time((from + to) / 2)),
    ),
    yAxis: yAxis(colors, { name: 'requests', log: true, min: 0.5 }),
    grid: { left: 8, right: 18, top: 34, bottom: 30, containLabel: true },
    series: [
      {
        type: 'bar',
        barCategoryGap: '4%',
        itemStyle: { color: ofLoad(cell.op, 1, 2, colors.dark).color },
        data: cell.histogram.map(([from, to, count]): Datum => ({
          value: count,
          tip: {
            title: from === to ? format.time(from) : `${format.time(from)} to ${format.time(to)}`,
            rows: [
              ['requests', String(count)],
              ['share', `${format.three((count / all) * 100)} %`],
            ],
          },
        })),
      },
    ],
  };
}

function dots(context: Context, place: model.Place) {
  const { colors } = context;
  const own = place.cell.visits.filter((visit) => visit.iops !== null);
  const { iops, iops_low: low, iops_high: high } = place.cell;
  return {
    ...base(colors),
    tooltip: tooltip(colors, teller(context)),
    xAxis: {
      ...xAxis(colors, {
        name: 'visit',
        min: 0,
        max: own.length + 1,
        tell: (v) => (Number.isInteger(v) && v > 0 && v <= own.length ? String(v) : ''),
      }),
    },
    yAxis: { ...yAxis(colors, { name: 'IOPS' }), scale: true },
    grid: { left: 8, right: 18, top: 34, bottom: 30, containLabel: true },
    series: [
      {
        type: 'scatter',
        symbolSize: 10,
        itemStyle: { color: ofLoad(place.cell.op, 1, 2, colors.dark).color },
        data: own.map((visit, k): Datum => ({
          value: [k + 1, visit.iops],
          tip: {
            title: `visit ${visit.repeat + 1}`,
            rows: [['rate', `${format.count(visit.iops)} IOPS`]],
          },
          ...(visit.counted
            ? {}
            : { itemStyle: { color: 'transparent', borderColor: colors.soft } }),
        })),
        markLine: {
          silent: true,
          symbol: 'none',
          lineStyle: { color: colors.ink, type: 'solid' },
          label: { show: false },
          data: iops === null ? [] : [{ yAxis: iops }],
        },
        markArea: {
          silent: true,
          itemStyle: { color: colors.soft, opacity: 0.15 },
          data: low === null || high === null ? [] : [[{ yAxis: low }, { yAxis: high }]],
        },
      },
    ],
  };
}

export function close(): void {
  state.set({ cell: '' });
}

/** Shows the cell that the state names in the dialog, or closes it. */
export function show(dialog: HTMLDialogElement, context: Context): void {
  for (const chart of charts) chart.dispose();
  charts = [];
  const place = model.find(context.page, context.state.cell);
  const run = place && context.page.runs[place.run];
  if (!place || !run) {
    if (dialog.open) dialog.close();
    if (before instanceof HTMLElement && document.contains(before)) before.focus();
    before = null;
    return;
  }
  const { cell } = place;
  const canvas = (title: string, height: number, option: Option) => {
    const element = h('div', {
      class: 'canvas',
      role: 'img',
      'aria-label': `${title} of ${line(cell.name)}`,
    });
    element.style.height = `${height}px`;
    later.push(() => {
      const chart = open(element, height);
      chart.setOption(option);
      charts.push(chart);
    });
    return h('section', {}, h('h3', {}, title), element);
  };
  const later: (() => void)[] = [];
  const time = {
    ...base(context.colors),
    ...course(run, cell, context.colors, teller(context)),
    grid: { left: 8, right: 18, top: 34, bottom: 30, containLabel: true },
  };
  dialog.replaceChildren(
    h(
      'div',
      { class: 'dialog-head' },
      h('h2', { id: 'title-cell' }, line(cell.name)),
      h('button', { type: 'button', class: 'close', 'aria-label': 'Close', click: close }, '×'),
    ),
    h(
      'p',
      { class: 'soft' },
      plain(
        `${model.runName(context.page, run)}. ${cell.coordinates.map(({ field, value }) => `${field} ${value}`).join(', ')}`,
      ),
    ),
    numbers(cell),
    ...[marks(cell)].filter((one) => one !== null),
    ...(hasCourse(cell) ? [canvas('Over time', 240, time)] : []),
    ...(cell.visits.length > 1
      ? [canvas('Visits, with mean and interval', 200, dots(context, place))]
      : []),
    ...(cell.histogram.length > 1 ? [canvas('Latencies', 220, histogram(context, cell))] : []),
    h('section', {}, h('h3', {}, 'Every visit'), visits(cell)),
  );
  if (!dialog.open) {
    before = document.activeElement;
    dialog.showModal();
  }
  for (const make of later) make();
  dialog.scrollTop = 0;
}

/** Shows the open cell's newer data where the reader is in it. */
export function refresh(dialog: HTMLDialogElement, context: Context): void {
  const [at, focused] = [dialog.scrollTop, dialog.contains(document.activeElement)];
  show(dialog, context);
  dialog.scrollTop = at;
  if (focused) dialog.querySelector<HTMLElement>('.close')?.focus({ preventScroll: true });
}
