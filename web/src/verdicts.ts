// What it means, first on the page: each verdict with the figure that shows it and its evidence.

import { h, line } from './dom';
import * as format from './format';
import * as model from './model';
import * as state from './state';

type Verdict = model.PageRun['verdicts'][number];

type Evidence = Verdict['evidence'][number];
type Drawn = Map<string, string>;

/** A cell's name that opens it. */
const opener = (text: string, run: number, cell: model.PageCell, look: string) =>
  h(
    'button',
    {
      type: 'button',
      class: look,
      click: () => state.set({ cell: model.address({ run, cell }) }),
    },
    line(text),
  );

/** Where words stand that are no part of a longer word, number or name such as `log+reads`. */
function alone(text: string, words: string): number {
  const inner = (letter: string | undefined) => /[\p{L}\p{N}+\-_/]/u.test(letter ?? '');
  let at = text.indexOf(words);
  while (at >= 0 && (inner(text[at - 1]) || inner(text[at + words.length])))
    at = text.indexOf(words, at + 1);
  return at;
}

/** Text in which the cells that it names lead to them. */
function sentence(text: string, page: model.Page, run: number, evidence?: Evidence): Node[] {
  const cells = page.runs[run]?.cells ?? [];
  const [named, ...others] = evidence?.cells ?? [];
  if (named) {
    const rest = { figures: [], cells: others };
    const at = alone(text, named.words);
    const cell = cells.find(({ key }) => key === named.cell);
    if (at < 0 || !cell) return sentence(text, page, run, rest);
    const end = at + named.words.length;
    // Between quotes of its own the name stands for itself.
    const before = text.slice(0, at).replace(/`$/, '');
    const after = text.slice(end).replace(/^`/, '');
    return [
      ...sentence(before, page, run),
      opener(named.words, run, cell, 'link'),
      ...sentence(after, page, run, rest),
    ];
  }
  return text.split('`').flatMap((part, k): Node[] => {
    if (part === '') return [];
    if (k % 2 === 0) return [document.createTextNode(format.signs(line(part)))];
    const cell = cells.find(({ name }) => name === part);
    return [cell ? opener(part, run, cell, 'link') : h('code', {}, line(part))];
  });
}

/** A link to a figure; of one that shows one cell, to that of the cell that is spoken of. */
function see(
  id: string,
  drawn: Drawn,
  words: string,
  look: string,
  about: model.Place | null,
): HTMLElement {
  const go = (event: Event) => {
    event.preventDefault();
    if (about && COURSES.has(id)) state.set({ course: model.address(about) });
    const target = document.getElementById(`figure-${id}`);
    target?.scrollIntoView({
      behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth',
    });
    target?.classList.remove('flash');
    requestAnimationFrame(() => target?.classList.add('flash'));
  };
  return h('a', { class: look, href: `#figure-${id}`, click: go }, words + (drawn.get(id) ?? ''));
}

/** Figures of one cell. */
const COURSES = new Set(['time', 'latencies']);

const first = (figures: string[], drawn: Drawn) => figures.find((one) => drawn.has(one));

/** The first of the figures that are drawn, for what has no link by its sentences. */
function lead(verdict: Pick<Verdict, 'figures'>, drawn: Drawn): HTMLElement | null {
  const id = first(verdict.figures, drawn);
  return id === undefined ? null : see(id, drawn, 'See: ', 'see', null);
}

/** A sentence, with what it can be seen in. */
function saidOf(
  verdict: Verdict,
  at: number,
  page: model.Page,
  run: number,
  drawn: Drawn,
  look: string,
): HTMLElement {
  const own = verdict.evidence[at];
  const id = own && first(own.figures, drawn);
  const cells = page.runs[run]?.cells ?? [];
  const cell = own?.cells.map((named) => cells.find(({ key }) => key === named.cell))[0];
  const about = cell ? { run, cell } : null;
  return h(
    'p',
    { class: look },
    ...sentence(verdict.sentences[at] ?? '', page, run, own),
    ' ',
    id === undefined ? null : see(id, drawn, '→ ', 'seen', about),
  );
}

