#include "ledger/sqlite/schema.hpp"

#include <string>

#include "ledger/sqlite/asset_uses.hpp"

namespace comfyd::ledger::sqlite {
namespace {

constexpr std::int64_t kApplicationId = 0x636F6D66;  // "comf"

// jobs holds what changes and stays small, because SQLite rewrites a whole row and its page on
// every change. Payload is appended to tables of its own under jobs.number: it would make the tree
// of a WITHOUT ROWID table deep.
//   job_details  fixed at submission, shown with every job
//   job_specs    fixed at submission, read when an attempt starts
//   job_results  what came of it, present only once there is something
// The event "queued" that a job is made with is not in job_events: it is read out of job_details
// and jobs.
constexpr std::string_view kVersion1 = R"sql(
CREATE TABLE jobs (
    id BLOB PRIMARY KEY,
    number INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    state INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    finished_at INTEGER,
    not_before INTEGER,
    deadline INTEGER,
    timeout_ms INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    cancel_requested INTEGER NOT NULL,
    node_count INTEGER NOT NULL,
    result INTEGER,
    dialect TEXT NOT NULL,
    worker TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    webhook_events TEXT
) WITHOUT ROWID;
CREATE INDEX jobs_by_tenant ON jobs (tenant, state, id);
CREATE INDEX jobs_unfinished ON jobs (id) WHERE state < 3;

CREATE TABLE job_details (
    number INTEGER PRIMARY KEY,
    queued_sequence INTEGER NOT NULL,
    queued_data TEXT,
    requirement TEXT NOT NULL,
    metadata TEXT,
    dialect_data TEXT
);
CREATE TABLE job_specs (
    number INTEGER PRIMARY KEY,
    spec TEXT NOT NULL,
    extra_data TEXT,
    workflow TEXT NOT NULL
);
CREATE TABLE job_results (
    number INTEGER PRIMARY KEY,
    failure TEXT,
    outputs TEXT,
    ui_outputs TEXT
);
CREATE TABLE job_events (
    number INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    type INTEGER NOT NULL,
    at INTEGER NOT NULL,
    state INTEGER NOT NULL,
    data TEXT,
    PRIMARY KEY (number, sequence)
) WITHOUT ROWID;

CREATE TABLE idempotency_keys (
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    job BLOB NOT NULL,
    request_hash TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) WITHOUT ROWID;
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

CREATE TABLE outbox (
    job BLOB NOT NULL,
    sequence INTEGER NOT NULL,
    state INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    next_attempt_at INTEGER NOT NULL,
    ended_at INTEGER,
    error TEXT,
    PRIMARY KEY (job, sequence)
) WITHOUT ROWID;
CREATE INDEX outbox_due ON outbox (next_attempt_at) WHERE state = 0;

CREATE TABLE assets (
    id BLOB PRIMARY KEY,
    tenant TEXT NOT NULL,
    hash TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    content_type TEXT NOT NULL,
    file_path TEXT NOT NULL,
    tags TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    job BLOB
) WITHOUT ROWID;
CREATE INDEX assets_by_hash ON assets (hash, tenant);
CREATE INDEX assets_expiring ON assets (expires_at) WHERE expires_at IS NOT NULL AND job IS NULL;

CREATE TABLE counters (
    kind INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    state INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (kind, tenant, state)
) WITHOUT ROWID;
CREATE TABLE probes (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL
);
)sql";

// Named workflows. The texts of a version come last in its row, so that lists do not read them.
constexpr std::string_view kVersion2 = R"sql(
CREATE TABLE workflows (
    number INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    tag TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    last_version INTEGER NOT NULL,
    UNIQUE (tenant, name)
);
CREATE TABLE workflow_versions (
    number INTEGER PRIMARY KEY,
    workflow INTEGER NOT NULL,
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    node_count INTEGER NOT NULL,
    content_hash TEXT NOT NULL,
    description TEXT NOT NULL,
    parameters TEXT NOT NULL,
    workflow_text TEXT NOT NULL,
    prompt TEXT NOT NULL,
    UNIQUE (workflow, version)
);
CREATE TABLE workflow_labels (
    workflow INTEGER NOT NULL,
    label TEXT NOT NULL,
    version INTEGER NOT NULL,
    PRIMARY KEY (workflow, label)
) WITHOUT ROWID;
)sql";

