// The grid at a glance: requests in flight down, block size across, a field for each cell.

import * as format from '../format';
import * as model from '../model';
import { categories, tooltip, FONT, type Datum, type Render } from '../chart';
import { inkOn, much } from '../palette';
import { teller, type Context, type Drawing, type Figure, type Panel } from './figure';

interface Grid {
  group: string;
  sizes: number[];
  loads: string[];
  cells: model.PageCell[];
}

function grids(run: model.PageRun): Grid[] {
  const cells = model.grid(run).filter((cell) => cell.block_bytes !== null);
  return [...model.by(cells, model.group)].flatMap(([group, members]) => {
    const sizes = model.blocks(members);
    const sorted = [...members].sort((a, b) => model.inFlight(b) - model.inFlight(a));
    const loads = model.unique(sorted.map(model.load));
    return sizes.length >= 3 && loads.length >= 2 ? [{ group, sizes, loads, cells: members }] : [];
  });
}

function draw(context: Context): Drawing {
  const { page, state, colors } = context;
  const panels: Panel[] = [];
  const table: Drawing['table'] = {
    head: ['run', 'group', 'load', 'block_bytes', 'value', 'unit', 'marks'],
    rows: [],
  };
  const unit = model.metricName(state.metric, state.unit);
  page.runs.forEach((run, at) => {
    for (const { group, sizes, loads, cells } of grids(run)) {
      const values = cells.map(
        (cell) => model.value(cell, state.metric, state.unit)?.value ?? null,
      );
      const logs = values.flatMap((value) => (value === null ? [] : Math.log(value)));
      const [low, high] = [Math.min(...logs), Math.max(...logs)];
      const share = (value: number) => (high > low ? (Math.log(value) - low) / (high - low) : 1);
      const data = cells.map((cell, k): Datum => ({
        value: [sizes.indexOf(cell.block_bytes ?? 0), loads.indexOf(model.load(cell))],
        place: model.address({ run: at, cell }),
        figure: values[k],
      }));
      const render: Render = (params, api) => {
        const [x, y] = api.coord([api.value(0), api.value(1)]);
        const [width, height] = api.size([1, 1]);
        const value = values[params.dataIndex] ?? null;
        const cell = cells[params.dataIndex];
        const mark = cell ? model.markOf(cell) : null;
        const hit = cell ? model.isCached(cell) : false;
        const fill = value === null ? colors.panel : hit ? colors.cache : much(share(value));
        const box = {
          x: x - width / 2 + 1,
          y: y - height / 2 + 1,
          width: width - 2,
          height: height - 2,
        };
        // What has a rate is measured: nobody told this of it.
        const isMissing = value === null && (cell?.iops ?? null) === null;
        const text =
          value === null
            ? isMissing
              ? '×'
              : '–'
            : width > 46
              ? format.short(value)
              : width > 26
                ? format.tight(value)
                : '';
        const none = isMissing ? colors.alarm : colors.soft;
        const ink = value === null ? none : inkOn(fill);
        const inset = { x: box.x + 2, y: box.y + 2, width: box.width - 4, height: box.height - 4 };
        const corner = [
          [box.x, box.y],
          [box.x + 11, box.y],
          [box.x, box.y + 11],
        ];
        return {
          type: 'group',
          children: [
            {
              type: 'rect',
              shape: { ...box, r: 2 },
              style: {
                fill,
                stroke: value === null ? none : 'none',
                lineWidth: 1,
                lineDash: [3, 3],
              },
            },
            mark === 'grave'
              ? {
                  type: 'rect',
                  shape: inset,
                  style: { fill: 'none', stroke: '#ffffff', lineWidth: 5 },
                }
              : { type: 'group', children: [] },
            mark === 'grave'
              ? {
                  type: 'rect',
                  shape: inset,
                  style: { fill: 'none', stroke: '#d0103a', lineWidth: 3 },
                }
              : { type: 'group', children: [] },
            mark === 'doubt' && value !== null
              ? {
                  type: 'polygon',
                  shape: { points: corner },
                  style: {
                    fill: '#ffffff',
                    stroke: '#18212c',
                    lineWidth: 0.5,
                  },
                }
              : { type: 'group', children: [] },
            {
              type: 'text',
              style: {
                text: hit && height > 36 && width > 40 ? `${text}\ncache` : text,
                x,
                y,
                fill: ink,
                font: `${mark === 'grave' ? 700 : 500} ${width > 44 ? 12 : 10.5}px ${FONT}`,
                textAlign: 'center',
                textVerticalAlign: 'middle',
              },
            },
          ],
        };
      };
      cells.forEach((cell, k) => {
        table.rows.push([
          run.id,
          group,
          model.load(cell),
          cell.block_bytes,
          values[k],
          unit,
          cell.marks.map(({ code }) => code).join(' '),
        ]);
      });
      panels.push({
        title: model.ofRun(page, run, group),
        summary: `${unit} of ${group} by requests in flight and block size, ${cells.length} cells of ${model.runName(page, run)}`,
        height: 74 + loads.length * 44,
        wide: page.runs.length === 1,
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
          series: [{ type: 'custom', renderItem: render, data, encode: { x: 0, y: 1 } }],
        },
      });
    }
  });
  return { panels, legend: [], table };
}

export const heat: Figure = {
  id: 'heat',
  title: 'The grid at a glance',
  how: [
    'One field for each cell: block size across, requests in flight down. Brighter is more; each field has its own number.',
    'A red frame is a cell to look at twice, such as a gap: far below what its neighbours promise. A white corner is a lesser doubt. A field with a red × has no figure, one with a dash none of this kind.',
    'On healthy storage the colours change smoothly. A dark field between bright ones is a gap. Colours of two panels are not to be compared: each has its own range.',
  ],
  controls: ['metric'],
  accepts: (page) => page.runs.some((run) => grids(run).length > 0),
  draw,
};
