// What is asked of the server that the page came from.

import type { Live } from './generated/live';

const KEY = 'plimsoll-token';

/** Told to a page in another tab of this server that has none. */
const channel = new BroadcastChannel('plimsoll-token');

/** The server has taken our token. */
let isTaken = false;

/** Only what the server takes is handed on: two tabs with wrong ones would change them for ever. */
function tellToken(): void {
  const token = sessionStorage.getItem(KEY);
  if (isTaken && token !== null) channel.postMessage({ token });
}

/** The server wants a token, and had none or a wrong one. */
export class NoToken extends Error {}

/** The server answered that it cannot. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly hint: string,
  ) {
    super(message);
  }
}

/**
 * Takes the token out of the address, where it stands in the part that is sent to nobody, so that
 * it is in no picture of the screen and in no address that is handed on.
 */
export async function takeToken(): Promise<void> {
  const said = new URLSearchParams(location.hash.replace(/^#/, ''));
  const token = said.get('token');
  if (token !== null) {
    keepToken(token);
    said.delete('token');
    const rest = said.toString();
    history.replaceState(null, '', location.pathname + (rest ? `#${rest}` : ''));
  }
  channel.addEventListener('message', (event: MessageEvent<{ ask?: boolean }>) => {
    if (event.data.ask) tellToken();
  });
}

export function keepToken(token: string): void {
  sessionStorage.setItem(KEY, token);
}

/** Asks the other tabs for the token; whether one had another than we. */
export async function borrowToken(): Promise<boolean> {
  const before = sessionStorage.getItem(KEY);
  const found = await new Promise<string | null>((done) => {
    const hear = (event: MessageEvent<{ token?: string }>) => {
      if (typeof event.data.token === 'string' && event.data.token !== before)
        done(event.data.token);
    };
    channel.addEventListener('message', hear);
    channel.postMessage({ ask: true });
    setTimeout(() => {
      channel.removeEventListener('message', hear);
      done(null);
    }, 300);
  });
  if (found !== null) keepToken(found);
  return found !== null;
}

/** Keeps the token of another tab, whenever it tells one that is not ours. */
export function hearToken(heard: () => void): void {
  const before = sessionStorage.getItem(KEY);
  channel.addEventListener('message', (event: MessageEvent<{ token?: string }>) => {
    const { token } = event.data;
    if (typeof token !== 'string' || token === before) return;
    keepToken(token);
    heard();
  });
}

/** * `path`: within this server. */
export async function ask(path: string, signal?: AbortSignal): Promise<Response> {
  const token = sessionStorage.getItem(KEY);
  const response = await fetch(path, {
    headers: token === null ? {} : { Authorization: `Bearer ${token}` },
    cache: 'no-store',
    credentials: 'omit',
    ...(signal ? { signal } : {}),
  });
  if (response.status === 401) {
    isTaken = false;
    throw new NoToken();
  }
  if (response.ok) {
    if (!isTaken) {
      isTaken = true;
      tellToken();
    }
    return response;
  }
  const told = (await response.json().catch(() => null)) as {
    error?: string;
    hint?: string;
  } | null;
  throw new Refused(
    response.status,
    told?.error ?? `the server answers ${response.status}`,
    told?.hint ?? '',
  );
}

export interface Listener {
  /** Something changed, or everything is told anew. */
  news: (live: Live) => void;
  /** Whether the server is there: it is tried again and again. */
  there: (is: boolean) => void;
  /** It is there, and says why it tells nothing now. */
  refused: (why: Refused) => void;
  noToken: () => void;
}

/** The server says something at least every ten seconds. */
const SILENCE_MAX = 25_000;
const PAUSE_MAX = 8_000;

/** Reads events until the stream ends. */
async function read(response: Response, hear: (live: Live) => void, alive: () => void) {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true, value: '' };
    if (done) return;
    alive();
    rest += value;
    const blocks = rest.split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const lines = block.split('\n').filter((one) => one.startsWith('data:'));
      const data = lines.map((one) => one.slice(5).replace(/^ /, '')).join('\n');
      if (data !== '') hear(JSON.parse(data) as Live);
    }
  }
}

const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

/** Resolves when the tab can be seen: what nobody looks at need not be kept up to date. */
function visible(): Promise<void> {
  if (document.visibilityState === 'visible') return Promise.resolve();
  return new Promise((done) => {
    const look = () => {
      if (document.visibilityState !== 'visible') return;
      document.removeEventListener('visibilitychange', look);
      done();
    };
    document.addEventListener('visibilitychange', look);
  });
}

/** Hears of every change for as long as the page is there, and can be seen. */
export async function listen({ news, there, refused, noToken }: Listener): Promise<void> {
  let wait = 500;
  for (;;) {
    await visible();
    const stop = new AbortController();
    let clock = 0;
    const alive = () => {
      clearTimeout(clock);
      clock = window.setTimeout(() => stop.abort(), SILENCE_MAX);
    };
    const hide = () => document.visibilityState !== 'visible' && stop.abort();
    document.addEventListener('visibilitychange', hide);
    alive();
    let told = false;
    try {
      const response = await ask('/api/events', stop.signal);
      wait = 500;
      there(true);
      await read(response, news, alive);
    } catch (error) {
      if (error instanceof NoToken) {
        if (!(await borrowToken())) {
          noToken();
          return;
        }
        continue;
      }
      told = error instanceof Refused;
      if (error instanceof Refused) refused(error);
    } finally {
      clearTimeout(clock);
      document.removeEventListener('visibilitychange', hide);
    }
    if (document.visibilityState !== 'visible') continue;
    there(told);
    await pause(wait);
    wait = Math.min(wait * 2, PAUSE_MAX);
  }
}
