// What a study chose between, such as levels of RAID, chunks, file systems and schedulers: bars for
// each, side by side.

import * as model from '../model';
import { line } from '../dom';
import { factors, isAmount, type Factor } from '../factors';
import { ofOne } from '../palette';
import { areFar, grouped, type Bar, type Group } from './bars';
import {
  isLog,
  shown,
  some,
  type Context,
  type Drawing,
  type Entry,
  type Figure,
  type Panel,
} from './figure';

/** More bars at one level than this cannot be told apart. */
const BARS_MAX = 12;

/** Cells that differ in their load only. */
const alike = (cell: model.PageCell) => `${cell.block_bytes ?? ''} ${model.group(cell)}`;

/** Of loads that differ in what is in flight only, the one with most. */
function heaviest(cells: model.PageCell[]): Set<string> {
  const most = [...model.by(cells, alike).values()].map((own) =>
    own.reduce((best, cell) => (model.inFlight(cell) > model.inFlight(best) ? cell : best)),
  );
  return new Set(most.map((cell) => model.label(cell, true)));
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
  const sized = model.areSized(points.map(({ place }) => place.cell));
  const known = model.unique(points.map(({ rest }) => rest));
  const part = some(context, 'levels', known, {
    what: 'combinations of the other factors',
    each: BARS_MAX,
  });
  const rests = part.drawn;
  const drawn = heaviest(points.map(({ place }) => place.cell));
  const loads = [...model.by(points, ({ place }) => model.label(place.cell, true))];
  const found = loads
    .filter(([label]) => drawn.has(label))
    .map(([key, own]) => {
      const [first] = own;
      const label = first ? model.label(first.place.cell, sized) : key;
      const groups = known.flatMap((rest): Group[] => {
        const k = rests.indexOf(rest);
        const same = own.filter((one) => one.rest === rest);
        if (!shown(state, rest) || same.length === 0) return [];
        const of = (level: string) => same.filter((one) => one.level === level);
        // Runs of one level, such as those of the base, stand beside each other.
        const times = Math.max(...levels.map((level) => of(level).length));
        return Array.from({ length: times }, (_, time) => {
          const bars = levels.map((level): Bar | null => {
            const found = of(level)[time];
            const value = found && model.value(found.place.cell, state.metric, state.unit);
            if (!found || !value) return null;
            const { value: rate, low, high } = value;
            const run = page.runs[found.place.run]?.id;
            table.rows.push([name, level, rest, label, run, rate, low, high]);
            return { ...value, place: found.place };
          });
          return k < 0 ? [] : [{ name: rest, color: ofOne(k, colors.dark).color, bars }];
        }).flat();
      });
      return { label, groups };
    });
  // One scale for all panels: the button says which.
  const log = isLog(
    state,
    found.some(({ groups }) => areFar(groups)),
  );
  const panels = found.flatMap(({ label, groups }): Panel[] => {
    const panel = grouped(
      context,
      {
        title: `${label}: ${what} by ${line(name)}`,
        summary: `${what} of ${label} by ${name}, ${levels.length} levels, ${groups.length} bars each at most`,
        axis: model.axisName(state.metric, state.unit),
        names: levels.map((level) => model.cut(line(level))),
        wide: levels.length * groups.length > 10,
        log,
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
  return {
    panels,
    legend,
    table,
    log,
    left: part.left,
    parts: { ...part.parts, what: 'combinations' },
  };
}

export const levels: Figure = {
  id: 'levels',
  title: 'What was chosen between',
  how: [
    'A group of bars, with 95 % intervals, for each level of a factor of the study that is no amount, such as the level of RAID, the chunk, the file system or the scheduler: choose it above. Bars of one colour are alike in everything else; where a level was run several times, as the base is, each run has its bar, and what lies between those is noise.',
    'Compare bars of one colour. Where every colour rises and falls alike from group to group, the factor matters by itself; where colours change places, it depends on the others.',
    'Of loads that differ only in what is in flight, the one with most is drawn.',
  ],
  controls: ['factor', 'metric', 'block', 'part', 'scale'],
  accepts: (page) => choices(page, 0).length > 0,
  draw,
};
