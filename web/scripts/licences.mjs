// Every package that is installed may be used as we use it: as `cargo xtask check` says of crates.
import { readFile } from 'node:fs/promises';

const accepted = new Set([
  'MIT',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'ISC',
  'MPL-2.0',
  '0BSD',
  'Unlicense',
  'CC0-1.0',
  'BlueOak-1.0.0',
  'PSF-2.0',
  'Python-2.0',
]);

/** Whether one side of each OR is accepted whole; parentheses only around the whole. */
function fits(expression) {
  const bare = expression.replace(/^\((.*)\)$/, '$1');
  if (/[()]/.test(bare)) return false;
  return bare.split(' OR ').some((side) => side.split(' AND ').every((one) => accepted.has(one)));
}

const lock = JSON.parse(await readFile(new URL('../package-lock.json', import.meta.url), 'utf8'));
const faults = Object.entries(lock.packages)
  .filter(([path]) => path !== '')
  .filter(([, { license }]) => typeof license !== 'string' || !fits(license))
  .map(([path, { license }]) => `${path} is under \`${license ?? 'nothing'}\``);
for (const fault of faults) console.error(fault);
process.exit(faults.length > 0 ? 1 : 0);
