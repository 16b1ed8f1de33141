// The dashboard in a real browser: one scene per run, `node dashboard.mjs SCENE '{"url": …, "token": …}'`. Says `ok` on stdout at
// its end, or fails with what it saw. Where a scene needs something to happen outside it says `now: …` and waits for a line.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { createInterface } from "node:readline";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const [, , scene, text = "{}"] = process.argv;
const given = JSON.parse(text);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PATIENCE_MS = 20_000;

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
/** Says what has to happen outside, and waits until it has. */
async function outside(what) {
  console.log(`now: ${what}`);
  await lines.next();
}

const browser = await chromium.launch({ executablePath: given.browser, args: process.getuid() === 0 ? ["--no-sandbox"] : [] });

/** A page that notes everything that goes wrong in it. */
async function open({ token = given.token, phone = false, dark = false } = {}) {
  const viewport = phone ? { width: 390, height: 844 } : { width: 1280, height: 800 };
  const context = await browser.newContext({ viewport, colorScheme: dark ? "dark" : "light" });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  page.wrong = [];
  page.on("console", (message) => message.type() === "error" && page.wrong.push(message.text()));
  page.on("pageerror", (error) => page.wrong.push(String(error)));
  page.on("dialog", (dialog) => (page.wrong.push(`dialog: ${dialog.message()}`), dialog.dismiss()));
  await page.addInitScript(() => {
    window.violations = [];
    addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective));
  });
  if (token) {
    await page.goto(given.url);
    await page.getByRole("button", { name: "Enter a token" }).first().click();
    await page.getByLabel("Token", { exact: true }).fill(token);
    await page.getByRole("button", { name: "Use it" }).click();
    await page.getByRole("button", { name: "Forget token" }).waitFor();
  }
  return page;
}

async function go(page, place) {
  await page.goto(`${given.url}/#/${place}`);
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.waitForFunction(() => !document.querySelector(".notice-loading"));
}

/** Nothing was wrong, nothing was blocked, nothing serious stands in the way of anybody, and nothing is wider than the page. */
async function sound(page, place) {
  assert.deepEqual(page.wrong, [], place);
  assert.deepEqual(await page.evaluate(() => window.violations), [], place);
  const found = await page.evaluate(`${axe}; axe.run().then((run) => run.violations.filter((one) => ["serious", "critical"].includes(one.impact))
    .map((one) => one.id + " " + one.nodes.map((node) => node.target.join(" ")).join(" | ")))`);
  assert.deepEqual(found, [], place);
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0, `${place} is too wide`);
}

