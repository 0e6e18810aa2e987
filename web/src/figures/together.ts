// Streams beside each other: what each keeps of what it has alone.

import * as format from '../format';
import * as model from '../model';
import { FONT, tooltip, whiskers, xAxis, type Datum } from '../chart';
import { line } from '../dom';
import { ofOne } from '../palette';
import type { Context, Drawing, Figure, Panel } from './figure';

type Together = model.PageRun['together'][number];

const told = (page: model.Page) => page.runs.filter((run) => run.together.length > 0);

/** `5.36K of 50.8K commits/s`; of bursts how long one takes. */
function words({ op, rate, alone, burst }: Together): string {
  const unit = op === 'commit' ? 'commits/s' : `${line(op)}s/s`;
  if (burst === null) return `${format.count(rate)} of ${format.count(alone)} ${unit}`;
  const took = (rate: number) => format.time((burst / rate) * 1e9);
  return `a burst in ${took(rate)}, ${took(alone)} alone`;
}

function panel({ colors, page }: Context, run: model.PageRun, at: number): Panel {
  const all = [...run.together].reverse();
  const look = ofOne(at, colors.dark);
  const share = ({ ratio }: Together) => 100 * ratio.value;
  const data = all.map((one): Datum => {
    const { low, high } = one.ratio;
    const rows: [string, string][] = [['of what it has alone', `${format.times(one.ratio.value)}`]];
    if (typeof low === 'number' && typeof high === 'number')
      rows.push(['95 % interval', `${format.times(low)} to ${format.times(high)}`]);
    return { value: share(one), tip: { title: `${line(one.stream)}: ${words(one)}`, rows } };
  });
  const text = { color: colors.ink, fontFamily: FONT, fontSize: 12 };
  const ends = all.flatMap(({ ratio: { low, high } }, k): [number, number, number][] =>
    typeof low === 'number' && typeof high === 'number' ? [[k, 100 * low, 100 * high]] : [],
  );
  return {
    title: model.runName(page, run),
    summary: `What ${all.length} streams keep of their rate alone`,
    height: 70 + 44 * all.length,
    wide: true,
    option: {
      tooltip: tooltip(colors, (datum) => (typeof datum.tip === 'object' ? datum.tip : null)),
      xAxis: xAxis(colors, {
        name: '% of its rate alone, beside all others',
        min: 0,
        max: Math.max(100, ...all.map(share), ...ends.map(([, , high]) => high)),
      }),
      yAxis: {
        type: 'category',
        data: all.map(({ stream }) => line(stream)),
        axisLabel: text,
        axisTick: { show: false },
        axisLine: { lineStyle: { color: colors.soft } },
      },
      series: [
        whiskers('', colors.ink, ends, true),
        {
          type: 'bar',
          data,
          barMaxWidth: 26,
          color: look.color,
          label: {
            ...text,
            show: true,
            position: 'insideLeft',
            color: colors.ink,
            textBorderColor: colors.panel,
            textBorderWidth: 3,
            formatter: ({ dataIndex }: { dataIndex: number }) => {
              const one = all[dataIndex];
              return one ? words(one) : '';
            },
          },
          markLine: {
            symbol: 'none',
            silent: true,
            label: { show: false },
            lineStyle: { color: colors.soft, type: 'dashed' },
            data: [{ xAxis: 100 }],
          },
        },
      ],
    },
  };
}

function draw(context: Context): Drawing {
  const { page } = context;
  const rows = told(page).flatMap((run) =>
    run.together.map(({ stream, op, rate, alone, ratio }) => [
      run.id,
      stream,
      op,
      rate,
      alone,
      ratio.value,
      ratio.low,
      ratio.high,
    ]),
  );
  return {
    panels: told(page).map((run) => panel(context, run, page.runs.indexOf(run))),
    legend: [],
    table: { head: ['run', 'stream', 'op', 'rate', 'alone', 'ratio', 'low', 'high'], rows },
  };
}

export const together: Figure = {
  id: 'together',
  title: 'Alone and together',
  how: [
    'Each bar is a stream beside all the others, as a share of what it has when it is played alone, with its 95 % interval. A checkpoint is told by how long a burst takes.',
  ],
  controls: [],
  accepts: (page) => told(page).length > 0,
  draw,
};
