// The pages that are tested, made by the program itself from published tables and simulated devices.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

export const HERE = dirname(fileURLToPath(import.meta.url));
const REPO = join(HERE, '../..');
const BUNDLE = join(HERE, '../dist/page.html');
export const MADE = join(HERE, '../test-results/pages');
const PLACE = '<script type="application/json" id="plimsoll-page">null</script>';

export function program(): string {
  const target = process.env['CARGO_TARGET_DIR'] ?? join(REPO, 'target');
  const known = [
    process.env['PLIMSOLL'] ?? '',
    join(target, 'release/plimsoll'),
    join(target, 'debug/plimsoll'),
  ];
  const found = known.find((path) => path !== '' && existsSync(path));
  if (!found) throw new Error('no plimsoll: build it, or name it in PLIMSOLL');
  return found;
}

const HEAD = (name: string) =>
  `schema = 1\nname = "${name}"\ntitle = "a shape"\ndescription = "a shape"\nfile_size = "64MiB"\n` +
  '[rounds]\nvisits_max = 3\nvisit_time = "100ms"\n';
const SIZES = 'block_size = ["4KiB", "16KiB", "64KiB", "256KiB"]\n';
const PHASE = (name: string, more: string, grid: string) =>
  `[[phase]]\nname = "${name}"\ntime = "100ms"\n${more}[phase.grid]\n${grid}`;
const DEPTHS = 'queue_depth = [1, 8, 32]\n';

const SHAPES: Record<string, string> = {
  // Each stream has a depth of its own.
  'two-streams.toml':
    HEAD('two-streams') +
    PHASE('mix', '', `${SIZES}"reader.queue_depth" = [1, 8]\n"writer.queue_depth" = [1, 16]\n`) +
    '[[phase.stream]]\nname = "reader"\noperation = "read"\n' +
    '[[phase.stream]]\nname = "writer"\noperation = "write"\n',
  // The name of one phase begins the other's, which is slow by plan.
  'prefix.toml':
    HEAD('prefix') +
    PHASE('read', '', SIZES + DEPTHS) +
    PHASE('read-slowly', 'rate = 100\n', SIZES + DEPTHS),
  // Parts of different size of one file, as suites look for the end of a cache.
  'regions.toml':
    HEAD('regions') +
    [16, 32, 64]
      .map((size, k) => {
        const of = `region = { length = "${size}MiB" }\nblock_size = "4KiB"\n`;
        return `[[phase]]\nname = "read-${k + 1}"\ntime = "100ms"\n${of}`;
      })
      .join(''),
  // Two suites with phases of one name that differ in the block size only.
  'small.toml': HEAD('small') + PHASE('read', '', DEPTHS),
  'large.toml': HEAD('large') + PHASE('read', 'block_size = "64KiB"\n', DEPTHS),
};

const PLAIN_MAX = 1 << 20;

/** One file from data, by the program's own rule. */
export function page(data: unknown): string {
  const text = JSON.stringify(data).replaceAll('<', '\\u003c');
  const bundle = readFileSync(BUNDLE, 'utf8');
  if (bundle.split(PLACE).length !== 2) throw new Error('the bundle has no place for data');
  if (text.length <= PLAIN_MAX)
    return bundle.replace(PLACE, () => PLACE.replace('null', () => text));
  const packed = PLACE.replace(' id=', ' data-coding="gzip" id=');
  return bundle.replace(PLACE, () => packed.replace('null', gzipSync(text).toString('base64')));
}

export function data(name: string): any {
  return JSON.parse(readFileSync(join(MADE, `${name}.json`), 'utf8'));
}

export const url = (name: string) => `file://${join(MADE, `${name}.html`)}`;

export function put(name: string, content: unknown): void {
  writeFileSync(join(MADE, `${name}.html`), page(content));
}