const scenes = {
  /** Each view, on a desk and on a phone, by day and by night. */
  async views() {
    const places = {
      overview: "overview", "overview of a day": "overview?range=24h", executions: "executions", "no execution": "executions?state=failed",
      execution: `executions/${given.execution}`, "needs attention": "attention", workers: "workers", tools: "tools",
      tool: `tools/${given.tool}`, sessions: "sessions", connect: "connect",
    };
    for (const look of [{}, { phone: true }, { dark: true }, { phone: true, dark: true }]) {
      const page = await open(look);
      for (const [view, place] of Object.entries(places)) {
        await go(page, place);
        const name = `${view}${look.phone ? " on a phone" : ""}${look.dark ? " by night" : ""}`;
        await sound(page, name);
        await page.screenshot({ path: `${given.folder}/${name.replaceAll(" ", "-")}.png`, fullPage: true });
      }
      await page.context().close();
    }
  },

  /** What happened is on the first view, number by number, with a way to the calls; and as a table for who sees no chart. */
  async overview() {
    const page = await open();
    await page.goto(given.url);
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    const card = (label) => page.locator(".card", { has: page.getByText(label, { exact: true }) });
    for (const [label, number] of Object.entries(given.cards)) {
      await card(label).locator(".card-number", { hasText: new RegExp(`^${number}$`) }).waitFor();
    }
    await card("Attempts lost").getByText(/crash rate .* of/).waitFor();
    assert.equal(await page.locator(".chart canvas").count(), 4);
    // The chart is painted, not blank: some of its points have a colour.
    const painted = await page.locator(".chart canvas").first().evaluate((canvas) => {
      const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
      return pixels.some((value, at) => at % 4 === 3 && value > 0);
    });
    assert.ok(painted);
    const table = page.getByRole("region", { name: /^Losses and recoveries/ });
    await page.locator("figure", { hasText: "Losses and recoveries" }).getByText("As a table").click();
    const cells = await table.locator("tbody td").allTextContents();
    const sum = (column) => cells.filter((_, at) => at % 3 === column).reduce((sum, text) => sum + Number(text), 0);
    assert.deepEqual([sum(0), sum(1), sum(2)], [given.cards["Attempts lost"], given.cards.Recovered, given.cards["Became unknown"]]);
    await page.getByRole("button", { name: "24 hours" }).click();
    await page.waitForURL((url) => url.hash === "#/overview?range=24h");
    await page.getByRole("heading", { name: "In the last 24 hours" }).waitFor();
    await sound(page, "overview");
    for (const look of [{}, { phone: true }, { dark: true }, { phone: true, dark: true }]) {
      const shown = await open(look);
      await go(shown, "overview");
      await shown.locator(".chart canvas").first().waitFor();
      const name = `overview-of-a-run${look.phone ? "-on-a-phone" : ""}${look.dark ? "-by-night" : ""}`;
      await shown.screenshot({ path: `${given.folder}/${name}.png`, fullPage: true });
      await shown.context().close();
    }
    // One more call shows up by itself.
    const before = Number(await card("Stored calls").locator(".card-number").textContent());
    await outside("a call");
    await card("Stored calls").locator(".card-number", { hasText: new RegExp(`^${before + 1}$`) }).waitFor();
    await card("Recovered").getByRole("link").click();
    await page.waitForURL((url) => url.hash.includes("recovered=true") && url.hash.includes("within=24h"));
    await page.locator("tbody tr").first().waitFor();
    assert.equal(await page.locator("tbody tr").count(), given.cards.Recovered);
  },

  /** Nothing happened, numbers on their way, and numbers that can not be read never look alike. */
  async quiet() {
    const page = await open();
    await page.goto(`${given.url}/#/overview`);
    await page.getByText("No call in the last 15 minutes.").waitFor();
    assert.equal(await page.locator(".chart").count(), 0);
    await page.locator(".card", { hasText: "Workers" }).locator(".card-number", { hasText: /^1$/ }).waitFor();
    await sound(page, "quiet");
    const problem = { type: "about:blank", title: "x", status: 503, code: "store_unavailable", detail: "The store can not answer.", next: "Ask again." };
    await page.route("**/api/v1/series?*", (route) => route.fulfill({ status: 503, contentType: "application/problem+json", json: problem }));
    await page.getByRole("button", { name: "1 hour" }).click();
    await page.getByRole("alert").getByText("The store can not answer.").waitFor();
    assert.equal(await page.getByText("No call in the last").count(), 0);
    assert.equal(await page.locator(".tail-on").count(), 0);
    await page.unroute("**/api/v1/series?*");
    // Numbers that do not come: that they are on their way is said.
    await page.route("**/api/v1/series?*", () => {});
    await page.getByRole("button", { name: "24 hours" }).click();
    await page.locator(".notice-loading").waitFor();
    assert.equal(await page.getByRole("alert").count(), 0);
    await page.unroute("**/api/v1/series?*");
    await page.getByRole("button", { name: "15 minutes" }).click();
    await page.getByText("No call in the last 15 minutes.").waitFor();
  },

  /** All of the page together is small, and its first view is there at once. A busy machine may need some tries. */
  async first() {
    let bytes = 0;
    for (const file of given.files) bytes += gzipSync(Buffer.from(await (await fetch(given.url + file)).arrayBuffer())).length;
    assert.ok(bytes <= given.bytes_max, `${bytes} bytes`);
    const times = [];
    do {
      const page = await open({ token: null });
      const begun = Date.now();
      await page.goto(given.url);
      await page.locator(".card", { hasText: "Stored calls" }).locator(".card-number").waitFor();
      times.push(Date.now() - begun);
      await page.context().close();
    } while (Math.min(...times) >= 1_000 && times.length < 20);
    assert.ok(Math.min(...times) < 1_000, String(times));
  },

  /** A filter is in the address, and a reload keeps it. */
  async filters() {
    const page = await open();
    await go(page, "executions");
    const rows = () => page.locator("tbody tr").count();
    const all = await rows();
    await page.getByLabel("completed", { exact: false }).first().check();
    await page.getByLabel("Tool", { exact: true }).fill(given.tool);
    await page.waitForURL((url) => url.hash.includes("state=completed") && url.hash.includes(`tool=${given.tool}`));
    await page.waitForFunction((all) => {
      const shown = document.querySelectorAll("tbody tr").length;
      return shown > 0 && shown < all;
    }, all);
    const some = await rows();
    assert.ok(some > 0);
    await page.reload();
    await page.locator("tbody tr").first().waitFor();
    assert.equal(await rows(), some);
    assert.equal(await page.getByLabel("Tool", { exact: true }).inputValue(), given.tool);
    await page.getByLabel("Key", { exact: true }).fill("nobody-has-this-key");
    await page.getByText("No call fits these filters.").waitFor();
    await page.getByRole("button", { name: "Clear filters" }).click();
    await page.waitForFunction((all) => document.querySelectorAll("tbody tr").length === all, all);
    await sound(page, "filters");
  },

  /** New calls show up by themselves, not while it is paused, and all of them afterwards. */
  async tail() {
    const page = await open();
    await go(page, "executions");
    await page.getByText("live", { exact: true }).waitFor();
    const rows = () => page.locator("tbody tr").count();
    const before = await rows();
    await outside("a call");
    await page.waitForFunction((before) => document.querySelectorAll("tbody tr").length === before + 1, before);
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByText("paused", { exact: true }).waitFor();
    await outside("another call");
    // There is no sign that nothing happens; a tail that was not paused shows a call within a second.
    await page.waitForTimeout(2_000);
    assert.equal(await rows(), before + 1);
    await page.getByRole("button", { name: "Go on" }).click();
    await page.getByText("live", { exact: true }).waitFor();
    await outside("a third call");
    await page.waitForFunction((before) => document.querySelectorAll("tbody tr").length === before + 3, before);
  },

  /** The worker of a call dies: the gap and who took over show up by themselves, in time. */
  async recovery() {
    const page = await open();
    await go(page, `executions/${given.execution}`);
    await page.locator(".lanes").getByText(/Attempt 1 at .*: running/).waitFor();
    await outside("the worker dies");
    const died = Date.now();
    await page.locator(".lanes").getByText(/nobody worked on it for .*, then .* took over/).waitFor();
    const tookMs = Date.now() - died;
    assert.ok(tookMs <= given.within_ms, `it took ${tookMs} ms`);
    await page.locator(".lanes").getByText(/Attempt 1 at .*: lost/).waitFor();
    await page.locator(".lanes").getByText(/Attempt 2 at .*: (running|completed)/).waitFor();
    assert.equal(await page.locator("svg rect.gap-recovery").count(), 1);
    await sound(page, "recovery");
  },

  /** A person says what became of a call. */
  async resolve() {
    const page = await open();
    await go(page, "attention");
    await page.locator(".badge", { hasText: "1" }).waitFor();
    await page.locator(`a[href$="${given.execution}"]`).click();
    await page.getByRole("button", { name: "Resolve…" }).click();
    const act = page.getByRole("button", { name: "Say what became of it" });
    assert.ok(await act.isDisabled(), "a reason is needed");
    await page.getByLabel("It took effect: completed").check();
    await page.getByLabel("Reason").fill("the ledger has the line");
    await act.click();
    await page.locator("main .state-completed").waitFor();
    await page.getByText("the ledger has the line").first().waitFor();
    assert.equal(await page.getByRole("button", { name: "Resolve…" }).count(), 0);
    await page.locator(".badge").waitFor({ state: "detached" });
    await sound(page, "resolve");
  },

  /** A credential that may only read sees no orders, and gets none. */
  async reader() {
    const page = await open();
    for (const place of [`executions/${given.execution}`, "executions", "workers", "sessions"]) {
      await go(page, place);
      const orders = page.getByRole("button", { name: /Cancel|Run again|Resolve|Drain|Close…/ });
      assert.equal(await orders.count(), 0, place);
    }
    const answer = await page.evaluate(
      async ([url, id, token]) => {
        const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
        const response = await fetch(`${url}/api/v1/executions/${id}/retry`, { method: "POST", headers, body: '{"reason":"x"}' });
        return [response.status, (await response.json()).code];
      },
      [given.url, given.execution, given.token],
    );
    assert.deepEqual(answer, [403, "insufficient_scope"]);
  },

  /** What can not be read is a failure with its next step, never an empty list; afterwards it works again. */
  async failure() {
    const page = await open();
    await go(page, "executions");
    const problem = { type: "about:blank", title: "x", status: 503, code: "store_unavailable", detail: "The store can not answer.", next: "Ask again." };
    await page.route("**/api/v1/executions?*", (route) => route.fulfill({ status: 503, contentType: "application/problem+json", json: problem }));
    await page.getByLabel("Key", { exact: true }).fill("k");
    await page.getByRole("alert").getByText("The store can not answer.").waitFor();
    await page.getByRole("alert").getByText("Ask again.").waitFor();
    assert.equal(await page.getByText("No call fits these filters.").count(), 0);
    await page.unroute("**/api/v1/executions?*");
    await page.getByRole("alert").getByRole("button", { name: "Try again" }).click();
    await page.getByText("No call fits these filters.").waitFor();
    assert.equal(await page.getByRole("alert").count(), 0);
  },

  /** What tools and clients write is text. */
  async hostile() {
    const page = await open();
    const harmless = async (place) => assert.equal(await page.locator("main img, main script, main iframe, main b").count(), 0, place);
    for (const { id, texts } of given.executions) {
      await go(page, `executions/${id}`);
      await page.getByRole("button", { name: "Show them" }).click();
      await page.getByLabel("Arguments", { exact: true }).waitFor();
      for (const text of texts) await page.getByText(text, { exact: false }).first().waitFor();
      await harmless(id);
      await page.getByRole("button", { name: "Exact text" }).first().click();
      await harmless(id);
    }
    for (const place of ["overview", "executions", "attention", "workers", "tools", "sessions", "connect"]) {
      await go(page, place);
      await harmless(place);
    }
    await go(page, "sessions");
    await page.getByText(given.client, { exact: false }).first().waitFor();
    assert.equal(await page.evaluate(() => window.harmed), undefined);
    assert.deepEqual(page.wrong, []);
    assert.deepEqual(await page.evaluate(() => window.violations), []);
  },

  /** The numbers of the first view, as they are when all has been counted. */
  async numbers() {
    const page = await open();
    await go(page, "overview");
    for (const [label, number] of Object.entries(given.cards)) {
      const card = page.locator(".card", { has: page.getByText(label, { exact: true }) });
      await card.locator(".card-number", { hasText: new RegExp(`^${number}$`) }).waitFor().catch(async () => {
        assert.fail(`${label} is ${await card.locator(".card-number").textContent()}, not ${number}`);
      });
    }
  },

  /** A list of many calls is there at once; so is what each filter finds. */
  async stored() {
    const page = await open();
    const middle = (numbers) => numbers.sort((one, other) => one - other)[Math.floor(numbers.length / 2)];
    const shown = {};
    for (const place of ["executions", "executions?state=completed", "executions?tool=tool-3"]) {
      const answers = [];
      for (let round = 0; round < 9; round += 1) {
        await page.goto("about:blank");
        await go(page, place);
        await page.locator("tbody tr").nth(49).waitFor();
        answers.push(await page.evaluate(() => performance.getEntriesByType("resource").filter((one) => one.name.includes("/api/v1/executions?"))[0].duration));
      }
      shown[place] = Math.round(middle(answers));
      assert.ok(shown[place] < given.within_ms, `${place}: ${answers}`);
    }
    assert.equal(await page.locator(".card, tbody tr").count(), 50);
    console.log(`figures: ${JSON.stringify(shown)}`);
  },

  /** A tab that stays open while much happens stays small, answers its person, and shows the newest call in the end. */
  async tab() {
    const page = await open();
    await go(page, "executions");
    await page.getByText("live", { exact: true }).waitFor();
    const devtools = await page.context().newCDPSession(page);
    await devtools.send("Performance.enable");
    const looks = [];
    const look = async () => {
      await devtools.send("HeapProfiler.collectGarbage");
      const { metrics } = await devtools.send("Performance.getMetrics");
      const of = (name) => metrics.find((metric) => metric.name === name).value;
      const begun = Date.now();
      await page.getByRole("button", { name: "Pause" }).click();
      await page.getByText("paused", { exact: true }).waitFor();
      const answeredMs = Date.now() - begun;
      await page.getByRole("button", { name: "Go on" }).click();
      looks.push({ heapMb: of("JSHeapUsedSize") / 1_048_576, nodes: of("Nodes"), listeners: of("JSEventListeners"), answeredMs });
    };
    await page.locator("tbody tr").first().waitFor();
    let over = false;
    const calls = outside("calls").then(() => (over = true));
    await page.locator("tbody tr").nth(49).waitFor();
    await look();
    while (!over) {
      await page.waitForTimeout(given.look_every_ms);
      await look();
    }
    await calls;
    const newest = (await (await fetch(`${given.url}/api/v1/executions?limit=1`)).json()).executions[0].id;
    await page.locator(`tbody a[href$="${newest}"]`).waitFor();
    const most = (name) => Math.max(...looks.map((one) => one[name]));
    const middle = looks.map((one) => one.answeredMs).sort((one, other) => one - other)[Math.floor(looks.length / 2)];
    console.log(`figures: ${JSON.stringify({ looks: looks.length, first: looks[0], last: looks.at(-1), heapMb: most("heapMb"), nodes: most("nodes"), answeredMs: middle, slowestMs: most("answeredMs") })}`);
    assert.ok(looks.length >= given.looks_min, `${looks.length} looks`);
    assert.ok(most("heapMb") < given.heap_mb, JSON.stringify(looks));
    // Between two pictures of the list both are there for a moment; what counts is that nothing grows from begin to end.
    const third = Math.ceil(looks.length / 3);
    for (const name of ["nodes", "listeners", "heapMb"]) {
      const least = (part) => Math.min(...part.map((one) => one[name]));
      assert.ok(least(looks.slice(-third)) < least(looks.slice(0, third)) * 1.2 + 1, `${name}: ${JSON.stringify(looks)}`);
    }
    assert.ok(most("nodes") < given.nodes_max, JSON.stringify(looks));
    assert.ok(middle < given.answers_ms, JSON.stringify(looks));
    assert.deepEqual(page.wrong, []);
  },
};

try {
  await scenes[scene]();
  console.log("ok");
} finally {
  await browser.close();
}
process.exit(0);
