import { readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, type Download, type Page } from '@playwright/test';
import { barriers, faultsOf } from './look';
import { HERE, MADE, data, put, url } from './make';

const PAGES = [
  'study',
  'raid0',
  'raid5',
  'grid',
  'failing',
  'mixed',
  'copies',
  'steady',
  'written',
  'stacks',
  'streams',
  'prefix',
  'regions',
  'commits',
  'told-commits',
  'one-factor',
  'which',
  'line',
];

/** Opens a page and gathers what it complains about, or asks of a network. */
async function open(page: Page, name: string, hash = ''): Promise<string[]> {
  const faults = faultsOf(page, 'file:');
  await page.goto(url(name) + hash);
  await expect(page.locator('html[data-ready]')).toBeVisible();
  return faults;
}

/** Makes every drawing, as scrolling through the page does. */
async function look(page: Page): Promise<void> {
  for (const canvas of await page.locator('.canvas').all()) {
    await canvas.scrollIntoViewIfNeeded();
    await expect(canvas.locator('svg')).toBeVisible();
  }
}

for (const name of PAGES) {
  test(`${name}: opens from disk and draws everything without a complaint`, async ({ page }) => {
    const faults = await open(page, name);
    await look(page);
    expect(await page.locator('.canvas svg').count()).toBeGreaterThan(0);
    expect(faults).toEqual([]);
    // Nothing wider than the window.
    expect(
      await page.evaluate(() => document.documentElement.scrollWidth - innerWidth),
    ).toBeLessThanOrEqual(0);
  });
}

/** The card of a question. */
const cardOf = (page: Page, topic: string) =>
  page
    .locator('.verdict')
    .filter({ has: page.getByRole('heading', { name: topic }) })
    .first();

test('every kind of figure is on one of these pages', async ({ page }) => {
  const sources = join(HERE, '../src/figures');
  const kinds = readdirSync(sources).flatMap((name) => {
    const text = readFileSync(join(sources, name), 'utf8');
    return [...text.matchAll(/^ {2}id: '([a-z]+)',$/gm)].map(([, id]) => id);
  });
  expect(kinds.length).toBeGreaterThanOrEqual(17);
  const seen = new Set<string>();
  for (const name of PAGES) {
    await open(page, name);
    const ids = await page
      .locator('section.figure')
      .evaluateAll((all) => all.map(({ id }) => id.replace('figure-', '')));
    ids.forEach((id) => seen.add(id));
  }
  expect(kinds.filter((id) => id !== undefined && !seen.has(id))).toEqual([]);
});

test('lines are told apart in grey', async ({ page }) => {
  for (const name of ['raid0', 'grid', 'mixed']) {
    await open(page, name);
    for (const legend of await page.locator('.legend:visible').all()) {
      const keys = await legend
        .locator('.key svg')
        .evaluateAll((all) =>
          all.map((one) =>
            one.innerHTML.replaceAll(/(fill|stroke)="(?!none)[^"]*"/g, (_, kind) => kind),
          ),
        );
      // Bars and areas are told apart by their order.
      if (keys.some((one) => !one.includes('<line'))) continue;
      expect(new Set(keys).size, `${name}: ${keys.join('\n')}`).toBe(keys.length);
    }
  }
});

for (const [name, scheme] of [
  ['study', 'light'],
  ['study', 'dark'],
  ['failing', 'light'],
  ['grid', 'dark'],
  ['mixed', 'dark'],
  ['copies', 'light'],
  ['steady', 'dark'],
  ['stacks', 'light'],
  ['stacks', 'dark'],
] as const) {
  test(`${name} in ${scheme}: no barrier for those who cannot see or point`, async ({ page }) => {
    test.slow();
    await page.emulateMedia({ colorScheme: scheme });
    await open(page, name);
    await look(page);
    await page
      .locator('details')
      .evaluateAll((all) => all.forEach((one) => ((one as HTMLDetailsElement).open = true)));
    expect(await barriers(page)).toEqual([]);
  });
}

test('pointing tells a cell with what is known of it, and a click opens it', async ({ page }) => {
  const faults = await open(page, 'raid5');
  const heat = page.locator('#figure-heat .canvas').last();
  await heat.scrollIntoViewIfNeeded();
  const field = heat.locator('svg text', { hasText: /^6$/ });
  await field.hover();
  const tip = page.locator('.tip').filter({ visible: true });
  await expect(tip).toContainText('write 512KiB 1');
  await expect(tip).toContainText('gap');
  await field.click();
  const dialog = page.getByRole('dialog');
  await expect(dialog.locator('h2')).toHaveText('write 512KiB 1');
  await expect(dialog).toContainText('far below the rate predicted');
  await expect.poll(() => page.url()).toContain('cell=');
  await page.keyboard.press('Escape');
  await expect(dialog).toBeHidden();
  await expect.poll(() => page.url()).not.toContain('cell=');
  expect(faults).toEqual([]);
});

test('a cell of our own shows its visits, course and histogram', async ({ page }) => {
  await open(page, 'grid', '#cell=0:5.0');
  const dialog = page.getByRole('dialog');
  for (const title of ['Over time', 'Visits, with mean and interval', 'Latencies', 'Every visit']) {
    await expect(dialog.getByRole('heading', { name: title })).toBeVisible();
  }
  const visits = data('grid').runs[0].cells.find((cell: { key: string }) => cell.key === '5.0')
    .visits.length;
  await expect(dialog.locator('tbody tr')).toHaveCount(visits);
});

test('a key leaves a series out, and the address says so', async ({ page }) => {
  await open(page, 'raid0');
  const size = page.locator('#figure-size');
  const canvas = size.locator('.canvas').first();
  await canvas.scrollIntoViewIfNeeded();
  await expect(canvas.locator('svg')).toBeVisible();
  const paths = async () => canvas.locator('svg path').count();
  const before = await paths();
  await size.getByRole('button', { name: 'write, 40 threads' }).click();
  await expect(size.getByRole('button', { name: 'write, 40 threads' })).toHaveAttribute(
    'aria-pressed',
    'false',
  );
  await expect.poll(paths).toBeLessThan(before);
  await expect.poll(() => page.url()).toContain('off=');
  await page.reload();
  await expect(size.getByRole('button', { name: 'write, 40 threads' })).toHaveAttribute(
    'aria-pressed',
    'false',
  );
});

test('runs are held against the baseline that the reader chooses', async ({ page }) => {
  await open(page, 'study');
  const figure = page.locator('#figure-compare');
  await figure.scrollIntoViewIfNeeded();
  const field = figure.locator('svg text', { hasText: /^x0\.13$/ }).first();
  await expect(field).toBeVisible();
  await figure.getByRole('combobox').selectOption('1');
  await expect.poll(() => page.url()).toContain('base=1');
  await expect(figure.locator('svg text', { hasText: /^x7\.9/ }).first()).toBeVisible();
});

test('units, scale and metric change what stands on the axes', async ({ page }) => {
  await open(page, 'study');
  const size = page.locator('#figure-size');
  await size.getByRole('button', { name: 'MB/s', exact: true }).click();
  await expect(size.locator('svg text', { hasText: 'MB/s' }).first()).toBeVisible();
  await page.getByRole('button', { name: 'MiB', exact: true }).click();
  await size.scrollIntoViewIfNeeded();
  await expect(size.locator('svg text', { hasText: 'MiB/s' }).first()).toBeVisible();
  await expect(size.locator('svg text', { hasText: /^1K$/ }).first()).toBeVisible();
  await size.getByRole('button', { name: 'linear' }).click();
  await expect(size.locator('svg text', { hasText: /^0$/ }).first()).toBeVisible();
  await expect.poll(() => page.url()).toContain('scale=linear');
});

test('the barrier, the gap and the freeze can be seen', async ({ page }) => {
  await open(page, 'raid5');
  await look(page);
  // The barrier: the most requests per second, by name and figure.
  await expect(
    page.locator('#figure-roofline svg text', { hasText: /^A {1,2}6\d\.\d K/ }),
  ).toBeVisible();
  // The gaps: red frames, and crosses where nothing was printed.
  const red = page.locator('#figure-heat svg path[stroke="#d0103a"]');
  expect(await red.count()).toBeGreaterThanOrEqual(10);
  await expect(page.locator('#figure-heat svg text', { hasText: '×' })).toHaveCount(4);
  // The freeze: time that stood still, with its length.
  await open(page, 'failing');
  await look(page);
  await expect(page.locator('#figure-time svg text', { hasText: /still$/ }).first()).toBeVisible();
  await expect(cardOf(page, 'Stalls')).toHaveClass(/doubt/);
});

