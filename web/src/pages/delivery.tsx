// One delivery: what is sent, to whom, and what came of each try.
import { go, to, type Place } from "../address";
import { get } from "../api";
import { duration, exact } from "../format";
import { Live } from "../live";
import type { Page } from "../page";
import { Cell, Facts, Heading, JobLink, Loaded, State, When } from "../parts";
import { may } from "../session";
import type { Delivery } from "../types";
import { Fragment, h, type Content } from "../view";
import { lastAnswer, purge, replay, targetOf } from "./deliveries";

const kEveryMs = 2000;

export function deliveryPage(_: Place, id: string): Page {
  const delivery = new Live(
    () => get<Delivery>(`/v2/webhooks/deliveries/${encodeURIComponent(id)}`),
    (read) => (read?.state === "pending" ? kEveryMs : 0),
  );
  const again = async (shown: Delivery): Promise<void> => {
    if (await replay(shown)) void delivery.again();
  };
  const away = async (shown: Delivery): Promise<void> => {
    if (await purge(shown)) go(to("/webhooks"));
  };
  const actions = (shown: Delivery): Content => {
    if (shown.state !== "dead") return null;
    if (!may("jobs:write")) return <span class="soft">To replay or throw away you need the scope jobs:write</span>;
    return (
      <Fragment>
        <button class="main" onclick={() => void again(shown)}>Replay</button>
        <button onclick={() => void away(shown)}>Throw away</button>
      </Fragment>
    );
  };
  const view = (): Content => (
    <Fragment>
      <p class="crumb"><a href={to("/webhooks")}>Webhooks</a></p>
      <Loaded from={delivery} show={(shown) => (
        <Fragment>
          <Heading title={<Fragment>{shown.event} <State of={shown.state} /></Fragment>}>{actions(shown)}</Heading>
          {shown.state === "dead" && (
            <section class="problem" aria-label="Why it was given up"><strong>{lastAnswer(shown)}</strong><p>{shown.error}</p></section>
          )}
          <Facts of={factsOf(shown)} />
          <Log of={shown} />
          <Letter of={shown} />
        </Fragment>
      )} />
    </Fragment>
  );
  return { title: "Delivery", view, stop: () => delivery.stop() };
}

function factsOf(delivery: Delivery): [string, Content][] {
  const facts: [string, Content][] = [
    ["To", <code>{targetOf(delivery)}</code>],
    ["Receiver", delivery.receiver === "job" ? "the webhook that came with the job" : <code>{delivery.receiver}</code>],
    ["Job", <JobLink id={delivery.execution_id} />],
    ["Tries", delivery.attempts],
    ["First due", <When at={delivery.created_at} />],
  ];
  if (delivery.next_attempt_at) facts.push(["Next try", <When at={delivery.next_attempt_at} />]);
  if (delivery.ended_at) facts.push(["Ended", <When at={delivery.ended_at} />]);
  facts.push(["Id", <code>{delivery.id}</code>]);
  return facts;
}

function Log({ of: delivery }: { of: Delivery }): Content {
  if (delivery.log.length === 0) return <section><h2>Tries</h2><p class="soft">None yet.</p></section>;
  return (
    <section>
      <h2>Tries{delivery.attempts > delivery.log.length ? ` (the latest ${delivery.log.length})` : ""}</h2>
      <table class="rows">
        <thead><tr><th>At</th><th>Answer</th><th class="number">Took</th><th>What came of it</th></tr></thead>
        <tbody>
          {delivery.log.toReversed().map((one) => (
            <tr key={one.at}>
              <Cell of="At"><time datetime={one.at}>{exact(one.at)}</time></Cell>
              <Cell of="Answer">{one.status === null ? "no answer" : `HTTP ${one.status}`}</Cell>
              <Cell of="Took" class="number">{duration(one.duration_ms / 1000)}</Cell>
              <Cell of="What came of it" class="wide">{one.error ?? "taken"}</Cell>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

// As the next try would send it: the body is the same each time, the time and the signature are not.
function Letter({ of: delivery }: { of: Delivery }): Content {
  if (!delivery.request) {
    return <section><h2>What is sent</h2><p class="soft">It cannot be shown: the receiver or the job is gone, it is no webhook, or it is another tenant's.</p></section>;
  }
  const { method, url, headers, body } = delivery.request;
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return (
    <section>
      <h2>What is sent</h2>
      <p class="soft">Signatures and the values of your own headers are not shown.</p>
      <pre tabindex="0" aria-label="Headers">{[`${method} ${url}`, ...head].join("\n")}</pre>
      <pre tabindex="0" aria-label="Body">{readable(body)}</pre>
    </section>
  );
}

function readable(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}
