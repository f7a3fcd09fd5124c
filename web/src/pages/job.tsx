// One job: what it is at, what it made, why it waits or failed, and what can be done.
import { to, type Place } from "../address";
import { get, post } from "../api";
import { bytes, duration, exact, plural, short } from "../format";
import { Live } from "../live";
import type { Page } from "../page";
import { Cell, Facts, Heading, JobLink, Loaded, Problem, State, When } from "../parts";
import { may } from "../session";
import { confirm, tell } from "../talk";
import type { Attempt, Delivery, DeliveryList, Explanation, Failing, Job, Output } from "../types";
import { Fragment, h, type Content } from "../view";
import { DeliveryTable } from "./deliveries";
import { nameOf, Progress, ran, waited } from "./jobs";

const kEveryMs = 1500;

const isOpen = (job: Job | undefined): boolean => !job || job.status === "queued" || job.status === "processing";

export function jobPage(_: Place, id: string): Page {
  const path = `/v2/workflows/execution/${encodeURIComponent(id)}`;
  const job = new Live(() => get<Job>(path), (read) => (isOpen(read) ? kEveryMs : 0));
  const why = new Live(
    () => get<Explanation>(`${path}/explain`),
    () => (job.value && job.value.status !== "queued" ? 0 : kEveryMs),
  );
  const told = new Live(
    () => get<DeliveryList>("/v2/webhooks/deliveries", { execution_id: id }),
    (read) => (isOpen(job.value) || read?.deliveries.some((one) => one.state === "pending") ? 2 * kEveryMs : 0),
  );
  const all = [job, why, told];
  let isActing = false;

  const act = async (verb: "cancel" | "retry"): Promise<void> => {
    if (isActing) return;
    isActing = true;
    const answer = await post<Job>(`${path}/${verb}`);
    isActing = false;
    tell(answer, (now) => {
      if (verb === "retry") return "The job waits for its turn again.";
      if (now.status === "cancelled") return "The job is cancelled.";
      return isOpen(now) ? "The worker is asked to stop." : `It had ended before: ${now.status}.`;
    });
    for (const one of all) void one.again();
  };
  const cancel = async (): Promise<void> => {
    const text = "What it has made so far may be lost. It can be run again later.";
    if (await confirm({ title: "Cancel this job?", text, action: "Cancel the job", isGrave: true })) await act("cancel");
  };

  const actions = (shown: Job): Content => {
    if (!may("jobs:write")) return <span class="soft">To cancel or retry you need the scope jobs:write</span>;
    if (isOpen(shown)) return <button disabled={shown.cancel_requested} onclick={cancel}>Cancel</button>;
    return shown.status !== "completed" && <button class="main" onclick={() => void act("retry")}>Run again</button>;
  };

  const view = (): Content => (
    <Fragment>
      <p class="crumb"><a href={to("/jobs")}>Jobs</a></p>
      <Loaded from={job} show={(shown) => (
        <Fragment>
          <Heading title={<Fragment>{nameOf(shown) ?? `Job ${short(id)}`} <State of={shown.status} /></Fragment>}>{actions(shown)}</Heading>
          {shown.status === "processing" && <p><Progress of={shown} /></p>}
          {shown.cancel_requested && isOpen(shown) && <p class="soft">It was asked to stop.</p>}
          {shown.error && <Failed error={shown.error} />}
          {shown.status === "queued" && why.value && <Waiting why={why.value} />}
          <Outputs of={shown.result?.outputs ?? []} />
          <Facts of={factsOf(shown, id)} />
          {shown.attempts && shown.attempts.length > 0 && <Attempts of={shown.attempts} />}
          <Told from={told} />
        </Fragment>
      )} />
    </Fragment>
  );
  return { title: `Job ${short(id)}`, view, stop: () => all.forEach((one) => one.stop()) };
}

function factsOf(job: Job, id: string): [string, Content][] {
  const facts: [string, Content][] = [
    ["Id", <code>{id}</code>],
    ["Submitted", <span>{exact(job.submitted_at)} (<When at={job.submitted_at} />)</span>],
    ["Waited", duration(waited(job))],
    ["Ran", duration(ran(job))],
    ["Worker", job.worker ?? "none yet"],
    ["Priority", job.priority],
    ["Retries", job.retry_count],
  ];
  if (job.reused_from) facts.push(["Outputs of", <JobLink id={job.reused_from} />]);
  if (Object.keys(job.metadata).length > 0) facts.push(["Metadata", <code>{JSON.stringify(job.metadata)}</code>]);
  return facts;
}

