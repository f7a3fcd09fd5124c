#include "ledger/postgres/schema.hpp"

namespace comfyd::ledger::postgres {
namespace {

// jobs is narrow and updated in place: half of each page is left free, and no indexed column
// changes before the end, so that a change touches one page and no index (HOT). Hence `outcome`,
// which is NULL until the job has ended: an index over `state` would be written at every change.
// Payload stands apart, in tables that are only appended to.
//   arrival        the transaction that made the job wait, at first or again: leaders find it by it
//   job_specs      fixed at submission; holds the event "queued" too, which is not in job_events
//   job_results    what came of it, present only once there is something
//   job_assets     which assets it mentions; they are held for as long as it has not ended
// Tables by job are split by its id, which begins with its time: one part for each week. What no
// part is there for lies in the last one, so that nothing is ever refused.
// Counters and rollups have a row for each node that writes (slot): a shared one would be waited
// for by all.
constexpr std::string_view kVersion1 = R"sql(
CREATE TABLE leases (
    domain text COLLATE "C" PRIMARY KEY,
    epoch int8 NOT NULL DEFAULT 0,
    node uuid,
    backend int4,
    expires_at timestamptz NOT NULL DEFAULT 'epoch',
    quiet_at timestamptz NOT NULL DEFAULT 'epoch',
    queued int8 NOT NULL DEFAULT 0,
    UNIQUE (domain, epoch)
);

CREATE TABLE jobs (
    id uuid PRIMARY KEY,
    domain text COLLATE "C" NOT NULL,
    arrival xid8 NOT NULL DEFAULT pg_current_xact_id(),
    tenant text COLLATE "C" NOT NULL,
    state int2 NOT NULL,
    outcome int2,
    revision int4 NOT NULL,
    sequence int8 NOT NULL,
    epoch int8 NOT NULL,
    priority int2 NOT NULL,
    created_at int8 NOT NULL,
    started_at int8,
    finished_at int8,
    not_before int8,
    deadline int8,
    timeout_ms int8 NOT NULL,
    attempt int4 NOT NULL,
    max_attempts int4 NOT NULL,
    cancel_requested bool NOT NULL,
    node_count int4 NOT NULL,
    dialect text NOT NULL,
    worker text NOT NULL,
    workflow_id text COLLATE "C" NOT NULL,
    webhook_events text,
    reuse_key text COLLATE "C",
    reused_from uuid,
    shared_prompt text,
    shared_place int8
) PARTITION BY RANGE (id);
CREATE INDEX jobs_open ON jobs (domain, arrival, id) WHERE outcome IS NULL;
CREATE INDEX jobs_by_tenant ON jobs (tenant, id);
CREATE INDEX jobs_by_outcome ON jobs (tenant, outcome, id) WHERE outcome IS NOT NULL;
CREATE INDEX jobs_ended ON jobs (finished_at, id) WHERE outcome IS NOT NULL;
CREATE INDEX jobs_reusable ON jobs (tenant, reuse_key, id)
    WHERE outcome = 3 AND reuse_key IS NOT NULL AND reused_from IS NULL;
CREATE TABLE jobs_rest PARTITION OF jobs DEFAULT WITH (fillfactor = 50);

CREATE TABLE job_specs (
    job uuid PRIMARY KEY,
    queued_sequence int8 NOT NULL,
    queued_data text,
    requirement text NOT NULL,
    profile text,
    metadata text,
    dialect_data text,
    spec text NOT NULL,
    extra_data text,
    workflow text NOT NULL
) PARTITION BY RANGE (job);
DO $$ BEGIN
    IF EXISTS (SELECT 1 FROM pg_settings
               WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)) THEN
        ALTER TABLE job_specs ALTER workflow SET COMPRESSION lz4;
    END IF;
END $$;
CREATE TABLE job_specs_rest PARTITION OF job_specs DEFAULT;
CREATE TABLE job_results (
    job uuid PRIMARY KEY,
    failure text,
    outputs text,
    ui_outputs text,
    usage text
) PARTITION BY RANGE (job);
CREATE TABLE job_results_rest PARTITION OF job_results DEFAULT;
CREATE TABLE job_events (
    job uuid,
    sequence int8,
    type int2 NOT NULL,
    at int8 NOT NULL,
    state int2 NOT NULL,
    data text,
    PRIMARY KEY (job, sequence)
) PARTITION BY RANGE (job);
CREATE TABLE job_events_rest PARTITION OF job_events DEFAULT;
CREATE TABLE job_assets (
    job uuid,
    asset text COLLATE "C",
    PRIMARY KEY (job, asset)
) PARTITION BY RANGE (job);
CREATE INDEX job_assets_by_asset ON job_assets (asset);
CREATE TABLE job_assets_rest PARTITION OF job_assets DEFAULT;

CREATE TABLE idempotency_keys (
    tenant text COLLATE "C",
    key text COLLATE "C",
    job uuid NOT NULL,
    request_hash text NOT NULL,
    created_at int8 NOT NULL,
    PRIMARY KEY (tenant, key)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

CREATE TABLE outbox (
    job uuid,
    sequence int8,
    state int2 NOT NULL,
    attempts int4 NOT NULL,
    created_at int8 NOT NULL,
    next_attempt_at int8 NOT NULL,
    ended_at int8,
    error text,
    PRIMARY KEY (job, sequence)
) WITH (fillfactor = 70);
CREATE INDEX outbox_due ON outbox (next_attempt_at) WHERE state = 0;

CREATE TABLE assets (
    id uuid PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    hash text COLLATE "C" NOT NULL,
    size_bytes int8 NOT NULL,
    content_type text NOT NULL,
    file_path text NOT NULL,
    tags text,
    created_at int8 NOT NULL,
    expires_at int8,
    job uuid
);
CREATE INDEX assets_by_hash ON assets (hash, tenant, id);
CREATE INDEX assets_by_job ON assets (job) WHERE job IS NOT NULL;
CREATE INDEX assets_expiring ON assets (expires_at) WHERE expires_at IS NOT NULL AND job IS NULL;
CREATE TABLE contents (
    hash text COLLATE "C" PRIMARY KEY,
    bytes bytea NOT NULL
);

CREATE TABLE workflows (
    number int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    tag text NOT NULL,
    created_at int8 NOT NULL,
    updated_at int8 NOT NULL,
    last_version int4 NOT NULL,
    UNIQUE (tenant, name)
);
CREATE TABLE workflow_versions (
    workflow int8,
    version int4,
    created_at int8 NOT NULL,
    node_count int4 NOT NULL,
    content_hash text NOT NULL,
    description text NOT NULL,
    parameters text NOT NULL,
    workflow_text text NOT NULL,
    prompt text NOT NULL,
    PRIMARY KEY (workflow, version)
);
CREATE TABLE workflow_labels (
    workflow int8,
    label text COLLATE "C",
    version int4 NOT NULL,
    PRIMARY KEY (workflow, label)
);
CREATE TABLE workflow_assets (
    workflow int8,
    version int4,
    asset text COLLATE "C",
    PRIMARY KEY (workflow, version, asset)
);
CREATE INDEX workflow_assets_by_asset ON workflow_assets (asset);

CREATE TABLE notes (
    name text COLLATE "C" PRIMARY KEY,
    updated_at int8 NOT NULL,
    text text NOT NULL
);

CREATE TABLE counters (
    kind int2,
    tenant text COLLATE "C",
    state int2,
    slot int2,
    count int8 NOT NULL,
    PRIMARY KEY (kind, tenant, state, slot)
) WITH (fillfactor = 50);

CREATE TABLE rollups (
    hour int8,
    tenant text COLLATE "C",
    workflow text COLLATE "C",
    worker text COLLATE "C",
    slot int2,
    completed int8 NOT NULL,
    failed int8 NOT NULL,
    cancelled int8 NOT NULL,
    expired int8 NOT NULL,
    retries int8 NOT NULL,
    images int8 NOT NULL,
    model_loads int8 NOT NULL,
    gpu_ms int8 NOT NULL,
    model_load_ms int8 NOT NULL,
    inference_ms int8 NOT NULL,
    cost_nano_usd int8 NOT NULL,
    queued int8[] NOT NULL,
    ran int8[] NOT NULL,
    PRIMARY KEY (hour, tenant, workflow, worker, slot)
) WITH (fillfactor = 50);
CREATE FUNCTION comfyd_add_counts(int8[], int8[]) RETURNS int8[] LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(array_agg(coalesce(a, 0) + coalesce(b, 0) ORDER BY place), '{}')
    FROM unnest($1, $2) WITH ORDINALITY AS n (a, b, place)
$$;
CREATE AGGREGATE comfyd_sum_counts (int8[]) (
    SFUNC = comfyd_add_counts, STYPE = int8[], INITCOND = '{}'
);

CREATE TABLE wishes (
    id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    domain text COLLATE "C" NOT NULL,
    kind int2 NOT NULL,
    job uuid,
    worker text NOT NULL,
    details text,
    at int8 NOT NULL
);
CREATE INDEX wishes_by_domain ON wishes (domain, id);
)sql";

// What is forwarded to workers and nobody else may read, sealed; gone when the job has ended.
constexpr std::string_view kVersion2 = R"sql(
CREATE TABLE job_secrets (
    job uuid PRIMARY KEY,
    sealed bytea NOT NULL
);
)sql";