const CELLS_MAX = 12;

function evidence(verdict: Verdict, page: model.Page, run: number): HTMLElement | null {
  const cells = verdict.cells.flatMap(
    (key) => page.runs[run]?.cells.find((cell) => cell.key === key) ?? [],
  );
  if (cells.length === 0) return null;
  const shown = cells.slice(0, CELLS_MAX).map((cell) => opener(cell.name, run, cell, 'chip'));
  const more = cells.length - shown.length;
  return h(
    'p',
    { class: 'chips' },
    ...shown,
    more > 0 ? h('span', { class: 'soft' }, ` and ${more} more`) : null,
  );
}

function card(verdict: Verdict, page: model.Page, run: number, drawn: Drawn): HTMLElement {
  const rest = verdict.sentences.slice(1);
  const all = () => rest.map((_, k) => saidOf(verdict, k + 1, page, run, drawn, ''));
  const isAnswer = verdict.question === 'answer';
  const more =
    rest.length === 0
      ? null
      : isAnswer
        ? h('div', {}, ...all())
        : h(
            'details',
            {},
            h(
              'summary',
              {},
              rest.length === 1 ? 'one sentence more' : `${rest.length} sentences more`,
            ),
            ...all(),
          );
  return h(
    'article',
    { class: `verdict${isAnswer ? ' answer' : verdict.is_doubt ? ' doubt' : ''}` },
    h('h3', {}, verdict.is_doubt ? '▲ ' : '', line(verdict.topic)),
    saidOf(verdict, 0, page, run, drawn, 'said'),
    evidence(verdict, page, run),
    more,
    verdict.evidence.some((one) => first(one.figures, drawn) !== undefined)
      ? null
      : lead(verdict, drawn),
  );
}

/** What the reader has to know first comes first. */
const WEIGHT: Verdict['question'][] = [
  'answer',
  'run',
  'stalls',
  'gaps',
  'limits',
  'caches',
  'drift',
  'steady',
];

function sorted(verdicts: Verdict[]): Verdict[] {
  const weight = ({ question, is_doubt, severity }: Verdict) =>
    (is_doubt || question === 'answer' ? 0 : severity === 'unknown' ? 200 : 100) +
    (WEIGHT.indexOf(question) + 1 || 50);
  return [...verdicts].sort((a, b) => weight(a) - weight(b));
}

/** Whether there is a cell that both measured. */
const isHeld = (one: model.Page['against'][number]) => one.cells.length > 0;

/** Runs that are held against the first before the rest is folded. */
const AGAINST_MAX = 3;

/** How many of them are slower, faster, neither for sure, or nothing to compare with. */
function tallied(every: model.Page['against']): string {
  const all = every.filter(isHeld);
  const slower = all.filter((one) => one.slower > 0).length;
  const faster = all.filter((one) => one.slower === 0 && one.faster > 0).length;
  const told: [number, string][] = [
    [slower, 'with cells that are slower'],
    [faster, 'with cells that are faster only'],
    [all.length - slower - faster, 'not told apart'],
    [every.length - all.length, 'without a cell in common'],
  ];
  return told.flatMap(([count, words]) => (count > 0 ? `${count} ${words}` : [])).join(', ');
}

const named = (page: model.Page, id: string) => {
  const run = page.runs.find((one) => one.id === id);
  return run ? model.runName(page, run) : line(id);
};

