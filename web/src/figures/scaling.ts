// Rates against a factor of a study that is a number, such as drives, with what linear would be.

import * as format from '../format';
import * as model from '../model';
import { ends, tooltip, xAxis, yAxis, type Datum } from '../chart';
import { line } from '../dom';
import { factors, isAmount } from '../factors';
import { ofLoad } from '../palette';
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

interface Point {
  level: number;
  place: model.Place;
}

interface Amount {
  name: string;
  /** Points of each cell, by its name; runs that differ in other factors are lines of their own. */
  lines: [string, Point[]][];
}

const LINES_MAX = 16;

function amounts(page: model.Page, block: number): Amount[] {
  return factors(page, block)
    .filter(isAmount)
    .flatMap(({ name, points }): Amount[] => {
      const sized = model.areSized(points.map(({ place }) => place.cell));
      const named = points.map(({ level, rest, place }) => ({
        key: [rest, model.label(place.cell, sized)].filter(Boolean).join(': '),
        level: Number(level),
        place,
      }));
      const lines = [...model.by(named, ({ key }) => key)].filter(
        ([, own]) => model.unique(own.map(({ level }) => level)).length >= 3,
      );
      return lines.length > 0 ? [{ name, lines }] : [];
    });
}

function draw(context: Context): Drawing {
  const { page, state, colors } = context;
  const what = model.metricName(state.metric, state.unit);
  const legend = new Map<string, Entry>();
  const table: Drawing['table'] = {
    head: ['factor', 'level', 'run', 'series', what, 'low', 'high'],
    rows: [],
  };
  const found = amounts(page, state.block);
  const counts = found.map(({ lines }) => lines.length);
  const part = someLines(context, 'scaling', counts, LINES_MAX);
  let isAnyLog = false;
  const panels = found.flatMap(({ name, lines }): Panel[] => {
    const all: number[] = [];
    const drawn = part.of(lines);
    const options = lines.flatMap((one): unknown[] => {
      const [key, points] = one;
      const k = drawn.indexOf(one);
      const op = points[0]?.place.cell.op ?? '';
      const look = ofLoad(op, Math.max(k, 0), Math.max(drawn.length, 2), colors.dark);
      if (k >= 0) legend.set(key, { name: key, look });
      if (!shown(state, key)) return [];
      const found = points
        .flatMap(({ level, place }) => {
          const value = model.value(place.cell, state.metric, state.unit);
          return value ? [{ level, place, ...value }] : [];
        })
        .sort((a, b) => a.level - b.level);
      for (const { level, place, value, low, high } of found) {
        if (k >= 0) all.push(value);
        table.rows.push([name, level, page.runs[place.run]?.id, key, value, low, high]);
      }
      if (k < 0) return [];
      const first = found[0];
      const last = found[found.length - 1];
      const linear = !model.isCost(state.metric) && first && last && first.level > 0;
      return [
        {
          type: 'line',
          name: key,
          data: found.map(({ level, place, value }): Datum => ({
            value: [level, value],
            place: model.address(place),
          })),
          symbol: look.symbol,
          symbolSize: 8,
          color: look.color,
          lineStyle: { color: look.color, width: 2, type: look.dash },
          emphasis: { focus: 'series' },
          z: 3,
        },
        {
          type: 'line',
          name: key,
          silent: true,
          symbol: 'none',
          lineStyle: { color: look.color, width: 1, type: [2, 4], opacity: 0.8 },
          data: linear
            ? [
                [first.level, first.value],
                [last.level, (first.value * last.level) / first.level],
              ]
            : [],
        },
      ];
    });
    // Another panel has more lines.
    if (drawn.length === 0) return [];
    const levels = model
      .unique(drawn.flatMap(([, points]) => points.map(({ level }) => level)))
      .sort(model.rising);
    const log = isLog(state) && (levels[0] ?? 0) > 0;
    isAnyLog ||= log;
    const range = ends(all, log);
    const panel: Panel = {
      title: `${what} against ${line(name)}`,
      summary: `${what} against ${name}, ${drawn.length} lines, with what linear would be`,
      height: 360,
      wide: true,
      option: {
        tooltip: tooltip(colors, teller(context)),
        // Both or neither: linear growth is a straight line then.
        xAxis: {
          ...xAxis(colors, {
            name,
            log,
            min: log ? (levels[0] ?? 1) / 1.15 : 0,
            max: (levels[levels.length - 1] ?? 1) * (log ? 1.15 : 1.05),
          }),
          axisLabel: { color: colors.soft, customValues: levels, formatter: format.tick },
          axisTick: { customValues: levels },
        },
        yAxis: yAxis(colors, { name: model.axisName(state.metric, state.unit), log, ...range }),
        series: options,
      },
    };
    return [panel];
  });
  const { left, parts } = part;
  return { panels, legend: [...legend.values()], table, log: isAnyLog, left, parts };
}

export const scaling: Figure = {
  id: 'scaling',
  title: 'Scaling',
  how: [
    'Rates against a number that the study varied, such as drives. The dotted line of each colour is what linear growth from its first point would be.',
    'Where a line leaves its dotted one, something else than what was varied has become the limit; where all lines turn level at one place, it is the same thing.',
  ],
  controls: ['metric', 'block', 'part', 'scale'],
  accepts: (page) => amounts(page, 0).length > 0,
  draw,
};
