// A figure on the page: its head, controls, legend, drawings, and how to read it.

import type { EChartsType } from 'echarts/core';
import { asSvg, base, open, savePng, type Datum, type Option } from './chart';
import { csv, download, fileName, h, line, refill, svg } from './dom';
import { FLUSHED, isLog } from './figures/figure';
import type { Context, Control, Drawing, Entry, Figure, Panel } from './figures/figure';
import { hasCourse, place as course } from './figures/course';
import { hasHeat, place as heat } from './figures/latencies';
import { choices } from './figures/levels';
import * as format from './format';
import * as model from './model';
import type { Colors } from './palette';
import * as state from './state';

/** Where a panel is, and its drawing once it is made. */
interface Slot {
  panel: Panel;
  element: HTMLElement;
  canvas: HTMLElement | null;
  chart: EChartsType | null;
  /** Somebody reads a point of it: newer data wait until then. */
  held: boolean;
  late: boolean;
}

/** A drawing that comes near the window is made before the others. */
const near = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) if (entry.isIntersecting) wake(entry.target);
  },
  { rootMargin: '600px 0px' },
);
const asleep = new Map<Element, () => void>();
/** Drawings that are made without being near: all of a page of a few runs. */
let eager = 40;

/** Makes the others one by one, so that no drawing has to be scrolled to before it is there. */
function drain(): void {
  const [first] = asleep.keys();
  if (!first || eager <= 0) return;
  eager -= 1;
  wake(first);
}

function wake(element: Element): void {
  const make = asleep.get(element);
  asleep.delete(element);
  near.unobserve(element);
  make?.();
}

/** Makes the first drawing, wherever it is: whoever opens a page has it at once. */
export function wakeFirst(): void {
  const [first] = asleep.keys();
  if (first) wake(first);
}

/** Makes all drawings, for paper. */
export function wakeAll(): void {
  for (const element of [...asleep.keys()]) wake(element);
}

export class Shown {
  readonly element: HTMLElement;
  private readonly head = h('div', { class: 'figure-tools' });
  private readonly legend = h('div', { class: 'legend' });
  private readonly panels = h('div', { class: 'panels' });
  private readonly left = h('p', { class: 'soft left' });
  private slots: Slot[] = [];
  private drawing: Drawing | null = null;

  constructor(
    private readonly figure: Figure,
    private readonly context: () => Context,
  ) {
    const how = h(
      'details',
      { class: 'how' },
      h('summary', {}, 'How to read this'),
      ...figure.how.map((text) => h('p', {}, text)),
    );
    this.element = h(
      'section',
      { class: 'figure', id: `figure-${figure.id}`, 'aria-labelledby': `title-${figure.id}` },
      h(
        'div',
        { class: 'figure-head' },
        h('h2', { id: `title-${figure.id}` }, figure.title),
        this.head,
      ),
      this.legend,
      this.panels,
      this.left,
      how,
    );
    this.draw();
  }

  draw(): void {
    this.empty();
    const context = this.context();
    const drawing = this.figure.draw(context);
    this.drawing = drawing;
    this.dress(drawing, context);
    this.slots = drawing.panels.map((panel) => this.slot(panel, context));
    this.panels.replaceChildren(...this.slots.map(({ element }) => element));
    this.panels.classList.toggle('many', drawing.panels.length === 3);
    this.say(drawing, context);
    if (drawing.panels.length === 0)
      this.panels.append(h('p', { class: 'soft' }, 'Nothing to draw with these choices.'));
  }

  /** What has to be known of the drawing besides what it shows. */
  private say(drawing: Drawing, { page, state: chosen }: Context): void {
    const isCommitted = page.runs.some((run) => run.cells.some(model.isFlushed));
    const text = [
      drawing.left,
      this.has('metric', page) && chosen.metric === 'latency' && isCommitted && FLUSHED,
    ];
    this.left.textContent = text.filter(Boolean).join(' ');
    this.left.hidden = this.left.textContent === '';
  }

  private has(control: Control, page: model.Page): boolean {
    const { controls } = this.figure;
    return (typeof controls === 'function' ? controls(page) : controls).includes(control);
  }

