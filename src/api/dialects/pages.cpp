#include "api/dialects/pages.hpp"

namespace comfyd::api {

const std::string_view kLandingPage = R"html(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>comfyd</title>
<style>
:root { color-scheme: light dark; }
body { font: 16px/1.6 system-ui, sans-serif; max-width: 44rem; margin: 3rem auto; padding: 0 1.2rem; }
h1 { font-weight: 650; letter-spacing: -0.02em; margin-bottom: 0; }
code { font: 0.92em ui-monospace, monospace; }
pre { padding: 1rem; border-radius: 8px; overflow-x: auto; background: color-mix(in srgb, currentColor 7%, transparent); }
li { margin: 0.25rem 0; }
a { color: light-dark(#0b57d0, #8ab4f8); }
</style>
</head>
<body>
<h1>comfyd</h1>
<p>One serverless API over any set of ComfyUI machines.</p>
<h2>Start here</h2>
<ul>
<li><a href="/ui/">/ui/</a>: the dashboard</li>
<li><a href="/docs">/docs</a>: every operation, to read and search</li>
<li><a href="/openapi.json">/openapi.json</a>: the same for programs</li>
<li><a href="/readyz">/readyz</a>: can it take jobs now?</li>
<li><a href="/metrics">/metrics</a>: numbers for Prometheus</li>
</ul>
<h2>APIs</h2>
<ul>
<li><code>/api/v2/jobs</code>, <code>/api/v2/assets</code>: Comfy API v2, spoken by ComfyUI's client libraries</li>
<li><code>/v1/workflows</code>, <code>/v2/workflows</code>: executions with callbacks and WebSockets</li>
<li><code>/comfyui/execute</code>: one call, synchronous or not</li>
<li><code>/api/v1/tasks</code>, <code>/api/v1/workers</code>: task queue and workers</li>
</ul>
<h2>First job</h2>
<pre><code>curl -s -X POST -H 'Content-Type: application/json' \
  -d '{"workflow": { … API format … }}' \
  http://localhost:8080/api/v2/jobs</code></pre>
</body>
</html>
)html";

const std::string_view kDocsPage = R"html(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>comfyd API</title>
<style>
:root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 18%, transparent);
  --soft: color-mix(in srgb, currentColor 6%, transparent); }
