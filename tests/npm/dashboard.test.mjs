// The dashboard in a real browser against the real binary.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { launchBrowser } from "./browser.mjs";
import { startComfyd, startDouble } from "./servers.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const kPatienceMs = 60_000;

let browser;
const closing = [];
const scenarios = [];
const scenario = (name, run) => scenarios.push([name, run]);

async function start(...args) {
  const comfyd = await startComfyd("--set", "webhooks.allow_private_addresses=true", ...args);
  closing.push(comfyd.stop);
  return comfyd;
}
const serve = async (...args) => (await start(...args)).url;

// A page that fails the test for whatever should not be: errors, requests to other origins, breaches of the policy.
async function open(address) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, locale: "en-GB" });
  context.setDefaultTimeout(kPatienceMs);
  const page = await context.newPage();
  page.troubles = [];
  const { origin } = new URL(address);
  page.on("pageerror", (error) => page.troubles.push(String(error)));
  page.on("console", (message) => {
    // A request that failed stands there by itself; tests that want one look at what the page says.
    if (message.type() === "error" && !/status of 40[0134]|ERR_CONNECTION/.test(message.text())) page.troubles.push(message.text());
  });
  page.on("request", (request) => {
    if (!/^(data|blob):/.test(request.url()) && new URL(request.url()).origin !== origin) page.troubles.push(`asked ${request.url()}`);
  });
  await page.goto(address);
  return page;
}

async function close(page) {
  assert.deepEqual(page.troubles, []);
  await page.context().close();
}

// What a machine can see of whether people can use it. Only colours differ between the themes.
async function inspect(page) {
  const rules = {
    light: ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"],
    dark: ["color-contrast", "link-in-text-block"],
  };
  await page.evaluate(axe);
  for (const [colorScheme, runOnly] of Object.entries(rules)) {
    await page.emulateMedia({ colorScheme });
    const { violations } = await page.evaluate((only) => globalThis.axe.run({ runOnly: only, resultTypes: ["violations"] }), runOnly);
    const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 120)).join(" | ")}`);
    assert.deepEqual(found, [], `${page.url()} ${colorScheme}`);
  }
  const before = page.viewportSize();
  for (const width of [360, 800, 1100, 1600]) {
    await page.setViewportSize({ width, height: 900 });
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(over <= 0, `${page.url()} is ${over} px too wide at ${width}`);
  }
  await page.setViewportSize(before);
}

const picture = (color, name = "dash") => ({
  1: { class_type: "EmptyImage", inputs: { width: 64, height: 48, batch_size: 1, color } },
  2: { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: name } },
});
const failing = {
  1: { class_type: "ColorToRGBInt", inputs: { color: "#000" } },
  2: { class_type: "PreviewAny", inputs: { source: ["1", 0] } },
};

async function call(url, path, body, key) {
  const answer = await fetch(url + path, {
    ...(body ? { method: "POST", body: JSON.stringify(body) } : {}),
    headers: key ? { Authorization: `Bearer ${key}` } : {},
  });
  assert.ok(answer.ok, `${path}: ${answer.status}`);
  return answer.json();
}
const submit = async (url, workflow, options = {}, key = undefined) =>
  (await call(url, "/v2/workflows/execute", { workflow, ...options }, key)).execution_id;
async function until(isSo) {
  for (const end = Date.now() + kPatienceMs; Date.now() < end; await new Promise((resolve) => setTimeout(resolve, 20))) {
    const value = await isSo();
    if (value) return value;
  }
  throw new Error(`it did not come to be: ${isSo}`);
}
const ended = (url, id, key) => until(async () => {
  const job = await call(url, `/v2/workflows/execution/${id}`, undefined, key);
  return ["completed", "failed", "cancelled"].includes(job.status) && job;
});
const dead = (url, number, key) => until(async () =>
  (await call(url, "/v2/webhooks/deliveries?state=dead", undefined, key)).deliveries.length === number);

// Answers with `status`, and remembers what came.
async function receiver() {
  const it = { status: 503, messages: [] };
  const server = createServer((request, response) => {
    const pieces = [];
    request.on("data", (piece) => pieces.push(piece));
    request.on("end", () => {
      it.messages.push({ id: request.headers["webhook-id"], body: Buffer.concat(pieces).toString() });
      response.writeHead(it.status).end();
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => {
    server.close();
    server.closeAllConnections();
  });
  it.url = `http://127.0.0.1:${server.address().port}/hook`;
  return it;
}

