// How it goes: what waits, runs and failed, what needs somebody, and what was made last.
import { to, type Place } from "../address";
import { get } from "../api";
import { count, duration, plural } from "../format";
import { Live } from "../live";
import type { Page } from "../page";
import { Empty, Heading, JobLink, Loaded, Problem, State, When } from "../parts";
import type { DeliveryList, Job, JobList, QueueCounts, Stats } from "../types";
import { Fragment, h, type Content } from "../view";
import { isDown, readWorkers } from "../workers";
import { Picture } from "./job";
import { nameOf, Progress } from "./jobs";

const kEveryMs = 4000;
const kSlowlyMs = 30_000;
const kDeadShown = 50;

export function overviewPage(_: Place): Page {
  const jobs = (status: string, limit: string) => () => get<JobList>("/v2/workflows/executions", { status, limit });
  const queue = new Live(() => get<QueueCounts>("/api/v1/queue/metrics"), kEveryMs);
  const stats = new Live(() => get<Stats>("/v2/stats", { range: "24h" }), kSlowlyMs);
  const workers = new Live(readWorkers, kEveryMs);
  const dead = new Live(() => get<DeliveryList>("/v2/webhooks/deliveries", { state: "dead", limit: String(kDeadShown) }), 2 * kEveryMs);
  const running = new Live(jobs("processing", "8"), kEveryMs);
  const failed = new Live(jobs("failed", "5"), 2 * kEveryMs);
  const done = new Live(jobs("completed", "12"), 2 * kEveryMs);
  const all = [queue, stats, workers, dead, running, failed, done];

  const needs = (): [string, Content][] => {
    const lines: [string, Content][] = [];
    const fleet = workers.value ?? [];
    const down = fleet.filter(isDown);
    if (workers.value && fleet.length === 0) lines.push(["none", <Fragment>There is no worker: jobs wait until there is one.</Fragment>]);
    for (const one of down.slice(0, 5)) {
      lines.push([`down ${one.id}`, <Fragment><a href={to("/workers")}>{one.id}</a> is down{one.last_error ? `: ${one.last_error}` : ""}</Fragment>]);
    }
    if (down.length > 5) lines.push(["more", <Fragment><a href={to("/workers")}>{plural(down.length - 5, "more worker")}</a> are down</Fragment>]);
    const letters = dead.value?.deliveries.length ?? 0;
    if (letters > 0) {
      const number = `${dead.value?.next_cursor ? "more than " : ""}${plural(letters, "webhook")}`;
      lines.push(["dead", <Fragment><a href={to("/webhooks")}>{number}</a> nobody took: {dead.value?.deliveries[0]?.error}</Fragment>]);
    }
    return lines;
  };

  const view = (): Content => {
    if (queue.failure?.status === 403) return <Fragment><Heading title="Overview" /><Problem failure={queue.failure} /></Fragment>;
    const day = stats.value?.totals;
    const fleet = workers.value;
    const up = fleet?.filter((one) => !isDown(one)).length;
    return (
      <Fragment>
        <Heading title="Overview" />
        <ul class="figures">
          <Figure name="waiting" value={count(queue.value?.pending_tasks)} link={to("/jobs", { status: "queued" })}
            note={day?.queue_time.p50 != null ? `usually for ${duration(day.queue_time.p50)}` : ""} />
          <Figure name="running" value={count(queue.value?.running_tasks)} link={to("/jobs", { status: "processing" })}
            note={day?.run_time.p50 != null ? `usually for ${duration(day.run_time.p50)}` : ""} />
          <Figure name="failed in 24 h" value={count(day && day.jobs.failed + day.jobs.expired)} link={to("/jobs", { status: "failed" })}
            note={day ? `of ${count(day.jobs.total)} that ended` : ""} />
          <Figure name={fleet && fleet.length === 1 ? "worker up" : "workers up"} value={fleet ? `${count(up)} of ${count(fleet.length)}` : count(undefined)}
            link={to("/workers")} note={workers.failure ? workers.failure.message : ""} />
        </ul>
        <section aria-label="Needs you">
          <h2>Needs you</h2>
          {needs().length > 0
            ? <ul class="needs">{needs().map(([key, line]) => <li key={key}>{line}</li>)}</ul>
            : <p class="soft">{workers.value && dead.value ? "Nothing. All is well." : workers.failure || dead.failure ? "It cannot be read now." : "Looking…"}</p>}
        </section>
        <div class="columns">
          <section>
            <h2>Running now</h2>
            <Loaded from={running} show={(list) => <Lines of={list.executions} none="Nothing runs." about={(job) => <Progress of={job} />} />} />
          </section>
          <section>
            <h2>Failed last</h2>
            <Loaded from={failed} show={(list) => <Lines of={list.executions} none="Nothing failed." about={(job) => <span class="cut">{job.error?.message}</span>} />} />
          </section>
        </div>
        <section>
          <h2>Just made</h2>
          <Loaded from={done} show={(list) => <Made of={list.executions} />} />
        </section>
      </Fragment>
    );
  };
  return { title: "Overview", view, stop: () => all.forEach((one) => one.stop()) };
}

function Figure({ name, value, link, note }: { name: string; value: string; link: string; note: string }): Content {
  return <li key={link}><a href={link}><strong>{value}</strong> <span>{name}</span><small>{note}</small></a></li>;
}

function Lines({ of, none, about }: { of: Job[]; none: string; about: (job: Job) => Content }): Content {
  if (of.length === 0) return <p class="soft">{none}</p>;
  return (
    <ul class="lines">
      {of.map((job) => (
        <li key={job.execution_id}>
          <State of={job.status} /> <JobLink id={job.execution_id} name={nameOf(job)} />
          <span class="soft"><When at={job.completed_at ?? job.started_at ?? job.submitted_at} /></span>
          {about(job)}
        </li>
      ))}
    </ul>
  );
}

function Made({ of }: { of: Job[] }): Content {
  const pictures = of.flatMap((job) => {
    const picture = job.result?.outputs.findLast((one) => one.type === "image" && !one.expired);
    return picture ? [{ job, picture }] : [];
  });
  if (pictures.length === 0) return <Empty>No picture yet.</Empty>;
  return (
    <ul class="gallery small">
      {pictures.map(({ job, picture }) => (
        <li key={job.execution_id}>
          <a class="tile" href={to(`/jobs/${job.execution_id}`)}><Picture of={picture} /><span class="soft"><When at={job.completed_at} /></span></a>
        </li>
      ))}
    </ul>
  );
}