test('verdicts lead to their figures and cells', async ({ page }) => {
  await open(page, 'raid5');
  const gaps = cardOf(page, 'Gaps');
  await gaps.getByRole('link', { name: /^→/ }).first().click();
  await expect(page.locator('#figure-heat')).toBeInViewport();
  await gaps.locator('.chip').first().click();
  await expect(page.getByRole('dialog')).toBeVisible();
});

test('each sentence leads to its figure, and the cells that it names open', async ({ page }) => {
  await open(page, 'failing');
  const run = data('failing').runs[0];
  const drawn = await page
    .locator('section.figure, section.about')
    .evaluateAll((all) => all.map(({ id }) => id.replace('figure-', '')));
  const seen = run.verdicts.flatMap((verdict: { evidence: { figures: string[] }[] }) =>
    verdict.evidence.filter(({ figures }) => figures.some((id) => drawn.includes(id))),
  );
  expect(seen.length).toBeGreaterThan(5);
  await expect(page.locator('.headline .seen, .verdict .seen')).toHaveCount(seen.length);
  const freezes = cardOf(page, 'Stalls');
  await freezes.locator('summary').click();
  const freeze = freezes.locator('p', { hasText: /^(Freeze|Hiccup|Stall)/ }).last();
  const name = (await freeze.locator('.link').first().textContent()) ?? '';
  // The figure of one cell goes to the cell that is spoken of.
  const course = page.locator('#figure-time').getByRole('combobox');
  const others = await course.locator('option:not(:checked)').allTextContents();
  await course.selectOption({ label: others.find((one) => one !== name) ?? '' });
  await expect(page.locator('#figure-time figcaption')).not.toContainText(name);
  await freeze.locator('.seen').click();
  await expect(page.locator('#figure-time')).toBeInViewport();
  await expect(page.locator('#figure-time figcaption')).toContainText(name);
  await freeze.locator('.link').first().click();
  await expect(page.getByRole('dialog').locator('h2')).toHaveText(name);
  // Also where a sentence calls a cell otherwise than the table does.
  await open(page, 'raid5');
  const gap = cardOf(page, 'Gaps');
  const spoken = gap.locator('.link', { hasText: /^(read|write) \d+ [KM]iB / }).first();
  const [op, size] = ((await spoken.textContent()) ?? '').split(' ');
  await spoken.evaluate((link) => link.closest('details')?.setAttribute('open', ''));
  await spoken.click();
  await expect(page.getByRole('dialog').locator('h2')).toContainText(`${op} ${size}`);
});

test('latency over time has every request of the cell, and tells it', async ({ page }) => {
  const faults = await open(page, 'failing');
  const figure = page.locator('#figure-latencies');
  await figure.scrollIntoViewIfNeeded();
  const fields = figure.locator('svg path');
  await expect.poll(() => fields.count()).toBeGreaterThan(40);
  const name = (await figure.locator('figcaption').textContent())?.split(': ').pop();
  const cell = data('failing').runs[0].cells.find((one: { name: string }) => one.name === name);
  const counted = cell.visits.reduce(
    (sum: number, { heat }: { heat: { columns: [number, number][][] } }) =>
      sum + heat.columns.flat().reduce((all, [, count]) => all + count, 0),
    0,
  );
  expect(counted).toBe(cell.requests);
  await figure.locator('.canvas').focus();
  await page.keyboard.press('ArrowRight');
  await expect(page.locator('.tip').filter({ visible: true })).toContainText('% of those');
  // By the cell that is chosen above, as the course over time is.
  await page.locator('#figure-time').getByRole('combobox').selectOption({ index: 1 });
  const other = await page.locator('#figure-time figcaption').textContent();
  await expect(figure.locator('figcaption')).toHaveText(other ?? '');
  expect(faults).toEqual([]);
});

test('all of it can be used from the keyboard', async ({ page }) => {
  await open(page, 'raid5');
  const canvas = page.locator('#figure-heat .canvas').first();
  await canvas.focus();
  await expect(canvas.locator('svg')).toBeVisible();
  await page.keyboard.press('ArrowRight');
  await expect(page.locator('.tip').filter({ visible: true })).toContainText('read 512B 1');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('dialog')).toBeVisible();
  await page.keyboard.press('Escape');
  await expect(canvas).toBeFocused();
});

/** The numbers of a figure, a row with its names for each line of its file. */
async function numbers(page: Page, id: string): Promise<Record<string, string>[]> {
  const wait = page.waitForEvent('download');
  await page.locator(`#figure-${id}`).getByRole('button', { name: 'CSV' }).click();
  const text = readFileSync(await (await wait).path(), 'utf8').replace(/^\ufeff/, '');
  const [head = [], ...rows] = text
    .trim()
    .split('\r\n')
    .map(
      (row) => row.match(/("([^"]|"")*"|[^,]*)(,|$)/g)?.map((one) => one.replace(/,$/, '')) ?? [],
    );
  return rows.map((row) => Object.fromEntries(head.map((name, k) => [name, row[k] ?? ''])));
}

/** What is told of every point of a drawing, by its keys. */
async function tips(page: Page, canvas: ReturnType<Page['locator']>): Promise<string[]> {
  await canvas.focus();
  await expect(canvas.locator('svg')).toBeVisible();
  const found: string[] = [];
  for (;;) {
    await page.keyboard.press('ArrowRight');
    const tip = await canvas.locator('.tip').filter({ visible: true }).innerText();
    if (found.includes(tip) || found.length > 200) return found;
    found.push(tip);
  }
}

test('streams with depths of their own are in no other’s place', async ({ page }) => {
  const faults = await open(page, 'streams');
  const cells = data('streams').runs[0].cells;
  for (const id of ['size', 'heat']) {
    const names = (await numbers(page, id)).map((row) =>
      [row['series'] ?? row['group'], row['load'], row['block_bytes']].join(),
    );
    expect(names.length).toBe(cells.length);
    expect(new Set(names).size, `${id}: ${names.join('\n')}`).toBe(cells.length);
  }
  const told: string[] = [];
  for (const canvas of await page.locator('#figure-heat .canvas').all())
    told.push(...(await tips(page, canvas)).map((tip) => tip.split('\n')[0] ?? ''));
  expect(told.sort()).toEqual(cells.map((cell: { name: string }) => cell.name).sort());
  expect(faults).toEqual([]);
});

test('limits are drawn with the cells of their own phase', async ({ page }) => {
  await open(page, 'prefix');
  const figure = page.locator('#figure-roofline');
  for (const [k, title] of (await figure.locator('figcaption').allTextContents()).entries()) {
    const phase = title.split(':')[0];
    const told = await tips(page, figure.locator('.canvas').nth(k));
    expect(told.length).toBe(12);
    for (const tip of told) expect(tip.split(' ')[0]).toBe(phase);
  }
  const keys = await page
    .locator('#figure-load .key svg')
    .evaluateAll((all) => all.map((one) => one.innerHTML));
  expect(keys.length).toBe(2);
  expect(new Set(keys).size).toBe(2);
});

test('the base of a study is one of what was chosen between', async ({ page }) => {
  const faults = await open(page, 'one-factor');
  const { runs } = data('one-factor');
  const base = runs.filter((run: { part: { study: { again: boolean } } }) => run.part.study.again);
  expect(base.length).toBeGreaterThan(2);
  const rows = await numbers(page, 'levels');
  expect(new Set(rows.map((row) => row['level'])).size).toBe(3);
  // Every run once, the base's too.
  expect(rows.map((row) => row['run']).sort()).toEqual(
    runs.map((run: { id: string }) => run.id).sort(),
  );
  const figure = page.locator('#figure-levels');
  const told: string[] = [];
  for (const canvas of await figure.locator('.canvas').all())
    told.push(...(await tips(page, canvas)));
  expect(told.length).toBe(runs.length);
  expect(faults).toEqual([]);
});

