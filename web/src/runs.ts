// The list of runs: the newest first, with what each is doing, and a choice to look at side by side.

import { h, line, renew } from './dom';
import * as format from './format';
import type { Live, LiveRun } from './generated/live';
import { bar, word } from './standing';

/** Runs that one page may have. */
const CHOSEN_MAX = 64;
/** Rows that are put up at first: a store may have thousands. */
const ROWS = 200;

const to = (ids: string[]) => `/runs/${ids.join(',')}`;

export class Runs {
  readonly element: HTMLElement;
  private readonly body = h('tbody', {});
  private readonly more = h('p', {});
  private readonly open = h('button', { type: 'button', class: 'open' });
  private readonly find = h('input', { type: 'search', id: 'find', autocomplete: 'off' });
  private readonly none = h('p', { class: 'soft' });
  private all = new Map<string, LiveRun>();
  private rows = new Map<string, { element: HTMLElement; run: LiveRun }>();
  /** In the order they were chosen: the first is the baseline. */
  private chosen: string[] = [];
  private most = ROWS;

  constructor() {
    this.find.addEventListener('input', () => this.put());
    this.open.addEventListener('click', () => location.assign(to(this.chosen)));
    const head = ['', 'run', 'suite', 'target', 'started', 'standing', 'warnings', 'part of'];
    const table = h(
      'table',
      { class: 'list' },
      h(
        'thead',
        {},
        h(
          'tr',
          {},
          ...head.map((text) =>
            text === ''
              ? h('th', { scope: 'col' }, h('span', { class: 'unseen' }, 'chosen'))
              : h('th', { scope: 'col' }, text),
          ),
        ),
      ),
      this.body,
    );
    this.element = h(
      'section',
      { class: 'raw', 'aria-label': 'Runs' },
      h(
        'div',
        { class: 'figure-head' },
        h('label', { class: 'select', for: 'find' }, 'find ', this.find),
        this.open,
      ),
      h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'All runs' }, table),
      this.none,
      this.more,
    );
    this.offer();
  }

  take(live: Live): void {
    if (live.whole) this.all = new Map();
    for (const run of live.runs) this.all.set(run.id, run);
    this.chosen = this.chosen.filter((id) => this.all.has(id));
    this.put();
    this.offer();
  }

  private offer(): void {
    const count = this.chosen.length;
    this.open.disabled = count === 0;
    this.open.textContent =
      count === 0
        ? 'Choose runs to see them side by side'
        : count === 1
          ? `Open ${this.chosen[0] ?? ''}`
          : `Side by side: ${count} runs against ${this.chosen[0] ?? ''}`;
  }

  private found(): LiveRun[] {
    const wanted = this.find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const runs = [...this.all.values()].reverse();
    if (wanted.length === 0) return runs;
    return runs.filter((run) => {
      const { id, suite, target, standing, part, imported } = run;
      const text = [id, suite, target, standing, part?.list, part?.group, imported]
        .join(' ')
        .toLowerCase();
      return wanted.every((one) => text.includes(one));
    });
  }

  private put(): void {
    const found = this.found();
    const shown = found.slice(0, this.most);
    const rows = shown.map((run) => this.row(run));
    // Rows that are there already stay: so do the focus, and what is being pointed at.
    rows.forEach((row, k) => {
      if (this.body.children[k] !== row) this.body.insertBefore(row, this.body.children[k] ?? null);
    });
    while (this.body.children.length > rows.length) this.body.lastElementChild?.remove();
    const rest = found.length - shown.length;
    this.more.replaceChildren(
      ...(rest > 0
        ? [
            h(
              'button',
              {
                type: 'button',
                click: () => {
                  this.most += 1000;
                  this.put();
                },
              },
              `${rest} more`,
            ),
          ]
        : []),
    );
    this.none.textContent =
      this.all.size === 0
        ? 'No run yet. “plimsoll run bm-flash --quick” makes one, and it is seen here while it goes on.'
        : found.length === 0
          ? 'No run has all these words.'
          : '';
  }

  private row(run: LiveRun): HTMLElement {
    const known = this.rows.get(run.id);
    if (known?.run === run) return known.element;
    const fresh = this.make(run);
    if (known) renew(known.element, fresh);
    const element = known?.element ?? fresh;
    this.rows.set(run.id, { element, run });
    return element;
  }

  private make(run: LiveRun): HTMLElement {
    const box = h('input', {
      type: 'checkbox',
      'aria-label': `choose ${run.id}`,
      change: () => {
        this.chosen = this.chosen.filter((id) => id !== run.id);
        if (box.checked && this.chosen.length < CHOSEN_MAX) this.chosen.push(run.id);
        box.checked = this.chosen.includes(run.id);
        this.offer();
      },
    });
    box.checked = this.chosen.includes(run.id);
    const cells = [
      line(run.suite) + (run.imported ? ` (${line(run.imported)})` : ''),
      line(run.target),
      format.clock(run.started_unix_ns),
    ];
    return h(
      'tr',
      { class: run.standing },
      h('td', {}, box),
      h('th', { scope: 'row' }, h('a', { class: 'link', href: to([run.id]) }, run.id)),
      ...cells.map((text) => h('td', {}, text)),
      h('td', {}, `${word(run)} `, bar(run)),
      h('td', {}, run.warnings > 0 ? `▲ ${run.warnings}` : ''),
      h('td', {}, ...this.part(run)),
    );
  }

  /** A link to all of the same list of suites or study. */
  private part({ part }: LiveRun): (Node | string)[] {
    if (!part) return [];
    const same = [...this.all.values()]
      .filter((other) => other.part?.group === part.group)
      .sort((a, b) => (a.part?.number ?? 0) - (b.part?.number ?? 0))
      .map(({ id }) => id);
    const text = `${line(part.list)} ${part.number} of ${part.of}`;
    return [h('a', { class: 'link', href: to(same.slice(0, CHOSEN_MAX)) }, text)];
  }
}