scenario("dead letters are found, looked at, replayed to a receiver that is back, and thrown away", async () => {
  const url = await serve();
  const hook = await receiver();
  const jobs = [];
  for (let i = 0; i < 4; ++i) {
    jobs.push(await submit(url, picture(i), { webhook_config: { url: hook.url, max_retries: 0, secret: "s3cret", headers: { "X-Pass": "swordfish" } } }));
  }
  await dead(url, 4);

  const page = await open(`${url}/`);
  assert.equal(new URL(page.url()).pathname, "/ui/", "a browser is led to the dashboard");
  await page.getByRole("link", { name: "4 webhooks" }).click();
  await page.getByRole("heading", { name: "Webhooks", exact: true }).waitFor();
  await until(() => page.evaluate(() => document.activeElement?.textContent === "Webhooks")); // screen readers are told
  const letters = page.locator("tbody tr", { hasText: "given up" });
  await letters.nth(3).waitFor();
  assert.equal(await letters.count(), 4);
  for (const words of ["execution.completed", hook.url, "HTTP 503", "the receiver answered HTTP 503", "Replay"]) {
    assert.ok((await letters.first().innerText()).includes(words), words);
  }
  await inspect(page);

  // The filter stands in the address: another window shows the same.
  await page.getByRole("searchbox", { name: "Job" }).fill(jobs[1]);
  await page.getByRole("button", { name: "Filter" }).click();
  await page.waitForURL(/job=/);
  const other = await open(page.url());
  await other.getByRole("link", { name: `…${jobs[1].slice(-8)}` }).waitFor();
  assert.equal(await other.locator("tbody tr").count(), 1);
  await close(other);

  await page.locator("tbody tr").getByRole("link", { name: "execution.completed" }).click();
  await page.getByRole("heading", { name: "What is sent" }).waitFor();
  const body = await page.getByLabel("Body").innerText();
  assert.equal(JSON.parse(body).execution_id, jobs[1]);
  const head = await page.getByLabel("Headers").innerText();
  assert.ok(head.startsWith(`POST ${hook.url}`) && head.includes("X-Pass: ***") && head.includes("X-Signature: ***"), head);
  await inspect(page);

  hook.status = 204;
  await page.getByRole("button", { name: "Replay" }).click();
  await page.locator("h1", { hasText: "delivered" }).waitFor();
  const told = hook.messages.filter((message) => JSON.parse(message.body).execution_id === jobs[1]);
  assert.equal(told.length, 2);
  assert.equal(told[0].id, told[1].id, "the same message");
  assert.equal(told[0].body, told[1].body);

  await page.getByRole("link", { name: "Webhooks" }).first().click();
  await letters.nth(2).waitFor();
  const away = letters.first().getByRole("button", { name: "Throw away" });
  await away.focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await until(() => away.evaluate((button) => button === document.activeElement)); // back where one was
  assert.equal(await letters.count(), 3, "nothing is done without a yes");
  await letters.first().getByRole("button", { name: "Throw away" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Throw away" }).click();
  await until(async () => (await letters.count()) === 2);

  hook.status = 500; // so they come back
  await page.getByRole("button", { name: "Replay all…" }).click();
  await page.getByRole("dialog", { name: "Send 2 dead letters again?" }).getByRole("button", { name: "Replay 2" }).click();
  await page.getByText("2 messages to be sent again.").waitFor();
  await until(() => hook.messages.length >= 7);
  await dead(url, 2);
  await page.reload();
  await page.getByRole("button", { name: "Throw all away…" }).click();
  await page.getByRole("dialog", { name: "Throw 2 dead letters away?" }).getByRole("button", { name: "Throw away 2" }).click();
  await page.getByText("No dead letters").waitFor();
  assert.deepEqual((await call(url, "/v2/webhooks/deliveries?state=dead")).deliveries, []);
  await close(page);
});

scenario("an endpoint that went away is seen, enabled and tested; another is made and removed", async () => {
  const url = await serve();
  const hook = await receiver();
  hook.status = 410;
  await call(url, "/v2/webhooks/endpoints", { url: hook.url, description: "shop" });
  await submit(url, picture(1));
  await dead(url, 1);
  const page = await open(`${url}/ui/webhooks`);
  const endpoint = page.locator("tbody tr", { hasText: "shop" });
  await endpoint.getByText("disabled").first().waitFor();
  hook.status = 200;
  await endpoint.getByRole("button", { name: "Enable" }).click();
  await endpoint.getByText("enabled").waitFor();
  await endpoint.getByRole("button", { name: "Test" }).click();
  await page.getByText("It took the sample (HTTP 200).").waitFor();

  await page.getByText("Add an endpoint").click();
  await page.getByLabel("Address").fill("nonsense:");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.locator(".said .bad").waitFor(); // the server says what is wrong with it
  await page.getByLabel("Address").fill(`${hook.url}/second`);
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByText("whsec_").waitFor();
  await inspect(page);
  await page.getByRole("button", { name: "I have it" }).click();
  await page.getByText("whsec_").waitFor({ state: "detached" });
  await page.locator("tbody tr", { hasText: "/second" }).getByRole("button", { name: "Remove" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await until(async () => (await call(url, "/v2/webhooks/endpoints")).endpoints.length === 1);
  await close(page);
});

scenario("jobs are listed, stay still under the pointer, and one shows what it made or why it failed", async () => {
  const url = await serve();
  for (let i = 0; i < 52; ++i) await submit(url, picture(i));
  const broken = await submit(url, failing);
  await ended(url, broken);
  const made = await submit(url, picture(99, "a <b>bold</b> \u202e name"));
  await ended(url, made);

  const page = await open(`${url}/ui/jobs`);
  const rows = page.locator("tbody tr");
  await rows.nth(49).waitFor();
  await inspect(page);
  const first = await rows.first().innerText();
  await submit(url, picture(100));
  await page.getByRole("button", { name: "↑ 1 new job" }).waitFor();
  assert.equal((await rows.first().innerText()).split("\n")[1], first.split("\n")[1], "no row has moved");
  await page.getByRole("button", { name: "↑ 1 new job" }).click();
  await until(async () => (await rows.nth(1).innerText()).includes(made.slice(-8)));
  await page.getByRole("link", { name: "Older" }).click();
  await page.waitForURL(/cursor=/);
  await until(async () => (await rows.count()) === 5);
  await page.goBack();
  await rows.nth(49).waitFor();

  await page.getByRole("navigation", { name: "State" }).getByRole("link", { name: "Failed" }).click();
  await until(async () => (await rows.count()) === 1);
  await rows.first().getByRole("link").click();
  await page.getByText("What to do:").waitFor();
  assert.match(await page.getByLabel("Why it failed").innerText(), /node error in node 1 \(ColorToRGBInt\)/i);
  await page.getByRole("button", { name: "Run again" }).waitFor();
  await inspect(page);

  await page.goto(`${url}/ui/jobs/${made}`);
  const image = page.getByRole("img").first();
  await image.waitFor();
  await until(() => image.evaluate((element) => element.naturalWidth > 0));
  assert.match(await page.locator(".tile").innerText(), /64 × 48/);
  await inspect(page);
  await page.getByRole("link", { name: "Overview" }).click();
  await page.getByText("Nothing. All is well.").waitFor();
  await inspect(page);
  await page.getByRole("link", { name: "Workers" }).click();
  await page.locator("tbody tr", { hasText: "engine" }).waitFor();
  await inspect(page);
  await page.goto(`${url}/ui/no/such/page`);
  await page.getByRole("heading", { name: "Nothing here" }).waitFor();
  for (const id of ["%3Cb%3E", "%E0%A4", "..%2f..%2fadmin%2fv1%2fworkers"]) {
    await page.goto(`${url}/ui/jobs/${id}`);
    await page.getByText("Not there").waitFor();
  }
  await close(page);
});

scenario("a job that waits says why, and is cancelled; a worker is drained and resumed", async () => {
  const double = await startDouble("--delay-ms", "600000");
  closing.push(double.stop);
  const url = await serve("--no-engine", "--worker", double.url);
  await until(async () => (await call(url, "/admin/v1/workers")).workers[0]?.status === "idle");
  const running = await submit(url, picture(1));
  const waiting = await submit(url, picture(2));
  const page = await open(`${url}/ui/jobs/${waiting}`);
  await page.getByRole("heading", { name: "Why it waits" }).waitFor();
  await page.getByText("Place 1 in the queue").waitFor();
  await inspect(page);
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel the job" }).click();
  await page.locator("h1", { hasText: "cancelled" }).waitFor();
  assert.equal((await call(url, `/v2/workflows/execution/${waiting}`)).status, "cancelled");
  await page.getByRole("button", { name: "Run again" }).click();
  await page.locator("h1", { hasText: "waiting" }).waitFor();

  await page.getByRole("link", { name: "Workers" }).click();
  const worker = page.locator("tbody tr").first();
  await worker.getByRole("link", { name: `…${running.slice(-8)}` }).waitFor();
  await worker.getByRole("button", { name: "Drain" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Drain" }).click();
  await worker.getByText("draining").waitFor();
  await worker.getByRole("button", { name: "Resume" }).click();
  await worker.getByText("running").waitFor();
  await close(page);
});

scenario("two tenants log in by key, and neither sees what is the other's", async () => {
  const keys = { ana: "open-sesame-of-ana", bob: "open-sesame-of-bob" };
  const url = await serve("--set", `auth.keys=ana=${keys.ana},bob=${keys.bob}`);
  const hook = await receiver();
  const jobs = {};
  const letters = {};
  for (const [name, key] of Object.entries(keys)) {
    jobs[name] = await submit(url, picture(7), { webhook_config: { url: hook.url, max_retries: 0 } }, key);
    await dead(url, 1, key);
    letters[name] = (await call(url, "/v2/webhooks/deliveries", undefined, key)).deliveries[0].id;
  }
  for (const [name, other] of [["ana", "bob"], ["bob", "ana"]]) {
    const page = await open(`${url}/ui/jobs?status=completed`);
    await page.waitForURL(/\/login\?next=/);
    await page.locator("input[type=password]").fill("wrong");
    await page.getByRole("button").first().click();
    await page.locator("input[type=password]").fill(keys[name]);
    await page.getByRole("button").first().click();
    await page.waitForURL(`${url}/ui/jobs?status=completed`);
    await page.getByRole("link", { name: `…${jobs[name].slice(-8)}` }).waitFor();
    assert.equal(await page.locator("tbody tr").count(), 1);
    assert.ok((await page.locator(".who").innerText()).includes(name));

    await page.goto(`${url}/ui/jobs/${jobs[other]}`);
    await page.getByText("Not there").waitFor();
    await page.goto(`${url}/ui/webhooks/deliveries/${letters[other]}`);
    await page.getByText("Not there").waitFor();
    await page.goto(`${url}/ui/workers`);
    await page.getByText("you need an operator's key").waitFor();
    assert.equal(await page.getByRole("button", { name: "Drain" }).count(), 0);

    // By cookie and token of the page: what is theirs can be changed, and nothing else.
    await page.goto(`${url}/ui/webhooks`);
    await page.getByRole("button", { name: "Throw all away…" }).click();
    await page.getByRole("dialog", { name: "Throw 1 dead letter away?" }).getByRole("button", { name: "Throw away 1" }).click();
    await page.getByText("No dead letters").waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.waitForURL(/\/login/);
    await page.goto(`${url}/ui/jobs/${jobs[name]}`);
    await page.waitForURL(/\/login\?next=/);
    await close(page);
    if (name === "ana") await dead(url, 1, keys.bob);
  }
});

scenario("what somebody may not do is said, not broken", async () => {
  const ops = "open-sesame-of-ops";
  const url = await serve("--set", `auth.keys=ops=${ops}`, "--set", "auth.operators=ops");
  const make = async (...scopes) => (await call(url, "/admin/v1/keys", { tenant: "acme", name: "a key", scopes }, ops)).key;
  const reader = await make("jobs:read");
  const writer = await make("jobs:read", "jobs:write");
  const hook = await receiver();
  const job = await submit(url, picture(1), { webhook_config: { url: hook.url, max_retries: 0 } }, writer);
  await dead(url, 1, writer);
  const logIn = async (key, path) => {
    const page = await open(url + path);
    await page.locator("input[type=password]").fill(key);
    await page.getByRole("button").first().click();
    await page.waitForURL(url + path);
    return page;
  };
  const page = await logIn(reader, "/ui/webhooks");
  await page.getByText("you need the scope jobs:write").waitFor();
  assert.equal(await page.getByRole("button", { name: /Replay|Throw/ }).count(), 0);
  await page.goto(`${url}/ui/jobs/${job}`);
  await page.getByText("you need the scope jobs:write").waitFor();
  await close(page);

  const none = await logIn(await make("metrics:read"), "/ui/");
  await none.getByText("needs the scope 'jobs:read'").first().waitFor();
  await inspect(none);
  await close(none);
});

scenario("a session that ends and a server that is away are said, and what was read stays", async () => {
  const key = "open-sesame-of-ana";
  const comfyd = await start("--set", `auth.keys=ana=${key}`);
  const job = await submit(comfyd.url, picture(1), {}, key);
  const page = await open(`${comfyd.url}/ui/jobs`);
  await page.locator("input[type=password]").fill(key);
  await page.getByRole("button").first().click();
  const row = page.getByRole("link", { name: `…${job.slice(-8)}` });
  await row.waitFor();
  await page.context().clearCookies();
  await page.getByText("Your session has ended.").waitFor();
  assert.ok(await row.isVisible());
  await close(page);

  const other = await start();
  const seen = await submit(other.url, picture(1));
  const second = await open(`${other.url}/ui/jobs`);
  await second.getByRole("link", { name: `…${seen.slice(-8)}` }).waitFor();
  await other.stop();
  await second.getByText("No connection since").waitFor();
  assert.ok(await second.getByRole("link", { name: `…${seen.slice(-8)}` }).isVisible());
  await close(second);
});

// Most of them wait most of the time.
test("the dashboard", { concurrency: 4 }, async (all) => {
  browser = await launchBrowser();
  try {
    await Promise.all(scenarios.map(([name, run]) => all.test(name, run)));
  } finally {
    await browser.close();
    for (const close of closing.reverse()) await close();
  }
});
