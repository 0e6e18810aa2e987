// A page of runs: puts up its parts, draws again what a choice changes, and takes newer data.

import { Numbers, about } from './about';
import * as cell from './cell';
import { h, line, refill, svg } from './dom';
import { FIGURES } from './figures';
import type { Context, Figure } from './figures/figure';
import { keys, leading } from './lead';
import * as format from './format';
import * as model from './model';
import { colors } from './palette';
import { Shown, choice, wakeAll, wakeFirst } from './show';
import * as state from './state';
import { answer, verdicts } from './verdicts';

export function isDark(): boolean {
  const { theme } = state.get();
  return theme === 'auto' ? matchMedia('(prefers-color-scheme: dark)').matches : theme === 'dark';
}

/** Puts on the colours that were chosen. */
export function dress(): void {
  document.documentElement.dataset['theme'] = isDark() ? 'dark' : 'light';
}

/** The load line: a ring with a bar through it. */
function mark(): SVGElement {
  const stroke = { fill: 'none', stroke: 'currentColor', 'stroke-width': 3 };
  return svg(
    'svg',
    { viewBox: '0 0 40 32', width: 40, height: 32, 'aria-hidden': 'true' },
    svg('circle', { cx: 20, cy: 16, r: 11, ...stroke }),
    svg('line', { x1: 2, y1: 16, x2: 38, y2: 16, ...stroke }),
  );
}

/** The head of every page. */
export function brand(title: HTMLElement, bar: HTMLElement): HTMLElement {
  const words = h('div', {}, h('p', { class: 'word' }, 'Plimsoll'), title);
  return h('header', {}, h('div', { class: 'brand' }, mark(), words), bar);
}

export function themes(): HTMLElement {
  return choice(
    'Colours',
    state.get().theme,
    [
      ['auto', 'auto'],
      ['light', 'light'],
      ['dark', 'dark'],
    ],
    (value) => state.set({ theme: value }),
  );
}

function title(page: model.Page): string {
  const [first] = page.runs;
  if (!first) return 'no run';
  const one = [line(first.suite), model.hardware(first)]
    .filter(Boolean)
    .map(model.cut)
    .join(' on ');
  if (page.runs.length === 1) return one;
  const all = model.unique(page.runs.map(model.hardware));
  if (page.which) return `Which place for a database: ${all.map(model.cut).join(' or ')}`;
  const several =
    all.length > 1 && all.length <= 3 ? `: ${all.map(model.cut).join(' against ')}` : '';
  const suites = model.unique(page.runs.map(({ suite }) => line(suite)));
  return `${page.runs.length} runs of ${suites.slice(0, 3).join(', ')}${suites.length > 3 ? ' and others' : ''}${several}`;
}

function chips(page: model.Page): HTMLElement {
  const runs = page.runs.slice(0, 8).map((run) => {
    const tool = run.imported
      ? `measured by ${line(run.imported.tool)}`
      : `${line(run.machine.host)}, ${format.clock(run.started_unix_ns)}`;
    const cells = format.several(model.grid(run).length, 'cell');
    return h(
      'li',
      { title: line(run.target.given) },
      h('strong', {}, model.runName(page, run)),
      ` ${[tool, cells, run.state === 'complete' ? '' : run.state].filter(Boolean).join(' · ')}`,
    );
  });
  const more = page.runs.length - runs.length;
  return h('ul', { class: 'runs' }, ...runs, more > 0 ? h('li', {}, `and ${more} more`) : null);
}

function tools(): HTMLElement {
  return h(
    'div',
    { class: 'tools' },
    choice(
      'Units',
      state.get().unit,
      [
        ['MB', 'MB'],
        ['MiB', 'MiB'],
      ],
      (value) => state.set({ unit: value }),
    ),
    themes(),
    h('button', { type: 'button', class: 'small', click: () => print() }, 'Print'),
  );
}

const nav = (kinds: Figure[]): HTMLElement =>
  h(
    'nav',
    { 'aria-label': 'Figures' },
    ...kinds.map(({ id, title: name }) => h('a', { href: `#figure-${id}` }, name)),
    h('a', { href: '#figure-table' }, 'The numbers'),
  );

function named(kinds: Figure[]): Map<string, string> {
  const drawn = new Map(kinds.map(({ id, title: name }) => [id, name]));
  return drawn.set('about', 'where it comes from');
}

/** A part that is made again when what it is made of is another. */
class Part {
  readonly element = h('div', {});
  private from = '';

  put(from: unknown, make: () => HTMLElement): void {
    const text = JSON.stringify(from);
    if (text === this.from) return;
    this.from = text;
    const fresh = make();
    // What the reader had open stays so.
    const name = (one: HTMLDetailsElement) =>
      [
        one.closest('.of-run')?.querySelector('strong')?.textContent,
        one.parentElement?.querySelector(':scope > h3')?.textContent,
        one.className,
      ].join('\n');
    const before = new Map(
      [...this.element.querySelectorAll('details')].map((one) => [name(one), one.open]),
    );
    for (const one of fresh.querySelectorAll('details'))
      one.open = before.get(name(one)) ?? one.open;
    this.element.replaceChildren(fresh);
  }
}

export interface Extras {
  /** Stands above everything else. */
  top?: HTMLElement;
  footer: string;
}

export interface Mounted {
  /** Takes newer data of the same runs. */
  update(page: model.Page): void;
}

