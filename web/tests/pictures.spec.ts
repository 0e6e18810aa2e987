// Pictures of every kind of figure for docs/report, where PLIMSOLL_PICTURES says into which directory.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@playwright/test';
import { url } from './make';

const into = process.env['PLIMSOLL_PICTURES'] ?? '';

/** Which page shows a kind best. */
const BEST: Record<string, string> = {
  size: 'raid5',
  heat: 'raid5',
  scaling: 'stacks',
  levels: 'stacks',
  axis: 'steady',
  compare: 'study',
  bars: 'copies',
  roofline: 'raid5',
  load: 'grid',
  time: 'failing',
  latencies: 'failing',
  order: 'failing',
  distribution: 'grid',
  exposure: 'failing',
  rounds: 'steady',
  written: 'written',
  stack: 'copies',
};

for (const scheme of ['light', 'dark'] as const)
  for (const [kind, page] of Object.entries(BEST))
    test(`${kind} in ${scheme}`, async ({ page: tab }) => {
      test.skip(into === '', 'PLIMSOLL_PICTURES names no directory');
      mkdirSync(into, { recursive: true });
      await tab.emulateMedia({ colorScheme: scheme });
      await tab.setViewportSize({ width: 1000, height: 900 });
      await tab.goto(url(page));
      const figure = tab.locator(`#figure-${kind}`);
      await figure.scrollIntoViewIfNeeded();
      for (const canvas of await figure.locator('.canvas').all()) {
        await canvas.scrollIntoViewIfNeeded();
        await expect(canvas.locator('svg')).toBeVisible();
      }
      await figure.screenshot({ path: join(into, `${kind}-${scheme}.png`) });
    });
