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

// Which contents lie in which store (assets/blob_records.hpp), and keys that are to be removed.
// Until here every content was one file of the shared folder, named by its hash alone. Of a content
// a store has one record that is not doomed.
constexpr std::string_view kBlobs = R"sql(
CREATE TABLE blobs (
    hash text COLLATE "C",
    store text COLLATE "C",
    generation int8,
    key text NOT NULL,
    size_bytes int8 NOT NULL,
    state int2 NOT NULL,
    storage_class int2 NOT NULL DEFAULT 0,
    doomed_at int8,
    due_at int8,
    attempts int4 NOT NULL DEFAULT 0,
    error text,
    PRIMARY KEY (hash, store, generation)
);
CREATE UNIQUE INDEX blobs_one ON blobs (hash, store) WHERE state < 2;
CREATE INDEX blobs_due ON blobs (state, due_at) WHERE due_at IS NOT NULL;
CREATE TABLE blob_removals (
    store text COLLATE "C",
    key text COLLATE "C",
    attempts int4 NOT NULL,
    due_at int8 NOT NULL,
    error text,
    PRIMARY KEY (store, key)
);
CREATE INDEX blob_removals_due ON blob_removals (due_at);
INSERT INTO blobs (hash, store, generation, key, size_bytes, state)
    SELECT hash, 'local', 0, substr(hash, 8, 2) || '/' || substr(hash, 10), max(size_bytes), 1
    FROM assets a WHERE NOT EXISTS (SELECT 1 FROM contents c WHERE c.hash = a.hash) GROUP BY hash;

ALTER TABLE assets ADD COLUMN crc32 int8;
ALTER TABLE assets ADD COLUMN store text COLLATE "C";
ALTER TABLE assets ADD COLUMN retention int2;
ALTER TABLE assets ADD COLUMN moves_at int8;
DROP INDEX assets_expiring;
CREATE INDEX assets_expiring ON assets (expires_at, id) WHERE expires_at IS NOT NULL;
CREATE INDEX assets_moving ON assets (moves_at, id) WHERE moves_at IS NOT NULL;
)sql";

// An event may be told to several receivers, each in its own order. Whom a job tells stands beside
// its deliveries, once for each receiver, sealed where there is a secret; the webhook of a job was
// in its spec. Binaries from before write to a key that is no more. Of tenants' endpoints it is
// counted how often one changed, so that whoever has read them all knows when to read again.
constexpr std::string_view kVersion5 = R"sql(
ALTER TABLE outbox ADD endpoint text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE outbox ADD tenant text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE outbox ADD event int2 NOT NULL DEFAULT 0;
ALTER TABLE outbox ADD log text;
UPDATE outbox o SET tenant = j.tenant FROM jobs j WHERE j.id = o.job;
UPDATE outbox o SET event = e.type FROM job_events e
    WHERE e.job = o.job AND e.sequence = o.sequence;
ALTER TABLE outbox DROP CONSTRAINT outbox_pkey;
ALTER TABLE outbox ADD PRIMARY KEY (job, endpoint, sequence);
CREATE INDEX outbox_waiting ON outbox (endpoint) WHERE state = 0 AND endpoint <> '';
CREATE INDEX outbox_by_tenant ON outbox (tenant, job, endpoint, sequence);
CREATE INDEX outbox_dead ON outbox (tenant, job, endpoint, sequence) WHERE state = 3;

CREATE TABLE outbox_targets (
    job uuid,
    endpoint text COLLATE "C",
    target bytea NOT NULL,
    PRIMARY KEY (job, endpoint)
);
INSERT INTO outbox_targets (job, endpoint, target)
    SELECT s.job, '', convert_to((s.spec::jsonb -> 'webhook' || '{"kind": "webhook"}')::text, 'UTF8')
    FROM job_specs s JOIN jobs j ON j.id = s.job
    WHERE j.webhook_events IS NOT NULL AND s.spec LIKE '{%"webhook"%';
UPDATE job_specs s SET spec = (s.spec::jsonb - 'webhook')::text
    FROM jobs j WHERE j.id = s.job AND j.webhook_events IS NOT NULL AND s.spec LIKE '{%"webhook"%';

CREATE TABLE endpoints (
    id uuid PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    revision int8 NOT NULL,
    about text NOT NULL,
    secrets bytea NOT NULL
);
CREATE INDEX endpoints_by_tenant ON endpoints (tenant, id);
CREATE TABLE endpoint_changes (
    only_row bool PRIMARY KEY CHECK (only_row),
    count int8 NOT NULL
);
INSERT INTO endpoint_changes VALUES (true, 0);
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

