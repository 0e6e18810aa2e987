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
  const store = join(MADE, 'store.db');
  const plimsoll = program();
  const run = (...words: string[]) =>
    execFileSync(plimsoll, ['--store', store, ...words], {
      cwd: MADE,
      encoding: 'utf8',
      maxBuffer: 1 << 28,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
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
  // By the program itself, of so much data that it is compressed.
  run('report', 'r1', 'r2', 'r3', 'r4', 'r5', 'r6', '-o', 'program.html');
  const pages: Record<string, string[]> = {
    study: ['r1', 'r2'],
    raid0: ['r1'],
    raid5: ['r2'],
    grid: ['r3'],
    failing: ['r4'],
    mixed: ['r5'],
  };
  for (const [name, runs] of Object.entries(pages)) {
    const text = run('report', ...runs, '--json');
    writeFileSync(join(MADE, `${name}.json`), text);
    put(name, JSON.parse(text));
  }
}