/** What is said before anything else, and what of it can follow the figure. */
export function answer(page: model.Page, drawn: Drawn): { head: HTMLElement; prose: HTMLElement } {
  const only = page.runs.length === 1 ? page.runs[0] : undefined;
  const own = page.which?.answer ?? only?.verdicts.find(({ question }) => question === 'answer');
  const held = page.against.filter(isHeld).slice(0, AGAINST_MAX);
  const said = (at: number, look: string) => (own ? [saidOf(own, at, page, 0, drawn, look)] : []);
  const rest = own?.sentences.slice(1).flatMap((_, k) => said(k + 1, '')) ?? [];
  const sure = ({ evidence, reference }: (typeof held)[number]) => {
    const first = page.runs.findIndex(({ id }) => id === reference);
    return evidence.map((text) => h('p', {}, ...sentence(text, page, first)));
  };
  const pairs = held.map(({ run, reference, headline }) => {
    const names = `A is ${named(page, reference)}, B is ${named(page, run)}`;
    const first = page.runs.findIndex(({ id }) => id === reference);
    return h(
      'p',
      { class: 'headline' },
      ...sentence(`${headline} `, page, first),
      h('small', {}, names),
    );
  });
  return {
    head: h('div', {}, ...(own ? said(0, 'headline') : pairs)),
    prose: h('div', { class: 'verdict answer' }, ...(own ? rest : held.flatMap(sure))),
  };
}

export function verdicts(page: model.Page, drawn: Drawn): HTMLElement {
  const section = h(
    'section',
    { class: 'verdicts', 'aria-labelledby': 'title-verdicts' },
    h('h2', { id: 'title-verdicts' }, 'What it means'),
  );
  // The answer of the only run stands above.
  const isSaid = ({ question }: Verdict) => question === 'answer' && page.runs.length === 1;
  const cards = (all: Verdict[], run: number) =>
    h(
      'div',
      { class: 'cards' },
      ...sorted(all.filter((one) => !isSaid(one))).map((one) => card(one, page, run, drawn)),
    );
  const against = (one: model.Page['against'][number]) => {
    const first = page.runs.findIndex(({ id }) => id === one.reference);
    const way = one.slower > 0 ? 'verdict doubt' : 'verdict';
    const said = [...one.evidence, ...one.differences];
    return h(
      'article',
      { class: `${way} against` },
      h(
        'h3',
        {},
        `${line(one.run)} against ${line(one.reference)}`,
        h('span', { class: 'soft' }, ` – A is ${line(one.reference)}, B is ${line(one.run)}`),
      ),
      h('p', { class: 'said' }, ...sentence(one.headline, page, first)),
      said.length > 0 &&
        h(
          'details',
          {},
          h('summary', {}, 'evidence, and what differs'),
          ...said.map((text) => h('p', {}, ...sentence(text, page, first))),
        ),
      one.cells.length > 0 && lead({ figures: ['compare', 'size'] }, drawn),
    );
  };
  // What says nothing comes last, but where it is the whole answer.
  const held = page.against.filter(isHeld);
  const known = page.against.length === 1 ? page.against : held;
  section.append(...known.slice(0, AGAINST_MAX).map(against));
  const rest = page.against.filter((one) => !known.slice(0, AGAINST_MAX).includes(one));
  if (rest.length > 0) {
    const references = model.unique(rest.map(({ reference }) => line(reference)));
    section.append(
      h(
        'details',
        { class: 'of-run rest' },
        h(
          'summary',
          {},
          `${rest.length} ${rest.length < page.against.length ? 'more ' : ''}against ${references.join(' or ')}: ${tallied(rest)}`,
        ),
        ...rest.map(against),
      ),
    );
  }
  if (page.together.length > 0)
    section.append(
      h('div', { class: 'cards' }, ...page.together.map((one) => card(one, page, 0, drawn))),
    );
  if (page.runs.length === 1 && page.runs[0]) section.append(cards(page.runs[0].verdicts, 0));
  else {
    page.runs.forEach((run, at) => {
      const isGrave = ({ is_doubt, severity, question }: Verdict) =>
        is_doubt || (question !== 'answer' && (severity === 'warning' || severity === 'failure'));
      const grave = run.verdicts.filter(isGrave).length;
      const told = grave > 0 ? `${grave} to look at` : 'nothing to look at twice';
      section.append(
        h(
          'details',
          { class: 'of-run', open: page.runs.length <= 3 },
          h('summary', {}, h('strong', {}, model.runName(page, run)), ` – ${told}`),
          cards(run.verdicts, at),
        ),
      );
    });
  }
  return section;
}
