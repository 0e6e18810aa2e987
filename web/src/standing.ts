// How runs stand, and whether what is shown is what is: above every page that is served.

import type { Refused } from './ask';
import { h, line } from './dom';
import * as format from './format';
import type { Live, LiveRun } from './generated/live';

type Trouble = Live['trouble'];

/** Words for what a run is doing. */
export function word({ standing, visits_made: made, visits_planned: planned }: LiveRun): string {
  switch (standing) {
    case 'running':
      return `running: ${made} of ${planned} visits`;
    case 'killed':
      return `killed after ${made} of ${planned} visits; plimsoll resume goes on`;
    case 'complete':
      return 'complete';
    case 'imported':
      return 'imported';
    case 'damaged':
      return 'damaged';
    default:
      return `${standing} after ${made} of ${planned} visits`;
  }
}

/** Time left by the pace seen here, as words; of rounds that may end earlier. */
class Pace {
  private first: { at: number; made: number } | null = null;

  left({ standing, visits_made: made, visits_planned: planned }: LiveRun): string {
    if (standing !== 'running') {
      this.first = null;
      return '';
    }
    const now = performance.now();
    this.first ??= { at: now, made };
    const done = made - this.first.made;
    if (done < 2 || planned <= made) return '';
    const each = (now - this.first.at) / done;
    const ms = each * (planned - made);
    return `, ${format.time(Math.max(1, Math.round(ms / 1000)) * 1e9)} more at most at this pace`;
  }
}

export function bar({ standing, visits_made: made, visits_planned: planned, id }: LiveRun) {
  if (standing !== 'running') return null;
  return h('progress', {
    max: Math.max(planned, 1),
    value: Math.min(made, planned),
    'aria-label': `${id}: visits made`,
  });
}

export class Standing {
  readonly element = h('div', { class: 'standing' });
  private readonly lost = h('p', { class: 'warn', role: 'alert' });
  private readonly bad = h('p', { class: 'warn', role: 'alert' });
  private readonly all = h('ul', {});
  private readonly paces = new Map<string, Pace>();
  private since: Date | null = null;

  constructor() {
    this.lost.hidden = true;
    this.bad.hidden = true;
    this.element.append(this.lost, this.bad, this.all);
  }

  there(is: boolean): void {
    this.since = is ? null : (this.since ?? new Date());
    const at = this.since?.toTimeString().slice(0, 8) ?? '';
    const text = `The server has not answered since ${at}: what is shown is as of then. It is asked again and again.`;
    this.say(this.lost, is ? '' : text);
  }

  trouble(trouble: Trouble): void {
    this.say(this.bad, trouble ? [trouble.error, trouble.hint].filter(Boolean).join(' – ') : '');
  }

  refused({ message, hint }: Refused): void {
    const again = 'What is shown is not kept up to date until then; it is asked again and again.';
    this.trouble({ error: `The server says: ${message}.`, hint: `${hint}. ${again}` });
  }

  /** * `all`: runs, or the ids of those that are not there. */
  runs(all: (LiveRun | string)[]): void {
    const items = all.map((run) => {
      if (typeof run === 'string') return h('li', { class: 'gone' }, `${run} is not in the store`);
      const pace = this.paces.get(run.id) ?? new Pace();
      this.paces.set(run.id, pace);
      return h(
        'li',
        { class: run.standing },
        h('strong', {}, run.id),
        ` ${word(run)}${pace.left(run)} `,
        bar(run),
      );
    });
    this.all.replaceChildren(...items);
  }

  private say(element: HTMLElement, text: string): void {
    const said = line(text);
    if (element.textContent !== said) element.textContent = said;
    element.hidden = said === '';
  }
}
