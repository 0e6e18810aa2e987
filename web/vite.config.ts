import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { defineConfig, type Plugin } from 'vite';

/** Where `plimsoll report` puts the data: its own text has the same. */
const PLACE = '<script type="application/json" id="plimsoll-page">null</script>';

/** What may run and load: the script and the style of this very file, and nothing from anywhere. */
function policy(scripts: string[], styles: string[]): string {
  const hash = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
  return [
    "default-src 'none'",
    `script-src ${scripts.map(hash).join(' ')}`,
    `style-src ${styles.map(hash).join(' ')}`,
    'img-src data: blob:',
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
}

/** Puts script and style into the page, which is then one file. */
function oneFile(): Plugin {
  return {
    name: 'one-file',
    enforce: 'post',
    generateBundle(_, bundle) {
      let script = '';
      let style = '';
      for (const [name, file] of Object.entries(bundle)) {
        if (name.endsWith('.js') && file.type === 'chunk') script += file.code;
        else if (name.endsWith('.css') && file.type === 'asset') style += String(file.source);
        else continue;
        delete bundle[name];
      }
      // An element of script ends at these words wherever they stand.
      script = `\n${script.replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--')}\n`;
      style = `\n${style}\n`;
      const page = bundle['page.html'];
      if (page?.type !== 'asset') throw new Error('no page.html came out');
      if (String(page.source).split(PLACE).length !== 2) throw new Error('no place for the data');
      const html = String(page.source)
        .replace(/\s*<script type="module"[^>]*><\/script>/, '')
        .replace(/\s*<link rel="(stylesheet|modulepreload)"[^>]*>/g, '');
      const head = `<meta http-equiv="Content-Security-Policy" content="${policy([script], [style])}">`;
      page.source = html
        .replace('<meta charset="utf-8" />', () => `<meta charset="utf-8" />\n    ${head}`)
        .replace('</head>', () => `<style>${style}</style>\n</head>`)
        .replace('</body>', () => `<script>${script}</script>\n</body>`);
    },
  };
}

export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: './',
  plugins: [oneFile()],
  build: {
    target: 'es2022',
    outDir: 'dist',
    // Its README says what comes there.
    emptyOutDir: false,
    cssCodeSplit: false,
    modulePreload: false,
    rollupOptions: {
      input: fileURLToPath(new URL('page.html', import.meta.url)),
      output: { format: 'iife' },
    },
  },
});
