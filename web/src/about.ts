// What the numbers need to be believed: plan, seed, command, versions, machine, warnings; all cells.

import { csv, download, fileName, h, line, plain, renew, type Table } from './dom';
import * as format from './format';
import * as model from './model';
import * as state from './state';

/** Columns of all cells; axes of a grid by these names are in them. */
const OWN = new Set([
  'run',
  'cell',
  'phase',
  'stream',
  'op',
  'block_bytes',
  'threads',
  'queue_depth',
]);

function facts(run: model.PageRun): HTMLElement {
  const { target, machine, imported, part } = run;
  const rows: [string, string][] = [
    ['suite', [run.suite, run.about].filter(Boolean).join(': ')],
    [
      'target',
      [
        target.given,
        target.kind === 'unknown' ? '' : target.kind,
        target.size_bytes > 0 ? format.bytes(target.size_bytes) : '',
        target.file_system ?? '',
        target.devices.join(' '),
      ]
        .filter(Boolean)
        .join(', '),
    ],
    ['command', run.command_line.join(' ')],
    ['seed', imported ? '' : run.seed],
    ['started', run.started_unix_ns === null ? '' : format.clock(run.started_unix_ns)],
    ['state', `${run.state}, ${format.several(run.visits_planned, 'visit')} planned`],
    [
      'measured by',
      imported
        ? `${[imported.tool, imported.version].filter(Boolean).join(' ')}, read from ${imported.file} (xxh3 ${imported.xxh3})`
        : `Plimsoll ${run.program}`,
    ],
    [
      'machine',
      [
        machine.host,
        machine.processor,
        machine.processors > 1 || !imported ? `${machine.processors} processors` : '',
        machine.memory_bytes > 0 ? format.bytes(machine.memory_bytes) : '',
        machine.kernel,
        machine.architecture,
      ]
        .filter(Boolean)
        .join(', '),
    ],
    ['part of', part ? `${part.list}, ${part.number} of ${part.of}, group ${part.group}` : ''],
    ['factors', part?.study?.levels.map(({ name, value }) => `${name} ${value}`).join(', ') ?? ''],
    ['settings', imported?.settings.map(({ name, value }) => `${name} ${value}`).join(', ') ?? ''],
    ...target.remarks.map((text): [string, string] => ['remark', text]),
    ...(imported?.remarks ?? []).map((text): [string, string] => ['remark', text]),
    ...run.warnings.map(({ code, text }): [string, string] => ['▲ warning', `${code}: ${text}`]),
  ];
  return h(
    'dl',
    { class: 'numbers' },
    ...rows
      .filter(([, text]) => text.trim() !== '')
      .flatMap(([name, text]) => [h('dt', {}, name), h('dd', {}, line(text))]),
  );
}

export function about(page: model.Page): HTMLElement {
  const one = (run: model.PageRun) =>
    h(
      'article',
      {},
      h('h3', {}, model.runName(page, run)),
      facts(run),
      run.suite_text.trim() === ''
        ? null
        : h(
            'details',
            {},
            h('summary', {}, 'The suite as it was played'),
            h('pre', { tabindex: 0 }, plain(run.suite_text)),
          ),
      run.target.model === null
        ? null
        : h(
            'details',
            {},
            h('summary', {}, 'The simulated device'),
            h('pre', { tabindex: 0 }, plain(run.target.model)),
          ),
    );
  return h(
    'section',
    { class: 'about', id: 'figure-about', 'aria-labelledby': 'title-about' },
    h('h2', { id: 'title-about' }, 'Where it comes from'),
    ...page.runs.map(one),
  );
}

function rows(page: model.Page): Table {
  const axes = model
    .unique(
      page.runs.flatMap((run) =>
        run.cells.flatMap((cell) => cell.coordinates.map(({ field }) => field)),
      ),
    )
    .filter((field) => !OWN.has(field));
  const syncs = model.unique(
    page.runs.flatMap((run) => run.cells.flatMap((cell) => cell.flushes.map(({ op }) => op))),
  );
  return {
    head: [
      'run',
      'cell',
      'phase',
      'stream',
      'op',
      ...axes,
      'block_bytes',
      'threads',
      'queue_depth',
      'iops',
      'iops_low',
      'iops_high',
      'basis',
      'bytes_per_s',
      'bytes_per_s_over_all_time',
      'latency_ns_mean',
      'latency_ns_p50',
      'latency_ns_p99',
      'latency_ns_p999',
      'latency_ns_max',
      ...syncs.flatMap((op) => ['mean', 'p50', 'p99', 'max'].map((what) => `${op}_ns_${what}`)),
      'region_bytes',
      'requests',
      'errors',
      'visits',
      'marks',
    ],
    rows: page.runs.flatMap((run) =>
      run.cells.map((cell) => [
        run.id,
        cell.name,
        cell.phase,
        cell.stream,
        cell.op,
        ...axes.map((axis) => cell.coordinates.find(({ field }) => field === axis)?.value),
        cell.block_bytes,
        cell.threads,
        cell.queue_depth,
        cell.iops,
        cell.iops_low,
        cell.iops_high,
        cell.basis,
        model.bytesPerSecond(cell),
        cell.bytes_per_s,
        cell.latency_ns.mean,
        cell.latency_ns.p50,
        cell.latency_ns.p99,
        cell.latency_ns.p999,
        cell.latency_ns.max,
        ...syncs.flatMap((op) => {
          const own = cell.flushes.find((flush) => flush.op === op)?.latency_ns;
          return [own?.mean, own?.p50, own?.p99, own?.max];
        }),
        cell.region_bytes,
        cell.requests,
        cell.errors,
        cell.visits.filter(({ counted }) => counted).length,
        cell.marks.map(({ code }) => code).join(' '),
      ]),
    ),
  };
}

