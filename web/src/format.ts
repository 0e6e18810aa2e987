// Numbers as people read them. Scaling happens here and nowhere else.

export type Unit = 'MB' | 'MiB';

const NONE = '–';

/** Three significant digits, no exponent. */
export function three(value: number): string {
  if (!Number.isFinite(value)) return NONE;
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size < 0.001) return value.toExponential(1);
  const digits = size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
  return value.toFixed(digits);
}

function scaled(value: number, step: number, units: string[]): string {
  let at = 0;
  let rest = value;
  while (Math.abs(rest) >= step * 0.9995 && at < units.length - 1) {
    rest /= step;
    at += 1;
  }
  return `${three(rest)}${units[at] ?? ''}`;
}

/** `63.1 K`. */
export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? NONE : scaled(value, 1000, ['', ' K', ' M', ' G']);
}

const trimmed = (text: string) =>
  text.includes('.') ? text.replace(/(\.\d*?)0+(?=\D|$)/, '$1').replace(/\.(?=\D|$)/, '') : text;

/** Three digits for an axis: no zeros behind the point. */
export const tick = (value: number): string => trimmed(three(value));

/** A length of time for an axis. */
export const timeTick = (ns: number): string => trimmed(time(ns));

/** The same without a space or zeros behind the point: for axes. */
export function short(value: number): string {
  return trimmed(scaled(value, 1000, ['', 'K', 'M', 'G']));
}

export function perUnit(unit: Unit): number {
  return unit === 'MB' ? 1e6 : 1 << 20;
}

/** Bytes per second. */
export function bandwidth(value: number | null | undefined, unit: Unit): string {
  if (value === null || value === undefined) return NONE;
  const step = unit === 'MB' ? 1000 : 1024;
  const units =
    unit === 'MB' ? ['B/s', 'kB/s', 'MB/s', 'GB/s'] : ['B/s', 'KiB/s', 'MiB/s', 'GiB/s'];
  return scaled(
    value,
    step,
    units.map((name) => ` ${name}`),
  );
}

/** Bytes. */
export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return NONE;
  return scaled(value, 1024, [' B', ' KiB', ' MiB', ' GiB', ' TiB', ' PiB']);
}

/** Bytes without zeros behind the point: for axes and names. */
export const size = (value: number | null): string => trimmed(bytes(value));

/** A block size on an axis: `512`, `4K`, `1M`. */
export function block(value: number): string {
  return value % (1 << 20) === 0
    ? `${value / (1 << 20)}M`
    : value % 1024 === 0
      ? `${value / 1024}K`
      : String(value);
}

/** A block size in a sentence: `4 KiB`. */
export function blockSize(value: number): string {
  return value % (1 << 20) === 0
    ? `${value / (1 << 20)} MiB`
    : value % 1024 === 0
      ? `${value / 1024} KiB`
      : `${value} B`;
}

/** Lengths of time. */
export function time(ns: number | null | undefined): string {
  if (ns === null || ns === undefined) return NONE;
  if (Math.abs(ns) >= 120e9) return duration(ns);
  return scaled(ns, 1000, [' ns', ' µs', ' ms', ' s']);
}

function duration(ns: number): string {
  const seconds = Math.round(ns / 1e9);
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const names = ['h', 'min', 's'];
  const told = parts.map((n, k) => (n > 0 ? `${n} ${names[k] ?? ''}` : '')).filter(Boolean);
  return told.join(' ') || '0 s';
}

/** `± 3.1 %`, or both ends where they are far apart. */
export function reach(mean: number, low: number | null, high: number | null): string {
  if (low === null || high === null || !(mean > 0)) return '';
  const up = (high / mean - 1) * 100;
  return up <= 50 ? `± ${three(up)} %` : `${count(low)} to ${count(high)}`;
}

/** `x1.02`. */
export function times(ratio: number | null | undefined): string {
  return ratio === null || ratio === undefined
    ? NONE
    : `x${ratio >= 9.995 || ratio < 0.0995 ? three(ratio) : ratio.toFixed(2)}`;
}

/** Wall clock in UTC. */
export function clock(unixNs: number | null | undefined): string {
  if (unixNs === null || unixNs === undefined) return NONE;
  const at = new Date(unixNs / 1e6);
  return Number.isNaN(at.getTime())
    ? NONE
    : `${at.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

/** As short as it can be read: two digits. */
export function tight(value: number): string {
  const rounded = Number(value.toPrecision(2));
  return short(rounded);
}

/** Words of the program with the signs that figures have: `µs`, `± 3 %`. */
export const signs = (text: string): string =>
  text.replace(/(\d) us\b/g, '$1 µs').replace(/\+-\s*(?=\d)/g, '± ');

/** `1 cell`, `2 cells`. */
export const several = (count: number, what: string): string =>
  `${count} ${what}${count === 1 ? '' : 's'}`;
