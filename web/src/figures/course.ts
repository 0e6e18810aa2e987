// A cell's rate over time: its visits one after the other, with what stood still and what changed.

import * as format from '../format';
import * as model from '../model';
import { tooltip, xAxis, yAxis, type Datum, type Option, type Told } from '../chart';
import { ofLoad, type Colors } from '../palette';
import { teller, type Context, type Drawing, type Figure } from './figure';

type Visit = model.PageCell['visits'][number];

const GAP = 0.04;

export function hasCourse(cell: model.PageCell): boolean {
  return cell.visits.some((visit) => (visit.series?.rate.length ?? 0) >= 3);
}

/** The cell that is worth looking at first: where something stood still, changed, or varies. */
export function worth(page: model.Page): model.Place | null {
  let best: { place: model.Place; score: number } | null = null;
  page.runs.forEach((run, at) => {
    for (const cell of model.grid(run).filter(hasCourse)) {
      const frozen = run.freezes.filter((f) => f.cell === Number(cell.key.split('.')[0]));
      const longest = Math.max(0, ...frozen.map((freeze) => freeze.length_ns));
      const steps = run.changes.filter((change) => change.cell === cell.key).length;
      const length = cell.visits.reduce((sum, visit) => sum + (visit.elapsed_ns ?? 0), 0);
      const score = longest * 1e3 + steps * 1e9 + length / 1e6;
      if (!best || score > best.score) best = { place: { run: at, cell }, score };
    }
  });
  return (best as { place: model.Place } | null)?.place ?? null;
}

/** Visits side by side in seconds of measured time, with a narrow space between them. */
export function laid(visits: Visit[]): { visit: Visit; start: number }[] {
  const total = visits.reduce((sum, visit) => sum + (visit.elapsed_ns ?? 0) / 1e9, 0);
  let at = 0;
  return visits.map((visit) => {
    const start = at;
    at += (visit.elapsed_ns ?? 0) / 1e9 + (total * GAP) / Math.max(visits.length, 1);
    return { visit, start };
  });
}

export function option(
  run: model.PageRun,
  cell: model.PageCell,
  colors: Colors,
  tell: (datum: Datum) => Told | null,
): Option {
  const look = ofLoad(cell.op, 1, 2, colors.dark);
  const placed = laid(cell.visits.filter((visit) => (visit.series?.rate.length ?? 0) > 0));
  const series: unknown[] = [];
  const areas: unknown[] = [];
  const lines: unknown[] = [];
  for (const { visit, start } of placed) {
    const own = visit.series;
    if (!own) continue;
    const step = own.step_ns / 1e9;
    const end = (visit.elapsed_ns ?? own.rate.length * own.step_ns) / 1e9;
    const at = (k: number) => start + Math.min((k + 0.5) * step, end);
    const said = (k: number): Told => ({
      title: `visit ${visit.repeat + 1}, at ${format.time(k * own.step_ns)}`,
      rows: [
        ['rate', `${format.count(own.rate[k])} IOPS`],
        ...(own.merged > 1
          ? ([
              [
                '',
                `${format.count(own.low[k])} to ${format.count(own.high[k])} in its ${own.merged} intervals`,
              ],
            ] as [string, string][])
          : []),
        ['99 % within', format.time(own.p99_ns[k])],
        ['longest', format.time(own.max_ns[k])],
      ],
    });
    if (own.merged > 1) {
      series.push(
        {
          type: 'line',
          stack: `v${visit.order}`,
          symbol: 'none',
          silent: true,
          lineStyle: { width: 0 },
          z: 1,
          data: own.low.map((low, k) => [at(k), low]),
          tooltip: { show: false },
        },
        {
          type: 'line',
          stack: `v${visit.order}`,
          symbol: 'none',
          silent: true,
          lineStyle: { width: 0 },
          z: 1,
          areaStyle: { color: look.color, opacity: 0.22 },
          tooltip: { show: false },
          data: own.high.map((high, k) => [at(k), high - (own.low[k] ?? 0)]),
        },
      );
    }
    series.push({
      type: 'line',
      data: own.rate.map((rate, k) => ({ value: [at(k), rate], tip: () => said(k) })),
      symbol: 'circle',
      symbolSize: 4,
      showSymbol: own.rate.length <= 60,
      color: look.color,
      lineStyle: { color: look.color, width: 1.5, type: visit.counted ? 'solid' : 'dotted' },
      z: 3,
    });
    areas.push([
      {
        xAxis: start,
        name:
          placed.length > 1 && placed.length <= 16
            ? `visit ${visit.repeat + 1}${visit.counted ? '' : `, ${visit.end}`}`
            : '',
        itemStyle: { color: colors.soft, opacity: 0.07 },
        label: { color: colors.soft, position: 'insideTop', fontSize: 11 },
      },
      { xAxis: start + end },
    ]);
    if (cell.caches.length > 0) {
      lines.push({
        xAxis: start,
        lineStyle: { color: colors.accent, width: 1, type: 'solid' },
        label: {
          show: placed.length <= 16,
          formatter: `▼ ${cell.caches.join(', ')}`,
          color: colors.accent,
          position: 'insideEndBottom',
          distance: 2,
          fontSize: 11,
        },
      });
    }
    for (const gap of visit.gaps) {
      const from = start + gap.start_ns / 1e9;
      areas.push([
        {
          xAxis: from,
          name: gap.length_ns >= 1e9 ? `${format.time(gap.length_ns)} still` : '',
          itemStyle: { color: colors.alarm, opacity: 0.3 },
          label: {
            color: colors.alarm,
            position: 'inside',
            rotate: 90,
            fontWeight: 600,
            fontSize: 11,
          },
        },
        { xAxis: from + gap.length_ns / 1e9 },
      ]);
    }
    for (const stall of visit.host_stalls) {
      const from = start + stall.start_ns / 1e9;
      areas.push([
        { xAxis: from, itemStyle: { color: colors.doubt, opacity: 0.35 } },
        { xAxis: from + stall.length_ns / 1e9 },
      ]);
    }
    for (const change of run.changes.filter(
      (change) => change.cell === cell.key && change.order === visit.order,
    )) {
      lines.push({
        xAxis: start + change.at_ns / 1e9,
        label: {
          show: true,
          formatter: format.times(change.after / change.before),
          color: colors.doubt,
          fontWeight: 600,
        },
      });
    }
  }
  series.push({
    type: 'line',
    data: [],
    silent: true,
    markArea: { silent: true, data: areas },
    markLine: {
      silent: true,
      symbol: 'none',
      lineStyle: { color: colors.doubt, width: 1.5, type: [5, 4] },
      data: lines,
    },
  });
  const last = placed[placed.length - 1];
  return {
    tooltip: tooltip(colors, tell),
    xAxis: xAxis(colors, {
      name: 'seconds measured',
      min: 0,
      tell: format.tick,
      max: last ? last.start + (last.visit.elapsed_ns ?? 0) / 1e9 : undefined,
    }),
    yAxis: { ...yAxis(colors, { name: 'IOPS', min: 0 }), boundaryGap: [0, '12%'] },
    series,
  };
}