// What was learned, so that a restart does not forget it (jobs::Notebook).
constexpr std::string_view kVersion3 = R"sql(
CREATE TABLE notes (
    name TEXT PRIMARY KEY,
    updated_at INTEGER NOT NULL,
    text TEXT NOT NULL
);
)sql";

// What jobs used, and sums over them.
constexpr std::string_view kVersion4 = R"sql(
ALTER TABLE job_results ADD COLUMN usage TEXT;
CREATE TABLE rollups (
    hour INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    workflow TEXT NOT NULL,
    worker TEXT NOT NULL,
    completed INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    expired INTEGER NOT NULL,
    retries INTEGER NOT NULL,
    images INTEGER NOT NULL,
    model_loads INTEGER NOT NULL,
    gpu_ms INTEGER NOT NULL,
    model_load_ms INTEGER NOT NULL,
    inference_ms INTEGER NOT NULL,
    cost_nano_usd INTEGER NOT NULL,
    queued TEXT NOT NULL,
    ran TEXT NOT NULL,
    PRIMARY KEY (hour, tenant, workflow, worker)
) WITHOUT ROWID;
)sql";

// What the choice of a worker depends on besides the requirement.
constexpr std::string_view kVersion5 = R"sql(
ALTER TABLE job_details ADD COLUMN profile TEXT;
)sql";

// Which jobs may be answered with the outputs of which. Of those that may not, nothing is indexed.
constexpr std::string_view kVersion6 = R"sql(
ALTER TABLE jobs ADD COLUMN reuse_key TEXT;
ALTER TABLE jobs ADD COLUMN reused_from BLOB;
CREATE INDEX jobs_reusable ON jobs (tenant, reuse_key, id)
    WHERE state = 3 AND reuse_key IS NOT NULL AND reused_from IS NULL;
)sql";

// Small outputs are kept here instead of in files. Numbered, not by hash, so that they are
// appended.
constexpr std::string_view kVersion7 = R"sql(
CREATE TABLE contents (
    id INTEGER PRIMARY KEY,
    bytes BLOB NOT NULL
);
ALTER TABLE assets ADD COLUMN content INTEGER;
)sql";

// What a purge finds ended jobs by, and which assets unfinished jobs and named workflows mention: a
// holder is the id of a job or the number of a workflow's version, an asset its id or its hash.
constexpr std::string_view kVersion8 = R"sql(
CREATE INDEX jobs_ended ON jobs (finished_at, id) WHERE state >= 3;
CREATE TABLE asset_uses (
    holder BLOB NOT NULL,
    asset BLOB NOT NULL,
    PRIMARY KEY (holder, asset)
) WITHOUT ROWID;
CREATE INDEX asset_uses_by_asset ON asset_uses (asset);
)sql";

// Which prompt a running job shares with others stood in its event alone.
constexpr std::string_view kVersion9 = R"sql(
ALTER TABLE jobs ADD COLUMN shared_prompt TEXT;
ALTER TABLE jobs ADD COLUMN shared_place INTEGER;
UPDATE jobs SET (shared_prompt, shared_place) = (
    SELECT json_extract(data, '$.shared_run.prompt_id'), json_extract(data, '$.shared_run.place')
    FROM job_events WHERE number = jobs.number AND type = 1 ORDER BY sequence DESC LIMIT 1
) WHERE state = 1;
)sql";

