// node shoot.mjs CHROMIUM FOLDER NAME…: bundles page.jsx once and takes FOLDER/NAME.png of each FOLDER/NAME.json.
// Fails where a script fails or a panel was given rows and none is drawn.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { build } from 'esbuild';
import { chromium } from 'playwright-core';

const [program, folder, ...names] = process.argv.slice(2);
const require = createRequire(join(folder, 'node_modules/@grafana/ui/package.json'));
// CommonJS modules that ES modules of Grafana's import by default: both need the same copy
const interop = { name: 'interop', setup(b) {
  b.onResolve({ filter: /^react-custom-scrollbars-2$/ }, () => ({ path: 'scrollbars', namespace: 'interop' }));
  b.onLoad({ filter: /.*/, namespace: 'interop' }, () => ({ resolveDir: folder, contents:
    `const found = require(${JSON.stringify(require.resolve('react-custom-scrollbars-2'))}); export const Scrollbars = found.Scrollbars ?? found.default; export default Scrollbars;` }));
} };
await build({ entryPoints: [join(folder, 'page.jsx')], outfile: join(folder, 'page.js'), bundle: true, minify: true, jsx: 'automatic',
  format: 'iife', define: { 'process.env.NODE_ENV': '"production"', global: 'window' }, plugins: [interop], logLevel: 'error',
  loader: { '.svg': 'dataurl', '.png': 'dataurl', '.woff': 'dataurl', '.woff2': 'dataurl', '.ttf': 'dataurl' } });
const css = (() => { try { return readFileSync(join(folder, 'page.css'), 'utf8'); } catch { return ''; } })();
const browser = await chromium.launch({ executablePath: program, args: ['--no-sandbox'] });
let failed = false;
for (const name of names) {
  const page = await browser.newPage({ viewport: { width: 1560, height: 900 } });
  const faults = [];
  page.on('pageerror', (error) => faults.push(error.stack ?? String(error)));
  // icons come from Grafana's server, and there is none
  page.on('console', (message) => { if (message.type() === 'error' && !/img\/icons|net::ERR_FAILED/.test(message.text())) faults.push(message.text()); });
  const input = readFileSync(join(folder, `${name}.json`), 'utf8').replaceAll('</', '<\\/');
  writeFileSync(join(folder, `${name}.html`), `<!doctype html><meta charset="utf-8"><style>${css}</style><body><script>window.__input=${input}</script><script src="page.js"></script>`);
  await page.goto(`file://${join(folder, `${name}.html`)}`);
  await page.waitForSelector('#dashboard h1', { timeout: 30_000 });
  await page.waitForTimeout(1500);
  const drawn = await page.evaluate(() => window.__report);
  await (await page.$('#dashboard')).screenshot({ path: join(folder, `${name}.png`) });
  console.log(`${name}: ${drawn.length} panels, ${drawn.filter((p) => p.rows).length} with data; without: ${drawn.filter((p) => !p.rows).map((p) => p.title).join(', ') || 'none'}`);
  if (faults.length) { failed = true; console.log(`${name}: ${faults.slice(0, 3).join('\n')}`); }
  await page.close();
}
await browser.close();
process.exit(failed ? 1 : 0);
