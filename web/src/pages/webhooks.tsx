// Who is told of jobs, what became of it, and what to do with what nobody took.
import { changed, go, to, type Place } from "../address";
import { get, post } from "../api";
import { count, plural } from "../format";
import { Live } from "../live";
import type { Page } from "../page";
import { Empty, Heading, Loaded, Newer } from "../parts";
import { Still } from "../still";
import { may } from "../session";
import { confirm, say, tell } from "../talk";
import type { Counted, Delivery, DeliveryList, Endpoint } from "../types";
import { Fragment, h, type Content } from "../view";
import { DeliveryTable, purge, replay } from "./deliveries";
import { endpointsPart } from "./endpoints";

const kEveryMs = 5000;
const kPage = "50";
const filters = [
  ["", "Dead letters"],
  ["pending", "Waiting"],
  ["delivered", "Delivered"],
  ["all", "All"],
] as const;

export function webhooksPage({ query }: Place): Page {
  const state = query.get("state") ?? "";
  const receiver = query.get("receiver") ?? "";
  const job = query.get("job") ?? "";
  const tenants = query.get("tenants") === "all" && may("admin") ? "true" : "";
  const cursor = query.get("cursor") ?? "";
  let isActing = false;

  const endpoints = endpointsPart();
  const still = new Still<Delivery>((delivery) => delivery.id);
  const list = new Live(
    () => get<DeliveryList>("/v2/webhooks/deliveries", {
      state: state === "all" ? "" : state || "dead", receiver, execution_id: job, all_tenants: tenants, cursor, limit: kPage,
    }),
    kEveryMs,
    (page) => still.take(page.deliveries, page.next_cursor !== null),
  );

  const busy = async (work: () => Promise<unknown>): Promise<void> => {
    if (isActing) return;
    isActing = true;
    await work();
    isActing = false;
    still.renew();
    void list.again();
  };

  // All that match what stands in the address: first how many, then the question, then the deed.
  const toAll = async (verb: "replay" | "purge"): Promise<void> => {
    const path = `/v2/webhooks/deliveries/${verb}${tenants ? "?all_tenants=true" : ""}`;
    const filter = { ...(receiver ? { receiver } : {}), ...(job ? { execution_id: job } : {}) };
    const counted = await post<Counted>(path, { ...filter, dry_run: true });
    if (counted.failure) return void tell(counted, "");
    const { matching, more } = counted.value;
    if (matching === 0) return say("There are none any more.");
    const number = `${more ? "more than " : ""}${plural(matching, "dead letter")}`;
    const isReplay = verb === "replay";
    const isWanted = await confirm({
      title: isReplay ? `Send ${number} again?` : `Throw ${number} away?`,
      text: isReplay
        ? "Each keeps its id and has all its tries to go. Receivers that are still away will make dead letters of them again."
        : "Nobody will be told of them. This cannot be undone.",
      action: `${isReplay ? "Replay" : "Throw away"} ${more ? "all" : count(matching)}`,
      isGrave: !isReplay,
      number: matching,
    });
    if (!isWanted) return;
    const done = await post<{ replayed?: number; purged?: number }>(path, filter);
    tell(done, (value) => (isReplay ? `${plural(value.replayed ?? 0, "message")} to be sent again.` : `${plural(value.purged ?? 0, "dead letter")} thrown away.`));
  };

  const letterActions = (delivery: Delivery): Content => delivery.state === "dead" && (
    <Fragment>
      <button onclick={() => void busy(() => replay(delivery))}>Replay</button>
      <button onclick={() => void busy(() => purge(delivery))}>Throw away</button>
    </Fragment>
  );

  const view = (): Content => (
    <Fragment>
      <Heading title="Webhooks" />
      {endpoints.view()}
      <section>
        <h2>Deliveries</h2>
        <Filters {...{ state, receiver, job, tenants }} endpoints={endpoints.all()} />
        <div class="actions">
          {state === "" && still.rows.length > 0 && may("jobs:write") && (
            <Fragment>
              <button class="main" onclick={() => void busy(() => toAll("replay"))}>Replay all…</button>
              <button onclick={() => void busy(() => toAll("purge"))}>Throw all away…</button>
              {(receiver || job) && <span class="soft">that match the filter</span>}
            </Fragment>
          )}
          {!cursor && <Newer than={still} word={state === "" ? "dead letter" : "one"} list={list} />}
        </div>
        <Loaded from={list} show={(page) => (
          <Fragment>
            {still.rows.length > 0
              ? <DeliveryTable deliveries={still.rows} gone={still.gone} {...(may("jobs:write") ? { actions: letterActions } : {})} />
              : <None state={state} isFiltered={!!(receiver || job || cursor)} hasMore={!!page.next_cursor} />}
            {!may("jobs:write") && <p class="soft">To replay or throw away you need the scope jobs:write.</p>}
            <nav class="pager" aria-label="Pages">
              {cursor && <a href={changed({ cursor: undefined })}>Newest</a>}
              {page.next_cursor && <a rel="next" href={changed({ cursor: page.next_cursor })}>Older</a>}
            </nav>
          </Fragment>
        )} />
      </section>
    </Fragment>
  );
  return {
    title: "Webhooks",
    view,
    stop: () => {
      endpoints.stop();
      list.stop();
    },
  };
}

function None({ state, isFiltered, hasMore }: { state: string; isFiltered: boolean; hasMore: boolean }): Content {
  if (hasMore) return <Empty>None among the latest; older ones may be there.</Empty>;
  if (isFiltered) return <Empty>None is like that. <a href={to("/webhooks", { state })}>Without the filter</a></Empty>;
  return <Empty>{state === "" ? "No dead letters: whoever wanted to hear of jobs has heard of them." : "None."}</Empty>;
}

interface Filter {
  state: string;
  receiver: string;
  job: string;
  tenants: string;
  endpoints: Endpoint[];
}

function Filters({ state, receiver, job, tenants, endpoints }: Filter): Content {
  const isKnown = receiver === "" || receiver === "job" || endpoints.some((one) => one.id === receiver);
  return (
    <div class="filters">
      <nav class="tabs" aria-label="State">
        {filters.map(([value, name]) => (
          <a key={value} href={changed({ state: value, cursor: undefined })} aria-current={value === state ? "true" : undefined}>{name}</a>
        ))}
      </nav>
      <form role="search" onsubmit={(event) => {
        event.preventDefault();
        const wanted = new FormData(event.target as HTMLFormElement).get("job");
        go(changed({ job: String(wanted ?? "").trim(), cursor: undefined }));
      }}>
        <label>
          Receiver{" "}
          <select value={receiver} onchange={(event) => go(changed({ receiver: event.target.value, cursor: undefined }))}>
            <option value="">all</option>
            <option value="job">webhooks of jobs</option>
            {endpoints.map((one) => <option key={one.id} value={one.id}>{one.description || one.url}</option>)}
            {!isKnown && <option value={receiver}>{receiver}</option>}
          </select>
        </label>
        <label>Job <input type="search" name="job" value={job} placeholder="any id" /></label>
        <button>Filter</button>
        {may("admin") && (
          <label class="check">
            <input type="checkbox" checked={tenants !== ""} onchange={(event) =>
              go(changed({ tenants: (event.target as HTMLInputElement).checked ? "all" : undefined, cursor: undefined }))} />
            all tenants
          </label>
        )}
      </form>
    </div>
  );
}