/** Puts a page up. */
export function mount(first: model.Page, app: HTMLElement, extras: Extras): Mounted {
  let page = first;
  let paper = false;
  state.start(
    page.runs.length,
    page.which && page.runs.length === 2 && page.which.run === page.runs[0]?.id ? 1 : 0,
  );
  const context = (): Context => ({ page, state: state.get(), colors: colors(!paper && isDark()) });
  dress();
  const heading = h('h1', {});
  const bar = h('div', {}, tools());
  const dialog = h('dialog', { 'aria-labelledby': 'title-cell' });
  dialog.addEventListener('close', () => state.get().cell !== '' && cell.close());
  dialog.addEventListener('click', (event) => event.target === dialog && cell.close());
  const [runs, head, prose] = [new Part(), new Part(), new Part()];
  const [meaning, links, origin] = [new Part(), new Part(), new Part()];
  const leader = h('div', {});
  const lead = h(
    'section',
    { class: 'lead', 'aria-label': 'The answer' },
    head.element,
    leader,
    prose.element,
  );
  const raw = new Numbers(() => page);
  const figures = h('div', { class: 'figures' });
  const main = h(
    'main',
    {},
    extras.top,
    runs.element,
    lead,
    meaning.element,
    links.element,
    figures,
    raw.element,
    origin.element,
  );
  app.replaceChildren(brand(heading, bar), main, h('footer', {}, `${extras.footer}`), dialog);

  const accepted = () => FIGURES.filter((figure) => figure.accepts(page));
  let kinds = accepted();
  let foremost = leading(page, kinds);
  const words = () => {
    heading.textContent = title(page);
    heading.title = page.runs.length === 1 ? line(page.runs[0]?.target.given ?? '') : '';
    document.title = `${title(page)} – Plimsoll`;
    const ids = kinds.map(({ id }) => id);
    const { runs: all, against, together } = page;
    runs.put([all.map(({ id, state, cells }) => [id, state, cells.length])], () => chips(page));
    const found = [ids, page.which, against, together, all.map((run) => run.verdicts)];
    const told = () => answer(page, named(kinds));
    head.put([found, state.get().unit, all.map(({ cells }) => cells.map(({ iops }) => iops))], () =>
      h('div', {}, told().head, keys(page)),
    );
    prose.put(found, () => told().prose);
    meaning.put([ids, against, together, all.map((run) => run.verdicts)], () =>
      verdicts(page, named(kinds)),
    );
    links.put(ids, () => nav(kinds));
    raw.renew();
    const facts = all.map(({ cells, verdicts: _, barriers, freezes, changes, steady, ...rest }) => {
      void [cells, barriers, freezes, changes, steady];
      return rest;
    });
    origin.put(facts, () => about(page));
  };
  words();

  // Once on the page, so that drawings know how wide they are.
  const shown = new Map<string, Shown>();
  const waiting = [...(foremost ? [foremost] : []), ...kinds.filter((one) => one !== foremost)];
  const add = (figure: Figure) => {
    const one = new Shown(figure, context);
    shown.set(figure.id, one);
    if (figure.id === foremost?.id) {
      leader.append(one.element);
      return;
    }
    const place = kinds.findIndex(({ id }) => id === figure.id);
    const after = kinds.slice(place + 1).find(({ id }) => shown.has(id) && id !== foremost?.id);
    figures.insertBefore(one.element, (after && shown.get(after.id)?.element) ?? null);
  };
  const next = () => {
    const figure = waiting.shift();
    if (figure) add(figure);
    if (waiting.length === 0) document.documentElement.dataset['ready'] = 'true';
  };
  // The first is seen before the others are worked out.
  next();
  wakeFirst();
  const later = () => {
    next();
    if (waiting.length > 0) setTimeout(later);
  };
  setTimeout(later);
  if (state.get().cell !== '') cell.show(dialog, context());

  const redraw = () => {
    for (const one of shown.values()) one.draw();
  };
  state.listen((_, changed) => {
    dress();
    if (changed.has('theme') || changed.has('unit')) {
      refill(bar, tools());
      words();
    }
    if ([...changed].some((key) => key !== 'cell')) redraw();
    if (changed.has('cell') || changed.has('theme') || changed.has('unit'))
      cell.show(dialog, context());
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    dress();
    redraw();
  });
  // Paper is white, and has everything on it.
  addEventListener('beforeprint', () => {
    paper = true;
    document.documentElement.classList.add('paper');
    while (waiting.length > 0) next();
    redraw();
    wakeAll();
  });
  addEventListener('afterprint', () => {
    paper = false;
    document.documentElement.classList.remove('paper');
    redraw();
  });

  const update = (fresh: model.Page) => {
    while (waiting.length > 0) next();
    const open = model.find(page, state.get().cell);
    page = fresh;
    kinds = accepted();
    foremost ??= leading(page, kinds);
    words();
    for (const [id, one] of shown) {
      if (kinds.some((kind) => kind.id === id)) one.update();
      else {
        one.remove();
        shown.delete(id);
      }
    }
    for (const kind of kinds) if (!shown.has(kind.id)) add(kind);
    const now = model.find(page, state.get().cell);
    if (now && JSON.stringify(now) !== JSON.stringify(open)) cell.refresh(dialog, context());
  };
  return {
    update: (fresh) => {
      // Paper is not changed while it is printed.
      if (!paper) update(fresh);
    },
  };
}
