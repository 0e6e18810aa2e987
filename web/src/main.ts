// The page: reads its data, puts up its parts, and draws again what a choice changes.

import './style.css';
import { about, table } from './about';
import * as cell from './cell';
import { h, line, svg } from './dom';
import { FIGURES } from './figures';
import type { Context } from './figures/figure';
import * as format from './format';
import * as model from './model';
import { colors } from './palette';
import { Shown, choice, wakeAll, wakeFirst } from './show';
import * as state from './state';
import { verdicts } from './verdicts';

const SCHEMA = 'plimsoll.page/1';

/** The data as text; much of it is compressed. */
async function text(): Promise<string> {
  const element = document.getElementById('plimsoll-page');
  const own = element?.textContent ?? 'null';
  if (element?.dataset['coding'] !== 'gzip') return own;
  const bytes = Uint8Array.from(atob(own), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).text();
}

function data(text: string): model.Page | null {
  const found = JSON.parse(text) as model.Page | null;
  return found?.schema === SCHEMA ? found : null;
}

function isDark(): boolean {
  const { theme } = state.get();
  return theme === 'auto' ? matchMedia('(prefers-color-scheme: dark)').matches : theme === 'dark';
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

function title(page: model.Page): string {
  const [first] = page.runs;
  if (!first) return 'no run';
  const one = [line(first.suite), line(first.target.given)].filter(Boolean).join(' on ');
  if (page.runs.length === 1) return one;
  const suites = model.unique(page.runs.map(({ suite }) => line(suite)));
  return `${page.runs.length} runs of ${suites.slice(0, 3).join(', ')}${suites.length > 3 ? ' and others' : ''}`;
}

function chips(page: model.Page): HTMLElement {
  const runs = page.runs.slice(0, 8).map((run) => {
    const tool = run.imported
      ? `measured by ${line(run.imported.tool)}`
      : `${line(run.machine.host)}, ${format.clock(run.started_unix_ns)}`;
    const cells = `${model.grid(run).length} cells`;
    return h(
      'li',
      {},
      h('strong', {}, model.runName(run)),
      ` ${[tool, cells, run.state === 'complete' ? '' : run.state].filter(Boolean).join(' · ')}`,
    );
  });
  const more = page.runs.length - runs.length;
  return h('ul', { class: 'runs' }, ...runs, more > 0 ? h('li', {}, `and ${more} more`) : null);
}

function tools(): HTMLElement {
  const { unit, theme } = state.get();
  return h(
    'div',
    { class: 'tools' },
    choice(
      'Units',
      unit,
      [
        ['MB', 'MB'],
        ['MiB', 'MiB'],
      ],
      (value) => state.set({ unit: value }),
    ),
    choice(
      'Colours',
      theme,
      [
        ['auto', 'auto'],
        ['light', 'light'],
        ['dark', 'dark'],
      ],
      (value) => state.set({ theme: value }),
    ),
    h('button', { type: 'button', class: 'small', click: () => print() }, 'Print'),
  );
}

function start(page: model.Page, app: HTMLElement): void {
  state.start(page.runs.length);
  const context = (): Context => ({
    page,
    state: state.get(),
    colors: colors(!paper && isDark()),
  });
  let paper = false;
  const dress = () => {
    document.documentElement.dataset['theme'] = isDark() ? 'dark' : 'light';
  };
  dress();
  document.title = `${title(page)} – Plimsoll`;

  const kinds = FIGURES.filter((figure) => figure.accepts(page));
  const drawn = new Map(kinds.map(({ id, title: name }) => [id, name]));
  drawn.set('about', 'where it comes from');
  const bar = h('div', {}, tools());
  const dialog = h('dialog', { 'aria-labelledby': 'title-cell' });
  dialog.addEventListener('close', () => state.get().cell !== '' && cell.close());
  dialog.addEventListener('click', (event) => event.target === dialog && cell.close());
  const nav = h(
    'nav',
    { 'aria-label': 'Figures' },
    ...kinds.map(({ id, title: name }) => h('a', { href: `#figure-${id}` }, name)),
    h('a', { href: '#figure-table' }, 'The numbers'),
  );
  const raw = h('div', {}, table(page));
  const figures = h('div', { class: 'figures' });
  app.replaceChildren(
    h(
      'header',
      {},
      h(
        'div',
        { class: 'brand' },
        mark(),
        h('div', {}, h('p', { class: 'word' }, 'Plimsoll'), h('h1', {}, title(page))),
      ),
      bar,
    ),
    h('main', {}, chips(page), verdicts(page, drawn), nav, figures, raw, about(page)),
    h(
      'footer',
      {},
      `Made by Plimsoll ${line(page.program)}. This file needs no network, and holds all that it shows.`,
    ),
    dialog,
  );
  // Once on the page, so that drawings know how wide they are.
  const shown: Shown[] = [];
  const waiting = [...kinds];
  const next = () => {
    const figure = waiting.shift();
    if (figure) {
      const one = new Shown(figure, context);
      shown.push(one);
      figures.append(one.element);
    }
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
    for (const one of shown) one.draw();
  };
  state.listen((_, changed) => {
    dress();
    if (changed.has('theme') || changed.has('unit')) {
      bar.replaceChildren(tools());
      raw.replaceChildren(table(page));
    }
    if ([...changed].some((key) => key !== 'cell')) redraw();
    if (changed.has('cell') || changed.has('theme') || changed.has('unit'))
      cell.show(dialog, context());
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    dress();
    redraw();
  });
  let width = innerWidth;
  addEventListener('resize', () => {
    if (innerWidth === width || paper) return;
    width = innerWidth;
    for (const one of shown) one.resize();
  });
  // Paper is white, and has everything on it.
  addEventListener('beforeprint', () => {
    paper = true;
    document.documentElement.classList.add('paper');
    for (const details of document.querySelectorAll<HTMLDetailsElement>('.verdicts details'))
      details.open = true;
    while (waiting.length > 0) next();
    redraw();
    wakeAll();
  });
  addEventListener('afterprint', () => {
    paper = false;
    document.documentElement.classList.remove('paper');
    redraw();
  });
}

const app = document.getElementById('app');

function nothing(why: string): void {
  app?.replaceChildren(h('p', { class: 'nothing' }, why));
}

text()
  .then((found) => {
    const page = data(found);
    if (app && page) start(page, app);
    else nothing('There is no data of this version in this file.');
  })
  .catch((error: unknown) => {
    nothing(`This page cannot be drawn here: ${String(error)}`);
    throw error;
  });
