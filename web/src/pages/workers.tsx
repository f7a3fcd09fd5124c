// The machines that run jobs. Operators take them out of service and put them back.
import { post } from "../api";
import type { Place } from "../address";
import { bytes, count } from "../format";
import { Live } from "../live";
import type { Page } from "../page";
import { Cell, Empty, Heading, JobLink, Loaded, State, When } from "../parts";
import { may } from "../session";
import { confirm, tell } from "../talk";
import { Fragment, h, type Content } from "../view";
import { readWorkers, type Worker } from "../workers";

const kEveryMs = 3000;

export function workersPage(_: Place): Page {
  const workers = new Live(readWorkers, kEveryMs);

  const drain = async (worker: Worker): Promise<void> => {
    const isWanted = await confirm({
      title: `Drain ${worker.id}?`,
      text: "It finishes what it runs and gets nothing more, until it is resumed.",
      action: "Drain",
    });
    if (!isWanted) return;
    tell(await post(`/admin/v1/workers/${encodeURIComponent(worker.id)}/drain`), `${worker.id} gets nothing more.`);
    void workers.again();
  };
  const resume = async (worker: Worker): Promise<void> => {
    tell(await post(`/admin/v1/workers/${encodeURIComponent(worker.id)}/resume`), `${worker.id} is back at work.`);
    void workers.again();
  };
  const actions = (worker: Worker): Content =>
    worker.status === "draining" || worker.status === "stopped"
      ? <button onclick={() => void resume(worker)}>Resume</button>
      : <button onclick={() => void drain(worker)}>Drain</button>;

  const view = (): Content => (
    <Fragment>
      <Heading title="Workers" />
      <Loaded from={workers} show={(all) => <Workers of={all} actions={may("admin") ? actions : undefined} />} />
      {!may("admin") && <p class="soft">To drain a worker you need an operator's key (the scope admin).</p>}
    </Fragment>
  );
  return { title: "Workers", view, stop: () => workers.stop() };
}

function Workers({ of, actions }: { of: Worker[]; actions?: ((worker: Worker) => Content) | undefined }): Content {
  if (of.length === 0) return <Empty>There is no worker. <code>comfyd serve --worker http://gpu1:8188</code> starts with one.</Empty>;
  return (
    <table class="rows">
      <thead>
        <tr>
          <th>State</th><th>Worker</th><th>GPU</th><th>Memory</th><th>Runs</th><th class="number">Done</th><th class="number">Failed</th><th>Active</th>
          {actions && <th><span class="hidden">Actions</span></th>}
        </tr>
      </thead>
      <tbody>
        {of.map((one) => (
          <tr key={one.id}>
            <Cell of="State">
              <State of={one.status} />
              {one.breaker !== "" && one.breaker !== "closed" && <div class="soft">rests after failures</div>}
            </Cell>
            <Cell of="Worker" class="wide">
              <strong>{one.id}</strong>
              <div class="soft">{one.url}{one.version && ` · ${one.version}`}</div>
              {one.last_error && <div class="trouble">{one.last_error}</div>}
            </Cell>
            <Cell of="GPU">{one.gpu}</Cell>
            <Cell of="Memory"><Memory of={one} /></Cell>
            <Cell of="Runs">{one.job && <JobLink id={one.job} />}</Cell>
            <Cell of="Done" class="number">{count(one.completed)}</Cell>
            <Cell of="Failed" class="number">{count(one.failed)}</Cell>
            <Cell of="Active"><When at={one.last_active_at} /></Cell>
            {actions && <td class="act">{actions(one)}</td>}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Memory({ of: { vram_total: total, vram_free: free } }: { of: Worker }): Content {
  if (total === 0) return "";
  const text = `${bytes(total - free)} of ${bytes(total)}`;
  return <span class="progress"><meter min="0" max={total} value={total - free} aria-label="Memory in use">{text}</meter> {text}</span>;
}