/** All cells, in the page's units. */
function table(page: model.Page): HTMLElement {
  const { unit } = state.get();
  const several = page.runs.length > 1;
  const head = [
    ...(several ? ['run'] : []),
    'cell',
    'IOPS',
    '95 % interval',
    `${unit}/s`,
    'mean',
    '99 %',
    'longest',
    'visits',
    'marks',
  ];
  const row = (run: model.PageRun, at: number, cell: model.PageCell) => {
    const bytes = model.value(cell, 'bytes', unit);
    const go = h(
      'button',
      {
        type: 'button',
        class: 'link',
        click: () => state.set({ cell: model.address({ run: at, cell }) }),
      },
      line(cell.name),
    );
    const rest = [
      format.count(cell.iops),
      cell.iops_low === null
        ? '–'
        : `${format.count(cell.iops_low)} to ${format.count(cell.iops_high)}`,
      bytes ? format.three(bytes.value) : '–',
      format.time(cell.latency_ns.mean),
      format.time(cell.latency_ns.p99),
      format.time(cell.latency_ns.max),
      String(cell.visits.filter(({ counted }) => counted).length),
      cell.marks.map(({ code }) => line(code)).join(', '),
    ];
    return h(
      'tr',
      { class: model.markOf(cell) ?? '' },
      several && h('td', {}, line(run.id)),
      h('th', { scope: 'row' }, go),
      ...rest.map((text) => h('td', {}, text)),
    );
  };
  return h(
    'table',
    {},
    h('thead', {}, h('tr', {}, ...head.map((text) => h('th', { scope: 'col' }, text)))),
    h('tbody', {}, ...page.runs.flatMap((run, at) => run.cells.map((cell) => row(run, at, cell)))),
  );
}

/** All cells as a table, and as files that have them in bytes and ns. */
export class Numbers {
  readonly element: HTMLElement;
  private readonly count = h('summary', {});
  private readonly place = h('div', {
    class: 'scroll',
    tabindex: 0,
    role: 'region',
    'aria-label': 'All cells',
  });

  /** * `page`: as it is by now. */
  constructor(private readonly page: () => model.Page) {
    const button = (text: string, title: string, click: () => void) =>
      h('button', { type: 'button', class: 'small', title, click }, text);
    const name = () =>
      fileName(
        'plimsoll',
        ...page()
          .runs.slice(0, 4)
          .map(({ id }) => id),
      );
    const details = h(
      'details',
      {
        class: 'all',
        toggle: () =>
          details.open &&
          this.place.childElementCount === 0 &&
          this.place.append(table(this.page())),
      },
      this.count,
      this.place,
    );
    this.element = h(
      'section',
      { class: 'raw', id: 'figure-table', 'aria-labelledby': 'title-raw' },
      h(
        'div',
        { class: 'figure-head' },
        h('h2', { id: 'title-raw' }, 'The numbers'),
        h(
          'span',
          { class: 'files' },
          button('CSV', 'Every cell in bytes and ns', () =>
            download(`${name()}.csv`, 'text/csv', csv(rows(page()))),
          ),
          button('JSON', 'All that is drawn here: plimsoll.page/1', () =>
            download(`${name()}.json`, 'application/json', JSON.stringify(page())),
          ),
        ),
      ),
      details,
    );
    this.renew();
  }

  /** Says what the page says by now. */
  renew(): void {
    const page = this.page();
    const cells = page.runs.reduce((sum, run) => sum + run.cells.length, 0);
    this.count.textContent = cells === 1 ? 'The cell as a table' : `All ${cells} cells as a table`;
    const made = this.place.firstElementChild;
    if (made) renew(made, table(page));
  }
}
