// Opens reports in headless Chromium: no console error, no request, curves painted.
//
//   node report.test.mjs PATH_OF_sample_reports OUTPUT_FOLDER
//
// Writes the sample reports and screenshots into the output folder (which it empties). Exit code 0:
// passed, 1: failed, 77: skipped because Chromium or playwright-core is not installed.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const FLAGS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
];
const [, , tool, folder] = process.argv;

async function playwright() {
  if (!existsSync(CHROMIUM)) skip(`${CHROMIUM} is not there (package chromium)`);
  try {
    return (await import("playwright-core")).chromium;
  } catch {
    return skip("playwright-core is not installed (run `npm ci` in tests/browser)");
  }
}

function skip(reason) {
  console.log(`skipped: ${reason}`);
  process.exit(77);
}

// One page, with all that went wrong on it.
async function open(browser, file, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
  const url = pathToFileURL(file).href;
  const wrong = [];
  page.on("console", (m) => { if (["error", "warning"].includes(m.type())) wrong.push(m.text()); });
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("dialog", (dialog) => { wrong.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => {
    if (request.url() !== url && !request.url().startsWith("data:")) wrong.push(`request: ${request.url()}`);
  });
  await page.goto(url);
  await page.waitForFunction(() => window.hybridsync !== undefined);
  return { page, wrong };
}

// What a chart holds and how many of its canvas' pixels have a run's colour.
function chartOf(page, name) {
  return page.evaluate((chartName) => {
    const chart = window.hybridsync.charts[chartName];
    if (!chart) return null;
    const { plot, curves } = chart;
    const canvas = plot.ctx.canvas;
    const context = (width, height) =>
      Object.assign(document.createElement("canvas"), { width, height }).getContext("2d", { willReadFrequently: true });
    const copy = context(canvas.width, canvas.height);
    copy.drawImage(canvas, 0, 0);
    const pixels = copy.getImageData(0, 0, canvas.width, canvas.height).data;
    const probe = context(1, 1);
    const painted = curves.map((curve) => {
      probe.fillStyle = window.hybridsync.colour(curve.run);
      probe.fillRect(0, 0, 1, 1);
      const [r, g, b] = probe.getImageData(0, 0, 1, 1).data;
      let count = 0;
      for (let i = 0; i < pixels.length; i += 4) {
        if (pixels[i + 3] > 200 && Math.abs(pixels[i] - r) + Math.abs(pixels[i + 1] - g) + Math.abs(pixels[i + 2] - b) < 12) ++count;
      }
      return count;
    });
    return {
      kinds: curves.map((c) => c.kind), painted,
      points: plot.data.slice(1).map((ys) => ys.filter((y) => y != null).length),
      x: [plot.data[0][0], plot.data[0].at(-1)],
      width: canvas.clientWidth,
    };
  }, name);
}

async function holdsCurves(browser) {
  const { page, wrong } = await open(browser, join(folder, "two.html"));
  const loss = await chartOf(page, "loss");
  assert.deepEqual(loss.kinds, ["raw", "raw", "smooth", "smooth", "held-out", "held-out"]);
  assert.deepEqual(loss.points, [600, 600, 600, 600, 12, 12]);
  loss.painted.forEach((count) => assert.ok(count > 300, `loss paints ${loss.painted}`));
  const accuracy = await chartOf(page, "accuracy");
  assert.deepEqual(accuracy.points, [12, 12]);
  accuracy.painted.forEach((count) => assert.ok(count > 100, `accuracy paints ${accuracy.painted}`));
  const interval = await chartOf(page, "interval");
  assert.deepEqual(interval.points, [600, 600]);
  await page.screenshot({ path: join(folder, "light.png"), fullPage: true });
  assert.deepEqual(wrong, []);
  await page.close();
}

async function switchesAxes(browser) {
  const { page, wrong } = await open(browser, join(folder, "two.html"));
  await page.click('[data-axis="samples"]');
  assert.deepEqual((await chartOf(page, "loss")).x, [512, 600 * 512]);
  await page.click('[data-axis="bytes"]');
  assert.deepEqual((await chartOf(page, "loss")).x, [2 * 420_000, 600 * 2 * 420_000]);
  assert.equal(await page.textContent(".against"), "against bytes on the slow link");
  await page.click('[data-axis="seconds"]');
  const seconds = (await chartOf(page, "loss")).x[1];
  assert.ok(seconds > 90 && seconds < 130, `last second ${seconds}`);
  await page.click("[data-log]");
  assert.ok((await chartOf(page, "loss")).painted.every((count) => count > 300));
  await page.locator(".charts").screenshot({ path: join(folder, "seconds-log.png") });
  assert.deepEqual(wrong, []);
  await page.close();
}

async function hidesARun(browser) {
  const { page, wrong } = await open(browser, join(folder, "two.html"));
  const before = await chartOf(page, "loss");
  await page.click('[data-run="1"]');
  const after = await chartOf(page, "loss");
  assert.ok(after.painted[3] < 10, `hidden run paints ${after.painted[3]}`);
  assert.ok(after.painted[2] >= before.painted[2]);
  assert.deepEqual(wrong, []);
  await page.close();
}

async function showsValuesUnderThePointer(browser) {
  const { page, wrong } = await open(browser, join(folder, "two.html"));
  await page.click('[data-axis="samples"]');
  await page.locator("#loss").scrollIntoViewIfNeeded();
  const box = await page.locator("#loss .u-over").boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.waitForSelector("#loss .tip:not([hidden])");
  const tip = await page.textContent("#loss .tip");
  assert.match(tip, /samples.*sync, smoothed0\.\d{4}hybrid, smoothed0\.\d{4}/);
  await page.locator("#loss").screenshot({ path: join(folder, "tip.png") });
  assert.deepEqual(wrong, []);
  await page.close();
}

async function suitsTheDarkAndNarrowScreens(browser) {
  const dark = await open(browser, join(folder, "two.html"), { colorScheme: "dark" });
  assert.ok((await chartOf(dark.page, "loss")).painted.every((count) => count > 300));
  await dark.page.screenshot({ path: join(folder, "dark.png"), fullPage: true });
  await dark.page.emulateMedia({ colorScheme: "light" });
  await dark.page.waitForFunction(() => window.hybridsync.colour(window.hybridsync.runs[0]) === "#2a6fdb");
  await dark.page.waitForTimeout(300);  // for the redrawing
  assert.ok((await chartOf(dark.page, "loss")).painted.every((count) => count > 300));
  assert.deepEqual(dark.wrong, []);
  await dark.page.close();

  const narrow = await open(browser, join(folder, "two.html"), { viewport: { width: 390, height: 844 } });
  const wide = await narrow.page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= 390, `the page is ${wide} wide`);
  await narrow.page.screenshot({ path: join(folder, "narrow.png"), fullPage: true });
  assert.deepEqual(narrow.wrong, []);
  await narrow.page.close();
}

