// The page as `plimsoll serve` shows it: the list of runs, and the page of some, live.

import { NoToken, Refused, ask, borrowToken, hearToken, keepToken, listen, takeToken } from './ask';
import { h, line, refill } from './dom';
import * as format from './format';
import type { Live, LiveRun } from './generated/live';
import type * as model from './model';
import { brand, dress, mount, themes, type Mounted } from './page';
import { Runs } from './runs';
import * as state from './state';
import { Standing } from './standing';

/** What a page says at its foot. */
const footer = (program: string, store: string) =>
  `Served by Plimsoll ${line(program)} from ${line(store)}. The store is only read.`;

export async function serve(app: HTMLElement): Promise<void> {
  await takeToken();
  const ids = /^\/runs\/([r0-9,]+)$/.exec(location.pathname)?.[1]?.split(',');
  if (ids) new Some(ids, app).start();
  else list(app);
}

/** Asks for the token, where the address had none. */
function askToken(app: HTMLElement): void {
  // Events and the page are asked for apart: who types already is not to begin anew.
  if (document.getElementById('token')) return;
  const input = h('input', {
    type: 'password',
    id: 'token',
    autocomplete: 'off',
    spellcheck: 'false',
    required: true,
  });
  const form = h(
    'form',
    {
      class: 'nothing',
      submit: (event) => {
        event.preventDefault();
        keepToken(input.value.trim());
        location.reload();
      },
    },
    h('h1', {}, 'This server asks for its token'),
    h('p', {}, 'It stands in the address that plimsoll serve printed, behind “token=”.'),
    h('label', { for: 'token' }, 'Token '),
    input,
    ' ',
    h('button', { type: 'submit' }, 'Go on'),
  );
  dress();
  document.title = 'Token – Plimsoll';
  app.replaceChildren(h('main', {}, form));
  document.documentElement.dataset['ready'] = 'true';
  input.focus();
  // Another tab may have much else to do before it answers, or be given the token first.
  hearToken(() => location.reload());
}

function list(app: HTMLElement): void {
  state.start(0);
  dress();
  document.title = 'Runs – Plimsoll';
  const standing = new Standing();
  const runs = new Runs();
  const bar = h('div', { class: 'tools' }, themes());
  const foot = h('footer', {});
  const main = h('main', {}, standing.element, runs.element);
  app.replaceChildren(brand(h('h1', {}, 'Runs'), bar), main, foot);
  state.listen(() => {
    dress();
    refill(bar, themes());
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', dress);
  void listen({
    news: (live) => {
      standing.trouble(live.trouble ?? null);
      runs.take(live);
      foot.textContent = footer(live.program, live.store);
      document.documentElement.dataset['ready'] = 'true';
    },
    there: (is) => standing.there(is),
    refused: (why) => standing.refused(why),
    noToken: () => askToken(app),
  });
}

/** Asked for so long after news at the earliest, so that several visits are drawn at once. */
const SETTLE = 150;

/** The page of some runs, which follows them. */
class Some {
  private readonly standing = new Standing();
  private readonly top = h(
    'div',
    { class: 'live' },
    h('a', { class: 'back', href: '/' }, '← All runs'),
    this.standing.element,
  );
  private mounted: Mounted | null = null;
  private runs = new Map<string, LiveRun>();
  /** As of which version the page is that is shown. */
  private version = -1;
  /** As of which version it could be, by what the server told. */
  private newest = -1;
  private timer = 0;
  private asking = false;

  constructor(
    private readonly ids: string[],
    private readonly app: HTMLElement,
  ) {}

  start(): void {
    dress();
    this.app.replaceChildren(h('main', {}, this.top, h('p', { class: 'nothing' }, 'Reading …')));
    document.title = `${this.ids.join(', ')} – Plimsoll`;
    void this.fetch();
    void listen({
      news: (live) => this.news(live),
      there: (is) => this.standing.there(is),
      refused: (why) => this.standing.refused(why),
      noToken: () => askToken(this.app),
    });
  }

  private news(live: Live): void {
    this.standing.trouble(live.trouble ?? null);
    if (live.whole) this.runs.clear();
    for (const run of live.runs) if (this.ids.includes(run.id)) this.runs.set(run.id, run);
    this.standing.runs(this.ids.map((id) => this.runs.get(id) ?? id));
    if (live.trouble) return;
    this.newest = Math.max(0, ...[...this.runs.values()].map(({ version }) => version));
    // Of a server that was started anew, versions begin anew.
    if (live.whole && live.version < this.version) this.version = -1;
    if (this.newest > this.version) this.soon(SETTLE);
  }

  private soon(ms: number): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.fetch(), ms);
  }

  private async fetch(): Promise<void> {
    if (this.asking || document.visibilityState !== 'visible') {
      this.soon(500);
      return;
    }
    // What was asked for when the news came may have had them already.
    if (this.mounted && this.newest <= this.version) return;
    this.asking = true;
    try {
      const response = await ask(`/api/page/${this.ids.join(',')}`);
      const page = (await response.json()) as model.Page;
      this.version = Number(response.headers.get('plimsoll-version') ?? 0);
      this.put(page);
      const fresh = response.headers.get('plimsoll-fresh-in-ms');
      if (fresh !== null) this.soon(Number(fresh) + 20);
    } catch (error) {
      this.failed(error);
    } finally {
      this.asking = false;
    }
  }

  private put(page: model.Page): void {
    if (this.mounted) {
      this.mounted.update(page);
      return;
    }
    const foot = `Served by Plimsoll ${line(page.program)}, read at ${format.clock(Date.now() * 1e6)}. The store is only read.`;
    this.mounted = mount(page, this.app, { top: this.top, footer: foot });
  }

  private failed(error: unknown): void {
    if (error instanceof NoToken) {
      void borrowToken().then((found) => (found ? this.fetch() : askToken(this.app)));
      return;
    }
    if (!this.mounted) {
      const why = error instanceof Refused ? [error.message, error.hint] : [String(error)];
      const said = why.filter(Boolean).map((text) => h('p', {}, line(text)));
      this.app.replaceChildren(h('main', {}, this.top, h('div', { class: 'nothing' }, ...said)));
      document.documentElement.dataset['ready'] = 'true';
    }
    // Busy, or the store is away for a moment: what is gone for good is told by the events.
    const isGone = error instanceof Refused && error.status === 404;
    if (!isGone) this.soon(2000);
  }
}
