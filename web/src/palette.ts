// Colours that the colour-blind can tell apart (Okabe and Ito's, and cividis), each with a mark and
// a dash, so that they are told apart in grey, too.

export interface Colors {
  dark: boolean;
  page: string;
  panel: string;
  ink: string;
  soft: string;
  grid: string;
  accent: string;
  alarm: string;
  doubt: string;
  good: string;
  /** Of what a cache answered. */
  cache: string;
}

const LIGHT: Colors = {
  dark: false,
  page: '#f6f7f9',
  panel: '#ffffff',
  ink: '#18212c',
  soft: '#566270',
  grid: '#e3e7ec',
  accent: '#00568c',
  alarm: '#c2143a',
  doubt: '#9a5b00',
  good: '#00704f',
  cache: '#aab2bb',
};

const DARK: Colors = {
  dark: true,
  page: '#10151b',
  panel: '#181f28',
  ink: '#e8edf2',
  soft: '#a3afbc',
  grid: '#2c3641',
  accent: '#7cc0f0',
  alarm: '#ff7a90',
  doubt: '#f0b352',
  good: '#4fd1a5',
  cache: '#5d6773',
};

export function colors(dark: boolean): Colors {
  return dark ? DARK : LIGHT;
}

/** Hue of an operation: it is the same on the whole page. */
const HUES: Record<string, number> = {
  read: 207,
  write: 22,
  mixed: 288,
  update: 288,
  copy: 168,
  trim: 168,
  stat: 207,
  create: 22,
  delete: 330,
};

const SHAPES = ['circle', 'rect', 'triangle', 'diamond'];
const HOLLOW = ['emptyCircle', 'emptyRect', 'emptyTriangle', 'emptyDiamond'];
const SYMBOLS = [...SHAPES, ...HOLLOW];
const DASHES: (string | number[])[] = [
  'solid',
  [7, 3],
  [2, 3],
  [9, 3, 2, 3],
  [4, 2],
  [12, 4],
  [1, 2],
  [6, 2, 2, 2, 2, 2],
];

export interface Look {
  color: string;
  symbol: string;
  dash: string | number[];
}

/** A load of an operation: its hue, darker the more there is in flight. In grey reads are solid marks and what changes something hollow ones. */
export function ofLoad(op: string, level: number, levels: number, dark: boolean): Look {
  const hue = HUES[op] ?? 250;
  const at = levels > 1 ? level / (levels - 1) : 0.6;
  const lightness = dark ? 48 + 30 * at : 58 - 30 * at;
  const saturation = hue === 22 ? 88 : 72;
  return {
    color: `hsl(${hue}, ${saturation}%, ${Math.round(lightness)}%)`,
    symbol: (hue === HUES['read'] ? SHAPES : HOLLOW)[level % SHAPES.length] ?? 'circle',
    dash: DASHES[level % DASHES.length] ?? 'solid',
  };
}

const NAMED_LIGHT = [
  '#0072b2',
  '#d55e00',
  '#008f67',
  '#b0457f',
  '#8a6d00',
  '#2b97d3',
  '#5f4bb6',
  '#3f4852',
];
const NAMED_DARK = [
  '#56a9e0',
  '#ff8a4c',
  '#35c99a',
  '#e58abf',
  '#e2c044',
  '#8fd0f5',
  '#a898f0',
  '#c3ccd5',
];

/** One of several things that are alike, such as runs. */
export function ofOne(index: number, dark: boolean): Look {
  const named = dark ? NAMED_DARK : NAMED_LIGHT;
  return {
    color: named[index % named.length] ?? '#888888',
    symbol: SYMBOLS[index % SYMBOLS.length] ?? 'circle',
    dash: DASHES[Math.floor(index / named.length) % DASHES.length] ?? 'solid',
  };
}

const CIVIDIS = [
  '#00224e',
  '#123570',
  '#3b496c',
  '#575d6d',
  '#707173',
  '#8a8678',
  '#a59c74',
  '#c3b369',
  '#e1cc55',
  '#fee838',
];
const DIVERGING = [
  '#8c3a04',
  '#c8691c',
  '#e8ad75',
  '#f6e3cf',
  '#f5f5f5',
  '#d3e5f2',
  '#83bce0',
  '#2f83bf',
  '#084a86',
];

function mix(a: string, b: string, share: number): string {
  const part = (text: string, at: number) => parseInt(text.slice(at, at + 2), 16);
  const one = (at: number) => Math.round(part(a, at) + (part(b, at) - part(a, at)) * share);
  return `rgb(${one(1)}, ${one(3)}, ${one(5)})`;
}

function ramp(steps: string[], share: number): string {
  const at = Math.min(Math.max(share, 0), 1) * (steps.length - 1);
  const low = Math.min(Math.floor(at), steps.length - 2);
  return mix(steps[low] ?? '#000000', steps[low + 1] ?? '#000000', at - low);
}

/** From little to much. */
export const much = (share: number) => ramp(CIVIDIS, share);
/** From less (0) through alike (0.5) to more (1). */
export const against = (share: number) => ramp(DIVERGING, share);

/** Ink that can be read on a colour. */
export function inkOn(color: string): string {
  const [r = 0, g = 0, b = 0] = color.match(/[\d.]+/g)?.map(Number) ?? [];
  const linear = (c: number) =>
    c / 255 <= 0.04 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4;
  const light = 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  return light > 0.19 ? '#10151b' : '#ffffff';
}