test('cells that differ in their block size stand apart, by name', async ({ page }) => {
  await open(page, 'one-factor');
  const rows = await numbers(page, 'bars');
  const { runs } = data('one-factor');
  for (const { cell, run } of rows) {
    const one = runs.find(({ id }: { id: string }) => id === run);
    const size = one.suite === 'small' ? '4 KiB' : '64 KiB';
    expect(cell).toContain(size);
  }
  expect(rows.length).toBe(runs.length * 3);
});

test('a cell has one mean, and another is named', async ({ page }) => {
  const one = data('grid');
  // As where one visit of three stood still for most of its time.
  const cell = one.runs[0].cells.find((found: { key: string }) => found.key === '5.0');
  cell.bytes_per_s = cell.iops * cell.block_bytes * 0.4;
  put('two-means', one);
  await open(page, 'two-means', '#cell=0:5.0');
  const row = (name: string) =>
    page.getByRole('dialog').locator(`.numbers dt:text-is("${name}") + dd`);
  const shown = async (name: string) => parseFloat((await row(name).textContent()) ?? '');
  const mb = (cell.iops * cell.block_bytes) / 1e6;
  expect(await shown('bandwidth')).toBeCloseTo(mb, mb < 10 ? 1 : 0);
  await expect(row('over all its time')).toContainText('IOPS');
  await page.keyboard.press('Escape');
  for (const id of ['table', 'size']) {
    const rows = await numbers(page, id);
    const own = rows.find(({ iops }) => Number(iops) === cell.iops);
    expect(Number(own?.['bytes_per_s']) / (cell.iops * cell.block_bytes)).toBeCloseTo(1, 9);
  }
  const all = (await numbers(page, 'table')).find(({ iops }) => Number(iops) === cell.iops);
  expect(Number(all?.['bytes_per_s_over_all_time'])).toBe(cell.bytes_per_s);
});

test('the button of a scale is pressed where the axis has it', async ({ page }) => {
  const far = data('one-factor');
  const near = structuredClone(far);
  for (const run of near.runs)
    for (const [k, cell] of run.cells.entries())
      Object.assign(cell, { iops: 1000 + 300 * k, iops_low: null, iops_high: null });
  put('near', near);
  for (const [name, best, other] of [
    ['one-factor', 'log', 'linear'],
    ['near', 'linear', 'log'],
  ] as const) {
    await open(page, name);
    for (const id of ['bars', 'levels']) {
      const figure = page.locator(`#figure-${id}`);
      const pressed = figure.getByRole('group', { name: 'Scale' }).locator('[aria-pressed=true]');
      const zero = figure.locator('.canvas').first().locator('svg text', { hasText: /^0$/ });
      const is = async (scale: string) => {
        await figure.locator('.canvas').first().scrollIntoViewIfNeeded();
        await expect(figure.locator('.canvas svg').first()).toBeVisible();
        await expect(pressed).toHaveText(scale);
        await expect(zero).toHaveCount(scale === 'log' ? 0 : 1);
      };
      await page.evaluate(() => (location.hash = '#scale=auto'));
      await is(best);
      await figure.getByRole('button', { name: other, exact: true }).click();
      await is(other);
      await expect.poll(() => page.url()).toContain(`scale=${other}`);
      await figure.getByRole('button', { name: best, exact: true }).click();
      await is(best);
    }
  }
});

/** Words of a drawing that stand on others, or begin outside of it. */
async function collisions(canvas: ReturnType<Page['locator']>): Promise<string[]> {
  await canvas.scrollIntoViewIfNeeded();
  await expect(canvas.locator('svg')).toBeVisible();
  const place = await canvas.boundingBox();
  const boxes = await canvas
    .locator('svg text')
    .evaluateAll((all) =>
      all.map((one) => ({ text: one.textContent, ...one.getBoundingClientRect().toJSON() })),
    );
  return boxes.flatMap((a, k) => {
    const on = boxes
      .slice(k + 1)
      .filter(
        (b) =>
          Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 &&
          Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4,
      );
    const { x, width } = place ?? { x: 0, width: 0 };
    const isCut = a.left < x - 1 || a.right > x + width + 1;
    return [...on.map((b) => `${a.text} | ${b.text}`), ...(isCut ? [`${a.text} is cut`] : [])];
  });
}

for (const name of ['study', 'mixed', 'regions'])
  test(`${name}: names beside bars can be read on a phone`, async ({ page }) => {
    await page.setViewportSize({ width: 390, height: 844 });
    await open(page, name);
    expect(await collisions(page.locator('#figure-bars .canvas'))).toEqual([]);
  });

test('names beside ratios leave them room on a phone', async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await open(page, 'one-factor');
  const all = page.locator('#figure-compare .canvas');
  expect(await all.count()).toBeGreaterThan(2);
  for (const canvas of await all.all()) {
    expect(await collisions(canvas)).toEqual([]);
    // What is drawn has half of the width.
    const widths = canvas
      .locator('svg path')
      .evaluateAll((all) => all.map((one) => one.getBoundingClientRect().width));
    const whole = (await canvas.boundingBox())?.width ?? Infinity;
    expect(Math.max(...(await widths)) / whole).toBeGreaterThan(0.4);
  }
});

test('numbers of five letters stay within their fields', async ({ page }) => {
  const one = data('study');
  const [first, second] = one.runs;
  const [held] = one.against;
  for (const [k, cell] of held.cells.entries())
    if (cell.held.ratio !== null) Object.assign(cell.held, { ratio: 2111 + k, verdict: 'faster' });
  // Three runs: their panels stand beside each other.
  const runs = [first, second, { ...second, id: 'r9' }];
  put('far-apart', { ...one, runs, against: [held, { ...held, run: 'r9' }] });
  await open(page, 'far-apart');
  const all = page.locator('#figure-compare .canvas');
  expect(await all.count()).toBe(5);
  for (const canvas of (await all.all()).slice(1)) {
    expect(await collisions(canvas)).toEqual([]);
    const numbers = await canvas.locator('svg text', { hasText: /^x?2(\.\d+K|\d{3})$/ }).count();
    expect(numbers).toBeGreaterThan(30);
  }
});

test('runs of a study of two suites are held against the base of their own', async ({ page }) => {
  const { runs, against } = data('one-factor');
  type Run = { id: string; suite: string };
  const suite = (id: string | undefined) => runs.find((run: Run) => run.id === id)?.suite;
  const suites = new Set<string>(runs.map((run: Run) => run.suite));
  const bases = [...suites].map((name) => runs.find((run: Run) => run.suite === name).id);
  expect(bases.length).toBe(2);
  expect(against.length).toBe(runs.length - 2);
  await open(page, 'one-factor');
  const figure = page.locator('#figure-compare');
  await expect(figure.locator('figcaption', { hasText: 'All cells together' })).toHaveCount(2);
  const held = async () => {
    const rows = await numbers(page, 'compare');
    for (const { run, baseline } of rows) expect(suite(baseline), run).toBe(suite(run));
    return new Set(rows.map(({ run, baseline }) => `${run} ${baseline}`));
  };
  const all = await held();
  expect(all.size).toBe(runs.length - 2);
  for (const [k, { id }] of runs.entries() as Iterable<[number, Run]>)
    if (k > 1)
      expect(all.has(`${id} ${bases.find((base) => suite(base) === suite(id))}`)).toBe(true);
  // Another baseline is that of its suite; the other suite keeps its own.
  await figure.getByRole('combobox').selectOption('2');
  await expect.poll(() => page.url()).toContain('base=2');
  const other = await held();
  expect(other.size).toBe(runs.length - 2);
  const chosen = runs[2];
  const mine = runs.filter((run: Run) => run.suite === chosen.suite && run !== chosen);
  for (const { id } of mine) expect(other.has(`${id} ${chosen.id}`)).toBe(true);
  // Said of the same, above.
  const summary = await page.locator('.verdicts > details.rest > summary').textContent();
  for (const base of bases) expect(summary).toMatch(new RegExp(`more against .*\\b${base}\\b.*:`));
});

