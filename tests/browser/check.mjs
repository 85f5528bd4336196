// Opens each page given in headless Chromium at desktop and phone width, light and dark, and as print.
// Fails where something overflows, is fetched, is cut off or cannot be read; leaves a picture of each.
// Usage: node check.mjs CHROMIUM PLAYWRIGHT_FOLDER PICTURES_FOLDER PAGE...
import { createRequire } from "node:module";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [chromium, modules, pictures, ...pages] = process.argv.slice(2);
const playwright = createRequire(pathToFileURL(join(resolve(modules), "package.json")))("playwright-core");

const VIEWS = [
  { name: "desktop-light", width: 1280, height: 900, colorScheme: "light" },
  { name: "desktop-dark", width: 1280, height: 900, colorScheme: "dark" },
  { name: "phone-light", width: 360, height: 740, colorScheme: "light" },
  { name: "phone-dark", width: 360, height: 740, colorScheme: "dark" },
  { name: "print", width: 794, height: 1123, colorScheme: "light", media: "print" },
];

// Runs in the page: a sentence for everything a reader would trip over.
function faults() {
  const found = [];
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) {
    found.push(`the page is ${root.scrollWidth} wide in a window of ${root.clientWidth}`);
  }
  const inScroller = (node) => node.closest(".scroll") !== null;
  const described = (node) => `<${node.tagName.toLowerCase()} class="${node.getAttribute("class") ?? ""}"> ${JSON.stringify(node.textContent.trim().slice(0, 40))}`;
  for (const node of document.body.querySelectorAll("*")) {
    const box = node.getBoundingClientRect();
    if (box.width === 0 || inScroller(node) || node.closest("svg") !== null) continue;
    if (box.right > root.clientWidth + 1 || box.left < -1) found.push(`${described(node)} leaves the window`);
  }
  for (const text of document.querySelectorAll("svg text")) {
    const box = text.getBoundingClientRect();
    if (box.width === 0) continue;
    const frame = text.closest("svg").getBoundingClientRect();
    if (box.left < frame.left - 2 || box.right > frame.right + 2 || box.top < frame.top - 2 || box.bottom > frame.bottom + 2) {
      found.push(`${described(text)} leaves its chart`);
    }
    if (box.height < 9) found.push(`${described(text)} is ${box.height.toFixed(1)} pixels high`);
  }
  for (const link of document.querySelectorAll('a[href^="#"]')) {
    const target = decodeURIComponent(link.getAttribute("href").slice(1));
    if (document.getElementById(target) === null) found.push(`${described(link)} leads nowhere`);
  }
  for (const chart of document.querySelectorAll("svg")) {
    const texts = [...chart.querySelectorAll("text")].filter((text) => text.getBoundingClientRect().width > 0);
    for (let i = 0; i < texts.length; i += 1) {
      for (let j = i + 1; j < texts.length; j += 1) {
        const [a, b] = [texts[i].getBoundingClientRect(), texts[j].getBoundingClientRect()];
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > 2 && down > 2) found.push(`${described(texts[i])} and ${described(texts[j])} lie on each other`);
      }
    }
  }
  // Contrast of text against the nearest painted ground, by WCAG's formula.
  const parsed = (colour) => (colour.match(/[\d.]+/g) ?? []).map(Number);
  const luminance = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const colour = parsed(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  for (const node of document.body.querySelectorAll("*")) {
    const own = [...node.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.textContent.trim());
    if (!own || node.getBoundingClientRect().width === 0) continue;
    const style = getComputedStyle(node);
    const ink = parsed(node.closest("svg") ? style.fill : style.color);
    // A strip's letters stand on its cells.
    const cells = [...(node.closest("svg.strip")?.querySelectorAll("path[class^=k]") ?? [])];
    const grounds = cells.length ? cells.map((cell) => parsed(getComputedStyle(cell).fill)) : [ground(node)];
    const ratio = Math.min(...grounds.map((under) => {
      const [high, low] = [luminance(ink), luminance(under)].sort((a, b) => b - a);
      return (high + 0.05) / (low + 0.05);
    }));
    if (ratio < 4.5) found.push(`${described(node)} has a contrast of ${ratio.toFixed(1)}`);
  }
  return found;
}

const browser = await playwright.chromium.launch({
  executablePath: chromium,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
let failures = 0;
for (const page of pages) {
  for (const view of VIEWS) {
    const context = await browser.newContext({ viewport: { width: view.width, height: view.height }, colorScheme: view.colorScheme });
    const tab = await context.newPage();
    if (view.media) await tab.emulateMedia({ media: view.media });
    const address = pathToFileURL(resolve(page)).href;
    const asked = [];
    const said = [];
    tab.on("request", (request) => asked.push(request.url()));
    tab.on("console", (message) => said.push(message.text()));
    tab.on("pageerror", (error) => said.push(String(error)));
    await tab.goto(address, { waitUntil: "load" });
    const found = await tab.evaluate(faults);
    found.push(...asked.filter((url) => url !== address).map((url) => `${url} is fetched`));
    found.push(...said.map((text) => `the console says: ${text}`));
    const name = `${basename(page, ".html")}-${view.name}`;
    await tab.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });
    const closed = await tab.evaluate(() => {
      const all = [...document.querySelectorAll("details")];
      all.forEach((one) => { one.open = true; });
      return all.length;
    });
    if (closed > 0) found.push(...(await tab.evaluate(faults)));
    for (const fault of [...new Set(found)].slice(0, 20)) console.log(`${name}: ${fault}`);
    failures += found.length;
    await context.close();
  }
}
await browser.close();
console.log(failures ? `${failures} faults` : `${pages.length} pages, ${VIEWS.length} views each: nothing overflows, nothing is fetched, everything can be read`);
process.exit(failures ? 1 : 0);