// How an upload that was begun is gone on with (assets/blob_store.hpp), sealed where there is a
// secret.
constexpr std::string_view kUploadNotes = R"sql(
ALTER TABLE blobs ADD COLUMN note bytea;
)sql";

// Tenants and API keys that were made while comfyd runs (auth/identity_store.hpp), how often one
// was changed, so that whoever has read them all knows when to read again, and when keys were used.
constexpr std::string_view kIdentities = R"sql(
CREATE TABLE identities (
    kind int8,
    id text COLLATE "C",
    revision int8 NOT NULL,
    about text NOT NULL,
    PRIMARY KEY (kind, id)
);
CREATE TABLE identity_changes (
    only_row bool PRIMARY KEY CHECK (only_row),
    count int8 NOT NULL
);
INSERT INTO identity_changes VALUES (true, 0);
CREATE TABLE key_uses (
    key text COLLATE "C" PRIMARY KEY,
    used_at int8 NOT NULL
) WITH (fillfactor = 50);
)sql";

// How much a tenant stores is summed up from the index alone.
constexpr std::string_view kStoredBytes = R"sql(
CREATE INDEX assets_by_tenant ON assets (tenant, size_bytes);
)sql";

// Sessions of browsers and logins that have begun (auth/session_store.hpp).
constexpr std::string_view kSessions = R"sql(
CREATE TABLE sessions (
    kind int8,
    id text COLLATE "C",
    tenant text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    used_at int8 NOT NULL,
    ends_at int8 NOT NULL,
    about text NOT NULL,
    PRIMARY KEY (kind, id)
);
CREATE INDEX sessions_by_owner ON sessions (kind, tenant, owner, used_at);
CREATE INDEX sessions_by_end ON sessions (ends_at);
)sql";

// Machines of the fleet (fleet/instances), what was decided about its pools while comfyd runs, and
// why each machine was started or stopped.
constexpr std::string_view kInstances = R"sql(
CREATE TABLE instances (
    id text COLLATE "C" PRIMARY KEY,
    fleet text COLLATE "C" NOT NULL,
    is_open bool NOT NULL,
    revision int8 NOT NULL,
    changed_at int8 NOT NULL,
    about text NOT NULL,
    token bytea NOT NULL
);
CREATE INDEX instances_open ON instances (fleet, id) WHERE is_open;
CREATE INDEX instances_ended ON instances (fleet, changed_at DESC, id) WHERE NOT is_open;
CREATE TABLE fleet_pools (
    fleet text COLLATE "C",
    name text COLLATE "C",
    revision int8 NOT NULL,
    about text NOT NULL,
    PRIMARY KEY (fleet, name)
);
CREATE TABLE fleet_events (
    number int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    fleet text COLLATE "C" NOT NULL,
    pool text COLLATE "C" NOT NULL,
    instance text COLLATE "C" NOT NULL,
    about text NOT NULL
);
)sql";

// Whoever reads events on does so in the order of the transactions that wrote them; those of before
// keep the order of their numbers.
constexpr std::string_view kEventTurns = R"sql(
ALTER TABLE fleet_events ADD COLUMN turn xid8 NOT NULL DEFAULT '0';
ALTER TABLE fleet_events ALTER COLUMN turn SET DEFAULT pg_current_xact_id();
CREATE INDEX fleet_events_in_turn ON fleet_events (fleet, turn, number);
)sql";

// The register of models (models/register_store.hpp).
constexpr std::string_view kModels = R"sql(
CREATE TABLE models (
    path text COLLATE "C" PRIMARY KEY,
    revision int8 NOT NULL,
    about text NOT NULL
);
CREATE TABLE model_changes (
    only_row bool PRIMARY KEY CHECK (only_row),
    count int8 NOT NULL
);
INSERT INTO model_changes VALUES (true, 0);
)sql";

constexpr Migration kMigrations[] = {
    {1, 1, kVersion1},
    {2, 1, kVersion2},
    {3, 1, kVersion3},
    {4, 4, kBlobs},
    {5, 5, kVersion5},
    {6, 5, kBulks},
    {7, 5, kUploadNotes},
    {8, 5, kIdentities},
    {9, 5, kStoredBytes},
    {10, 5, kSessions},
    {11, 5, kInstances},
    {12, 5, kEventTurns},
    {13, 5, kModels},
};

}  // namespace

std::span<const Migration> migrations() {
    return kMigrations;
}

}  // namespace comfyd::ledger::postgres
