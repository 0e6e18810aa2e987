// Reads the page's data, from the file that it is in or from the server that it came from.

import './style.css';
import { h, line } from './dom';
import type * as model from './model';
import { mount } from './page';
import { serve } from './serve';

const SCHEMA = 'plimsoll.page/1';

/** The data as text; much of it is compressed. */
async function text(element: HTMLElement | null): Promise<string> {
  const own = element?.textContent ?? 'null';
  if (element?.dataset['coding'] !== 'gzip') return own;
  const letters = atob(own);
  const bytes = new Uint8Array(letters.length);
  for (let k = 0; k < letters.length; k += 1) bytes[k] = letters.charCodeAt(k);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).text();
}

async function start(app: HTMLElement): Promise<void> {
  const element = document.getElementById('plimsoll-page');
  if (element?.dataset['from'] === 'serve') return serve(app);
  const page = JSON.parse(await text(element)) as model.Page | null;
  if (page?.schema !== SCHEMA) {
    nothing(app, 'There is no data of this version in this file.');
    return;
  }
  const footer = `Made by Plimsoll ${line(page.program)}. This file needs no network, and holds all that it shows.`;
  mount(page, app, { footer });
}

function nothing(app: HTMLElement, why: string): void {
  app.replaceChildren(h('p', { class: 'nothing' }, why));
}

const app = document.getElementById('app');
if (app)
  start(app).catch((error: unknown) => {
    nothing(app, `This page cannot be drawn here: ${String(error)}`);
    throw error;
  });
