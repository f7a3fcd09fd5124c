// Jobs, newest first.
import { changed, go, to, type Place } from "../address";
import { get } from "../api";
import { between, duration, plural, since } from "../format";
import { Live } from "../live";
import type { Page } from "../page";
import { Cell, Empty, Heading, JobLink, Loaded, Newer, State, When } from "../parts";
import { Still } from "../still";
import type { Job, JobList } from "../types";
import { Fragment, h, type Content } from "../view";

const kEveryMs = 3000;
const kPage = "50";
const filters = [
  ["", "All"],
  ["queued", "Waiting"],
  ["processing", "Running"],
  ["completed", "Done"],
  ["failed", "Failed"],
  ["cancelled", "Cancelled"],
] as const;

export function jobsPage({ query }: Place): Page {
  const status = query.get("status") ?? "";
  const workflow = query.get("workflow") ?? "";
  const cursor = query.get("cursor") ?? "";
  const still = new Still<Job>((job) => job.execution_id);
  const list = new Live(
    () => get<JobList>("/v2/workflows/executions", { status, workflow_id: workflow, cursor, limit: kPage }),
    kEveryMs,
    (page) => still.take(page.executions, page.next_cursor !== null),
  );

  const view = (): Content => (
    <Fragment>
      <Heading title="Jobs">
        {!cursor && <Newer than={still} word="job" list={list} />}
      </Heading>
      <div class="filters">
        <nav class="tabs" aria-label="State">
          {filters.map(([value, name]) => (
            <a key={value} href={to("/jobs", { status: value, workflow })} aria-current={value === status ? "true" : undefined}>{name}</a>
          ))}
        </nav>
        <form role="search" onsubmit={(event) => {
          event.preventDefault();
          const wanted = new FormData(event.target as HTMLFormElement).get("workflow");
          go(changed({ workflow: String(wanted ?? "").trim(), cursor: undefined }));
        }}>
          <label>Workflow <input type="search" name="workflow" value={workflow} placeholder="any" /></label>
          <button>Filter</button>
        </form>
      </div>
      <Loaded from={list} show={(page) => (
        <Fragment>
          {still.rows.length > 0 ? <JobTable jobs={still.rows} gone={still.gone} /> : <NoJobs isFiltered={!!(status || workflow || cursor)} />}
          <nav class="pager" aria-label="Pages">
            {cursor && <a href={changed({ cursor: undefined })}>Newest</a>}
            {page.next_cursor && <a rel="next" href={changed({ cursor: page.next_cursor })}>Older</a>}
          </nav>
        </Fragment>
      )} />
    </Fragment>
  );
  return { title: "Jobs", view, stop: () => list.stop() };
}

function NoJobs({ isFiltered }: { isFiltered: boolean }): Content {
  return isFiltered
    ? <Empty>No job is like that. <a href={to("/jobs")}>Show all</a></Empty>
    : <Empty>No job yet. <code>comfyd run examples/landscape.json</code> makes one; <a href="/docs">the API</a> has the other ways.</Empty>;
}

export function JobTable({ jobs, gone = new Set() }: { jobs: Job[]; gone?: Set<string> }): Content {
  return (
    <table class="rows">
      <thead><tr><th>State</th><th>Job</th><th>Worker</th><th class="number">Waited</th><th class="number">Ran</th><th>Submitted</th><th>Result</th></tr></thead>
      <tbody>
        {jobs.map((job) => (
          <tr key={job.execution_id} class={gone.has(job.execution_id) ? "gone" : ""}>
            <Cell of="State"><State of={gone.has(job.execution_id) ? "moved on" : job.status} /></Cell>
            <Cell of="Job"><JobLink id={job.execution_id} name={nameOf(job)} /></Cell>
            <Cell of="Worker">{job.worker}</Cell>
            <Cell of="Waited" class="number">{duration(waited(job))}</Cell>
            <Cell of="Ran" class="number">{duration(ran(job))}</Cell>
            <Cell of="Submitted"><When at={job.submitted_at} /></Cell>
            <Cell of="Result" class="wide">{resultOf(job)}</Cell>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export const nameOf = (job: Job): string | undefined =>
  job.workflow_id ? `${job.workflow_id}${job.workflow_version ? ` v${job.workflow_version}` : ""}` : undefined;

export const waited = (job: Job): number | undefined =>
  job.status === "queued" ? since(job.submitted_at) : between(job.submitted_at, job.started_at);
export const ran = (job: Job): number | undefined =>
  job.status === "processing" && job.started_at ? since(job.started_at) : between(job.started_at, job.completed_at);

function resultOf(job: Job): Content {
  if (job.error) return <span class="cut" title={job.error.message}>{job.error.message}</span>;
  if (job.status === "processing") return <Progress of={job} />;
  const outputs = job.result?.outputs.length ?? 0;
  return outputs > 0 ? plural(outputs, "output") : "";
}

export function Progress({ of: job }: { of: Job }): Content {
  const isKnown = job.progress !== null;
  return (
    <span class="progress">
      <progress max="1" value={isKnown ? job.progress : undefined} aria-label="Progress" />
      {isKnown && `${Math.round(job.progress! * 100)} %`}
      {job.estimated_remaining !== null && <span class="soft">about {duration(job.estimated_remaining)} left</span>}
    </span>
  );
}