* { box-sizing: border-box; }
body { font: 15px/1.55 system-ui, sans-serif; margin: 0 auto; max-width: 60rem; padding: 1.5rem 1.2rem 5rem; }
header { display: flex; flex-wrap: wrap; gap: 0.5rem 1rem; align-items: baseline; }
h1 { margin: 0; font-size: 1.6rem; letter-spacing: -0.02em; }
h2 { margin: 2rem 0 0.6rem; font-size: 1.1rem; text-transform: capitalize; }
h3 { margin: 1rem 0 0.3rem; font-size: 0.8rem; text-transform: uppercase; letter-spacing: 0.06em; opacity: 0.7; }
input { font: inherit; width: 100%; padding: 0.5rem 0.8rem; margin: 1rem 0 0; border: 1px solid var(--line); border-radius: 8px; background: transparent; color: inherit; }
details { border: 1px solid var(--line); border-radius: 8px; margin: 0.4rem 0; }
summary { display: flex; flex-wrap: wrap; gap: 0.3rem 0.8rem; align-items: baseline; padding: 0.5rem 0.8rem; cursor: pointer; }
summary:hover { background: var(--soft); }
.body { padding: 0 0.9rem 0.9rem; }
.method { font: 600 0.75rem ui-monospace, monospace; min-width: 4.2rem; text-align: center; padding: 0.1rem 0; border-radius: 4px; color: #fff; background: #5f6368; }
.get { background: #1a73e8; } .post { background: #188038; } .delete { background: #c5221f; } .put, .patch { background: #b06000; }
.path { font: 0.9rem ui-monospace, monospace; }
.what { opacity: 0.75; }
.open { font-size: 0.75rem; opacity: 0.6; margin-left: auto; }
table { border-collapse: collapse; width: 100%; }
td { border-top: 1px solid var(--line); padding: 0.3rem 0.6rem 0.3rem 0; vertical-align: top; }
td:first-child { font-family: ui-monospace, monospace; white-space: nowrap; font-size: 0.88rem; }
pre { margin: 0; padding: 0.8rem; border-radius: 6px; background: var(--soft); overflow-x: auto; font: 0.82rem/1.5 ui-monospace, monospace; }
</style>
</head>
<body>
<header><h1>comfyd API</h1><span class="what" id="version"></span></header>
<p id="about" class="what">Loading <a href="/openapi.json">/openapi.json</a> …</p>
<input id="filter" type="search" placeholder="Filter by path, method or words" aria-label="Filter">
<main id="main"></main>
<script>
"use strict";
const make = (tag, className, text) => {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
};
let schemas = {};
const resolve = (schema, depth) => {
  if (schema === null || typeof schema !== "object") return schema;
  if (schema.$ref) {
    const name = schema.$ref.split("/").pop();
    return depth > 3 ? name : resolve(schemas[name] || name, depth + 1);
  }
  if (schema.allOf && schema.allOf.length === 1) return resolve(schema.allOf[0], depth);
  if (schema.type === "array") return [resolve(schema.items || {}, depth + 1)];
  if (schema.properties) {
    const shown = {};
    for (const [key, value] of Object.entries(schema.properties)) {
      const required = (schema.required || []).includes(key);
      shown[required ? key : key + "?"] = resolve(value, depth + 1);
    }
    return shown;
  }
  const notes = [schema.type || "any"];
  if (schema.format) notes.push(schema.format);
  if (schema.enum) notes.push(schema.enum.join(" | "));
  if (schema.minimum !== undefined || schema.maximum !== undefined)
    notes.push((schema.minimum ?? "") + ".." + (schema.maximum ?? ""));
  if (schema.nullable) notes.push("or null");
  return notes.join(" ");
};
const showContent = (parent, content) => {
  for (const [type, media] of Object.entries(content || {})) {
    parent.append(make("div", "what", type));
    const shown = resolve(media.schema || {}, 0);
    if (typeof shown === "object") parent.append(make("pre", "", JSON.stringify(shown, null, 2)));
  }
};
const showOperation = (path, method, operation, components) => {
  const details = make("details");
  const summary = make("summary");
  summary.append(make("span", "method " + method, method.toUpperCase()), make("span", "path", path),
    make("span", "what", operation.summary || ""));
  if (operation.security && operation.security.length === 0) summary.append(make("span", "open", "no key needed"));
  const body = make("div", "body");
  if (operation.description) body.append(make("p", "", operation.description));
  if (operation.parameters && operation.parameters.length) {
    body.append(make("h3", "", "Parameters"));
    const table = make("table");
    for (const parameter of operation.parameters) {
      const row = make("tr");
      row.append(make("td", "", parameter.name), make("td", "what", parameter.in + (parameter.required ? ", required" : "")),
        make("td", "", [resolve(parameter.schema || {}, 0), parameter.description].filter(Boolean).join(". ")));
      table.append(row);
    }
    body.append(table);
  }
  if (operation.requestBody) {
    body.append(make("h3", "", "Body"));
    showContent(body, operation.requestBody.content);
  }
  body.append(make("h3", "", "Answers"));
  for (let [status, response] of Object.entries(operation.responses || {})) {
    if (response.$ref) response = (components.responses || {})[response.$ref.split("/").pop()] || {};
    body.append(make("div", "", status + ": " + (response.description || "")));
    if (status.startsWith("2")) showContent(body, response.content);
  }
  details.append(summary, body);
  details.dataset.words = [path, method, operation.summary, operation.description, operation.operationId].join(" ").toLowerCase();
  return details;
};
fetch("openapi.json").then((response) => response.json()).then((api) => {
  schemas = (api.components || {}).schemas || {};
  document.getElementById("version").textContent = "version " + api.info.version;
  document.getElementById("about").textContent = api.info.description || "";
  const groups = new Map();
  for (const [path, item] of Object.entries(api.paths)) {
    for (const [method, operation] of Object.entries(item)) {
      const tag = (operation.tags || ["other"])[0];
      if (!groups.has(tag)) groups.set(tag, []);
      groups.get(tag).push(showOperation(path, method, operation, api.components || {}));
    }
  }
  const main = document.getElementById("main");
  for (const [tag, operations] of groups) {
    const section = make("section");
    section.append(make("h2", "", tag), ...operations);
    main.append(section);
  }
  document.getElementById("filter").addEventListener("input", (event) => {
    const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const section of main.children) {
      let any = false;
      for (const details of section.querySelectorAll("details")) {
        details.hidden = !words.every((word) => details.dataset.words.includes(word));
        any = any || !details.hidden;
      }
      section.hidden = !any;
    }
  });
}).catch((error) => { document.getElementById("about").textContent = "The API description could not be read: " + error; });
</script>
</body>
</html>
)html";

}  // namespace comfyd::api
