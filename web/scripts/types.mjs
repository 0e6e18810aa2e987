// Writes the types of the page's data from its schema, or with --check says whether they are its.
import { readFile, writeFile, mkdir } from 'node:fs/promises';
import { compile } from 'json-schema-to-typescript';

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

const TYPES = /(?:\/\*\*(?:(?!\*\/)[^])*\*\/\n)?export interface (\w+) \{\n[^]*?\n\}\n/g;

/** A module without the types that another has as well: those that it still speaks of are imported. */
function without(module, other, place) {
  const known = new Map([...other.matchAll(TYPES)].map(([text, name]) => [name, text]));
  const own = module.replace(TYPES, (text, name) => (known.get(name) === text ? '' : text));
  const gone = [...known.keys()].filter((name) => !own.includes(`interface ${name} `));
  const spoken = gone.filter((name) => new RegExp(`\\b${name}\\b`).test(own)).sort();
  const head = own.indexOf('\n\n') + 2;
  return `${own.slice(0, head)}import type { ${spoken.join(', ')} } from "${place}";\n\n${own.slice(head)}`;
}

/** The types of a contract, and whether they are those that are kept. */
async function types(contract, name, base) {
  const file = `plimsoll.${contract}-1.schema.json`;
  const schema = new URL(`../../schema/${file}`, import.meta.url);
  const place = new URL(`../src/generated/${contract}.ts`, import.meta.url);
  const text = older(JSON.parse(await readFile(schema, 'utf8')));
  const made = await compile({ ...text, title: name }, name, {
    bannerComment: `// Made from schema/${file} by \`npm run types\`; do not edit.`,
    additionalProperties: false,
    // Lengths of lists are for readers of the schema; a tuple stays one.
    ignoreMinAndMaxItems: false,
  });
  const fresh = base ? without(made, base, './page') : made;
  if (!process.argv.includes('--check')) {
    await mkdir(new URL('.', place), { recursive: true });
    await writeFile(place, fresh);
    return fresh;
  }
  const kept = await readFile(place, 'utf8').catch(() => '');
  if (kept !== fresh) {
    console.error(
      `web/src/generated/${contract}.ts is not what the schema says; \`npm run types\` mends it`,
    );
    process.exitCode = 1;
  }
  return fresh;
}

await types('live', 'Live', await types('page', 'Page'));
