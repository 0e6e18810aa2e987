// What both kinds of pages are looked at with.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from '@playwright/test';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/**
 * What a page complains about, or asks of anybody else.
 *
 * * `home`: how addresses begin that it may ask.
 */
export function faultsOf(page: Page, home: string): string[] {
  const faults: string[] = [];
  page.on('console', (message) => {
    if (message.type() !== 'log') faults.push(message.text());
  });
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(home) && !/^(data|blob):/.test(url)) faults.push(url);
  });
  return faults;
}

/** What stands in the way of those who cannot see or point, by axe. */
export async function barriers(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const found = (await page.evaluate('axe.run()')) as {
    violations: { id: string; nodes: { html: string; failureSummary: string }[] }[];
  };
  return found.violations.map(
    ({ id, nodes }) => `${id}: ${nodes[0]?.html} ${nodes[0]?.failureSummary}`,
  );
}
