// Writes the types of the page's data from its schema, or with --check says whether they are its.
import { readFile, writeFile, mkdir } from 'node:fs/promises';
import { compile } from 'json-schema-to-typescript';

const schema = new URL('../../schema/plimsoll.page-1.schema.json', import.meta.url);
const types = new URL('../src/generated/page.ts', import.meta.url);

/** The schema in the words of an older draft, which the compiler knows. */
function older(value) {
  if (Array.isArray(value)) return value.map(older);
  if (value === null || typeof value !== 'object') return value;
  // What stands beside a reference would make it a type of its own.
  const { $ref, prefixItems, ...rest } = value;
  if ($ref) return rest.properties ? { allOf: [{ $ref }, older(rest)] } : { $ref };
  const all = Object.entries(rest).map(([key, one]) => [key, older(one)]);
  if (prefixItems) all.push(['items', older(prefixItems)]);
  return Object.fromEntries(all);
}

const text = older(JSON.parse(await readFile(schema, 'utf8')));
const fresh = await compile({ ...text, title: 'Page' }, 'Page', {
  bannerComment: '// Made from schema/plimsoll.page-1.schema.json by `npm run types`; do not edit.',
  additionalProperties: false,
  // Lengths of lists are for readers of the schema; a tuple stays one.
  ignoreMinAndMaxItems: false,
});
if (process.argv.includes('--check')) {
  const kept = await readFile(types, 'utf8').catch(() => '');
  if (kept !== fresh) {
    console.error(
      'web/src/generated/page.ts is not what the schema says; `npm run types` mends it',
    );
    process.exit(1);
  }
} else {
  await mkdir(new URL('.', types), { recursive: true });
  await writeFile(types, fresh);
}
