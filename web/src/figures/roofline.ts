// Where the rate ends: the fitted limits with the cells on them.

import * as format from '../format';
import * as model from '../model';
import { ends, tooltip, xAxis, yAxis, type Datum } from '../chart';
import { ofLoad } from '../palette';
import { teller, type Context, type Drawing, type Figure, type Panel } from './figure';

type Barrier = model.PageRun['barriers'][number];

const fitted = (barrier: Barrier) => barrier.fit !== null;

/** Axes that the law itself is about. */
const OF_LAW = ['block_size', 'threads', 'queue_depth'];

/** As the program names groups: the phase, and the values of its other axes. */
const groupOf = (cell: model.PageCell) =>
  [
    cell.phase,
    ...cell.coordinates.flatMap(({ field, value }) => (OF_LAW.includes(field) ? [] : value)),
  ].join(' ');

function cellsOf(run: model.PageRun, barrier: Barrier): model.PageCell[] {
  // What a stream does beside others is theirs as well: it has no limits of its own.
  const own = (cell: model.PageCell) =>
    cell.op === barrier.op && cell.streams === 1 && groupOf(cell) === barrier.group;
  return model
    .grid(run)
    .filter((cell) => own(cell) && cell.block_bytes !== null && cell.iops !== null);
}

function draw(context: Context): Drawing {
  const { page, colors, state } = context;
  const panels: Panel[] = [];
  const table: Drawing['table'] = {
    head: ['run', 'group', 'limit', 'value', 'low', 'high', 'unit', 'cells_at_it'],
    rows: [],
  };
  page.runs.forEach((run, at) => {
    for (const barrier of run.barriers.filter(fitted)) {
      const fit = barrier.fit;
      if (!fit) continue;
      const law = fit.law;
      const cells = cellsOf(run, barrier);
      const loads = model.unique(cells.map(model.inFlight)).sort(model.rising);
      const sizes = model.blocks(cells);
      const [first, last] = [sizes[0] ?? 512, sizes[sizes.length - 1] ?? 1 << 20];
      const steps = Array.from({ length: 81 }, (_, k) => first * (last / first) ** (k / 80));
      const alone = (size: number, n: number) =>
        n / (law.latency_seconds + size / law.request_bandwidth);
      const roof = (
        name: string,
        of: (size: number) => number,
        color: string,
        width: number,
        type: unknown,
      ) => ({
        type: 'line',
        name,
        data: steps.map((size) => [size, of(size)]),
        showSymbol: false,
        silent: true,
        lineStyle: { color, width, type },
        z: 1,
      });
      const values = cells.flatMap((cell) => cell.iops ?? []);
      const range = ends(values, true);
      const highest = Math.max(law.iops, ...values) * 1.6;
      const label = (text: string, where: string) => ({
        show: true,
        formatter: text,
        position: where,
        color: colors.ink,
        fontWeight: 600,
        fontSize: 12,
      });
      const lines: unknown[] = [
        {
          ...roof('A', () => law.iops, colors.alarm, 2.5, 'solid'),
          endLabel: { show: false },
          markLine: {
            silent: true,
            symbol: 'none',
            animation: false,
            label: label(`A  ${format.count(law.iops)} requests/s`, 'insideEndTop'),
            lineStyle: { color: colors.alarm, width: 2.5, type: 'solid' },
            data: [{ yAxis: law.iops }],
          },
        },
        roof('W', (size) => law.bandwidth / size, colors.doubt, 2.5, 'solid'),
        ...loads.map((n) => roof(`n = ${n}`, (size) => alone(size, n), colors.soft, 1, [4, 4])),
      ];
      const knee = law.bandwidth / law.iops;
      const bound = (cell: model.PageCell) =>
        barrier.bound.find(
          (b) => b.block_bytes === cell.block_bytes && b.in_flight === model.inFlight(cell),
        )?.term;
      const why: Record<string, string> = {
        iops: 'requests per second (A)',
        bandwidth: 'bytes per second (W)',
        latency: 'the time of a request, so what is in flight',
        mixed: 'no single limit',
      };
      for (const [level, n] of loads.entries()) {
        const look = ofLoad(barrier.op, level, loads.length, colors.dark);
        const own = cells.filter((cell) => model.inFlight(cell) === n);
        lines.push({
          type: 'scatter',
          name: `${n} in flight`,
          symbol: look.symbol,
          symbolSize: 9,
          itemStyle: { color: look.color, borderColor: colors.panel, borderWidth: 1 },
          z: 4,
          data: own.map((cell): Datum => ({
            value: [cell.block_bytes, cell.iops],
            place: model.address({ run: at, cell }),
            tip: {
              title: cell.name,
              rows: [
                ...model.lines(cell, state.unit),
                ['ended by', why[bound(cell) ?? ''] ?? 'not told'],
              ],
            },
          })),
        });
      }
      lines.push({
        type: 'scatter',
        silent: true,
        symbolSize: 1,
        itemStyle: { color: 'transparent' },
        z: 5,
        data: [
          {
            value: [
              Math.min(Math.max(knee * 4, first), last),
              law.bandwidth / Math.min(Math.max(knee * 4, first), last),
            ],
            label: {
              ...label(`W  ${format.bandwidth(law.bandwidth, state.unit)}`, 'right'),
              backgroundColor: colors.panel,
              padding: [1, 4],
            },
          },
        ],
      });
      table.rows.push(
        [
          run.id,
          barrier.group,
          'A',
          fit.iops.value,
          fit.iops.low,
          fit.iops.high,
          'requests/s',
          barrier.iops?.cells,
        ],
        [
          run.id,
          barrier.group,
          'W',
          fit.bandwidth.value,
          fit.bandwidth.low,
          fit.bandwidth.high,
          'bytes/s',
          barrier.bandwidth?.cells,
        ],
        [run.id, barrier.group, 't0', law.latency_seconds * 1e9, null, null, 'ns', null],
        [run.id, barrier.group, 'w', law.request_bandwidth, null, null, 'bytes/s', null],
      );
      const t0 =
        law.latency_seconds >= 1e-6 ? `, t0 ${format.time(law.latency_seconds * 1e9)}` : '';
      const limits = `A ${format.count(law.iops)} IOPS, W ${format.bandwidth(law.bandwidth, state.unit)}`;
      panels.push({
        title: model.ofRun(page, run, `${barrier.group}: ${limits}${t0}`),
        summary: `Requests per second against block size with the fitted limits of ${barrier.group} of ${model.runName(page, run)}`,
        height: 380,
        option: {
          tooltip: tooltip(colors, teller(context)),
          xAxis: {
            ...xAxis(colors, {
              name: 'block size',
              log: true,
              min: first / 1.25,
              max: last * 1.25,
              tell: format.block,
            }),
            logBase: 2,
            axisLabel: {
              color: colors.soft,
              hideOverlap: true,
              formatter: format.block,
              customValues: sizes.filter((_, k) => k % 2 === 0),
            },
            axisTick: { customValues: sizes },
          },
          yAxis: yAxis(colors, {
            name: 'requests per second',
            log: true,
            min: range.min,
            max: highest,
            // Only powers of ten: the upper end is where there is room for the line.
            tell: (v) => (Math.abs(Math.log10(v) % 1) < 1e-6 ? format.short(v) : ''),
          }),
          series: lines,
        },
      });
    }
  });
  return { panels, legend: [], table };
}

export const roofline: Figure = {
  id: 'roofline',
  title: 'Where the rate ends',
  how: [
    'Points are cells. The red level line A is the most requests per second; the falling line W the most bytes per second; the thin dashed lines what so many in flight can do if each request takes its time t0 and nothing else limits.',
    'A cell on a line is ended by that limit: on A more threads and larger blocks do not help, on W only fewer bytes do, on a dashed line more in flight does. A cell far below all three is a gap.',
    'The lines are fitted to all cells together; where the law does not describe the grid, nothing is drawn.',
  ],
  controls: [],
  accepts: (page) => page.runs.some((run) => run.barriers.some(fitted)),
  draw,
};