// Which contents lie in which store (assets/blob_records.hpp), and keys that are to be removed.
// Until here every content was one file of the data folder, named by its hash alone.
constexpr std::string_view kBlobs = R"sql(
CREATE TABLE blobs (
    hash TEXT NOT NULL,
    store TEXT NOT NULL,
    generation INTEGER NOT NULL,
    key TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    state INTEGER NOT NULL,
    storage_class INTEGER NOT NULL DEFAULT 0,
    doomed_at INTEGER,
    due_at INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    PRIMARY KEY (hash, store, generation)
) WITHOUT ROWID;
CREATE INDEX blobs_due ON blobs (state, due_at) WHERE due_at IS NOT NULL;
CREATE TABLE blob_removals (
    store TEXT NOT NULL,
    key TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    error TEXT,
    PRIMARY KEY (store, key)
) WITHOUT ROWID;
CREATE INDEX blob_removals_due ON blob_removals (due_at);
INSERT INTO blobs (hash, store, generation, key, size_bytes, state)
    SELECT hash, 'local', 0, substr(hash, 8, 2) || '/' || substr(hash, 10), max(size_bytes), 1
    FROM assets WHERE content IS NULL GROUP BY hash;

ALTER TABLE assets ADD COLUMN crc32 INTEGER;
ALTER TABLE assets ADD COLUMN store TEXT;
ALTER TABLE assets ADD COLUMN retention INTEGER;
ALTER TABLE assets ADD COLUMN moves_at INTEGER;
DROP INDEX assets_expiring;
CREATE INDEX assets_expiring ON assets (expires_at, id) WHERE expires_at IS NOT NULL;
CREATE INDEX assets_moving ON assets (moves_at, id) WHERE moves_at IS NOT NULL;
)sql";

// An event may be told to several receivers, each in its own order. Whom a job tells stands beside
// its deliveries, once for each receiver; the webhook of a job was in its spec. Of tenants'
// endpoints it is counted how often one changed, so that whoever has read them all knows when to
// read again.
constexpr std::string_view kVersion11 = R"sql(
ALTER TABLE outbox RENAME TO outbox_by_job;
DROP INDEX outbox_due;
CREATE TABLE outbox (
    job BLOB NOT NULL,
    endpoint TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    event INTEGER NOT NULL,
    state INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    next_attempt_at INTEGER NOT NULL,
    ended_at INTEGER,
    error TEXT,
    log TEXT,
    PRIMARY KEY (job, endpoint, sequence)
) WITHOUT ROWID;
INSERT INTO outbox
    SELECT o.job, '', o.sequence, coalesce(j.tenant, ''), coalesce(e.type, 0), o.state, o.attempts,
        o.created_at, o.next_attempt_at, o.ended_at, o.error, NULL
    FROM outbox_by_job o LEFT JOIN jobs j ON j.id = o.job
    LEFT JOIN job_events e ON e.number = j.number AND e.sequence = o.sequence;
DROP TABLE outbox_by_job;
CREATE INDEX outbox_due ON outbox (next_attempt_at) WHERE state = 0;
CREATE INDEX outbox_waiting ON outbox (endpoint) WHERE state < 2 AND endpoint <> '';
CREATE INDEX outbox_by_tenant ON outbox (tenant, job, endpoint, sequence);
CREATE INDEX outbox_dead ON outbox (tenant, job, endpoint, sequence) WHERE state = 3;

CREATE TABLE outbox_targets (
    job BLOB NOT NULL,
    endpoint TEXT NOT NULL,
    target TEXT NOT NULL,
    PRIMARY KEY (job, endpoint)
) WITHOUT ROWID;
INSERT INTO outbox_targets
    SELECT j.id, '', json_set(json_extract(s.spec, '$.webhook'), '$.kind', 'webhook')
    FROM jobs j JOIN job_specs s ON s.number = j.number
    WHERE j.webhook_events IS NOT NULL AND json_type(s.spec, '$.webhook') = 'object';
UPDATE job_specs SET spec = json_remove(spec, '$.webhook')
    WHERE number IN (SELECT number FROM jobs WHERE webhook_events IS NOT NULL);