export default function make(): void {
  rmSync(MADE, { recursive: true, force: true });
  mkdirSync(MADE, { recursive: true });
  const plimsoll = program();
  const on = (store: string, words: string[]) =>
    execFileSync(plimsoll, ['--store', join(MADE, store), ...words], {
      cwd: MADE,
      encoding: 'utf8',
      maxBuffer: 1 << 28,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  const run = (...words: string[]) => on('store.db', words);
  const tables = join(REPO, 'crates/import/tests/data');
  const model = (name: string) => `model:${join(REPO, 'models', name)}`;
  run('import', join(tables, 'bm-flash-raid0-12.txt'), '--label', 'RAID 0, 12 SSDs');
  run('import', join(tables, 'bm-flash-raid5-4.txt'), '--label', 'RAID 5, 4 SSDs');
  run('run', 'bm-flash', '--target', model('sata-ssd.toml'), '--seed', '7');
  run(
    'run',
    'random-read',
    '--target',
    model('failing-ssd.toml'),
    '--set',
    'queue_depth=1,4,16',
    '--time',
    '5s',
    // With a freeze in it.
    '--seed',
    '14',
  );
  run('run', 'database-server', '--quick', '--target', model('nvme.toml'), '--seed', '5');
  run('run', 'bm-flash', '--target', model('nvme.toml'), '--seed', '8');
  // A store of its own: pages that are served have the other.
  const more = (...words: string[]) => on('more.db', words);
  // Copies within a real file, from a cold cache.
  more(
    ...['run', 'copy-40g', '--quick', '--target', join(MADE, 'files'), '--set', 'repeats=4'],
    ...['--set', 'caches=flush,purge'],
  );
  more(
    ...['run', 'random-read', '--target', join(MADE, 'cold'), '--size', '16MiB', '--time', '1s'],
    ...['--classic', '--set', 'repeats=3', '--set', 'caches=flush,purge'],
  );
  more('run', 'snia-iops', '--quick', '--target', model('sata-ssd.toml'), '--seed', '3');
  more(
    'run',
    'snia-write-saturation',
    '--quick',
    '--target',
    model('sata-ssd.toml'),
    '--seed',
    '3',
  );
  // Suites and a study whose shapes the figures have to keep apart.
  const shapes = (...words: string[]) => on('shapes.db', words);
  for (const [name, text] of Object.entries(SHAPES)) writeFileSync(join(MADE, name), text);
  shapes('run', join(MADE, 'two-streams.toml'), '--target', model('sata-ssd.toml'), '--seed', '1');
  shapes(
    ...['run', join(MADE, 'prefix.toml'), '--target', model('sata-ssd.toml'), '--seed', '1'],
    // Out of time is an exit code of its own, and the rates are noisy.
    ...['--max-time', '5m'],
  );
  const targets = ['nvme', 'disk', 'sata-ssd'].map((name) => JSON.stringify(model(`${name}.toml`)));
  const suites = ['small', 'large'].map((name) => JSON.stringify(join(MADE, `${name}.toml`)));
  const text = `title = "one factor"\n[stack]\ntarget = [${targets.join()}]\n[measure]\nsuites = [${suites.join()}]\nseed = 1\n`;
  writeFileSync(join(MADE, 'one-factor.toml'), text);
  shapes('study', join(MADE, 'one-factor.toml'));
  const other = (...words: string[]) => on('other.db', words);
  other('run', join(MADE, 'regions.toml'), '--target', model('sata-ssd.toml'), '--seed', '1');
  // More cells than are drawn at once.
  const sessions = Array.from({ length: 25 }, (_, k) => k + 1).join(',');
  other(
    ...['run', 'wal', '--quick', '--target', model('nvme.toml'), '--seed', '1'],
    ...['--set', `commits-fsync.queue_depth=${sessions}`],
  );
  other('import', join(tables, 'pg_test_fsync-15.txt'));
  // By the program itself, of so much data that it is compressed.
  run('report', 'r1', 'r2', 'r3', 'r4', 'r5', 'r6', '-o', 'program.html');
  const places = (...words: string[]) => on('places.db', words);
  places('which', model('nvme.toml'), model('sata-ssd.toml'), '--seed', '3');
  places('line', model('sata-ssd.toml'), '--seed', '1', '--hold', '0s');
  const pages: [string, typeof run, string[]][] = [
    ['which', places, ['r1', 'r2']],
    ['line', places, ['r3']],
    ['study', run, ['r1', 'r2']],
    ['raid0', run, ['r1']],
    ['raid5', run, ['r2']],
    ['grid', run, ['r3']],
    ['failing', run, ['r4']],
    ['mixed', run, ['r5']],
    ['copies', more, ['r1']],
    ['cold', more, ['r2']],
    ['steady', more, ['r3']],
    ['written', more, ['r4']],
    ['streams', shapes, ['r1']],
    ['prefix', shapes, ['r2']],
    ['regions', other, ['r1']],
    ['commits', other, ['r2']],
    ['told-commits', other, ['r3']],
    ['one-factor', shapes, ['--group', 'last']],
  ];
  for (const [name, by, runs] of pages) {
    const text = by('report', ...runs, '--json');
    writeFileSync(join(MADE, `${name}.json`), text);
    put(name, JSON.parse(text));
  }
  const stacks = study(data('grid'));
  writeFileSync(join(MADE, 'stacks.json'), JSON.stringify(stacks));
  put('stacks', stacks);
}

/** A study of four factors, two of three levels, made of one run: what it shows is the drawing. */
function study(one: any): any {
  const [run] = one.runs;
  const factors: [string, [string, number][]][] = [
    [
      'level',
      [
        ['raid0', 1],
        ['raid5', 0.5],
        ['raid10', 0.8],
      ],
    ],
    [
      'chunk',
      [
        ['64 KiB', 1],
        ['256 KiB', 1.1],
      ],
    ],
    [
      'fs',
      [
        ['ext4', 1],
        ['xfs', 1.05],
      ],
    ],
    [
      'disks',
      [
        ['4', 1],
        ['8', 1.9],
        ['12', 2.2],
      ],
    ],
  ];
  // All of the first three together; more drives with the base of the others only.
  const plan: number[][] = [];
  for (const level of [0, 1, 2])
    for (const chunk of [0, 1]) for (const fs of [0, 1]) plan.push([level, chunk, fs, 0]);
  plan.push([0, 0, 0, 1], [0, 0, 0, 2]);
  const runs = plan.map((levels, k) => {
    const made = structuredClone(run);
    const named = levels.map((at, factor) => factors[factor]?.[1][at] ?? ['', 1]);
    const times = named.reduce((product, [, by]) => product * (by as number), 1);
    for (const cell of made.cells)
      for (const field of ['iops', 'iops_low', 'iops_high', 'bytes_per_s'])
        if (cell[field] !== null) cell[field] *= times;
    const study = {
      stack: k + 1,
      levels: named.map(([value], factor) => ({ name: factors[factor]?.[0], value })),
      again: false,
      state: null,
    };
    // A study's page does not show courses of every run: a small file is enough.
    for (const cell of made.cells)
      for (const visit of cell.visits) Object.assign(visit, { series: null, heat: null });
    const part = { group: 'g', list: 'stacks', number: k + 1, of: plan.length, study };
    return { ...made, id: `r${k + 1}`, part };
  });
  return { ...one, runs };
}