  /** Draws newer data: in place where the panels are the same, so that nothing jumps. */
  update(): void {
    const context = this.context();
    const drawing = this.figure.draw(context);
    const before = this.slots;
    const same =
      drawing.panels.length === before.length &&
      drawing.panels.every((panel, k) => {
        const old = before[k]?.panel;
        return old?.height === panel.height && old.wide === panel.wide && !old.node && !panel.node;
      });
    if (!same) {
      this.draw();
      return;
    }
    this.drawing = drawing;
    this.say(drawing, context);
    if (!this.head.contains(document.activeElement)) this.dress(drawing, context);
    drawing.panels.forEach((panel, k) => {
      const slot = before[k];
      if (slot) this.renew(slot, panel, context);
    });
  }

  remove(): void {
    this.empty();
    this.element.remove();
  }

  private empty(): void {
    for (const { chart, element } of this.slots) {
      chart?.dispose();
      asleep.delete(element);
      near.unobserve(element);
    }
    this.slots = [];
  }

  private dress(drawing: Drawing, context: Context): void {
    refill(this.head, ...this.controls(context, drawing), this.files());
    refill(this.legend, ...drawing.legend.map((entry) => key(entry, context)));
    this.legend.hidden = drawing.legend.length < 2;
  }

  private slot(panel: Panel, { colors }: Context): Slot {
    const caption = panel.title ? h('figcaption', {}, line(panel.title)) : null;
    const element = h('figure', { class: panel.wide ? 'panel wide' : 'panel' }, caption);
    const slot: Slot = { panel, element, canvas: null, chart: null, held: false, late: false };
    if (panel.node) {
      element.append(panel.node());
      return slot;
    }
    const canvas = h('div', {
      class: 'canvas',
      role: 'img',
      tabindex: 0,
      'aria-label': spoken(panel),
    });
    canvas.style.height = `${panel.height}px`;
    slot.canvas = canvas;
    element.append(canvas);
    asleep.set(element, () => this.make(slot, canvas, colors));
    near.observe(element);
    setTimeout(drain);
    return slot;
  }

  private make(slot: Slot, canvas: HTMLElement, colors: Colors): void {
    const chart = open(canvas, slot.panel.height);
    slot.chart = chart;
    chart.setOption(whole(slot.panel, colors));
    chart.on('click', (event) => openCell((event as { data?: Datum }).data));
    if (performance.getEntriesByName('plimsoll-first').length === 0)
      performance.mark('plimsoll-first');
    const release = () => {
      slot.held = false;
      if (!slot.late) return;
      slot.late = false;
      chart.setOption(whole(slot.panel, this.context().colors), { notMerge: true });
    };
    const hold = () => {
      slot.held = true;
    };
    chart.on('mouseover', hold);
    chart.on('mouseout', release);
    chart.on('globalout', release);
    walkable(canvas, chart, hold, release);
  }

  private renew(slot: Slot, panel: Panel, { colors }: Context): void {
    slot.panel = panel;
    const caption = slot.element.querySelector('figcaption');
    if (caption) caption.textContent = line(panel.title ?? '');
    slot.canvas?.setAttribute('aria-label', spoken(panel));
    if (slot.held) slot.late = true;
    else slot.chart?.setOption(whole(panel, colors), { notMerge: true });
  }

  private controls(context: Context, drawing: Drawing): Node[] {
    const { controls } = this.figure;
    const all = typeof controls === 'function' ? controls(context.page) : controls;
    return all.flatMap((control) => CONTROLS[control](context, drawing, this.figure.id) ?? []);
  }

  private files(): HTMLElement {
    const name = (end: string) =>
      fileName('plimsoll', this.context().page.runs[0]?.id ?? '', this.figure.id) + end;
    const each = (save: (chart: EChartsType, name: string) => void, end: string) => {
      wakeAll();
      const charts = this.slots.flatMap(({ chart }) => chart ?? []);
      charts.forEach((chart, k) => save(chart, name(charts.length > 1 ? `-${k + 1}${end}` : end)));
    };
    const { colors } = this.context();
    const button = (text: string, title: string, act: () => void) =>
      h('button', { type: 'button', class: 'small', title, click: act }, text);
    const drawn = this.drawing?.panels.some(({ option }) => option) ?? false;
    return h(
      'span',
      { class: 'files' },
      button(
        'CSV',
        'The numbers of this figure',
        () => this.drawing && download(name('.csv'), 'text/csv', csv(this.drawing.table)),
      ),
      drawn &&
        button('SVG', 'This figure as lines and letters', () =>
          each((chart, file) => download(file, 'image/svg+xml', asSvg(chart, colors)), '.svg'),
        ),
      drawn &&
        button('PNG', 'This figure as pixels', () =>
          each((chart, file) => savePng(file, chart, colors), '.png'),
        ),
    );
  }
}