// Who is there. Nothing is decided by it.
constexpr std::string_view kVersion3 = R"sql(
CREATE TABLE nodes (
    node uuid PRIMARY KEY,
    about text NOT NULL,
    first_seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);
)sql";

// Batches of the API (jobs/bulk.hpp), and the assets that they hold until they have ended.
constexpr std::string_view kBulks = R"sql(
CREATE TABLE bulks (
    id uuid PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    key text COLLATE "C",
    revision int8 NOT NULL,
    stamp uuid NOT NULL,
    is_open bool NOT NULL,
    ended_at int8,
    data text NOT NULL
);
CREATE UNIQUE INDEX bulks_by_key ON bulks (tenant, key) WHERE key IS NOT NULL;
CREATE INDEX bulks_by_tenant ON bulks (tenant, id);
CREATE INDEX bulks_open ON bulks (id) WHERE is_open;
CREATE INDEX bulks_ended ON bulks (ended_at) WHERE NOT is_open;
CREATE TABLE bulk_plans (
    bulk uuid PRIMARY KEY,
    plan text NOT NULL
);
CREATE TABLE bulk_items (
    bulk uuid,
    place int8,
    state int8 NOT NULL,
    job uuid,
    custom_id text NOT NULL,
    params text NOT NULL,
    outcome text,
    PRIMARY KEY (bulk, place)
);
CREATE INDEX bulk_items_by_state ON bulk_items (bulk, state, place);
CREATE TABLE bulk_assets (
    bulk uuid,
    asset text COLLATE "C",
    PRIMARY KEY (bulk, asset)
);
CREATE INDEX bulk_assets_by_asset ON bulk_assets (asset);
)sql";

constexpr Migration kMigrations[] = {
    {1, 1, kVersion1},
    {2, 1, kVersion2},
    {3, 1, kVersion3},
    {6, 1, kBulks},
};

}  // namespace

std::span<const Migration> migrations() {
    return kMigrations;
}

}  // namespace comfyd::ledger::postgres