test('fifty runs: few words before the figures, and what is left out is said', async ({ page }) => {
  const one = data('study');
  const runs = Array.from({ length: 50 }, (_, k) => ({ ...one.runs[0], id: `r${k + 1}` }));
  const against = runs.slice(1).map(({ id }) => ({ ...one.against[0], run: id, reference: 'r1' }));
  const long = structuredClone(data('grid'));
  long.runs[0].target.given = 'long '.repeat(2000);
  put('many', { ...one, runs, against });
  put('long', { ...long, runs: [long.runs[0], { ...data('grid').runs[0], id: 'r99' }] });
  await open(page, 'many');
  await expect(page.locator('.against:visible')).toHaveCount(3);
  await expect(page.locator('.verdicts > details.rest > summary')).toContainText(
    '46 more against r1',
  );
  await page.locator('.verdicts > details.rest > summary').click();
  await expect(page.locator('.against:visible')).toHaveCount(49);
  for (const id of ['distribution', 'bars']) {
    const left = page.locator(`#figure-${id} .left`);
    if ((await left.count()) > 0 && (await left.isVisible()))
      await expect(left).toContainText(' of ');
  }
  await open(page, 'long');
  const above = await page.locator('.runs').evaluate((list) => list.getBoundingClientRect().bottom);
  expect(above).toBeLessThan(900);
});

test('every list of cells has its cell, and curves that are left out are told', async ({
  page,
}) => {
  const one = data('grid');
  for (const cell of one.runs[0].cells)
    for (const visit of cell.visits) visit.series = visit.series && { ...visit.series, rate: [] };
  const runs = Array.from({ length: 20 }, (_, k) => ({ ...one.runs[0], id: `r${k + 1}` }));
  put('no-course', one);
  put('many-curves', { ...one, runs });
  await open(page, 'no-course');
  const list = page.locator('#figure-latencies').getByRole('combobox');
  expect(await list.locator('option').count()).toBeGreaterThan(10);
  await open(page, 'many-curves');
  await expect(page.locator('#figure-distribution .left')).toContainText('The first 16 of');
});

test('figures and numbers can be taken away', async ({ page }) => {
  await open(page, 'raid5');
  await look(page);
  const files = async (button: ReturnType<Page['locator']>, count: number) => {
    const found: { name: string; content: Buffer }[] = [];
    const all = new Promise<void>((done) => {
      const take = async (download: Download) => {
        found.push({
          name: download.suggestedFilename(),
          content: readFileSync(await download.path()),
        });
        if (found.length === count) done();
      };
      page.on('download', take);
    });
    await button.click();
    await all;
    page.removeAllListeners('download');
    const [first] = found;
    if (!first) throw new Error('no file');
    return first;
  };
  const size = page.locator('#figure-heat');
  const csv = await files(size.getByRole('button', { name: 'CSV' }), 1);
  expect(csv.name).toBe('plimsoll-r2-heat.csv');
  expect(csv.content.toString().split('\r\n')).toHaveLength(1 + 84 + 1);
  const svg = await files(size.getByRole('button', { name: 'SVG' }), 2);
  expect(svg.content.toString()).toMatch(/^<svg [^>]*xmlns="http:\/\/www.w3.org\/2000\/svg"/);
  const png = await files(size.getByRole('button', { name: 'PNG' }), 2);
  expect([...png.content.subarray(1, 4)]).toEqual([...Buffer.from('PNG')]);
  const json = await files(page.locator('#figure-table').getByRole('button', { name: 'JSON' }), 1);
  expect(JSON.parse(json.content.toString())).toEqual(data('raid5'));
});

for (const [name, scheme] of [
  ['study', 'dark'],
  ['grid', 'light'],
  ['which', 'light'],
  ['mixed', 'light'],
  ['copies', 'dark'],
] as const) {
  test(`${name} in ${scheme}: it prints on six pages of A4, in light`, async ({ page }) => {
    await page.emulateMedia({ colorScheme: scheme });
    const faults = await open(page, name);
    const pdf = await page.pdf({
      format: 'A4',
      preferCSSPageSize: true,
      path: join(MADE, `${name}.pdf`),
    });
    const pages = pdf.toString('latin1').match(/\/Type\s*\/Page\b/g)?.length ?? 0;
    expect(pages).toBeGreaterThan(2);
    expect(pages).toBeLessThanOrEqual(6);
    await page.emulateMedia({ media: 'print' });
    await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
    const canvases = page.locator('.canvas:visible');
    await expect(canvases.locator('svg')).toHaveCount(await canvases.count());
    // The first two pages have the answer, its figure and how sure that is.
    await page.setViewportSize({ width: 688, height: 1017 });
    const end = await page.locator('.lead').evaluate((one) => one.getBoundingClientRect().bottom);
    expect(end).toBeLessThanOrEqual(2 * 1017);
    // On paper, too: as high as they were drawn, and no wider than A4 between its margins.
    for (const box of await canvases
      .locator('svg')
      .evaluateAll((all) => all.map((one) => one.getBoundingClientRect().toJSON()))) {
      expect(box.height).toBeGreaterThan(60);
      expect(box.width).toBeGreaterThan(250);
      expect(box.width).toBeLessThanOrEqual(700);
    }
    expect(await page.evaluate(() => getComputedStyle(document.body).backgroundColor)).toBe(
      'rgb(255, 255, 255)',
    );
    expect(faults).toEqual([]);
  });
}

