// A browser logs in to comfyd by a real OpenID provider, through the provider's own pages, and out again.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import Provider from "oidc-provider";
import { startComfyd } from "./servers.mjs";

const PUBLIC = "https://comfyd.example.com"; // where the browser believes it is

let issuer, server, comfyd;

before(async () => {
  let handle;
  server = createServer((request, response) => handle(request, response));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  issuer = `http://127.0.0.1:${server.address().port}`;
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const provider = new Provider(issuer, {
    clients: [{
      client_id: "comfyd", client_secret: "s3cret s3cret:+/%", redirect_uris: [`${PUBLIC}/login/callback`],
      post_logout_redirect_uris: [`${PUBLIC}/login`], id_token_signed_response_alg: "ES256",
    }],
    jwks: { keys: [{ ...privateKey.export({ format: "jwk" }), alg: "ES256", use: "sig", kid: "es" }] },
    enabledJWA: { idTokenSigningAlgValues: ["ES256"] },
    claims: { openid: ["sub", "org"] },
    conformIdTokenClaims: false,
    findAccount: (context, id) => ({ accountId: id, claims: () => ({ sub: id, org: "acme" }) }),
    pkce: { required: () => true },
  });
  handle = provider.callback();
  comfyd = await startComfyd(
    "--set", `public_url=${PUBLIC}`, "--set", `login.issuer=${issuer}`, "--set", "login.client_id=comfyd",
    "--set", "login.client_secret=s3cret s3cret:+/%", "--set", "login.tenant_claim=org",
  );
});
after(async () => {
  await comfyd?.stop();
  server?.close();
  server?.closeAllConnections();
});

// As much of a browser as it takes: cookies by origin, and redirects one at a time.
class Browser {
  jars = new Map();

  async ask(address, options = {}) {
    const { origin, pathname, search } = new URL(address);
    const jar = this.jars.get(origin) ?? new Map();
    this.jars.set(origin, jar);
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join("; ");
    const answer = await fetch((origin === PUBLIC ? comfyd.url : origin) + pathname + search, {
      redirect: "manual", ...options, headers: { ...(cookie ? { cookie } : {}), ...options.headers },
    });
    for (const set of answer.headers.getSetCookie()) {
      const [, name, value] = set.match(/^([^=]+)=([^;]*)/);
      if (/Max-Age=0|expires=Thu, 01 Jan 1970/i.test(set)) jar.delete(name);
      else jar.set(name, value);
    }
    return answer;
  }
  // Follows redirects until `isThere` says so, or a page comes.
  async follow(address, isThere = () => false) {
    for (let i = 0; i < 12; ++i) {
      if (isThere(address)) return { address };
      const answer = await this.ask(address);
      const to = answer.headers.get("location");
      if (!to) return { address, answer };
      address = new URL(to, address).href;
    }
    throw new Error("redirects without end");
  }
  submit(address, fields) {
    return this.ask(address, { method: "POST", body: new URLSearchParams(fields) });
  }
  // Through the provider's pages; the address by which it sends the browser back.
  async logInAtProvider(name, next = "/docs") {
    const isBack = (address) => address.startsWith(`${PUBLIC}/login/callback`);
    let page = await this.follow(`${PUBLIC}/login/oidc?next=${encodeURIComponent(next)}`, isBack);
    for (const fields of [{ prompt: "login", login: name, password: "any" }, { prompt: "consent" }]) {
      if (isBack(page.address)) break;
      const action = (await page.answer.text()).match(/action="([^"]+)"/)[1];
      const answer = await this.submit(new URL(action, page.address).href, fields);
      page = await this.follow(new URL(answer.headers.get("location"), page.address).href, isBack);
    }
    assert.ok(isBack(page.address), page.address);
    return page.address;
  }
}

const session = async (browser) => {
  const answer = await browser.ask(`${PUBLIC}/login/session`);
  return answer.status === 200 ? answer.json() : answer.status;
};