async function showsSeeds(browser) {
  const { page, wrong } = await open(browser, join(folder, "seeds.html"));
  assert.equal(await page.locator(".chip").count(), 6);
  assert.equal(await page.locator("tr.spread").count(), 2);
  await page.screenshot({ path: join(folder, "seeds.png"), fullPage: true });
  assert.deepEqual(wrong, []);
  await page.close();
}

async function survivesHostileAndCutRuns(browser) {
  const { page, wrong } = await open(browser, join(folder, "hostile.html"));
  assert.equal(await page.locator("img").count(), 0);
  assert.match(await page.textContent("body"), /no summary\.json/);
  assert.deepEqual((await chartOf(page, "loss")).points.slice(0, 1), [2000]);
  await page.screenshot({ path: join(folder, "hostile.png"), fullPage: true });
  assert.deepEqual(wrong, []);
  await page.close();
}

async function showsAgesOfDelayedRunsOnly(browser) {
  const { page, wrong } = await open(browser, join(folder, "delayed.html"));
  const heads = await page.locator(".ages thead th").allTextContents();
  assert.deepEqual(heads, ["run", "age 0", "age 1", "age 2", "returned", "dropped", "lost", "skipped, by node"]);
  assert.equal(await page.locator(".ages tbody tr").count(), 1);
  const cells = (await page.locator(".ages tbody td").allTextContents()).slice(0, 3).map(Number);
  const applied = cells.reduce((a, b) => a + b);
  const bars = await page.locator(".ages .stack i").evaluateAll((all) => all.map((i) => i.getBoundingClientRect().width));
  const whole = bars.reduce((a, b) => a + b);
  bars.forEach((width, age) => assert.ok(Math.abs(width / whole - cells[age] / applied) < 0.01, `bars ${bars} of ${cells}`));
  await page.locator(".ages").screenshot({ path: join(folder, "ages.png") });
  assert.deepEqual(wrong, []);
  await page.close();
  const other = await open(browser, join(folder, "two.html"));
  assert.equal(await other.page.locator(".ages").count(), 0);
  await other.page.close();
}

async function printsInLightColours(browser) {
  const { page, wrong } = await open(browser, join(folder, "seeds.html"), {
    colorScheme: "dark", viewport: { width: 700, height: 900 },
  });
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  assert.equal(await page.evaluate(() => window.hybridsync.colour(window.hybridsync.runs[0])), "#2a6fdb");
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= 700, `the paper's content is ${wide} wide`);
  await page.screenshot({ path: join(folder, "print.png"), fullPage: true });
  await page.pdf({ path: join(folder, "print.pdf"), printBackground: true });
  assert.deepEqual(wrong, []);
  await page.close();
}

const TESTS = [
  holdsCurves, switchesAxes, hidesARun, showsValuesUnderThePointer, suitsTheDarkAndNarrowScreens,
  showsSeeds, showsAgesOfDelayedRunsOnly, survivesHostileAndCutRuns, printsInLightColours,
];

async function main() {
  if (!tool || !folder) {
    console.error("usage: node report.test.mjs PATH_OF_sample_reports OUTPUT_FOLDER");
    return 2;
  }
  const chromium = await playwright();
  rmSync(folder, { recursive: true, force: true });
  execFileSync(resolve(tool), [folder]);
  // Makes a profile of its own and removes it.
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
  let failed = 0;
  try {
    for (const test of TESTS) {
      try {
        await test(browser);
        console.log(`ok      ${test.name}`);
      } catch (error) {
        ++failed;
        console.log(`FAILED  ${test.name}\n${error.stack}`);
      }
    }
  } finally {
    await browser.close();
  }
  return failed > 0 ? 1 : 0;
}

process.exitCode = await main();
