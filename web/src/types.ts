// What the API answers, as far as the dashboard reads it.

export interface Failing {
  code: string;
  message: string;
  cause?: string;
  node_id: string | null;
  class_type: string | null;
  traceback: string | null;
  details: { suggested_action?: string; advice?: string };
}

export interface Output {
  node_id: string;
  name: string;
  type: "image" | "video" | "audio" | "text" | "file" | "latent";
  content_type: string;
  size_bytes: number;
  asset_id: string;
  expired?: boolean;
  media?: { width?: number; height?: number; duration_seconds?: number };
  thumbnails?: { asset_id: string; width: number; height: number }[];
}

export interface Attempt {
  attempt: number;
  worker: string;
  started_at: string;
  ended_at: string | null;
  cause: string | null;
  message: string | null;
  retry_at: string | null;
}

export type JobStatus = "queued" | "processing" | "completed" | "failed" | "cancelled";

export interface Job {
  execution_id: string;
  status: JobStatus;
  submitted_at: string;
  started_at: string | null;
  completed_at: string | null;
  progress: number | null;
  estimated_remaining: number | null;
  result: { outputs: Output[] } | null;
  error: Failing | null;
  queue_position: number | null;
  priority: number;
  metadata: Record<string, unknown>;
  retry_count: number;
  attempts?: Attempt[];
  worker: string | null;
  cancel_requested: boolean;
  workflow_id?: string;
  workflow_version?: number;
  reused_from?: string;
}
export interface JobList {
  executions: Job[];
  next_cursor: string | null;
}

export interface Explanation {
  reasons: string[];
  advice: string[];
  queue_position?: number;
  class?: string;
  expected_wait_seconds?: number | null;
  waited_seconds?: number;
  workers?: { worker: string; capable: boolean; reason: string; busy_seconds?: number; load_seconds?: number }[];
}

export interface QueueCounts {
  pending_tasks: number;
  running_tasks: number;
  completed_tasks: number;
  failed_tasks: number;
  cancelled_tasks: number;
}

export interface Stats {
  totals: {
    jobs: { total: number; completed: number; failed: number; cancelled: number; expired: number };
    queue_time: { p50: number | null; p95: number | null };
    run_time: { p50: number | null; p95: number | null };
    images: number;
    cost_usd: number;
  };
}

export interface Endpoint {
  id: string;
  url: string;
  description: string;
  events: string[];
  scheme: string;
  enabled: boolean;
  disabled_reason: string | null;
  created_at: string;
}

export type DeliveryState = "pending" | "delivered" | "dead";

export interface Delivery {
  id: string;
  state: DeliveryState;
  event: string;
  execution_id: string;
  receiver: string; // an endpoint's id; "job": it came with the job
  url: string | null;
  attempts: number;
  created_at: string;
  next_attempt_at: string | null;
  ended_at: string | null;
  error: string | null;
  log: { at: string; status: number | null; duration_ms: number; error: string | null }[];
  request?: { method: string; url: string; headers: Record<string, string>; body: string } | null;
}
export interface DeliveryList {
  deliveries: Delivery[];
  next_cursor: string | null;
}

export interface Counted {
  matching: number;
  more: boolean;
}
