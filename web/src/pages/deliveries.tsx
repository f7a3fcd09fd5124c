// Deliveries of webhooks as rows, and what can be done with those that were given up.
import { to } from "../address";
import { post, remove } from "../api";
import { kUnknown } from "../format";
import { Cell, JobLink, State, When } from "../parts";
import { confirm, tell } from "../talk";
import type { Delivery, Endpoint } from "../types";
import { h, type Content } from "../view";

const pathOf = (delivery: Delivery): string => `/v2/webhooks/deliveries/${encodeURIComponent(delivery.id)}`;

// True: it was done.
export async function replay(delivery: Delivery): Promise<boolean> {
  return tell(await post(`${pathOf(delivery)}/replay`), "It is sent again now.");
}

export async function purge(delivery: Delivery): Promise<boolean> {
  const isWanted = await confirm({
    title: "Throw this dead letter away?",
    text: `${delivery.event} to ${targetOf(delivery)} will not be told to anybody. This cannot be undone.`,
    action: "Throw away",
    isGrave: true,
  });
  return isWanted && tell(await remove(pathOf(delivery)), "It is gone.");
}

export function targetOf(delivery: Delivery, endpoints: Endpoint[] = []): string {
  const endpoint = endpoints.find((one) => one.id === delivery.receiver);
  return delivery.url ?? endpoint?.url ?? (delivery.receiver === "job" ? "the job's own webhook" : delivery.receiver);
}

export function lastAnswer(delivery: Delivery): string {
  const last = delivery.log.at(-1);
  if (!last) return kUnknown;
  return last.status === null ? "no answer" : `HTTP ${last.status}`;
}

export function DeliveryTable({ deliveries, gone = new Set(), actions }: {
  deliveries: Delivery[];
  gone?: Set<string>; // are no longer what the list is about
  actions?: (delivery: Delivery) => Content;
}): Content {
  return (
    <table class="rows">
      <thead>
        <tr>
          <th>Event</th><th>To</th><th>Last answer, reason</th><th class="number">Tries</th><th>When</th>
          {actions && <th><span class="hidden">Actions</span></th>}
        </tr>
      </thead>
      <tbody>
        {deliveries.map((one) => (
          <tr key={one.id} class={gone.has(one.id) ? "gone" : ""}>
            <Cell of="Event">
              <a href={to(`/webhooks/deliveries/${encodeURIComponent(one.id)}`)}>{one.event}</a>
              <div><State of={gone.has(one.id) ? "moved on" : one.state} /></div>
            </Cell>
            <Cell of="To" class="to">
              <span class="cut" title={targetOf(one)}>{targetOf(one)}</span>
              <div class="soft">job <JobLink id={one.execution_id} /></div>
            </Cell>
            <Cell of="Last answer" class="wide">{lastAnswer(one)} <Reason of={one} /></Cell>
            <Cell of="Tries" class="number">{one.attempts}</Cell>
            <Cell of="When"><When at={one.ended_at ?? one.log.at(-1)?.at ?? one.created_at} /></Cell>
            {actions && <td class="act">{!gone.has(one.id) && actions(one)}</td>}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Reason({ of: delivery }: { of: Delivery }): Content {
  if (delivery.state === "delivered") return null;
  const next = delivery.state === "pending" && delivery.next_attempt_at;
  return <div class="soft">{delivery.error} {next && <span>next try <When at={next} /></span>}</div>;
}