/** What a listener hears of a drawing. */
const spoken = (panel: Panel) =>
  `${line(panel.summary)}. The numbers are in the table at the end of the page.`;

function whole(panel: Panel, colors: Colors): Option {
  const own = base(colors);
  const grid = {
    ...(own['grid'] as object),
    ...((panel.option?.['grid'] as object | undefined) ?? {}),
    bottom: 30,
  };
  return { ...own, ...panel.option, grid };
}

export function openCell(datum: Datum | undefined): void {
  if (datum?.place) state.set({ cell: datum.place });
}

/** Arrow keys go from point to point, Enter opens the cell. */
function walkable(
  canvas: HTMLElement,
  chart: EChartsType,
  hold: () => void,
  release: () => void,
): void {
  interface Stop {
    series: number;
    at: number;
    datum: Datum;
  }
  let stops: Stop[] = [];
  let at = -1;
  const find = (): Stop[] => {
    const series =
      (chart.getOption() as { series?: { data?: unknown[]; silent?: boolean }[] }).series ?? [];
    return series.flatMap(({ data, silent }, k) =>
      silent
        ? []
        : (data ?? []).flatMap((one, index) => {
            const datum = one as Datum | null;
            return datum &&
              typeof datum === 'object' &&
              (datum.place || datum.tip) &&
              datum.value !== null
              ? [{ series: k, at: index, datum }]
              : [];
          }),
    );
  };
  const leave = () => {
    chart.dispatchAction({ type: 'hideTip' });
    release();
  };
  canvas.addEventListener('keydown', (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step !== undefined) stops = find();
    if (step !== undefined && stops.length > 0) {
      event.preventDefault();
      hold();
      at = (at + step + stops.length) % stops.length;
      const stop = stops[at];
      if (stop)
        chart.dispatchAction({ type: 'showTip', seriesIndex: stop.series, dataIndex: stop.at });
    } else if (event.key === 'Enter' && at >= 0) {
      // Else the same key presses the button that the dialog begins with.
      event.preventDefault();
      openCell(stops[at]?.datum);
    } else if (event.key === 'Escape') leave();
  });
  canvas.addEventListener('blur', leave);
}

const MARKS: Record<string, string> = {
  circle: 'M12,3.5a3.5,3.5 0 1,0 0.01,0z',
  rect: 'M8.5,3.5h7v7h-7z',
  triangle: 'M12,2.5l4.5,8h-9z',
  diamond: 'M12,2l5,5l-5,5l-5,-5z',
};

function key({ name, look }: Entry, { state: chosen }: Context): HTMLElement {
  const on = !chosen.off.includes(name);
  const dash = Array.isArray(look.dash) ? look.dash.join(' ') : '';
  const hollow = look.symbol.startsWith('empty');
  const shape =
    MARKS[look.symbol.replace(/^empty(.)/, (_, c: string) => c.toLowerCase())] ??
    MARKS['circle'] ??
    '';
  const swatch = svg('svg', { width: 24, height: 14, 'aria-hidden': 'true' });
  if (look.dash !== 'none')
    swatch.append(
      svg('line', {
        x1: 0,
        y1: 7,
        x2: 24,
        y2: 7,
        stroke: look.color,
        'stroke-width': 2,
        'stroke-dasharray': dash,
      }),
    );
  swatch.append(
    svg('path', {
      d: shape,
      fill: hollow ? 'none' : look.color,
      stroke: look.color,
      'stroke-width': 1.5,
    }),
  );
  return h(
    'button',
    {
      type: 'button',
      class: 'key',
      'aria-pressed': on ? 'true' : 'false',
      title: on ? 'Leave this out' : 'Draw this',
      click: () =>
        state.set({ off: on ? [...chosen.off, name] : chosen.off.filter((one) => one !== name) }),
    },
    swatch,
    line(name),
  );
}

