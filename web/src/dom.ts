// Elements from text: nothing that came from a run is ever read as markup.

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | ((event: Event) => void) | undefined>;

/**
 * An element; attributes that are functions are listeners, `true` is there without a value. In its
 * text nothing is hidden.
 */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== false && value !== undefined) element.setAttribute(name, String(value));
  }
  for (const child of children) {
    if (typeof child === 'string') element.append(plain(child));
    else if (child instanceof Node) element.append(child);
  }
  return element;
}

/**
 * Makes an element say what another says. What is the same in both stays: a click that has begun on it
 * ends on it, and the focus is where it was.
 */
export function renew(own: Element, fresh: Element): void {
  if (own.isEqualNode(fresh)) return;
  const [before, after] = [[...own.children], [...fresh.children]];
  const isText = (one: Element) => one.childElementCount !== one.childNodes.length;
  const isOther = own.tagName !== fresh.tagName || before.length !== after.length;
  if (isOther || after.length === 0 || isText(own) || isText(fresh)) {
    own.replaceWith(fresh);
    return;
  }
  own.className = fresh.className;
  after.forEach((one, k) => before[k] && renew(before[k], one));
}

/** Puts other controls into a place; who is at one of them by the keyboard stays at it. */
export function refill(place: HTMLElement, ...controls: Node[]): void {
  const all = () => [...place.querySelectorAll<HTMLElement>('button, select')];
  const at = all().indexOf(document.activeElement as HTMLElement);
  place.replaceChildren(...controls);
  if (at >= 0) all()[at]?.focus({ preventScroll: true });
}

/** An element of SVG. */
export function svg(
  tag: string,
  attributes: Record<string, string | number> = {},
  ...children: Node[]
) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** What `is_unseen` of the program's units is, but for tabs and line ends. */
const HIDDEN =
  /(?![\t\n])[\p{Cc}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}\u2028\u2029\ufff9-\ufffb]/gu;

/** Text with what is obeyed or hidden made visible: control and direction marks, all without width. */
export function plain(text: string): string {
  return text.replace(HIDDEN, (c) => `\\u{${c.codePointAt(0)?.toString(16) ?? ''}}`);
}

/** The same on one line. */
export function line(text: string): string {
  return plain(text.replace(/[\r\n\t\u2028\u2029]+/g, ' '));
}

/** Hands a file to whoever reads. */
export function download(name: string, type: string, content: string | Blob): void {
  const blob = typeof content === 'string' ? new Blob([content], { type }) : content;
  const url = URL.createObjectURL(blob);
  const link = h('a', { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** A name that any file system takes. */
export function fileName(...parts: string[]): string {
  return parts.map((part) => part.replace(/[^A-Za-z0-9._-]+/g, '-').slice(0, 60)).join('-');
}

/** A field of CSV; one that a spreadsheet would compute is quoted as text. */
function field(value: string | number | null | undefined): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') return String(value);
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export interface Table {
  head: string[];
  rows: (string | number | null | undefined)[][];
}

export function csv({ head, rows }: Table): string {
  return [head, ...rows].map((row) => row.map(field).join(',') + '\r\n').join('');
}
