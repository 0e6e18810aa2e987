// The stack as layers, from the path down to the bus; the one that limits is marked.

import * as format from '../format';
import * as model from '../model';
import { h, line } from '../dom';
import type { Context, Drawing, Figure, Panel } from './figure';

type Stack = NonNullable<model.PageRun['stack']>;
type Layer = Stack['layers'][number];

interface Facts {
  kind: string;
  name: string;
  facts: string[];
}

function facts(layer: Layer): Facts {
  const what = layer.what;
  const queue = layer.queue;
  const size =
    layer.size_bytes === null || layer.size_bytes === undefined
      ? ''
      : format.bytes(layer.size_bytes);
  const scheduler = queue?.scheduler ? `scheduler ${queue.scheduler}` : '';
  const ahead = queue?.read_ahead_bytes ? `read-ahead ${format.bytes(queue.read_ahead_bytes)}` : '';
  const list = (...all: (string | null | undefined | false)[]) =>
    all.filter((one): one is string => Boolean(one));
  switch (what.is) {
    case 'file-system':
      return {
        kind: what.kind,
        name: what.point,
        facts: list(
          what.source,
          what.block_bytes ? `blocks ${format.bytes(what.block_bytes)}` : '',
          what.options.slice(0, 6).join(','),
        ),
      };
    case 'mapper':
      return {
        kind: what.maker ?? 'device mapper',
        name: what.name,
        facts: list(
          size,
          ...(what.segments ?? [])
            .slice(0, 2)
            .map((s) =>
              [s.target, s.level, s.chunk_bytes ? `chunk ${format.bytes(s.chunk_bytes)}` : '']
                .filter(Boolean)
                .join(' '),
            ),
          scheduler,
          ahead,
        ),
      };
    case 'md':
      return {
        kind: `md ${what.level}`,
        name: layer.id,
        facts: list(
          size,
          what.chunk_bytes ? `chunk ${format.bytes(what.chunk_bytes)}` : '',
          `${what.members.length} members`,
          what.missing ? `${what.missing} missing` : '',
          what.sync && what.sync !== 'idle' ? what.sync : '',
          ahead,
        ),
      };
    case 'partition':
      return {
        kind: 'partition',
        name: layer.id,
        facts: list(size, what.start_bytes ? `begins at ${format.bytes(what.start_bytes)}` : ''),
      };
    case 'loop':
      return { kind: 'loop', name: layer.id, facts: list(size, what.file) };
    case 'disk':
      return {
        kind: what.transport ? `disk, ${what.transport}` : 'disk',
        name: layer.id,
        facts: list(
          size,
          [what.vendor, what.model].filter(Boolean).join(' '),
          what.known_as,
          scheduler,
          ahead,
          what.wire ? `${what.wire.now.name}` : '',
          queue?.rotational ? 'turning' : '',
        ),
      };
    case 'controller':
      return {
        kind: what.class ? `controller, ${what.class}` : 'controller',
        name: layer.id,
        facts: list(what.device, what.driver, what.wire ? what.wire.now.name : ''),
      };
    case 'memory':
      return { kind: 'memory', name: what.name, facts: list(size) };
    default:
      return { kind: 'layer', name: (layer as Layer).id, facts: [] };
  }
}

/** Devices in which most of the added waiting is, by any phase; `above` for what is above them. */
function limiting(run: model.PageRun): { devices: Set<string>; above: boolean; share: number } {
  const devices = new Set<string>();
  let above = false;
  let share = 0;
  for (const { queue } of run.barriers) {
    const place = queue.place;
    if (!place) continue;
    share = Math.max(share, queue.share);
    if (place === 'above') above = true;
    else for (const device of place.devices.devices) devices.add(device);
  }
  return { devices, above, share };
}

/** Layers by how far they are from the top. */
function levels(stack: Stack): Layer[][] {
  const depth = new Map<string, number>();
  const tops = stack.targets.flatMap((target) => target.on);
  const walk = (id: string, at: number) => {
    if ((depth.get(id) ?? -1) >= at || at > 64) return;
    depth.set(id, at);
    for (const below of stack.layers.find((layer) => layer.id === id)?.below ?? [])
      walk(below, at + 1);
  };
  for (const id of tops) walk(id, 0);
  for (const layer of stack.layers) if (!depth.has(layer.id)) walk(layer.id, 0);
  const rows: Layer[][] = [];
  for (const layer of stack.layers) (rows[depth.get(layer.id) ?? 0] ??= []).push(layer);
  return rows.filter((row) => row !== undefined && row.length > 0);
}

const ALIKE_MIN = 5;

function draw({ page }: Context): Drawing {
  const table: Drawing['table'] = {
    head: ['run', 'level', 'layer', 'kind', 'facts', 'limits'],
    rows: [],
  };
  const panels = page.runs.flatMap((run): Panel[] => {
    const stack = run.stack;
    if (!stack) return [];
    const limit = limiting(run);
    const one = (layer: Layer, level: number, more = 0) => {
      const told = facts(layer);
      const limits = limit.devices.has(layer.id) || (limit.above && level === 0);
      table.rows.push([run.id, level, layer.id, told.kind, told.facts.join('; '), limits ? 1 : 0]);
      return h(
        'div',
        { class: limits ? 'layer limits' : 'layer' },
        h('span', { class: 'layer-kind' }, line(told.kind)),
        h('strong', {}, line(told.name), more > 0 ? ` and ${more} alike` : ''),
        ...told.facts.map((fact) => h('span', { class: 'layer-fact' }, line(fact))),
        limits &&
          h(
            'span',
            { class: 'layer-limit' },
            `▲ ${limit.share >= 1 ? 'all' : `${format.tick(limit.share * 100)} %`} of the added waiting is here`,
          ),
      );
    };
    const node = () => {
      const rows = levels(stack).map((row, level) => {
        const many =
          row.length >= ALIKE_MIN &&
          row.every((layer) => layer.what.is === row[0]?.what.is && !limit.devices.has(layer.id));
        const first = row[0];
        const shown =
          many && first
            ? [one(first, level, row.length - 1)]
            : row.map((layer) => one(layer, level));
        return h('div', { class: 'level' }, ...shown);
      });
      const targets = h(
        'div',
        { class: 'level' },
        ...stack.targets.map((target) =>
          h(
            'div',
            { class: 'layer top' },
            h('span', { class: 'layer-kind' }, line(target.role ?? 'target')),
            h('strong', {}, line(target.given)),
          ),
        ),
      );
      const unseen =
        stack.unseen.length > 0
          ? h(
              'p',
              { class: 'soft' },
              `Not seen: ${stack.unseen.map(({ what }) => line(what)).join('; ')}.`,
            )
          : null;
      return h('div', { class: 'stack' }, targets, ...rows, unseen);
    };
    return [
      {
        title: model.caption(page, run, ''),
        summary: `Layers below ${run.target.given}: ${stack.layers.map(({ id }) => id).join(', ')}`,
        height: 0,
        node,
        wide: page.runs.length < 2,
      },
    ];
  });
  return { panels, legend: [], table };
}

export const stack: Figure = {
  id: 'stack',
  title: 'What it stands on',
  how: [
    'Every layer between the path and the bus that could be seen, top first; each stands on those below.',
    'The marked layer is where most of the waiting is that came with more requests in flight: by the kernel’s own counters, where it has them.',
  ],
  controls: [],
  accepts: (page) => page.runs.some((run) => (run.stack?.layers.length ?? 0) > 0),
  draw,
};