/** A few words of which one is chosen. */
export function choice<T extends string>(
  label: string,
  chosen: T,
  all: [T, string][],
  act: (value: T) => void,
): HTMLElement {
  return h(
    'span',
    { class: 'choice', role: 'group', 'aria-label': label },
    ...all.map(([value, text]) =>
      h(
        'button',
        {
          type: 'button',
          'aria-pressed': value === chosen ? 'true' : 'false',
          click: () => act(value),
        },
        text,
      ),
    ),
  );
}

export function select(
  label: string,
  chosen: string,
  all: [string, string][],
  act: (value: string) => void,
): HTMLElement {
  const list = h(
    'select',
    { 'aria-label': label, change: (event) => act((event.target as HTMLSelectElement).value) },
    ...all.map(([value, text]) => h('option', { value, selected: value === chosen }, line(text))),
  );
  return h('label', { class: 'select' }, `${label} `, list);
}

const CONTROLS: Record<
  Control,
  (context: Context, drawing: Drawing, figure: string) => Node | null
> = {
  metric: ({ page, state: chosen }) => {
    const has = (of: (cell: model.PageCell) => unknown) =>
      page.runs.some((run) => model.grid(run).some((cell) => of(cell) !== null));
    const all: [state.Metric, string][] = [
      ['iops', 'IOPS'],
      ['bytes', `${chosen.unit}/s`],
    ];
    if (has((cell) => model.waited(cell) ?? cell.latency_ns.p50)) all.push(['latency', 'latency']);
    if (has((cell) => cell.job_bytes)) all.push(['seconds', 'seconds']);
    return choice('What is drawn', chosen.metric, all, (metric) => state.set({ metric }));
  },
  scale: ({ state: chosen }, { log }) =>
    choice(
      'Scale',
      (log ?? isLog(chosen)) ? 'log' : 'linear',
      [
        ['log', 'log'],
        ['linear', 'linear'],
      ],
      (scale) => state.set({ log: scale === 'log' }),
    ),
  block: ({ page, state: chosen }, { sizes: own }) => {
    const cells = page.runs.flatMap(model.grid);
    const sizes = own ?? model.blocks(cells);
    if (sizes.length < 2) return null;
    return select(
      'block size',
      String(model.focus(chosen, cells)),
      sizes.map((size) => [String(size), format.blockSize(size)]),
      (size) => state.set({ block: Number(size) }),
    );
  },
  part: ({ state: chosen }, { parts }, id) => {
    if (!parts || parts.all <= parts.each) return null;
    const { what, all, each } = parts;
    const count = Math.ceil(all / each);
    return select(
      what,
      String(state.partOf(chosen, id, count)),
      Array.from({ length: count }, (_, k): [string, string] => [
        String(k),
        `${k * each + 1} to ${Math.min((k + 1) * each, all)} of ${all}`,
      ]),
      (part) => {
        const others = chosen.part.filter((one) => !one.startsWith(`${id}:`));
        state.set({ part: part === '0' ? others : [...others, `${id}:${part}`] });
      },
    );
  },
  run: ({ page, state: chosen }) =>
    page.runs.length < 2
      ? null
      : select(
          'run',
          String(chosen.run),
          page.runs.map((run, k) => [String(k), model.runName(page, run)]),
          (run) => state.set({ run: Number(run) }),
        ),
  base: ({ page, state: chosen }) =>
    page.runs.length < 2
      ? null
      : select(
          'baseline',
          String(chosen.base),
          page.runs.map((run, k) => [String(k), model.runName(page, run)]),
          (base) => state.set({ base: Number(base) }),
        ),
  factor: ({ page, state: chosen }) => {
    const all = choices(page, chosen.block).map(({ name }) => name);
    const at = all.find((name) => name === chosen.factor) ?? all[0] ?? '';
    return select(
      'by',
      at,
      all.map((name) => [name, name]),
      (factor) => state.set({ factor }),
    );
  },
  course: (context) => cells(context, course(context), hasCourse),
  heat: (context) => cells(context, heat(context), hasHeat),
};

/** Which cell is looked at, of those that can be. */
function cells(
  { page }: Context,
  at: model.Place | null,
  has: (cell: model.PageCell) => boolean,
): Node {
  const all = page.runs.flatMap((run, k) =>
    model
      .grid(run)
      .filter(has)
      .map((cell): [string, string] => [
        model.address({ run: k, cell }),
        page.runs.length > 1 ? `${run.id}: ${cell.name}` : cell.name,
      ]),
  );
  return select('cell', at ? model.address(at) : '', all, (course) => state.set({ course }));
}
