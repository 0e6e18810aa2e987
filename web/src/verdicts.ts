// What it means, first on the page: each verdict with the figure that shows it and its evidence.

import { h, line } from './dom';
import * as model from './model';
import * as state from './state';

type Verdict = model.PageRun['verdicts'][number];

/** Text in which the cells that it names lead to them. */
function sentence(text: string, page: model.Page, run: number): Node[] {
  const parts = text.split('`');
  return parts.flatMap((part, k): Node[] => {
    if (k % 2 === 0) return part === '' ? [] : [document.createTextNode(line(part))];
    const cell = page.runs[run]?.cells.find(({ name }) => name === part);
    if (!cell) return [h('code', {}, line(part))];
    return [
      h(
        'button',
        {
          type: 'button',
          class: 'link',
          click: () => state.set({ cell: model.address({ run, cell }) }),
        },
        line(part),
      ),
    ];
  });
}

/** The first of the figures that are drawn. */
function lead(verdict: Verdict, drawn: Map<string, string>): HTMLElement | null {
  const id = verdict.figures.find((one) => drawn.has(one));
  if (id === undefined) return null;
  const go = (event: Event) => {
    event.preventDefault();
    const target = document.getElementById(`figure-${id}`);
    target?.scrollIntoView({
      behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth',
    });
    target?.classList.remove('flash');
    requestAnimationFrame(() => target?.classList.add('flash'));
  };
  return h('a', { class: 'see', href: `#figure-${id}`, click: go }, `See: ${drawn.get(id) ?? ''}`);
}

const CELLS_MAX = 12;

function evidence(verdict: Verdict, page: model.Page, run: number): HTMLElement | null {
  const cells = verdict.cells.flatMap(
    (key) => page.runs[run]?.cells.find((cell) => cell.key === key) ?? [],
  );
  if (cells.length === 0) return null;
  const shown = cells.slice(0, CELLS_MAX).map((cell) =>
    h(
      'button',
      {
        type: 'button',
        class: 'chip',
        click: () => state.set({ cell: model.address({ run, cell }) }),
      },
      line(cell.name),
    ),
  );
  const more = cells.length - shown.length;
  return h(
    'p',
    { class: 'chips' },
    ...shown,
    more > 0 ? h('span', { class: 'soft' }, ` and ${more} more`) : null,
  );
}

function card(
  verdict: Verdict,
  page: model.Page,
  run: number,
  drawn: Map<string, string>,
): HTMLElement {
  const [first = '', ...rest] = verdict.sentences;
  const more =
    rest.length === 0
      ? null
      : h(
          'details',
          {},
          h(
            'summary',
            {},
            rest.length === 1 ? 'one sentence more' : `${rest.length} sentences more`,
          ),
          ...rest.map((text) => h('p', {}, ...sentence(text, page, run))),
        );
  return h(
    'article',
    { class: verdict.is_doubt ? 'verdict doubt' : 'verdict' },
    h('h3', {}, verdict.is_doubt ? '▲ ' : '', line(verdict.topic)),
    h('p', { class: 'said' }, ...sentence(first, page, run)),
    evidence(verdict, page, run),
    more,
    lead(verdict, drawn),
  );
}

/** What the reader has to know first comes first. */
const WEIGHT = [
  'The run itself',
  'Freezes',
  'Gaps',
  'What limits',
  'Caches',
  'Changes and drift',
  'Steady state',
];

function sorted(verdicts: Verdict[]): Verdict[] {
  const weight = ({ topic, is_doubt, sentences }: Verdict) => {
    const unknown = /\bunknown\b/.test(sentences[0] ?? '');
    return (is_doubt ? 0 : unknown ? 200 : 100) + (WEIGHT.indexOf(topic) + 1 || 50);
  };
  return [...verdicts].sort((a, b) => weight(a) - weight(b));
}

export function verdicts(page: model.Page, drawn: Map<string, string>): HTMLElement {
  const section = h(
    'section',
    { class: 'verdicts', 'aria-labelledby': 'title-verdicts' },
    h('h2', { id: 'title-verdicts' }, 'What it means'),
  );
  const cards = (all: Verdict[], run: number) =>
    h('div', { class: 'cards' }, ...sorted(all).map((one) => card(one, page, run, drawn)));
  for (const one of page.against) {
    const way = one.slower > 0 ? 'verdict doubt' : 'verdict';
    const said = [...one.evidence, ...one.differences];
    section.append(
      h(
        'article',
        { class: `${way} against` },
        h('h3', {}, `${line(one.run)} against ${line(one.reference)}`),
        h('p', { class: 'said' }, ...sentence(one.headline, page, 0)),
        said.length > 0 &&
          h(
            'details',
            {},
            h('summary', {}, 'evidence, and what differs'),
            ...said.map((text) => h('p', {}, ...sentence(text, page, 0))),
          ),
        lead({ figures: ['compare', 'size'] } as Verdict, drawn),
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
      const grave = run.verdicts.filter(({ is_doubt }) => is_doubt).length;
      const told = grave > 0 ? `${grave} to look at` : 'nothing to look at twice';
      section.append(
        h(
          'details',
          { class: 'of-run', open: page.runs.length <= 3 },
          h('summary', {}, h('strong', {}, model.runName(run)), ` – ${told}`),
          cards(run.verdicts, at),
        ),
      );
    });
  }
  return section;
}
