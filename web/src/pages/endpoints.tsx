// The endpoints of a tenant, which are told of all its jobs: a part of the page of webhooks.
import { changed } from "../address";
import { get, patch, post, remove } from "../api";
import { Live } from "../live";
import { Cell, Empty, Loaded, State } from "../parts";
import { may } from "../session";
import { confirm, say, tell } from "../talk";
import type { Endpoint } from "../types";
import { Fragment, h, redraw, type Content } from "../view";

const kPath = "/v2/webhooks/endpoints";
const kEveryMs = 10_000;

interface Tested {
  delivered: boolean;
  status: number | null;
  error: string | null;
}

interface Part {
  all: () => Endpoint[]; // as far as they are known
  view: () => Content;
  stop: () => void;
}

export function endpointsPart(): Part {
  const list = new Live(() => get<{ endpoints: Endpoint[] }>(kPath), kEveryMs);
  let made: (Endpoint & { secret: string }) | undefined; // its secret is shown this once

  const add = async (form: HTMLFormElement): Promise<void> => {
    const { url, description } = Object.fromEntries(new FormData(form));
    const answer = await post<Endpoint & { secret: string }>(kPath, { url, description });
    if (!tell(answer, "It is told of all jobs from now on.")) return;
    made = answer.value;
    form.reset();
    await list.again();
  };
  const test = async (endpoint: Endpoint): Promise<void> => {
    const answer = await post<Tested>(`${kPath}/${endpoint.id}/test`);
    if (answer.failure) return void tell(answer, "");
    const { delivered, status, error } = answer.value;
    say(delivered ? `It took the sample (HTTP ${status}).` : `It did not take the sample: ${error ?? `HTTP ${status}`}`, !delivered);
  };
  const enable = async (endpoint: Endpoint, enabled: boolean): Promise<void> => {
    tell(await patch(`${kPath}/${endpoint.id}`, { enabled }), enabled ? "It is told of jobs again." : "It is told of nothing any more.");
    await list.again();
  };
  const away = async (endpoint: Endpoint): Promise<void> => {
    const isWanted = await confirm({
      title: "Remove this endpoint?",
      text: `${endpoint.url} is told of nothing any more, and what waits for it becomes dead letters. Its secret is gone.`,
      action: "Remove",
      isGrave: true,
    });
    if (!isWanted) return;
    tell(await remove(`${kPath}/${endpoint.id}`), "It is removed.");
    if (made?.id === endpoint.id) made = undefined;
    await list.again();
  };

  const actions = (endpoint: Endpoint): Content => (
    <Fragment>
      <button onclick={() => void test(endpoint)}>Test</button>
      <button onclick={() => void enable(endpoint, !endpoint.enabled)}>{endpoint.enabled ? "Disable" : "Enable"}</button>
      <button onclick={() => void away(endpoint)}>Remove</button>
    </Fragment>
  );
  const view = (): Content => (
    <section>
      <h2>Endpoints</h2>
      <Loaded from={list} show={({ endpoints }) => <Endpoints of={endpoints} actions={may("jobs:write") ? actions : undefined} />} />
      {made && (
        <p class="note">
          The secret of {made.url}, shown this once: <code>{made.secret}</code>{" "}
          <button onclick={() => {
            made = undefined;
            redraw();
          }}>I have it</button>
        </p>
      )}
      {may("jobs:write") && (
        <details class="add">
          <summary>Add an endpoint</summary>
          <form onsubmit={(event) => {
            event.preventDefault();
            void add(event.target as HTMLFormElement);
          }}>
            <label>Address <input type="url" name="url" required placeholder="https://" /></label>
            <label>Description <input name="description" maxlength="200" /></label>
            <button class="main">Add</button>
          </form>
        </details>
      )}
    </section>
  );
  return { all: () => list.value?.endpoints ?? [], view, stop: () => list.stop() };
}

function Endpoints({ of, actions }: { of: Endpoint[]; actions?: ((endpoint: Endpoint) => Content) | undefined }): Content {
  if (of.length === 0) return <Empty>No endpoint is told of all jobs. Jobs may bring webhooks of their own.</Empty>;
  return (
    <table class="rows">
      <thead><tr><th>State</th><th>Address</th><th>Events</th><th><span class="hidden">Actions</span></th></tr></thead>
      <tbody>
        {of.map((one) => (
          <tr key={one.id}>
            <Cell of="State"><State of={one.enabled ? "enabled" : "disabled"} /></Cell>
            <Cell of="Address" class="wide">
              <a href={changed({ receiver: one.id, cursor: undefined })} title="Its deliveries">{one.url}</a>
              {one.description && <div class="soft">{one.description}</div>}
              {!one.enabled && <div class="trouble">{one.disabled_reason}</div>}
            </Cell>
            <Cell of="Events" class="wide soft">{one.events.join(", ") || "ends of jobs"}</Cell>
            <td class="act">{actions?.(one)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