CREATE TABLE endpoints (
    id BLOB PRIMARY KEY,
    tenant TEXT NOT NULL,
    revision INTEGER NOT NULL,
    about TEXT NOT NULL,
    secrets TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX endpoints_by_tenant ON endpoints (tenant, id);
CREATE TABLE endpoint_changes (
    id INTEGER PRIMARY KEY,
    count INTEGER NOT NULL
);
INSERT INTO endpoint_changes VALUES (1, 0);
)sql";

// Batches of the API (jobs/bulk.hpp). A plan is large and never changes, so it lies apart from the
// row that is written with every group of items.
constexpr std::string_view kBulks = R"sql(
CREATE TABLE bulks (
    id BLOB PRIMARY KEY,
    tenant TEXT NOT NULL,
    key TEXT,
    revision INTEGER NOT NULL,
    is_open INTEGER NOT NULL,
    ended_at INTEGER,
    data TEXT NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX bulks_by_key ON bulks (tenant, key) WHERE key IS NOT NULL;
CREATE INDEX bulks_by_tenant ON bulks (tenant, id);
CREATE INDEX bulks_open ON bulks (id) WHERE is_open = 1;
CREATE INDEX bulks_ended ON bulks (ended_at) WHERE is_open = 0;
CREATE TABLE bulk_plans (
    bulk BLOB PRIMARY KEY,
    plan TEXT NOT NULL
);
CREATE TABLE bulk_items (
    bulk BLOB NOT NULL,
    place INTEGER NOT NULL,
    state INTEGER NOT NULL,
    job BLOB,
    custom_id TEXT NOT NULL,
    params TEXT NOT NULL,
    outcome TEXT,
    PRIMARY KEY (bulk, place)
);
CREATE INDEX bulk_items_by_state ON bulk_items (bulk, state, place);
)sql";

// How an upload that was begun is gone on with (assets/blob_store.hpp).
constexpr std::string_view kUploadNotes = R"sql(
ALTER TABLE blobs ADD COLUMN note TEXT;
)sql";

// Tenants and API keys that were made while comfyd runs (auth/identity_store.hpp), how often one
// was changed, so that whoever has read them all knows when to read again, and when keys were used.
constexpr std::string_view kIdentities = R"sql(
CREATE TABLE identities (
    kind INTEGER NOT NULL,
    id TEXT NOT NULL,
    revision INTEGER NOT NULL,
    about TEXT NOT NULL,
    PRIMARY KEY (kind, id)
) WITHOUT ROWID;
CREATE TABLE identity_changes (
    id INTEGER PRIMARY KEY,
    count INTEGER NOT NULL
);
INSERT INTO identity_changes VALUES (1, 0);
CREATE TABLE key_uses (
    key TEXT PRIMARY KEY,
    used_at INTEGER NOT NULL
) WITHOUT ROWID;
)sql";

// How much a tenant stores is summed up from the index alone.
constexpr std::string_view kStoredBytes = R"sql(
CREATE INDEX assets_by_tenant ON assets (tenant, size_bytes);
)sql";

// Sessions of browsers and logins that have begun (auth/session_store.hpp).
constexpr std::string_view kSessions = R"sql(
CREATE TABLE sessions (
    kind INTEGER NOT NULL,
    id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    owner TEXT NOT NULL,
    used_at INTEGER NOT NULL,
    ends_at INTEGER NOT NULL,
    about TEXT NOT NULL,
    PRIMARY KEY (kind, id)
) WITHOUT ROWID;
CREATE INDEX sessions_by_owner ON sessions (kind, tenant, owner, used_at);
CREATE INDEX sessions_by_end ON sessions (ends_at);
)sql";

