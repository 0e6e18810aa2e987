// What a study chose between, such as levels of RAID, chunks, file systems and schedulers: bars for
// each, side by side.

import * as model from '../model';
import { line } from '../dom';
import { factors, isAmount, type Factor } from '../factors';
import { ofOne } from '../palette';
import { grouped, type Bar } from './bars';
import { shown, type Context, type Drawing, type Entry, type Figure, type Panel } from './figure';

/** More bars at one level than this cannot be told apart. */
const BARS_MAX = 12;

/** Of loads that differ in what is in flight only, the one with most. */
function heaviest(cells: model.PageCell[]): Set<string> {
  const most = [...model.by(cells, model.group).values()].map((own) =>
    own.reduce((best, cell) => (model.inFlight(cell) > model.inFlight(best) ? cell : best)),
  );
  return new Set(most.map(model.label));
}

/** Factors with what can be compared: what stands at two levels or more, and is alike else. */
export const choices = (page: model.Page, block: number): Factor[] =>
  factors(page, block)
    .filter((factor) => !isAmount(factor))
    .map((factor) => {
      const alike = [...model.by(factor.points, ({ rest }) => rest).values()];
      const points = alike.filter((own) => model.unique(own.map(({ level }) => level)).length > 1);
      return { ...factor, points: points.flat() };
    })
    .filter(({ points }) => points.length > 0);

function draw(context: Context): Drawing {
  const { page, state, colors } = context;
  const what = model.metricName(state.metric, state.unit);
  const table: Drawing['table'] = {
    head: ['factor', 'level', 'others', 'cell', 'run', what, 'low', 'high'],
    rows: [],
  };
  const all = choices(page, state.block);
  const factor = all.find(({ name }) => name === state.factor) ?? all[0];
  if (!factor) return { panels: [], legend: [], table };
  const { name, levels, points } = factor;
  const rests = model.unique(points.map(({ rest }) => rest)).slice(0, BARS_MAX);
  const drawn = heaviest(points.map(({ place }) => place.cell));
  const loads = [...model.by(points, ({ place }) => model.label(place.cell))];
  const panels = loads
    .filter(([label]) => drawn.has(label))
    .flatMap(([label, own]): Panel[] => {
      const groups = rests.flatMap((rest, k) => {
        if (!shown(state, rest)) return [];
        const bars = levels.map((level): Bar | null => {
          const found = own.find((one) => one.level === level && one.rest === rest);
          const value = found && model.value(found.place.cell, state.metric, state.unit);
          if (!found || !value) return null;
          const { value: rate, low, high } = value;
          const run = page.runs[found.place.run]?.id;
          table.rows.push([name, level, rest, label, run, rate, low, high]);
          return { ...value, place: found.place };
        });
        return [{ name: rest, color: ofOne(k, colors.dark).color, bars }];
      });
      const panel = grouped(
        context,
        {
          title: `${label}: ${what} by ${line(name)}`,
          summary: `${what} of ${label} by ${name}, ${levels.length} levels, ${rests.length} bars each`,
          axis: model.axisName(state.metric, state.unit),
          names: levels.map(line),
          wide: levels.length * rests.length > 10,
        },
        groups,
      );
      return panel ? [panel] : [];
    });
  const legend = rests
    .filter((rest) => rest !== '')
    .map((rest, k): Entry => ({
      name: rest,
      look: { ...ofOne(k, colors.dark), symbol: 'rect', dash: 'none' },
    }));
  return { panels, legend, table };
}

export const levels: Figure = {
  id: 'levels',
  title: 'What was chosen between',
  how: [
    'A group of bars, with 95 % intervals, for each level of a factor of the study that is no amount, such as the level of RAID, the chunk, the file system or the scheduler: choose it above. Bars of one colour are alike in everything else.',
    'Compare bars of one colour. Where every colour rises and falls alike from group to group, the factor matters by itself; where colours change places, it depends on the others.',
    'Of loads that differ only in what is in flight, the one with most is drawn.',
  ],
  controls: ['factor', 'metric', 'block', 'scale'],
  accepts: (page) => choices(page, 0).length > 0,
  draw,
};
