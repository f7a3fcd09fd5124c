// The parts of the dashboard that can be looked at by themselves: what it draws with, and how it writes numbers and times.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { launchBrowser } from "./browser.mjs";

const bundle = (file, ...how) =>
  execFileSync(process.env.ESBUILD, [`../../web/src/${file}`, "--bundle", "--target=es2022", ...how], { encoding: "utf8" });

const load = (file) => import(`data:text/javascript,${encodeURIComponent(bundle(file, "--format=esm"))}`);

test("whatever was drawn before, the document is as described, and what has the same key is the same element", async () => {
  const browser = await launchBrowser();
  try {
    const page = await browser.newPage();
    await page.addScriptTag({ content: bundle("view.ts", "--format=iife", "--global-name=view") });
    const failure = await page.evaluate(async () => {
      const { h, show, redraw } = globalThis.view;
      let seed = 7;
      const random = (below) => (seed = (seed * 48271) % 2147483647) % below;
      const root = document.createElement("div");
      let described = null;
      show(root, () => described);
      const drawn = () => new Promise((resolve) => {
        redraw();
        requestAnimationFrame(() => requestAnimationFrame(resolve));
      });
      const elements = new Map(); // by key, as long as it is shown
      for (let round = 0; round < 100; ++round) {
        // Keys in any order, between elements without one that come and go.
        const keys = [..."abcdefgh"].filter(() => random(3)).sort(() => random(3) - 1);
        const has = Array.from({ length: 4 }, () => random(2) === 1);
        const items = keys.map((key) => h("li", { key, class: random(2) ? key : undefined, title: `${round}` }, key, random(2) ? h("b", null, round) : null));
        described = [
          has[0] ? h("p", null, "first") : null,
          h("ul", { hidden: has[1] }, ...items),
          has[2] ? "text" : h("input", { value: String(round), disabled: has[3] }),
          has[3] && [h("i", null), "last"],
        ];
        const texts = items.map((item) => `${item.key}${item.children.length > 1 && item.children[1].tag ? round : ""}`);
        await drawn();
        const list = root.querySelector("ul");
        const found = [...list.children].map((item) => item.textContent);
        if (found.join() !== texts.join()) return `round ${round}: ${found} instead of ${texts}`;
        if (list.hidden !== has[1]) return `round ${round}: hidden`;
        const whole = (has[0] ? "first" : "") + texts.join("") + (has[2] ? "text" : "") + (has[3] ? "last" : "");
        if (root.textContent !== whole) return `round ${round}: ${root.textContent} instead of ${whole}`;
        const input = root.querySelector("input");
        if (!has[2] && (input?.value !== String(round) || input.disabled !== has[3])) return `round ${round}: input`;
        for (const [index, item] of items.entries()) {
          const element = list.children[index];
          if ((elements.get(item.key) ?? element) !== element) return `round ${round}: '${item.key}' was made anew`;
          if (element.getAttribute("class") !== (item.attributes.class ?? null) || element.title !== `${round}`) return `round ${round}: attributes`;
        }
        elements.clear();
        for (const [index, key] of keys.entries()) elements.set(key, list.children[index]);
      }
      return "";
    });
    assert.equal(failure, "");
  } finally {
    await browser.close();
  }
});

test("what is typed and focused stays so while the rest is drawn anew", async () => {
  const browser = await launchBrowser();
  try {
    const page = await browser.newPage();
    await page.addScriptTag({ content: bundle("view.ts", "--format=iife", "--global-name=view") });
    await page.evaluate(() => {
      const { h, show, redraw } = globalThis.view;
      let text = "";
      let round = 0;
      show(document.body, () => [
        round % 2 ? h("p", null, "now and then") : null,
        h("input", { value: text, oninput: (event) => (text = event.target.value) }),
        h("textarea", { value: "at first" }),
        h("select", { value: "b" }, ...(round % 2 ? ["a", "b"] : ["b", "c"]).map((name) => h("option", { value: name }, name))),
        h("output", null, text, " ", round),
      ]);
      globalThis.again = () => {
        ++round;
        redraw();
      };
    });
    await page.locator("textarea").fill("something else");
    await page.locator("input").pressSequentially("ab");
    await page.evaluate(() => globalThis.again());
    await page.locator("output", { hasText: "ab 1" }).waitFor();
    await page.keyboard.press("ArrowLeft");
    await page.evaluate(() => globalThis.again());
    await page.locator("output", { hasText: "ab 2" }).waitFor();
    await page.keyboard.type("X");
    assert.equal(await page.locator("input").inputValue(), "aXb");
    assert.equal(await page.locator("textarea").inputValue(), "something else");
    assert.equal(await page.locator("select").inputValue(), "b");
  } finally {
    await browser.close();
  }
});

test("a list stays still: rows change in place, new ones wait, those that left are marked", async () => {
  const { Still } = await load("still.ts");
  const still = new Still((row) => row.id);
  const page = (ids, state = "a") => [...ids].map((id) => ({ id, state }));
  const is = (ids, newer, gone) => {
    assert.equal(still.rows.map((row) => row.id).join(""), ids);
    assert.equal(still.newer, newer);
    assert.deepEqual([...still.gone].join(""), gone);
  };
  still.take(page("gfedc"), true);
  is("gfedc", 0, "");
  still.take(page("ihgfe", "b"), true); // two new ones pushed two off the page
  is("gfedc", 2, "");
  assert.equal(still.rows.map((row) => row.state).join(""), "bbbaa");
  still.take(page("igecb"), true); // three left, one came onto the page from behind
  is("gfedc", 1, "fd");
  still.take(page("ige"), false); // that is all there is
  is("gfedc", 1, "fdc");
  still.take(page("zyx"), true); // nothing of before
  is("gfedc", 3, "");
  still.renew();
  still.take(page("zyx"), true);
  is("zyx", 0, "");
  still.take([], false);
  is("zyx", 0, "zyx");
  still.renew();
  still.take([], false);
  still.take(page("a"), false); // nothing is there to be moved
  is("a", 0, "");
});

test("numbers and times are written for people", async () => {
  const { duration, bytes, plural, ago, between, count } = await load("format.ts");
  const durations = [[null, "–"], [0, "0 s"], [0.004, "4 ms"], [0.25, "0.3 s"], [7, "7 s"], [59.6, "60 s"], [150, "3 min"], [7200, "2 h"], [400_000, "5 days"]];
  for (const [seconds, words] of durations) assert.equal(duration(seconds), words);
  assert.deepEqual([0, 1023, 1536, 1.5 * 2 ** 30].map(bytes), ["0 B", "1023 B", "1.5 KiB", "1.5 GiB"]);
  assert.deepEqual([plural(1, "job"), plural(1204, "job"), count(undefined)], ["1 job", "1,204 jobs", "–"]);
  const at = (seconds) => new Date(Date.now() - seconds * 1000).toISOString();
  assert.deepEqual([ago(at(0)), ago(at(12)), ago(at(-30))], ["just now", "12 s ago", "in 30 s"]);
  assert.equal(between(at(5), null), undefined);
});