test("somebody logs in through the provider's pages, works, and logs out", async () => {
  const browser = new Browser();
  assert.equal(await session(browser), 401);
  const back = await browser.logInAtProvider("jo");
  const query = new URL(back).searchParams;
  assert.equal(query.get("iss"), issuer);
  const answer = await browser.ask(back);
  assert.equal(answer.status, 303, await answer.text());
  assert.equal(answer.headers.get("location"), "/docs");
  assert.deepEqual([...browser.jars.get(PUBLIC).keys()], ["__Host-comfyd"]);
  const own = await session(browser);
  assert.deepEqual([own.tenant, own.name, own.by], ["acme", "jo", "oidc"]);

  const submit = (headers) => browser.ask(`${PUBLIC}/v2/workflows/execute`, {
    method: "POST",
    headers,
    body: JSON.stringify({ workflow: {
      1: { class_type: "EmptyImage", inputs: { width: 8, height: 8, batch_size: 1, color: 1 } },
      2: { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "login" } },
    } }),
  });
  assert.equal((await submit({ Origin: PUBLIC })).status, 403);
  assert.equal((await submit({ Origin: PUBLIC, "X-CSRF-Token": own.csrf_token })).status, 202);

  const out = await browser.ask(`${PUBLIC}/logout`, {
    method: "POST", headers: { Origin: PUBLIC, "X-CSRF-Token": own.csrf_token },
  });
  const { end_session_url: end } = await out.json();
  assert.equal(await session(browser), 401);
  // The provider knows the hint, and sends the browser back after its own question.
  const page = await browser.ask(end);
  const text = await page.text();
  assert.equal(page.status, 200, text);
  const xsrf = text.match(/name="xsrf" value="([^"]+)"/)[1];
  const confirmed = await browser.submit(text.match(/action="([^"]+)"/)[1], { xsrf, logout: "yes" });
  assert.equal(new URL(confirmed.headers.get("location")).href.split("?")[0], `${PUBLIC}/login`);
});

test("what the provider sends back is good once, in that browser, as it is", async () => {
  const browser = new Browser();
  const back = await browser.logInAtProvider("eve");
  const elsewhere = new Browser();
  assert.equal((await elsewhere.ask(back)).status, 401);
  await elsewhere.logInAtProvider("mallory"); // with a login of its own begun
  assert.equal((await elsewhere.ask(back)).status, 401);
  const changed = new URL(back);
  changed.searchParams.set("state", changed.searchParams.get("state").replace(/.$/, (c) => (c === "A" ? "E" : "A")));
  assert.equal((await browser.ask(changed.href)).status, 401);
  assert.equal((await browser.ask(back)).status, 303);
  const cookies = new Map(browser.jars.get(PUBLIC));
  assert.equal((await browser.ask(back)).status, 401, "a second time");
  assert.deepEqual(browser.jars.get(PUBLIC), cookies, "the session of before is still there");
  assert.equal((await session(browser)).name, "eve");
});

test("an answer in another provider's name is refused, and uses the login up", async () => {
  const browser = new Browser();
  const back = await browser.logInAtProvider("jo");
  const other = new URL(back);
  other.searchParams.set("iss", "https://id.evil.example");
  assert.equal((await browser.ask(other.href)).status, 401);
  assert.equal((await browser.ask(back)).status, 401);
});

test("the user says no", async () => {
  const browser = new Browser();
  const start = await browser.follow(`${PUBLIC}/login/oidc`);
  const abort = (await start.answer.text()).match(/href="([^"]+abort)"/)[1];
  const back = await browser.follow(new URL(abort, start.address).href, (a) => a.startsWith(PUBLIC));
  const answer = await browser.ask(back.address);
  assert.equal(answer.status, 401);
  assert.match(await answer.text(), /access_denied/);
  assert.equal(await session(browser), 401);
});

test("a login leads to no other site", async () => {
  for (const next of ["//evil.example", "https://evil.example/", "/\\evil.example", "javascript:1"]) {
    const browser = new Browser();
    const answer = await browser.ask(await browser.logInAtProvider("jo", next));
    assert.equal(answer.headers.get("location"), "/", next);
  }
});

test("a login ends the session that the browser had", async () => {
  const browser = new Browser();
  await browser.ask(await browser.logInAtProvider("jo"));
  const before = browser.jars.get(PUBLIC).get("__Host-comfyd");
  await browser.ask(await browser.logInAtProvider("jo"));
  const now = browser.jars.get(PUBLIC).get("__Host-comfyd");
  assert.notEqual(now, before);
  browser.jars.get(PUBLIC).set("__Host-comfyd", before);
  assert.equal(await session(browser), 401);
});
