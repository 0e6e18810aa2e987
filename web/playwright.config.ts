import { existsSync } from 'node:fs';
import { defineConfig } from '@playwright/test';

// The distribution's own browser: none is downloaded.
const known = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const executablePath = process.env['CHROMIUM'] ?? known.find((path) => existsSync(path));

export default defineConfig({
  testDir: 'tests',
  globalSetup: './tests/make.ts',
  outputDir: 'test-results',
  fullyParallel: true,
  workers: 2,
  // A test that passes at a later try is listed as flaky.
  retries: 2,
  // What takes its time on a machine with much else to do is not wrong.
  timeout: 120_000,
  expect: { timeout: 30_000 },
  reporter: 'list',
  use: {
    viewport: { width: 1280, height: 900 },
    launchOptions: {
      ...(executablePath ? { executablePath } : {}),
      // Test machines run as root in containers, where the sandbox cannot be made.
      args: ['--no-sandbox', '--disable-dev-shm-usage'],
    },
  },
});
