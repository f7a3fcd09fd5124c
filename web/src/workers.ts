// Workers, as operators or others see them: the same facts under different names.
import { get, type Answer } from "./api";
import { may } from "./session";

export interface Worker {
  id: string;
  url: string;
  status: string;
  gpu: string;
  version: string;
  vram_total: number;
  vram_free: number;
  job: string | null;
  completed: number;
  failed: number;
  last_error: string | null;
  last_active_at: string;
  breaker: string; // "": not told
}

interface ForOperators extends Omit<Worker, "job"> {
  current_job: string | null;
}
interface ForAll {
  id: string;
  endpoint: string;
  status: string;
  gpu: string;
  version: string;
  vram_total: number;
  vram_free: number;
  current_task_id: string;
  completed_tasks: number;
  failed_tasks: number;
  last_error: string;
  last_active_at: string;
}

export async function readWorkers(): Promise<Answer<Worker[]>> {
  if (may("admin")) {
    const answer = await get<{ workers: ForOperators[] }>("/admin/v1/workers");
    return answer.failure ? answer : { value: answer.value.workers.map((one) => ({ ...one, job: one.current_job })) };
  }
  const answer = await get<{ workers: ForAll[] }>("/api/v1/workers");
  if (answer.failure) return answer;
  const value = answer.value.workers.map((one) => ({
    ...one,
    url: one.endpoint,
    job: one.current_task_id || null,
    completed: one.completed_tasks,
    failed: one.failed_tasks,
    last_error: one.last_error || null,
    breaker: "",
  }));
  return { value };
}

export const isDown = (worker: Worker): boolean => worker.status === "down" || worker.status === "error";