/** The cell that is looked at: the one that is chosen, if it has this. */
export function place({ page, state }: Pick<Context, 'page' | 'state'>): model.Place | null {
  const chosen = model.find(page, state.course);
  return chosen && hasCourse(chosen.cell) ? chosen : worth(page);
}

function draw(context: Context): Drawing {
  const { page, colors } = context;
  const found = place(context);
  const table: Drawing['table'] = {
    head: ['run', 'cell', 'visit', 'at_ns', 'iops', 'iops_low', 'iops_high', 'p99_ns', 'max_ns'],
    rows: [],
  };
  const run = found && page.runs[found.run];
  if (!found || !run) return { panels: [], legend: [], table };
  const { cell } = found;
  for (const visit of cell.visits) {
    const own = visit.series;
    own?.rate.forEach((rate, k) =>
      table.rows.push([
        run.id,
        cell.name,
        visit.repeat,
        k * own.step_ns,
        rate,
        own.low[k],
        own.high[k],
        own.p99_ns[k],
        own.max_ns[k],
      ]),
    );
  }
  const freezes = cell.visits.reduce((sum, visit) => sum + visit.gaps.length, 0);
  return {
    panels: [
      {
        title: `${model.runName(page, run)}: ${cell.name}`,
        summary: `Rate over time of ${cell.name}, ${cell.visits.length} visits, ${freezes} times in which nothing came back`,
        height: 320,
        wide: true,
        option: option(run, cell, colors, teller(context)),
      },
    ],
    legend: [],
    table,
  };
}

export const time: Figure = {
  id: 'time',
  title: 'Over time',
  how: [
    'The rate of one cell, visit after visit; what lies between visits is left out. A grey field is a visit, a dotted line one that does not count.',
    'Red: nothing came back from the device. Amber: the measuring process itself did not run, so nothing is known of the device. Dashed amber lines are changes of level, with the ratio.',
    'A thin line with ▼ at the start of a visit: what was done to caches before it, such as writing back (flush) and forgetting the files (purge).',
    'A line ends with the load: what was still in flight then came back later, and an interval that the load did not fill has no rate of its own.',
    'Where there are more intervals than points, a shade spans the slowest and the fastest of each point: no extreme is lost.',
  ],
  controls: ['course'],
  accepts: (page) => worth(page) !== null,
  draw,
};