for (const name of PAGES) {
  test(`${name}: it fits a phone`, async ({ page }) => {
    await page.setViewportSize({ width: 360, height: 740 });
    const faults = await open(page, name);
    await look(page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(
      360,
    );
    expect(faults).toEqual([]);
  });
}

test('a drawing makes nothing wider than its place, and follows it', async ({ page }) => {
  const faults = await open(page, 'grid');
  await look(page);
  // Before the next frame it has its old width.
  const over = await page.evaluate(() => {
    const main = document.querySelector('main') as HTMLElement;
    main.style.width = '720px';
    return main.scrollWidth - main.clientWidth;
  });
  expect(over).toBeLessThanOrEqual(0);
  // The window is as it was: it is the place that counts.
  const wider = () =>
    page.locator('.canvas').evaluateAll(
      (all) =>
        all.filter((one) => {
          const drawn = one.querySelector('svg');
          return drawn !== null && drawn.getBoundingClientRect().width > one.clientWidth;
        }).length,
    );
  await expect.poll(wider).toBe(0);
  expect(faults).toEqual([]);
});

test('what is hostile in any text stays text', async ({ page }) => {
  const evil = `</script><script>window.hit=1</script><img src=x onerror="window.hit=1">"'\`&amp;\n\u202ex\u2028`;
  const fixed = new Set([
    'key',
    'run',
    'reference',
    'cell',
    'schema',
    'op',
    'is',
    'term',
    'verdict',
    'source',
    'place',
    'generator',
    'end',
  ]);
  const spoiled = (value: any, key = ''): any => {
    if (Array.isArray(value)) return value.map((one) => spoiled(one, key));
    if (value && typeof value === 'object')
      return Object.fromEntries(
        Object.entries(value).map(([name, one]) => [name, spoiled(one, name)]),
      );
    return typeof value === 'string' && !fixed.has(key) ? value + evil : value;
  };
  for (const name of ['study', 'failing', 'mixed', 'stacks']) {
    const bad = spoiled(data(name));
    for (const run of bad.runs) run.op = evil;
    put(`hostile-${name}`, bad);
    const faults = await open(page, `hostile-${name}`);
    await look(page);
    await page
      .locator('details')
      .evaluateAll((all) => all.forEach((one) => ((one as HTMLDetailsElement).open = true)));
    await page.locator('tbody .link').first().click();
    await expect(page.getByRole('dialog')).toBeVisible();
    expect(await page.evaluate(() => (window as { hit?: number }).hit)).toBeUndefined();
    expect(await page.locator('img').count()).toBe(0);
    expect(faults).toEqual([]);
    // What turns the direction of reading is shown, not obeyed.
    expect(await page.locator('#app').innerText()).not.toContain('\u202e');
    await page.keyboard.press('Escape');
    await expect(page.getByRole('dialog')).toBeHidden();
    const canvas = page.locator('.canvas').first();
    await canvas.focus();
    await page.keyboard.press('ArrowRight');
    await expect(page.locator('.tip').filter({ visible: true })).toContainText('<script>');
  }
});

test('an address that makes no sense is taken as nothing said', async ({ page }) => {
  const faults = await open(
    page,
    'raid0',
    '#base=99&run=-1&metric=x&cell=7:y&block=abc&off=%3Cscript%3E&theme=pink',
  );
  await look(page);
  expect(faults).toEqual([]);
});

test('a run of 84 cells is a small file and is drawn at once', async ({ page }) => {
  const bytes = statSync(join(MADE, 'grid.html')).size;
  expect(bytes).toBeLessThanOrEqual(1.5 * 2 ** 20);
  await open(page, 'grid');
  await expect(page.locator('.canvas svg').first()).toBeVisible();
  const drawn = await page.evaluate(
    () => performance.getEntriesByName('plimsoll-first')[0]?.startTime ?? Number.NaN,
  );
  // Machines differ: told, not judged.
  console.log(
    `84 cells: ${(bytes / 1024).toFixed(0)} KiB, first figure after ${drawn.toFixed(0)} ms`,
  );
  expect(drawn).toBeGreaterThan(0);
});

test('a study of 50 runs stays usable', async ({ page }) => {
  const one = data('grid');
  const runs = Array.from({ length: 50 }, (_, k) => ({ ...one.runs[0], id: `r${k + 1}` }));
  put('fifty', { ...one, runs });
  const bytes = statSync(join(MADE, 'fifty.html')).size;
  const faults = await open(page, 'fifty');
  await expect(page.locator('.canvas svg').first()).toBeVisible();
  const drawn = await page.evaluate(
    () => performance.getEntriesByName('plimsoll-first')[0]?.startTime ?? Number.NaN,
  );
  const start = Date.now();
  await page.locator('#figure-size').getByRole('button', { name: 'MB/s', exact: true }).click();
  await expect(page.locator('#figure-size svg text', { hasText: 'MB/s' }).first()).toBeVisible();
  console.log(
    `50 runs: ${(bytes / 2 ** 20).toFixed(1)} MiB, first figure after ${drawn.toFixed(0)} ms, a choice takes ${Date.now() - start} ms`,
  );
  expect(faults).toEqual([]);
});

test('a million intervals do not freeze the page', async ({ page }) => {
  const one = data('failing');
  const run = one.runs[0];
  const cell = run.cells.find(
    (found: { visits: { series: unknown }[] }) => found.visits[0]?.series,
  );
  // What the program makes of a million: 40 000 points with their extremes.
  const points = 40_000;
  const list = (value: number) =>
    Array.from({ length: points }, (_, k) => value * (1 + 0.1 * Math.sin(k / 50)));
  cell.visits = [
    {
      ...cell.visits[0],
      elapsed_ns: points * 25e8,
      gaps: [],
      series: {
        step_ns: 25e8,
        merged: 25,
        rate: list(1e4),
        low: list(8e3),
        high: list(12e3),
        p99_ns: list(2e5),
        max_ns: list(1e6),
      },
    },
  ];
  put('million', { ...one, runs: [{ ...run, cells: [cell] }] });
  const faults = await open(page, 'million');
  const start = Date.now();
  await look(page);
  await expect.poll(() => page.locator('#figure-time svg path').count()).toBeGreaterThan(10);
  console.log(`a million intervals: all figures drawn after ${Date.now() - start} ms`);
  expect(faults).toEqual([]);
});

test('what was done to caches stands at the start of each visit', async ({ page }) => {
  const faults = await open(page, 'cold');
  const time = page.locator('#figure-time');
  await time.scrollIntoViewIfNeeded();
  await expect(time.locator('svg text', { hasText: '▼ flush, purge' })).toHaveCount(3);
  expect(faults).toEqual([]);
});

test('an interval down to nothing is drawn to the end of a logarithmic axis', async ({ page }) => {
  const open_ended = data('steady');
  for (const cell of open_ended.runs[0].cells)
    if (cell.block_bytes === 1 << 20) Object.assign(cell, { iops_low: 0 });
  put('open-ended', open_ended);
  const faults = await open(page, 'open-ended');
  await look(page);
  const bands = await page
    .locator('#figure-axis svg path[fill="#0072b2"]')
    .evaluateAll((all) => all.map((one) => (one as SVGGraphicsElement).getBBox().height));
  expect(Math.max(...bands)).toBeGreaterThan(60);
  expect(faults).toEqual([]);
});

test('a study of choices is drawn as groups of bars with intervals', async ({ page }) => {
  const faults = await open(page, 'stacks');
  const figure = page.locator('#figure-levels');
  await look(page);
  // The heaviest load of each operation, by one factor; drives are an amount and drawn elsewhere.
  const by = (name: string) =>
    expect(figure.locator('figcaption')).toHaveText([
      `read, 40 threads: IOPS by ${name}`,
      `write, 40 threads: IOPS by ${name}`,
    ]);
  await by('level');
  await expect(figure.getByLabel('by', { exact: true }).locator('option')).toHaveText([
    'level',
    'chunk',
    'fs',
  ]);
  await figure.getByLabel('by', { exact: true }).selectOption('fs');
  await by('fs');
  await expect.poll(() => page.url()).toContain('factor=fs');
  await figure.getByLabel('by', { exact: true }).selectOption('level');
  await expect(page.locator('#figure-scaling figcaption')).toHaveText('IOPS against disks');
  const first = figure.locator('.canvas').first();
  await first.scrollIntoViewIfNeeded();
  const texts = async () => first.locator('svg text').allTextContents();
  await expect(first.locator('svg')).toBeVisible();
  expect(await texts()).toEqual(expect.arrayContaining(['raid0', 'raid5', 'raid10']));
  // A line and its two ends at each bar.
  const whiskers = () => first.locator('svg path[stroke="#18212c"]').count();
  const before = await whiskers();
  expect(before).toBe(3 * 4 * 3);
  await figure.locator('.key').first().click();
  await expect.poll(whiskers).toBeLessThan(before);
  await first.focus();
  await page.keyboard.press('ArrowRight');
  await expect(page.locator('.tip').filter({ visible: true })).toContainText('±');
  await figure.getByRole('button', { name: 'latency' }).click();
  await expect(
    figure.locator('svg text', { hasText: 'mean latency, ms – lower is better' }).first(),
  ).toBeVisible();
  expect(faults).toEqual([]);
});

test('a copy takes seconds, of which fewer are better', async ({ page }) => {
  const faults = await open(page, 'copies');
  const bars = page.locator('#figure-bars');
  await bars.getByRole('button', { name: 'seconds' }).click();
  await bars.scrollIntoViewIfNeeded();
  await expect(
    bars.locator('svg text', { hasText: 'seconds – lower is better' }).first(),
  ).toBeVisible();
  await expect(bars.locator('figcaption')).toContainText('lower is better');
  await expect.poll(() => page.url()).toContain('metric=seconds');
  // What it says is the time that the program measured.
  const cell = data('copies').runs[0].cells.find((one: { op: string }) => one.op === 'copy');
  const counted = cell.visits.filter((one: { counted: boolean }) => one.counted);
  const mean =
    counted.reduce((sum: number, one: { elapsed_ns: number }) => sum + one.elapsed_ns, 0) /
    counted.length /
    1e9;
  expect(cell.job_bytes / cell.bytes_per_s).toBeCloseTo(mean, 6);
  expect(faults).toEqual([]);
});

test('a study of drives is drawn against their number, with what linear would be', async ({
  page,
}) => {
  const one = data('raid0');
  const runs = [1, 2, 4, 8, 12].map((disks, k) => {
    const run = structuredClone(one.runs[0]);
    for (const cell of run.cells) if (cell.iops) cell.iops *= Math.min(disks, 6) / 12;
    const study = { stack: k + 1, levels: [{ name: 'disks', value: `${disks}` }], again: false };
    return {
      ...run,
      id: `r${k + 1}`,
      part: { group: 'g', list: 'raid', number: k + 1, of: 5, study },
    };
  });
  put('scaling', { ...one, runs });
  const faults = await open(page, 'scaling');
  await look(page);
  const scaling = page.locator('#figure-scaling');
  await expect(scaling.locator('figcaption')).toHaveText('IOPS against disks');
  await expect(scaling.locator('svg text', { hasText: /^12$/ })).toBeVisible();
  // A line and a dotted one of each load.
  expect(await scaling.locator('svg path[stroke-dasharray="2,4"]').count()).toBe(6);
  expect(faults).toEqual([]);
});

test('what the program itself writes is drawn, compressed or not', async ({ page }) => {
  const html = readFileSync(join(MADE, 'program.html'), 'utf8');
  test.skip(!html.includes('id="plimsoll-page"'), 'the program was built without the page');
  expect(html).toContain('data-coding="gzip"');
  const faults = await open(page, 'program');
  await expect(page.locator('.runs li')).toHaveCount(6);
  await look(page);
  expect(faults).toEqual([]);
});

/** The lines of a file that a button gives, by the names of its columns. */
async function rows(page: Page, place: string): Promise<Record<string, string>[]> {
  const waiting = page.waitForEvent('download');
  await page.locator(place).getByRole('button', { name: 'CSV' }).click();
  const text = readFileSync(await (await waiting).path(), 'utf8');
  const [head = [], ...lines] = text
    .trim()
    .split('\r\n')
    .map((one) =>
      [...one.matchAll(/(?:^|,)(?:"([^"]*)"|([^,]*))/g)].map(
        ([, quoted, bare]) => quoted ?? bare ?? '',
      ),
    );
  expect(new Set(head).size, head.join()).toBe(head.length);
  return lines.map((fields) => Object.fromEntries(head.map((name, k) => [name, fields[k] ?? ''])));
}

test('what each stream wrote is a line of its own, against all that was written', async ({
  page,
}) => {
  const { cells } = data('mixed').runs[0];
  type Cell = { name: string; visits: { written: number; series: unknown }[] };
  const sum = (all: number[]) => all.reduce((a, b) => a + b, 0);
  const written = ({ visits }: Cell) => sum(visits.map((visit) => visit.written ?? 0));
  const writing = cells.filter((cell: Cell) => written(cell) > 0);
  const all = sum(writing.map(written));
  expect(writing.length).toBeGreaterThan(8);
  await open(page, 'mixed');
  const figure = page.locator('#figure-written');
  await expect(figure.locator('.key')).toHaveCount(writing.length);
  const found = await rows(page, '#figure-written');
  const last: Record<string, number> = {};
  for (const { cell = '', written_bytes: at } of found) {
    expect(Number(at)).toBeGreaterThanOrEqual(last[cell] ?? 0);
    last[cell] = Number(at);
  }
  const most = Math.max(...Object.values(last));
  expect(most).toBeLessThanOrEqual(all);
  expect(most).toBeGreaterThan(all * 0.9);
});

test('a flush stands beside the write that it makes durable', async ({ page }) => {
  type Cell = {
    key: string;
    requests: number;
    latency_ns: { mean: number };
    flushes: { op: string; requests: number; latency_ns: { mean: number } }[];
  };
  const cells: Cell[] = data('commits').runs[0].cells;
  const cell = cells.find(({ flushes }) => flushes.length === 1);
  const [flush] = cell?.flushes ?? [];
  if (!cell || !flush) throw new Error('no flush');
  await open(page, 'commits', `#cell=0:${cell.key}&metric=latency`);
  const told = await page
    .getByRole('dialog')
    .locator('dl.numbers dt')
    .evaluateAll((all) =>
      all.map((one) => [one.textContent, one.nextElementSibling?.textContent ?? '']),
    );
  const names = new Map(told as [string, string][]);
  for (const name of ['write', flush.op]) expect(names.get(name)).toMatch(/^mean .*50 %.*longest/);
  expect(names.get('together')).toMatch(/^mean /);
  expect(names.has('latency')).toBe(false);
  await page.keyboard.press('Escape');
  const keys = page.locator('#figure-distribution .key');
  await expect(keys.filter({ hasText: `: ${flush.op}` }).first()).toBeVisible();
  await expect(keys.filter({ hasText: ': write' }).first()).toBeVisible();
  await expect(page.locator('#figure-bars .left')).toContainText(
    'what a commit of one write waits',
  );
  const both = cell.latency_ns.mean + (flush.latency_ns.mean * flush.requests) / cell.requests;
  const bars = await rows(page, '#figure-bars');
  const off = bars.map((bar) => Math.abs(Number(bar['mean latency, ms']) * 1e6 - both));
  expect(Math.min(...off)).toBeLessThan(1);
  const table = await rows(page, '#figure-table');
  const own = table.map((one) =>
    Math.abs(Number(one[`${flush.op}_ns_mean`]) - flush.latency_ns.mean),
  );
  expect(Math.min(...own)).toBeLessThan(1);
});

test('of cells that are too many to draw at once each can be chosen', async ({ page }) => {
  await open(page, 'commits', '#block=1024');
  const figure = page.locator('#figure-bars');
  const list = figure.getByRole('combobox', { name: 'cells' });
  const parts = await list.locator('option').allTextContents();
  expect(parts.length).toBeGreaterThan(1);
  const all = await rows(page, '#figure-bars');
  expect(all).toHaveLength(Number(parts[0]?.split(' of ')[1]));
  await figure.locator('.canvas').scrollIntoViewIfNeeded();
  const words = figure.locator('.canvas svg');
  await expect(words).toBeVisible();
  const before = await words.textContent();
  await list.selectOption({ label: parts[parts.length - 1] ?? '' });
  await figure.locator('.canvas').scrollIntoViewIfNeeded();
  await expect(words).toBeVisible();
  expect(await words.textContent()).not.toBe(before);
  await expect(figure.locator('.left')).toContainText('choose above');
  await expect.poll(() => page.url()).toContain('part=bars');
  // Another figure has its own choice.
  await expect(page.locator('#figure-distribution').getByLabel('curves')).toHaveValue('0');
});

test('of lines and bars that are too many, too, each can be chosen, by the keyboard', async ({
  page,
}) => {
  // Three numbers of drives and two levels of RAID, with fifteen of everything else.
  const one = data('raid0');
  const cells = one.runs[0].cells.filter((cell: any) => cell.block_bytes === 8192);
  const runs = [1, 2, 4].flatMap((disks) =>
    ['raid0', 'raid5'].flatMap((level) =>
      Array.from({ length: 15 }, (_, other) => {
        const values = { disks: `${disks}`, level, other: `o${other}` };
        const levels = Object.entries(values).map(([name, value]) => ({ name, value }));
        const study = { stack: 1, levels, again: false, state: null };
        const part = { group: 'g', list: 'l', number: 1, of: 90, study };
        return { ...one.runs[0], cells, id: `${disks}-${level}-${other}`, part };
      }),
    ),
  );
  // Five block sizes and more, with four loads each, against a mix.
  const mixes = structuredClone(data('steady'));
  const [mixed] = mixes.runs;
  mixed.cells = mixed.cells.flatMap((cell: any) =>
    [1, 2, 3, 4].map((threads) => ({ ...cell, key: `${cell.key}-${threads}`, threads })),
  );
  put('many-levels', { ...one, runs });
  put('many-lines', mixes);
  for (const [name, id, label] of [
    ['many-levels', 'scaling', 'lines'],
    ['many-levels', 'levels', 'combinations'],
    ['many-lines', 'axis', 'lines'],
  ] as const) {
    await open(page, name);
    const figure = page.locator(`#figure-${id}`);
    const list = figure.getByRole('combobox', { name: label });
    const parts = await list.locator('option').allTextContents();
    expect(parts.length, id).toBeGreaterThan(1);
    await expect(figure.locator('.left')).toContainText('choose above');
    const keys = figure.locator('.legend .key');
    const first = await keys.allTextContents();
    const before = await rows(page, `#figure-${id}`);
    await list.focus();
    await page.keyboard.press('ArrowDown');
    await expect.poll(() => page.url()).toContain(`part=${id}%3A1`);
    await expect(figure.getByRole('combobox', { name: label })).toBeFocused();
    const second = await keys.allTextContents();
    expect(second.length).toBeGreaterThan(0);
    expect(second.filter((key) => first.includes(key))).toEqual([]);
    const canvas = figure.locator('.canvas').first();
    expect((await tips(page, canvas)).length).toBeGreaterThan(1);
    // The file has all of them, whichever are drawn; so has the address what was chosen.
    expect(await rows(page, `#figure-${id}`)).toEqual(before);
    await page.reload();
    await expect(page.locator('html[data-ready]')).toBeVisible();
    expect(await keys.allTextContents()).toEqual(second);
  }
});

test('who chooses by the keyboard stays where that is', async ({ page }) => {
  await open(page, 'raid0');
  const figure = page.locator('#figure-size');
  for (const [button, pressed] of [
    [figure.getByRole('button', { name: 'linear' }), 'true'],
    [figure.getByRole('button', { name: 'write, 40 threads' }), 'false'],
    [page.getByRole('button', { name: 'MiB', exact: true }), 'true'],
  ] as const) {
    await button.focus();
    await page.keyboard.press('Enter');
    await expect(button).toHaveAttribute('aria-pressed', pressed);
    await expect(button).toBeFocused();
  }
});

test('commits that were told as a whole have their time', async ({ page }) => {
  const cells: { key: string; name: string; op: string }[] = data('told-commits').runs[0].cells;
  const two = cells.find(({ name }) => name.startsWith('two-fdatasync'));
  expect(two?.op).toBe('commit');
  await open(page, 'told-commits', `#cell=0:${two?.key}&metric=latency`);
  await expect(
    page.getByRole('dialog').locator('dl.numbers dt:text-is("latency") + dd'),
  ).toContainText('mean 3.71 ms');
});

test('the load line is drawn, and its rates are the key numbers', async ({ page }) => {
  const { line } = data('line').runs[0];
  await open(page, 'line');
  const first = page.locator('section.figure').first();
  await expect(first).toHaveAttribute('id', 'figure-line');
  await expect(first.locator('.canvas svg')).toContainText('line ');
  const shown = await rows(page, '#figure-line');
  const wanted = line.rates.length * line.limits.length;
  expect(shown.length).toBe(wanted);
  await expect(page.locator('.keys li').nth(1)).toContainText('the load line');
});

test('streams are drawn alone and together', async ({ page }) => {
  const { together } = data('mixed').runs[0];
  expect(together.length).toBeGreaterThan(2);
  await open(page, 'mixed');
  const shown = await rows(page, '#figure-together');
  expect(shown.map((row) => row['stream'])).toEqual(together.map((one: any) => one.stream));
  await expect(page.locator('.keys li').first()).toContainText('beside all others');
});

test('a block size is to be chosen only where there is something to choose', async ({ page }) => {
  const few = data('grid');
  const [run] = few.runs;
  const sizes = [...new Set(run.cells.map((cell: any) => cell.block_bytes))].slice(0, 2);
  run.cells = sizes.flatMap((size) =>
    run.cells.filter((cell: any) => cell.block_bytes === size).slice(0, 2),
  );
  put('few', few);
  for (const [name, count] of [
    ['few', 0],
    ['grid', 1],
  ] as const) {
    await open(page, name);
    for (const id of ['bars', 'distribution'])
      await expect(page.locator(`#figure-${id}`).getByLabel('block size')).toHaveCount(count);
  }
});

test('parts of a file of different size are an axis', async ({ page }) => {
  await open(page, 'regions');
  const figure = page.locator('#figure-axis');
  await expect(figure.locator('figcaption')).toHaveText('read: IOPS against region');
  await look(page);
  for (const size of ['16 MiB', '32 MiB', '64 MiB'])
    await expect(figure.locator('svg text', { hasText: size })).toBeVisible();
  const found = await rows(page, '#figure-axis');
  expect(found.map(({ level }) => level)).toEqual(['16 MiB', '32 MiB', '64 MiB']);
});

test('long names of an axis are all there', async ({ page }) => {
  await open(page, 'mixed');
  await look(page);
  const panel = page.locator('#figure-axis .canvas').first();
  for (const name of ['log+reads', 'log+reads+writes', 'log+reads+writes+scan', 'all'])
    await expect(panel.locator('svg').getByText(name, { exact: true })).toBeVisible();
});

test('a sentence has one link to a figure, and a name leads to no other cell', async ({ page }) => {
  const one = data('mixed');
  const sentence = '2 of 10 cells (server log+reads and server log): within 5 us +-33 %';
  const cells = [{ words: 'server log', cell: '0.0' }];
  const verdict = {
    topic: 'Caches',
    question: 'caches',
    severity: 'info',
    figures: ['bars'],
    is_doubt: false,
    cells: [],
  };
  const evidence = [{ figures: ['bars'], cells }];
  one.runs[0].verdicts = [{ ...verdict, sentences: [sentence], evidence }];
  put('names', one);
  await open(page, 'names');
  const card = cardOf(page, 'Caches');
  await expect(card.getByRole('link')).toHaveCount(1);
  const name = card.locator('.said .link');
  await expect(name).toHaveText('server log');
  const before = await name.evaluate((link) => link.previousSibling?.textContent);
  expect(before).toBe('2 of 10 cells (server log+reads and ');
  await expect(card.locator('.said')).toContainText('within 5 µs ± 33 %');
});

test('runs of several suites are told apart, and what cannot be compared comes last', async ({
  page,
}) => {
  const one = data('study');
  const [run] = one.runs;
  const runs = ['dd-big', 'dd-small', 'wal'].map((suite, k) => ({
    ...run,
    id: `r${k + 1}`,
    suite,
  }));
  const [held] = one.against;
  const none = {
    ...held,
    cells: [],
    headline: 'Unknown: no cell in common.',
    slower: 0,
    faster: 0,
  };
  const against = [
    { ...none, run: 'r2', reference: 'r1' },
    { ...held, run: 'r3', reference: 'r1' },
  ];
  put('suites', { ...one, runs, against });
  await open(page, 'suites');
  const names = await page.locator('.of-run > summary > strong').allTextContents();
  const hardware = run.target.given.replace(/^model:.*\/(.*)\.toml$/, '$1 (simulated)');
  expect(names).toEqual(runs.map(({ id, suite }) => `${id} · ${suite} · ${hardware}`));
  await expect(page.locator('.against:visible')).toHaveCount(1);
  await expect(page.locator('.against:visible h3')).toContainText('r3 against r1');
  await expect(page.locator('.verdicts > details.rest > summary')).toHaveText(
    '1 more against r1: 1 without a cell in common',
  );
});

/** Marks of points within a drawing: what is no line of it. */
const points = (canvas: ReturnType<Page['locator']>) => canvas.locator('svg path[transform]');

test('what was written within one interval is a point, and what came after the load none', async ({
  page,
}) => {
  const one = data('mixed');
  const [run] = one.runs;
  const step = 100e6;
  type Visit = { written: number | null; series: { rate: number[] } | null };
  // Every visit has one interval, as those of a quick run on a fast drive have.
  for (const cell of run.cells)
    for (const visit of cell.visits as (Visit & Record<string, unknown>)[])
      if (visit.series) {
        const series = { ...visit.series, step_ns: step, rate: [visit['iops']], low: [], high: [] };
        Object.assign(visit, { elapsed_ns: step, series });
      }
  put('lone-points', one);
  await open(page, 'lone-points');
  const canvas = page.locator('#figure-written .canvas');
  await canvas.scrollIntoViewIfNeeded();
  await expect(canvas.locator('svg')).toBeVisible();
  const told = await rows(page, '#figure-written');
  expect(told.length).toBeGreaterThan(15);
  expect(await points(canvas).count()).toBe(told.length);
  // The same with what was waited for at each end: as many rates, and the same ones.
  for (const cell of run.cells)
    for (const visit of cell.visits)
      if (visit.series) {
        const late = visit.iops * 0.1;
        visit.series.rate = [visit.iops * 1.2, late];
        visit.elapsed_ns = step * 1.228;
      }
  put('drained', one);
  await open(page, 'drained');
  const rates = await rows(page, '#figure-written');
  expect(rates.length).toBe(told.length);
  const least = Math.min(...told.map((row) => Number(row['bytes_per_s'])));
  for (const row of rates) expect(Number(row['bytes_per_s'])).toBeGreaterThan(least * 0.9);
});

test('where nothing was told of a kind nothing is missing', async ({ page }) => {
  await open(page, 'raid5', '#metric=latency');
  const heat = page.locator('#figure-heat .canvas');
  for (const canvas of await heat.all()) {
    await canvas.scrollIntoViewIfNeeded();
    await expect(canvas.locator('svg')).toBeVisible();
  }
  // Those without any figure.
  await expect(heat.locator('svg text', { hasText: '×' })).toHaveCount(4);
  await expect(heat.locator('svg text', { hasText: /^–$/ })).toHaveCount(80);
  // Gaps, too: a ring stands at a figure only.
  const told = data('grid');
  for (const cell of told.runs[0].cells)
    if (cell.block_bytes < 16384) {
      cell.latency_ns = { mean: null, p50: null, p99: null, p999: null, max: null };
      cell.marks.push({ code: 'gap', meaning: '', evidence: [] });
    }
  put('untold', told);
  await open(page, 'untold');
  const figure = page.locator('#figure-size figure', { hasText: 'latency' });
  await figure.locator('.canvas').scrollIntoViewIfNeeded();
  await expect(figure.locator('.canvas svg')).toBeVisible();
  await expect(figure.locator('svg path[stroke="#c2143a"]')).toHaveCount(0);
});

/** Bars of a drawing: filled, and with a length. */
const barsOf = async (canvas: ReturnType<Page['locator']>) => {
  await canvas.scrollIntoViewIfNeeded();
  await expect(canvas.locator('svg')).toBeVisible();
  const paths = canvas.locator('svg path:not([fill="none"]):not([fill="transparent"])');
  const boxes = await paths.evaluateAll((all) => all.map((one) => one.getBoundingClientRect()));
  return boxes.filter(({ width, height }) => width > 8 && height > 8).length;
};

test('an interval or a bar that reaches nothing hides no bar', async ({ page }) => {
  const name = 'mixed';
  const one = data(name);
  await open(page, name);
  const canvas = page.locator('#figure-bars .canvas').first();
  const drawn = await barsOf(canvas);
  expect(drawn).toBeGreaterThan(5);
  for (const cell of one.runs[0].cells)
    if (cell.iops !== null) Object.assign(cell, { iops_low: 0, iops_high: 2 * cell.iops });
  put('to-nothing', one);
  for (const scale of ['log', 'linear']) {
    await open(page, 'to-nothing', `#scale=${scale}`);
    // On a linear scale the shortest cannot be seen.
    expect(await barsOf(canvas), scale).toBeGreaterThanOrEqual(scale === 'log' ? drawn : 3);
    // Whiskers end where the plot does.
    const out = await canvas.evaluate((place) => {
      const { left, right } = place.getBoundingClientRect();
      const all = [...place.querySelectorAll('svg path')].map((one) => one.getBoundingClientRect());
      return all.filter((one) => one.left < left - 1 || one.right > right + 1).length;
    });
    expect(out, scale).toBe(0);
  }
  const none = structuredClone(one);
  none.runs[0].cells.find((cell: { iops: number | null }) => cell.iops !== null).iops = 0;
  put('of-nothing', none);
  const faults = await open(page, 'of-nothing', '#scale=log');
  expect(await barsOf(canvas)).toBeGreaterThanOrEqual(drawn - 1);
  expect(faults).toEqual([]);
});

test('of two runs with many curves as many of each are drawn', async ({ page }) => {
  const one = data('grid');
  const [run] = one.runs;
  const cells = [0, 1].flatMap((copy) =>
    run.cells.map((cell: { key: string; name: string; block_bytes: number }) => ({
      ...cell,
      key: `${cell.key}${copy || ''}`,
      name: `${cell.name} ${copy}`,
      block_bytes: 8192,
    })),
  );
  put('two-runs', {
    ...one,
    runs: [
      { ...run, cells },
      { ...run, id: 'r98', cells },
    ],
  });
  await open(page, 'two-runs');
  for (const id of ['distribution', 'exposure']) {
    const figure = page.locator(`#figure-${id}`);
    await figure.scrollIntoViewIfNeeded();
    await expect(figure.locator('.left')).toContainText('The first 16 of');
    const names = await figure.locator('.legend button').allTextContents();
    const others = names.filter((name) => name.includes('r98'));
    expect(names.length).toBe(16);
    expect(others.length, names.join('\n')).toBe(8);
    const canvas = figure.locator('.canvas').first();
    await expect(canvas.locator('svg')).toBeVisible();
    for (const color of ['#0072b2', '#d55e00'])
      expect(await canvas.locator(`svg path[stroke="${color}"]`).count(), color).toBeGreaterThan(5);
  }
});

for (const name of ['study', 'mixed', 'copies', 'stacks', 'one-factor'])
  test(`${name}: numbers on bars are whole or not there on a phone`, async ({ page }) => {
    await page.setViewportSize({ width: 390, height: 844 });
    await open(page, name);
    const all = page.locator('#figure-bars .canvas, #figure-levels .canvas');
    expect(await all.count()).toBeGreaterThan(0);
    for (const canvas of await all.all()) {
      expect(await collisions(canvas)).toEqual([]);
      // A number is on a bar with all of its letters, or on none.
      const torn = await canvas.evaluate((place) => {
        const box = (one: Element) => one.getBoundingClientRect();
        const paths = [...place.querySelectorAll('svg path')];
        const isFilled = (one: Element) =>
          !['none', 'transparent', null].includes(one.getAttribute('fill'));
        const bars = paths
          .filter(isFilled)
          .map(box)
          .filter((one) => one.width > 3 && one.height > 3);
        const ends = paths.filter((one) => one.getAttribute('stroke-width') === '1.4').map(box);
        const numbers = [...place.querySelectorAll('svg text')].filter((one) =>
          /^[\d.]+[KMG]?$/.test(one.textContent ?? ''),
        );
        return numbers.flatMap((one) => {
          const own = box(one);
          const cuts = (a: DOMRect) =>
            Math.min(a.right, own.right) - Math.max(a.left, own.left) > 1.5 &&
            Math.min(a.bottom, own.bottom) - Math.max(a.top, own.top) > 3;
          const holds = (a: DOMRect) => a.left <= own.left + 1.5 && a.right >= own.right - 1.5;
          const bad = bars.some((bar) => cuts(bar) && !holds(bar)) || ends.some(cuts);
          return bad ? [one.textContent] : [];
        });
      });
      expect(torn).toEqual([]);
    }
  });

test('the answer, its numbers and its figure are above the fold', async ({ page }) => {
  await page.setViewportSize({ width: 1280, height: 800 });
  const faults = await open(page, 'grid');
  await expect(page.locator('.headline')).toContainText('read: up to');
  const reads = data('grid').runs[0].cells.filter(({ op }: { op: string }) => op === 'read');
  const most = Math.max(...reads.map(({ iops }: { iops: number }) => iops));
  const first = page.locator('.keys li').first();
  await expect(first).toContainText('reads/s');
  await expect(first).toContainText('±');
  const told = Number((await first.locator('strong').textContent())?.replace(' K', ''));
  expect(told / (most / 1000)).toBeCloseTo(1, 2);
  for (const part of ['.headline', '.keys', '.lead .canvas >> nth=0'])
    expect((await page.locator(part).boundingBox())?.y).toBeLessThan(800 - 240);
  // Nobody has to scroll for a drawing.
  const canvases = page.locator('.canvas');
  await expect(canvases.locator('svg')).toHaveCount(await canvases.count());
  expect(faults).toEqual([]);
});

test('what a cache answered is said so, and never the highest', async ({ page }) => {
  const one = data('grid');
  const reads = one.runs[0].cells.filter(({ op }: { op: string }) => op === 'read');
  reads.sort((a: { iops: number }, b: { iops: number }) => b.iops - a.iops);
  for (const cell of reads.filter(({ threads }: { threads: number }) => threads === 40))
    cell.marks = [{ code: 'cached', meaning: '', evidence: [] }];
  put('cached', one);
  await open(page, 'cached');
  const next = reads.find(({ threads }: { threads: number }) => threads !== 40);
  const value = await page.locator('.keys li strong').first().textContent();
  expect(Number(value?.replace(' K', '')) / (next.iops / 1000)).toBeCloseTo(1, 2);
  for (const id of ['size', 'heat', 'bars'])
    await expect(
      page.locator(`#figure-${id} svg text`, { hasText: 'cache' }).first(),
    ).toBeAttached();
});

test('which place is the answer of what `plimsoll which` stored', async ({ page }) => {
  const faults = await open(page, 'which');
  await expect(page.locator('h1')).toContainText('Which place for a database: nvme');
  await expect(page.locator('.headline')).toContainText('Use A (');
  await expect(page.locator('.keys li').first()).toContainText('commits/s by 16 sessions');
  await expect(page.locator('.keys li').first()).toContainText(/x[\d.]+ of B/);
  await expect(page.locator('.lead #figure-bars')).toBeVisible();
  await expect(page.locator('.lead')).toContainText('How sure: 10 blocks');
  expect(faults).toEqual([]);
});