function Failed({ error }: { error: Failing }): Content {
  const node = error.node_id && `in node ${error.node_id}${error.class_type ? ` (${error.class_type})` : ""}`;
  const { advice, suggested_action: action } = error.details;
  return (
    <section class="problem" aria-label="Why it failed">
      <strong>{[(error.cause ?? error.code).replaceAll("_", " "), node].filter(Boolean).join(" ")}</strong>
      <p>{error.message}</p>
      {(advice || action) && <p class="advice">What to do: {advice ?? action?.replaceAll("_", " ")}</p>}
      {error.traceback && <details><summary>Traceback</summary><pre tabindex="0">{error.traceback}</pre></details>}
    </section>
  );
}

function Waiting({ why }: { why: Explanation }): Content {
  const wait = why.expected_wait_seconds;
  return (
    <section>
      <h2>Why it waits</h2>
      <ul>{why.reasons.map((reason) => <li key={reason}>{reason}</li>)}</ul>
      {why.queue_position !== undefined && (
        <p>
          Place {why.queue_position} in the queue{why.class ? `, class ${why.class}` : ""};{" "}
          {wait === null || wait === undefined ? "nobody can say when it starts" : `about ${duration(wait)} to go`}.
        </p>
      )}
      {why.advice.length > 0 && <ul class="advice">{why.advice.map((advice) => <li key={advice}>{advice}</li>)}</ul>}
      {why.workers && why.workers.length > 0 && (
        <table class="rows">
          <thead><tr><th>Worker</th><th>Can run it</th><th class="number">Busy for</th><th class="number">Would load for</th></tr></thead>
          <tbody>
            {why.workers.map((one) => (
              <tr key={one.worker}>
                <Cell of="Worker">{one.worker}</Cell>
                <Cell of="Can run it" class="wide">{one.capable ? one.reason || "yes" : `no: ${one.reason}`}</Cell>
                <Cell of="Busy for" class="number">{duration(one.busy_seconds)}</Cell>
                <Cell of="Would load for" class="number">{duration(one.load_seconds)}</Cell>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

export const contentOf = (asset: string): string => `/api/v2/assets/${asset}/content`;

function Outputs({ of }: { of: Output[] }): Content {
  if (of.length === 0) return null;
  return (
    <section>
      <h2>{plural(of.length, "output")}</h2>
      <ul class="gallery">{of.map((output) => <li key={output.asset_id}><OneOutput of={output} /></li>)}</ul>
    </section>
  );
}

function OneOutput({ of: output }: { of: Output }): Content {
  const { width, height } = output.media ?? {};
  const size = [width && height ? `${width} × ${height}` : "", bytes(output.size_bytes)].filter(Boolean).join(", ");
  const address = contentOf(output.asset_id);
  if (output.expired) return <div class="tile"><span class="plate">removed when its time was over</span><span>{output.name}</span></div>;
  return (
    <a class="tile" href={address} target="_blank" rel="noopener">
      {output.type === "image" ? <Picture of={output} /> : <span class="plate">{output.type}</span>}
      <span class="cut">{output.name}</span>
      <span class="soft">{size}</span>
    </a>
  );
}

// A picture that cannot be shown here (kept in a bucket of another address, say) is still a link.
export function Picture({ of: output }: { of: Output }): Content {
  const small = output.thumbnails?.find((one) => Math.max(one.width, one.height) >= 256) ?? output.thumbnails?.[0];
  return (
    <img
      src={contentOf(small?.asset_id ?? output.asset_id)}
      alt={output.name}
      loading="lazy"
      onerror={(event: Event) => ((event.target as HTMLElement).dataset.broken = "")}
    />
  );
}

function Attempts({ of }: { of: Attempt[] }): Content {
  return (
    <section>
      <h2>Attempts</h2>
      <table class="rows">
        <thead><tr><th class="number">No.</th><th>Worker</th><th>Began</th><th>Ended</th><th>Outcome</th></tr></thead>
        <tbody>
          {of.map((one) => (
            <tr key={`${one.attempt} ${one.started_at}`}>
              <Cell of="No." class="number">{one.attempt}</Cell>
              <Cell of="Worker">{one.worker}</Cell>
              <Cell of="Began"><When at={one.started_at} /></Cell>
              <Cell of="Ended">{one.ended_at ? <When at={one.ended_at} /> : "goes on"}</Cell>
              <Cell of="Outcome" class="wide">
                {one.cause ? `${one.cause.replaceAll("_", " ")}: ${one.message ?? ""}` : one.ended_at ? "well" : ""}
              </Cell>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Told({ from }: { from: Live<DeliveryList> }): Content {
  const deliveries: Delivery[] = from.value?.deliveries ?? [];
  if (from.failure && !from.value) return <section><h2>Webhooks</h2><Problem failure={from.failure} /></section>;
  return deliveries.length > 0 && <section><h2>Webhooks</h2><DeliveryTable deliveries={deliveries} /></section>;
}
