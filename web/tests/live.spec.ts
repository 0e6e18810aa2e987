// The page as it is served: the list of runs, and a run that goes on while it is looked at.

import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { get, request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test as base, type Page } from '@playwright/test';
import { barriers, faultsOf } from './look';
import { MADE, program } from './make';

interface Served {
  url: string;
  /** Without token. */
  origin: string;
  token: string | null;
  process: ChildProcess;
}

const ended = (child: ChildProcess) =>
  new Promise<void>((done) => {
    if (child.exitCode !== null || child.signalCode !== null) done();
    else child.once('exit', () => done());
  });

/** A directory with a store of its own, and what was started on it. */
class World {
  readonly dir = mkdtempSync(join(tmpdir(), 'plimsoll-live-'));
  readonly store = join(this.dir, 'store.db');
  private readonly started: ChildProcess[] = [];

  plimsoll(...words: string[]): string {
    return execFileSync(program(), ['--store', this.store, ...words], {
      cwd: this.dir,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  }

  /** Goes on in the background. */
  start(...words: string[]): ChildProcess {
    const child = spawn(program(), ['--store', this.store, ...words], {
      cwd: this.dir,
      stdio: 'ignore',
    });
    this.started.push(child);
    return child;
  }

  /** Stops a run between two commits: one that is stopped within a commit keeps the store locked. */
  async stop(run: ChildProcess): Promise<void> {
    for (;;) {
      run.kill('SIGSTOP');
      await new Promise((done) => setTimeout(done, 20));
      if (!this.commits()) return;
      run.kill('SIGCONT');
      await new Promise((done) => setTimeout(done, 10));
    }
  }

  /** Whether somebody is about to store something: one that is stopped then keeps others waiting. */
  private commits(): boolean {
    const found = statSync(this.store, { throwIfNoEntry: false });
    const locks = readFileSync('/proc/locks', 'utf8').split('\n');
    const writes = locks.some(
      (line) => line.includes(' WRITE ') && line.includes(`:${found?.ino} `),
    );
    return writes || existsSync(`${this.store}-journal`);
  }

  /** Visits of a run that are in the store; of one that is not, none. */
  made(run: string): number {
    try {
      const list = existsSync(this.store) ? this.plimsoll('list', '--json') : '{"runs":[]}';
      const { runs } = JSON.parse(list) as { runs: { id: string; visits: { made: number } }[] };
      return runs.find(({ id }) => id === run)?.visits.made ?? 0;
    } catch {
      // It is being made.
      return 0;
    }
  }

  /** Once a run that was started has something to show. */
  async begun(run = 'r1'): Promise<void> {
    await expect.poll(() => this.made(run), { intervals: [50] }).toBeGreaterThan(0);
  }

  async serve(...words: string[]): Promise<Served> {
    const listen = words.includes('--listen') ? [] : ['--listen', '127.0.0.1:0'];
    const all = ['--store', this.store, 'serve', '--json', ...listen, ...words];
    const child = spawn(program(), all, { cwd: this.dir, stdio: ['ignore', 'pipe', 'pipe'] });
    this.started.push(child);
    let text = '';
    for await (const chunk of child.stdout) {
      text += String(chunk);
      if (text.endsWith('}\n')) break;
    }
    expect(text, `plimsoll ${all.join(' ')} says where it listens`).not.toBe('');
    const { url, token } = JSON.parse(text) as { url: string; token: string | null };
    const port = new URL(url).port;
    const origin = `http://127.0.0.1:${port}`;
    return { url: origin + '/' + new URL(url).hash, origin, token, process: child };
  }

  async end(): Promise<void> {
    for (const child of this.started) child.kill('SIGKILL');
    // Else they write into the directory while it is removed.
    await Promise.all(this.started.map(ended));
    rmSync(this.dir, { recursive: true, force: true });
  }
}

const test = base.extend<{ world: World }>({
  world: async ({}, use) => {
    const world = new World();
    await use(world);
    await world.end();
  },
});

const ready = (page: Page) => expect(page.locator('html[data-ready]')).toBeVisible();

/** A run that takes real time: four cells, one visit after the other. */
const SLOW = [
  ...['run', 'random-read', '--target', 'null:', '--time', '200ms', '--classic'],
  ...['--set', 'queue_depth=1,2,4,8'],
];

/**
 * A run that ends when it is told to. `SIGSTOP` lets it stand still, and what is to be looked at
 * cannot pass by; `SIGCONT` lets it go on.
 */
const ENDLESS = [...SLOW, '--set', 'repeats=1000'];

/** Visits that are drawn. */
const visits = async (page: Page) => {
  const caption = page.locator('#figure-order figcaption');
  return Number(/(\d+) visits/.exec((await caption.textContent()) ?? '')?.[1]);
};

const status = (url: string, headers: Record<string, string>) =>
  new Promise<number>((done, fail) => {
    const asked = httpRequest(url, { headers }, (response) => {
      response.resume();
      done(response.statusCode ?? 0);
    });
    asked.on('error', fail);
    asked.end();
  });

/** What a page has asked its server for; nothing that it did before is told later. */
function askedBy(page: Page): () => Promise<string[]> {
  const mark = '/api/runs';
  const all: string[] = [];
  page.on('request', (request) => all.push(new URL(request.url()).pathname));
  return async () => {
    const own = page.waitForRequest((request) => new URL(request.url()).pathname === mark);
    await page.evaluate((path) => fetch(path).then((one) => one.text()), mark);
    await own;
    return all.filter((path) => path !== mark);
  };
}

test.describe('live', () => {
  // The longest have a run, a server and three pages, one after the other.
  test.describe.configure({ timeout: 180_000 });

  test('a run fills in while it goes on, and ends', async ({ page, world }) => {
    world.plimsoll(...SLOW);
    const served = await world.serve();
    const faults = faultsOf(page, `${served.origin}/`);
    await page.goto(served.url);
    await ready(page);
    await expect(page.locator('tbody tr')).toHaveCount(1);
    // Started elsewhere, while the page is looked at.
    const run = world.start(...SLOW, '--set', 'repeats=8');
    await world.begun('r2');
    await world.stop(run);
    const row = page.locator('tbody tr', { hasText: 'r2' });
    await expect(row).toContainText(/running: \d+ of 32 visits/);
    await row.getByRole('link', { name: 'r2' }).click();
    await expect(page).toHaveURL(`${served.origin}/runs/r2`);
    await expect(page.locator('.standing')).toContainText(/running: \d+ of 32 visits/);
    await ready(page);
    // Figures come as there is something to draw, without a word from the reader.
    const most = world.made('r2');
    expect(most).toBeLessThan(32);
    run.kill('SIGCONT');
    await expect(page.locator('#figure-order')).toBeVisible();
    await expect.poll(() => visits(page)).toBeGreaterThan(most);
    await expect(page.locator('.standing')).toContainText('r2 complete');
    await expect.poll(() => visits(page)).toBe(32);
    await expect(page.locator('.runs')).not.toContainText('running');
    await ended(run);
    // What is shown is what the report has.
    const report = JSON.parse(world.plimsoll('report', 'r2', '--json'));
    const told = () => page.evaluate(() => fetch('/api/page/r2').then((one) => one.json()));
    await expect.poll(told).toEqual(report);
    expect(faults).toEqual([]);
  });

  test('a row of the list stays what it is while its run goes on', async ({ page, world }) => {
    const run = world.start(...ENDLESS);
    await world.begun();
    await world.stop(run);
    const served = await world.serve();
    await page.goto(served.url);
    await ready(page);
    const [row, box] = [page.locator('tbody tr'), page.getByLabel('choose r1')];
    const link = row.getByRole('link', { name: 'r1' });
    const told = await row.textContent();
    const [first, chosen] = [await link.elementHandle(), await box.elementHandle()];
    await box.focus();
    run.kill('SIGCONT');
    await expect(row).not.toHaveText(told ?? '');
    // A click that has begun on it ends on it, too.
    expect(await link.evaluate((now, then) => now === then, first)).toBe(true);
    expect(await box.evaluate((now, then) => now === then, chosen)).toBe(true);
    await expect(box).toBeFocused();
  });

  test('a click that begins on a row of the cells ends on it while their run goes on', async ({
    page,
    world,
  }) => {
    const run = world.start(...ENDLESS);
    await world.begun();
    await world.stop(run);
    const served = await world.serve();
    await page.goto(`${served.origin}/runs/r1`);
    await ready(page);
    await page.locator('details.all summary').click();
    const row = page.locator('details.all tbody tr').first();
    const told = await row.textContent();
    await row.locator('.link').hover();
    await page.mouse.down();
    run.kill('SIGCONT');
    await expect(row).not.toHaveText(told ?? '');
    await world.stop(run);
    await row.locator('.link').hover();
    await page.mouse.up();
    await expect(page.getByRole('dialog')).toBeVisible();
    await page.keyboard.press('Escape');
    // Its files are of what is there by now.
    await expect.poll(async () => (await visits(page)) - world.made('r1')).toBe(0);
    const wait = page.waitForEvent('download');
    await page.locator('#figure-table').getByRole('button', { name: 'JSON' }).click();
    const text = readFileSync(await (await wait).path(), 'utf8');
    const made = (JSON.parse(text) as { runs: { cells: { visits: unknown[] }[] }[] }).runs[0]
      ?.cells;
    const drawn = await visits(page);
    expect(made?.reduce((sum, cell) => sum + cell.visits.length, 0)).toBe(drawn);
  });

  test('what the reader has open stays so when newer data come', async ({ page, world }) => {
    const run = world.start(...ENDLESS);
    await world.begun();
    await world.stop(run);
    const served = await world.serve();
    const faults = faultsOf(page, `${served.origin}/`);
    await page.goto(`${served.origin}/runs/r1`);
    await ready(page);
    await page.locator('details.all summary').click();
    await page.locator('details.all tbody .link').first().click();
    const dialog = page.getByRole('dialog');
    await expect(dialog).toBeVisible();
    const rows = await dialog.locator('tbody tr').count();
    run.kill('SIGCONT');
    await expect.poll(() => dialog.locator('tbody tr').count()).toBeGreaterThan(rows);
    await page.keyboard.press('Escape');
    await expect(dialog).toBeHidden();
    // Kept: the table is open, and the place on the page.
    await expect(page.locator('details.all')).toHaveAttribute('open', '');
    await expect(page.locator('#figure-order')).toBeVisible();
    await world.stop(run);
    await expect.poll(async () => (await visits(page)) - world.made('r1')).toBe(0);
    const [told, at] = [await visits(page), await page.evaluate(() => scrollY)];
    run.kill('SIGCONT');
    await expect.poll(() => visits(page)).toBeGreaterThan(told);
    expect(Math.abs((await page.evaluate(() => scrollY)) - at)).toBeLessThan(200);
    expect(faults).toEqual([]);
  });

  test('a run that is killed is told as killed', async ({ page, world }) => {
    const run = world.start(...ENDLESS);
    await world.begun();
    const served = await world.serve();
    const faults = faultsOf(page, `${served.origin}/`);
    await page.goto(`${served.origin}/runs/r1`);
    await expect(page.locator('.standing')).toContainText('running');
    await expect(page.locator('#figure-order')).toBeVisible();
    run.kill('SIGKILL');
    await expect(page.locator('.standing')).toContainText(/killed after \d+ of 4000 visits/);
    await expect(page.locator('progress')).toHaveCount(0);
    expect(faults).toEqual([]);
  });

  test('a server that ends, and a store that goes away, are told', async ({ page, world }) => {
    world.plimsoll(...SLOW);
    const served = await world.serve();
    await page.goto(`${served.origin}/runs/r1`);
    await ready(page);
    const alert = page.getByRole('alert').filter({ visible: true });
    await expect(alert).toHaveCount(0);
    renameSync(world.store, `${world.store}.away`);
    await expect(alert).toContainText('is gone');
    renameSync(`${world.store}.away`, world.store);
    await expect(alert).toHaveCount(0);
    served.process.kill('SIGINT');
    await expect(alert).toContainText('has not answered since');
    // What was shown is still there.
    await expect(page.locator('.canvas svg').first()).toBeVisible();
    await ended(served.process);
    const port = new URL(served.origin).port;
    await world.serve('--listen', `127.0.0.1:${port}`);
    await expect(alert).toHaveCount(0);
  });

  test('two tabs see the same, and one that nobody looks at asks for nothing', async ({
    context,
    page,
    world,
  }) => {
    const run = world.start(...ENDLESS);
    await world.begun();
    const served = await world.serve();
    const other = await context.newPage();
    const asked = askedBy(other);
    for (const one of [page, other]) {
      await one.goto(`${served.origin}/runs/r1`);
      await expect(one.locator('#figure-order')).toBeVisible();
    }
    // As a browser does with a tab that is covered.
    const look = (state: 'hidden' | 'visible') =>
      other.evaluate((value) => {
        Object.defineProperty(document, 'visibilityState', {
          get: () => value,
          configurable: true,
        });
        document.dispatchEvent(new Event('visibilitychange'));
      }, state);
    await look('hidden');
    const before = (await asked()).length;
    const now = await visits(page);
    await expect.poll(() => visits(page)).toBeGreaterThan(now + 10);
    expect((await asked()).slice(before)).toEqual([]);
    await look('visible');
    const seen = await visits(page);
    await expect.poll(() => visits(other)).toBeGreaterThan(seen);
    run.kill('SIGINT');
    await ended(run);
    const made = world.made('r1');
    // With the visit that was interrupted, where there is one.
    const report = JSON.parse(world.plimsoll('report', 'r1', '--json'));
    const drawn = report.runs[0].cells.flatMap((cell: { visits: unknown[] }) => cell.visits).length;
    for (const one of [page, other]) {
      await expect(one.locator('.standing')).toContainText(
        `r1 interrupted after ${made} of 4000 visits`,
      );
      await expect.poll(() => visits(one)).toBe(drawn);
      await expect(one.locator('.runs')).toContainText('interrupted');
    }
    const figures = (one: Page) => one.locator('#figure-table').textContent();
    expect(await figures(other)).toBe(await figures(page));
  });

  test('a run that stands still is asked for once', async ({ page, world }) => {
    world.plimsoll(...SLOW);
    const served = await world.serve();
    const asked = askedBy(page);
    await page.clock.install();
    await page.goto(`${served.origin}/runs/r1`);
    await expect(page.locator('.canvas svg').first()).toBeVisible();
    await expect(page.locator('.standing')).toContainText('r1 complete');
    await page.clock.runFor(60_000);
    expect((await asked()).filter((path) => path === '/api/page/r1')).toEqual(['/api/page/r1']);
  });

  test('a page too many is told so', async ({ page, world }) => {
    world.plimsoll(...SLOW);
    const served = await world.serve();
    const all = Array.from({ length: 32 }, () => get(`${served.origin}/api/events`));
    await Promise.all(all.map((one) => new Promise((done) => one.on('response', done))));
    await page.goto(`${served.origin}/runs/r1`);
    await expect(page.locator('.canvas svg').first()).toBeVisible();
    const alert = page.getByRole('alert').filter({ visible: true });
    await expect(alert).toContainText('too many ask at once');
    for (const one of all) one.destroy();
    await expect(alert).toHaveCount(0);
    await expect(page.locator('.standing')).toContainText('r1 complete');
  });

  test('runs are chosen in the list and seen side by side', async ({ page, world }) => {
    copyFileSync(join(MADE, 'store.db'), world.store);
    const served = await world.serve();
    const faults = faultsOf(page, `${served.origin}/`);
    await page.goto(served.url);
    await ready(page);
    await expect(page.locator('tbody tr')).toHaveCount(6);
    await expect(page.locator('tbody tr').first()).toContainText('r6');
    await page.getByLabel('find').fill('bm-flash imported');
    await expect(page.locator('tbody tr')).toHaveCount(2);
    await page.getByLabel('choose r2').check();
    await page.getByLabel('choose r1').check();
    await page.getByRole('button', { name: 'Side by side: 2 runs against r2' }).click();
    await expect(page).toHaveURL(`${served.origin}/runs/r2,r1`);
    await ready(page);
    await expect(page.locator('h1')).toContainText('2 runs of');
    await expect(page.locator('.verdicts')).toContainText('r1 against r2');
    const figure = page.locator('#figure-compare');
    await figure.scrollIntoViewIfNeeded();
    const field = figure.locator('svg text', { hasText: /^x7\.9/ }).first();
    await expect(field).toBeVisible();
    await field.hover();
    await expect(page.locator('.tip').filter({ visible: true })).toContainText('ratio');
    await field.click();
    await expect(page.getByRole('dialog')).toBeVisible();
    await page.keyboard.press('Escape');
    const key = page.locator('#figure-size .key').first();
    await key.click();
    await expect(page.locator('#figure-size .key').first()).toHaveAttribute(
      'aria-pressed',
      'false',
    );
    await page.getByRole('button', { name: 'MiB', exact: true }).click();
    await expect.poll(() => page.url()).toContain('unit=MiB');
    await page.getByRole('link', { name: 'All runs' }).click();
    await expect(page.locator('h1')).toHaveText('Runs');
    expect(faults).toEqual([]);
  });

  test('who comes from elsewhere needs the token, which stays in no address', async ({
    page,
    context,
    world,
  }) => {
    world.plimsoll(...SLOW);
    const served = await world.serve('--listen', '0.0.0.0:0');
    expect(served.token).not.toBeNull();
    await page.goto(served.url);
    await ready(page);
    await expect(page.locator('tbody tr')).toHaveCount(1);
    await expect.poll(() => page.url()).not.toContain(served.token ?? '');
    await page.reload();
    await expect(page.locator('tbody tr')).toHaveCount(1);
    // A tab that was opened from this one has it from this one.
    const [tab] = await Promise.all([
      context.waitForEvent('page'),
      page.getByRole('link', { name: 'r1' }).click({ modifiers: ['Control'] }),
    ]);
    // Figures are drawn when somebody looks: a tab in the background may wait.
    await tab.bringToFront();
    await expect(tab.locator('.canvas svg').first()).toBeVisible();
    expect((await context.cookies()).length).toBe(0);
    await tab.close();
    await page.close();
    // Nobody is there to ask.
    const stranger = await context.newPage();
    // The page's own answer comes when the reader types already.
    let answer = () => {};
    const typed = new Promise<void>((done) => (answer = done));
    await stranger.route('**/api/page/**', (route) => typed.then(() => route.continue()));
    await stranger.addInitScript(() => {
      let asked = 0;
      new BroadcastChannel('plimsoll-token').addEventListener('message', ({ data }) => {
        // Later than the page gives up to wait for other tabs.
        const told = () => (document.documentElement.dataset['asked'] = 'twice');
        if (data.ask && ++asked === 2) setTimeout(told, 400);
      });
    });
    await stranger.goto(`${served.origin}/runs/r1`);
    await expect(stranger.getByLabel('Token')).toBeVisible();
    await expect(stranger.locator('body')).not.toContainText('random-read');
    await stranger.getByLabel('Token').fill('wrong-wrong-wrong-wrong');
    answer();
    await expect(stranger.locator('html[data-asked]')).toBeVisible();
    await expect(stranger.getByLabel('Token')).toHaveValue('wrong-wrong-wrong-wrong');
    await stranger.getByRole('button', { name: 'Go on' }).click();
    // Asked anew.
    await expect(stranger.getByLabel('Token')).toHaveValue('');
    await stranger.getByLabel('Token').fill(served.token ?? '');
    await stranger.getByRole('button', { name: 'Go on' }).click();
    await expect(stranger.locator('.canvas svg').first()).toBeVisible();
  });

  test('a tab that hears of the token late goes on with it', async ({ page, context, world }) => {
    copyFileSync(join(MADE, 'store.db'), world.store);
    const served = await world.serve('--listen', '0.0.0.0:0');
    // Says nothing until it is told to, as where there is much else to do.
    await page.addInitScript(() => {
      const post = BroadcastChannel.prototype.postMessage;
      const kept: (() => void)[] = [];
      BroadcastChannel.prototype.postMessage = function (message) {
        kept.push(() => post.call(this, message));
      };
      addEventListener('say', () => kept.forEach((one) => one()));
    });
    await page.goto(served.url);
    await ready(page);
    const other = await context.newPage();
    await other.goto(`${served.origin}/runs/r1`);
    await expect(other.getByLabel('Token')).toBeVisible();
    await page.evaluate(() => dispatchEvent(new Event('say')));
    await expect(other.locator('.canvas svg').first()).toBeVisible();
  });

  test('a page of another site gets nothing', async ({ page, world }) => {
    world.plimsoll(...SLOW);
    const served = await world.serve();
    const port = new URL(served.origin).port;
    for (const [headers, code] of [
      [{ Host: `evil.example:${port}` }, 421],
      [{ Host: `127.0.0.1:${port}`, Origin: 'http://evil.example' }, 403],
      [{ Host: `localhost:${port}` }, 200],
    ] as const) {
      expect(await status(`${served.origin}/api/runs`, { ...headers })).toBe(code);
    }
    // In a browser: a page at another port, and one whose name was made to lead here.
    const other = await world.serve();
    await page.goto(other.url);
    await ready(page);
    const got = await page.evaluate(async (url) => {
      // Its own policy stands in the way already; a real stranger has none.
      return fetch(url).then(
        () => 'an answer',
        () => 'nothing',
      );
    }, `${served.origin}/api/runs`);
    expect(got).toBe('nothing');
    const rebound = await page.context().browser()?.newContext();
    const evil = await rebound?.newPage();
    await evil?.route('http://evil.example/**', (route) =>
      get(
        `${served.origin}${new URL(route.request().url()).pathname}`,
        { headers: { Host: 'evil.example' } },
        (response) => {
          response.resume();
          void route.fulfill({ status: response.statusCode ?? 0, body: 'x' });
        },
      ),
    );
    const answer = await evil?.goto('http://evil.example/');
    expect(answer?.status()).toBe(421);
    await rebound?.close();
  });

  test('hostile names are text in the list and on the page', async ({ page, world }) => {
    const evil = `<img src=x onerror="window.hit=1">"'&amp;\u202ex`;
    const model = join(world.dir, `${evil.replaceAll('/', '')}.toml`);
    copyFileSync(join(import.meta.dirname, '../../models/nvme.toml'), model);
    world.plimsoll(
      ...['run', 'random-read', '--target', `model:${model}`, '--time', '1s', '--quick'],
    );
    const table = join(world.dir, 'table.txt');
    copyFileSync(
      join(import.meta.dirname, '../../crates/import/tests/data/bm-flash-raid5-4.txt'),
      table,
    );
    world.plimsoll('import', table, '--label', evil);
    const served = await world.serve();
    const faults = faultsOf(page, `${served.origin}/`);
    for (const path of ['/', '/runs/r1', '/runs/r2', '/runs/r1,r2']) {
      await page.goto(served.origin + path);
      await ready(page);
      await expect(page.locator('#app')).toContainText('<img src=x');
      expect(await page.locator('#app').innerText()).not.toContain('\u202e');
      expect(await page.locator('img').count()).toBe(0);
      expect(await page.evaluate(() => (window as { hit?: number }).hit)).toBeUndefined();
    }
    // What is no run is nothing.
    await page.goto(`${served.origin}/runs/r77`);
    await expect(page.locator('.nothing')).toContainText('no run r77 in the store');
    expect(faults.filter((fault) => !fault.includes('404'))).toEqual([]);
  });

  for (const scheme of ['light', 'dark'] as const) {
    test(`in ${scheme}: no barrier for those who cannot see or point`, async ({ page, world }) => {
      copyFileSync(join(MADE, 'store.db'), world.store);
      const run = world.start(...ENDLESS);
      await world.begun('r7');
      await world.stop(run);
      const served = await world.serve();
      await page.emulateMedia({ colorScheme: scheme });
      for (const path of ['/', '/runs/r7']) {
        await page.goto(served.origin + path);
        await ready(page);
        await expect(page.locator('progress')).toBeVisible();
        const dark = await page.evaluate(() => document.documentElement.dataset['theme']);
        expect(dark).toBe(scheme);
        expect(await barriers(page)).toEqual([]);
        // As wide as the window, on a phone, too.
        await page.setViewportSize({ width: 380, height: 800 });
        const over = () => page.evaluate(() => document.documentElement.scrollWidth);
        await expect.poll(over).toBeLessThanOrEqual(380);
        await page.setViewportSize({ width: 1280, height: 900 });
      }
    });
  }

  test('it prints while a run goes on', async ({ page, world }) => {
    world.start(...ENDLESS);
    await world.begun();
    const served = await world.serve();
    const faults = faultsOf(page, `${served.origin}/`);
    await page.goto(`${served.origin}/runs/r1`);
    await expect(page.locator('#figure-order')).toBeVisible();
    const pdf = await page.pdf({ preferCSSPageSize: true });
    expect(pdf.length).toBeGreaterThan(10_000);
    writeFileSync(join(MADE, 'live.pdf'), pdf);
    expect(faults).toEqual([]);
  });

  test('the first figure is there soon', async ({ page, world }) => {
    copyFileSync(join(MADE, 'store.db'), world.store);
    const served = await world.serve();
    for (const [run, what] of [
      ['r3', '84 cells'],
      ['r3', '84 cells, made before'],
      ['r1,r2,r3,r4,r5,r6', 'six runs'],
    ]) {
      await page.goto(`${served.origin}/runs/${run}`);
      await expect(page.locator('.canvas svg').first()).toBeVisible({ timeout: 60_000 });
      const drawn = await page.evaluate(
        () => performance.getEntriesByName('plimsoll-first')[0]?.startTime ?? Number.NaN,
      );
      // Machines differ: told, not judged.
      console.log(`served ${what}: first figure after ${drawn.toFixed(0)} ms`);
      expect(drawn).toBeGreaterThan(0);
    }
  });
});