// Machines of the fleet (fleet/instances), what was decided about its pools while comfyd runs, and
// why each machine was started or stopped.
constexpr std::string_view kInstances = R"sql(
CREATE TABLE instances (
    id TEXT PRIMARY KEY,
    fleet TEXT NOT NULL,
    is_open INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    about TEXT NOT NULL,
    token TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX instances_open ON instances (fleet, id) WHERE is_open = 1;
CREATE INDEX instances_ended ON instances (fleet, changed_at) WHERE is_open = 0;
CREATE TABLE fleet_pools (
    fleet TEXT NOT NULL,
    name TEXT NOT NULL,
    revision INTEGER NOT NULL,
    about TEXT NOT NULL,
    PRIMARY KEY (fleet, name)
) WITHOUT ROWID;
CREATE TABLE fleet_events (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    fleet TEXT NOT NULL,
    pool TEXT NOT NULL,
    instance TEXT NOT NULL,
    about TEXT NOT NULL
);
)sql";

// The register of models (models/register_store.hpp).
constexpr std::string_view kModels = R"sql(
CREATE TABLE models (
    path TEXT PRIMARY KEY,
    revision INTEGER NOT NULL,
    about TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE model_changes (
    id INTEGER PRIMARY KEY,
    count INTEGER NOT NULL
);
INSERT INTO model_changes VALUES (1, 0);
)sql";

constexpr Migration kMigrations[] = {
    {1, kVersion1},
    {2, kVersion2},
    {3, kVersion3},
    {4, kVersion4},
    {5, kVersion5},
    {6, kVersion6},
    {7, kVersion7},
    {8, kVersion8, note_all_uses},
    {9, kVersion9},
    {10, kBlobs},
    {11, kVersion11},
    {12, kBulks},
    {13, kUploadNotes},
    {14, kIdentities},
    {15, kStoredBytes},
    {16, kSessions},
    {17, kInstances},
    {18, kModels},
};

constexpr char kReadVersion[] = "PRAGMA user_version";
constexpr char kReadApplication[] = "PRAGMA application_id";
constexpr char kCountTables[] = "SELECT count(*) FROM sqlite_schema";

Result<> check_owner(Database& db, std::int64_t version) {
    const auto application = db.integer(kReadApplication);
    if (!application) {
        return fail(application.error());
    }
    const auto tables = db.integer(kCountTables);
    if (!tables) {
        return fail(tables.error());
    }
    const bool is_new = version == 0 && *application == 0 && *tables == 0;
    if (!is_new && *application != kApplicationId) {
        return fail(
            Code::storage_unavailable,
            "the database belongs to another program; choose another data folder for comfyd"
        );
    }
    return {};
}

Result<> run_step(Database& db, const Migration& step) {
    auto transaction = Transaction::begin(db);
    if (!transaction) {
        return fail(transaction.error());
    }
    const auto changed = db.execute(
        std::string(step.script) + ";PRAGMA user_version = " + std::to_string(step.version) +
        ";PRAGMA application_id = " + std::to_string(kApplicationId)
    );
    if (!changed) {
        return fail(changed.error());
    }
    if (step.then != nullptr) {
        if (auto done = step.then(db); !done) {
            return done;
        }
    }
    return (*transaction)->commit();
}

}  // namespace

std::span<const Migration> migrations() {
    return kMigrations;
}

Result<> migrate(Database& db, std::span<const Migration> steps) {
    const auto version = db.integer(kReadVersion);
    if (!version) {
        return fail(version.error());
    }
    if (const auto owner = check_owner(db, *version); !owner) {
        return fail(owner.error());
    }
    const int newest = steps.empty() ? 0 : steps.back().version;
    if (*version > newest) {
        return fail(
            Code::schema_too_new,
            "the database has schema version " + std::to_string(*version) + ", this comfyd knows " +
                std::to_string(newest) + "; start the comfyd that wrote it, or a newer one"
        );
    }
    for (const Migration& step : steps) {
        if (step.version <= *version) {
            continue;
        }
        if (const auto done = run_step(db, step); !done) {
            return fail(done.error());
        }
    }
    return {};
}

}  // namespace comfyd::ledger::sqlite
