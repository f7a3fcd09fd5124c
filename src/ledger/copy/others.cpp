#include "ledger/copy/table_copy.hpp"
#include "ledger/mentioned_assets.hpp"

namespace comfyd::ledger::copying {
namespace {

Result<> copy_assets(Copy& copy) {
    return copy.table(
        "assets",
        "SELECT id, tenant, hash, size_bytes, content_type, file_path, tags, created_at, "
        "expires_at, job, crc32, store, retention, moves_at FROM assets",
        "INSERT INTO assets (id, tenant, hash, size_bytes, content_type, file_path, tags, "
        "created_at, expires_at, job, crc32, store, retention, moves_at) "
        "SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
        {kUuid,
         kText,
         kText,
         kInteger,
         kText,
         kText,
         kText,
         kInteger,
         kInteger,
         kUuid,
         kInteger,
         kText,
         kInteger,
         kInteger},
        [](const Query& row, postgres::Table& into) {
            into.add(
                row.uuid(0),
                row.string(1),
                row.string(2),
                row.integer(3),
                row.string(4),
                row.string(5),
                text(row, 6),
                row.integer(7),
                number(row, 8),
                id(row, 9),
                number(row, 10),
                text(row, 11),
                number(row, 12),
                number(row, 13)
            );
        }
    );
}

Result<> copy_blobs(Copy& copy) {
    return copy.table(
        "blobs",
        "SELECT hash, store, generation, key, size_bytes, state, storage_class, doomed_at, due_at, "
        "attempts, error FROM blobs",
        "INSERT INTO blobs (hash, store, generation, key, size_bytes, state, storage_class, "
        "doomed_at, due_at, attempts, error) "
        "SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        {kText,
         kText,
         kInteger,
         kText,
         kInteger,
         kInteger,
         kInteger,
         kInteger,
         kInteger,
         kInteger,
         kText},
        [](const Query& row, postgres::Table& into) {
            into.add(
                row.string(0),
                row.string(1),
                row.integer(2),
                row.string(3),
                row.integer(4),
                row.integer(5),
                row.integer(6),
                number(row, 7),
                number(row, 8),
                row.integer(9),
                text(row, 10)
            );
        }
    );
}

Result<> copy_removals(Copy& copy) {
    return copy.table(
        "blob_removals",
        "SELECT store, key, attempts, due_at, error FROM blob_removals",
        "INSERT INTO blob_removals (store, key, attempts, due_at, error) "
        "SELECT * FROM unnest($1, $2, $3, $4, $5)",
        {kText, kText, kInteger, kInteger, kText},
        [](const Query& row, postgres::Table& into) {
            into.add(row.string(0), row.string(1), row.integer(2), row.integer(3), text(row, 4));
        }
    );
}

Result<> copy_contents(Copy& copy) {
    return copy.table(
        "contents",
        "SELECT DISTINCT a.hash, c.bytes FROM assets a JOIN contents c ON c.id = a.content",
        "INSERT INTO contents (hash, bytes) SELECT * FROM unnest($1, $2) "
        "ON CONFLICT (hash) DO NOTHING",
        {kText, kBytes},
        [](const Query& row, postgres::Table& into) {
            into.add(row.string(0), std::string(row.bytes(1)));
        }
    );
}

Result<> copy_workflows(Copy& copy) {
    return copy.table(
        "workflows",
        "SELECT number, tenant, name, tag, created_at, updated_at, last_version FROM workflows",
        "INSERT INTO workflows (number, tenant, name, tag, created_at, updated_at, last_version) "
        "OVERRIDING SYSTEM VALUE SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7)",
        {kInteger, kText, kText, kText, kInteger, kInteger, kInteger},
        [](const Query& row, postgres::Table& into) {
            into.add(
                row.integer(0),
                row.string(1),
                row.string(2),
                row.string(3),
                row.integer(4),
                row.integer(5),
                row.integer(6)
            );
        }
    );
}

Result<> copy_versions(Copy& copy) {
    return copy.table(
        "workflow_versions",
        "SELECT workflow, version, created_at, node_count, content_hash, description, parameters, "
        "workflow_text, prompt FROM workflow_versions",
        "INSERT INTO workflow_versions (workflow, version, created_at, node_count, content_hash, "
        "description, parameters, workflow_text, prompt) "
        "SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        {kInteger, kInteger, kInteger, kInteger, kText, kText, kText, kText, kText},
        [](const Query& row, postgres::Table& into) {
            into.add(
                row.integer(0),
                row.integer(1),
                row.integer(2),
                row.integer(3),
                row.string(4),
                row.string(5),
                row.string(6),
                row.string(7),
                row.string(8)
            );
        }
    );
}

Result<> copy_labels(Copy& copy) {
    return copy.table(
        "workflow_labels",
        "SELECT workflow, label, version FROM workflow_labels",
        "INSERT INTO workflow_labels (workflow, label, version) SELECT * FROM unnest($1, $2, $3)",
        {kInteger, kText, kInteger},
        [](const Query& row, postgres::Table& into) {
            into.add(row.integer(0), row.string(1), row.integer(2));
        }
    );
}

Result<> copy_workflow_assets(Copy& copy) {
    return copy.table(
        "workflow_assets",
        "SELECT workflow, version, workflow_text, prompt FROM workflow_versions",
        "INSERT INTO workflow_assets (workflow, version, asset) SELECT * FROM unnest($1, $2, $3) "
        "ON CONFLICT DO NOTHING",
        {kInteger, kInteger, kText},
        [](const Query& row, postgres::Table& into) {
            for (const int column : {2, 3}) {
                const MentionedAssets mentioned = mentioned_assets(row.text(column));
                for (const AssetId& asset : mentioned.ids) {
                    into.add(row.integer(0), row.integer(1), asset.to_string());
                }
                for (const std::string& hash : mentioned.hashes) {
                    into.add(row.integer(0), row.integer(1), hash);
                }
            }
        }
    );
}

Result<> copy_notes(Copy& copy) {
    return copy.table(
        "notes",
        "SELECT name, updated_at, text FROM notes",
        "INSERT INTO notes (name, updated_at, text) SELECT * FROM unnest($1, $2, $3) "
        "ON CONFLICT (name) DO UPDATE SET updated_at = excluded.updated_at, text = excluded.text",
        {kText, kInteger, kText},
        [](const Query& row, postgres::Table& into) {
            into.add(row.string(0), row.integer(1), row.string(2));
        }
    );
}

// "17:2,1" as PostgreSQL writes an array: the counts of all buckets from the first on.
std::string counts_of(std::string_view durations) {
    const auto colon = durations.find(':');
    if (colon == std::string_view::npos) {
        return "{}";
    }
    std::string array = "{";
    for (int i = std::stoi(std::string(durations.substr(0, colon))); i > 0; --i) {
        array += "0,";
    }
    return array.append(durations.substr(colon + 1)) + "}";
}

Result<> copy_rollups(Copy& copy) {
    return copy.table(
        "rollups",
        "SELECT hour, tenant, workflow, worker, completed, failed, cancelled, expired, retries, "
        "images, model_loads, gpu_ms, model_load_ms, inference_ms, cost_nano_usd, queued, ran "
        "FROM rollups",
        "INSERT INTO rollups (hour, tenant, workflow, worker, slot, completed, failed, cancelled, "
        "expired, retries, images, model_loads, gpu_ms, model_load_ms, inference_ms, "
        "cost_nano_usd, queued, ran) SELECT n.hour, n.tenant, n.workflow, n.worker, 0, "
        "n.completed, n.failed, n.cancelled, n.expired, n.retries, n.images, n.model_loads, "
        "n.gpu_ms, n.model_load_ms, n.inference_ms, n.cost_nano_usd, n.queued::int8[], "
        "n.ran::int8[] FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, "
        "$15, $16, $17) AS n (hour, tenant, workflow, worker, completed, failed, cancelled, "
        "expired, retries, images, model_loads, gpu_ms, model_load_ms, inference_ms, "
        "cost_nano_usd, queued, ran)",
        {kInteger,
         kText,
         kText,
         kText,
         kInteger,
         kInteger,
         kInteger,
         kInteger,
         kInteger,
         kInteger,
         kInteger,
         kInteger,
         kInteger,
         kInteger,
         kInteger,
         kText,
         kText},
        [](const Query& row, postgres::Table& into) {
            into.add(
                row.integer(0),
                row.string(1),
                row.string(2),
                row.string(3),
                row.integer(4),
                row.integer(5),
                row.integer(6),
                row.integer(7),
                row.integer(8),
                row.integer(9),
                row.integer(10),
                row.integer(11),
                row.integer(12),
                row.integer(13),
                row.integer(14),
                counts_of(row.text(15)),
                counts_of(row.text(16))
            );
        }
    );
}

Result<> copy_endpoints(Copy& copy) {
    return copy.table(
        "endpoints",
        "SELECT id, tenant, revision, about, secrets FROM endpoints",
        "INSERT INTO endpoints (id, tenant, revision, about, secrets) "
        "SELECT * FROM unnest($1, $2, $3, $4, $5)",
        {kUuid, kText, kInteger, kText, kBytes},
        [&copy](const Query& row, postgres::Table& into) {
            const Uuid id = row.uuid(0);
            const std::string secrets = copy.texts().write(row.string(4), id.to_string());
            into.add(id, row.string(1), row.integer(2), row.string(3), secrets);
        }
    );
}

Result<> copy_identities(Copy& copy) {
    return copy.table(
        "identities",
        "SELECT kind, id, revision, about FROM identities",
        "INSERT INTO identities (kind, id, revision, about) SELECT * FROM unnest($1, $2, $3, $4)",
        {kInteger, kText, kInteger, kText},
        [](const Query& row, postgres::Table& into) {
            into.add(row.integer(0), row.string(1), row.integer(2), row.string(3));
        }
    );
}

Result<> copy_models(Copy& copy) {
    return copy.table(
        "models",
        "SELECT path, revision, about FROM models",
        "INSERT INTO models (path, revision, about) SELECT * FROM unnest($1, $2, $3)",
        {kText, kInteger, kText},
        [](const Query& row, postgres::Table& into) {
            into.add(row.string(0), row.integer(1), row.string(2));
        }
    );
}

Result<> copy_key_uses(Copy& copy) {
    return copy.table(
        "key_uses",
        "SELECT key, used_at FROM key_uses",
        "INSERT INTO key_uses (key, used_at) SELECT * FROM unnest($1, $2)",
        {kText, kInteger},
        [](const Query& row, postgres::Table& into) { into.add(row.string(0), row.integer(1)); }
    );
}

Result<> copy_bulks(Copy& copy) {
    return copy.table(
        "bulks",
        "SELECT id, tenant, key, revision, is_open, ended_at, data FROM bulks",
        "INSERT INTO bulks (id, tenant, key, revision, stamp, is_open, ended_at, data) "
        "SELECT n.id, n.tenant, n.key, n.revision, n.id, n.is_open <> 0, n.ended_at, n.data "
        "FROM unnest($1, $2, $3, $4, $5, $6, $7) "
        "AS n (id, tenant, key, revision, is_open, ended_at, data)",
        {kUuid, kText, kText, kInteger, kInteger, kInteger, kText},
        [](const Query& row, postgres::Table& into) {
            into.add(
                row.uuid(0),
                row.string(1),
                text(row, 2),
                row.integer(3),
                row.integer(4),
                number(row, 5),
                row.string(6)
            );
        }
    );
}

Result<> copy_bulk_plans(Copy& copy) {
    return copy.table(
        "bulk_plans",
        "SELECT bulk, plan FROM bulk_plans",
        "INSERT INTO bulk_plans (bulk, plan) SELECT * FROM unnest($1, $2)",
        {kUuid, kText},
        [&copy](const Query& row, postgres::Table& into) {
            const Uuid bulk = row.uuid(0);
            into.add(bulk, copy.texts().write(row.string(1), bulk.to_string()));
        }
    );
}

Result<> copy_bulk_items(Copy& copy) {
    return copy.table(
        "bulk_items",
        "SELECT bulk, place, state, job, custom_id, params, outcome FROM bulk_items",
        "INSERT INTO bulk_items (bulk, place, state, job, custom_id, params, outcome) "
        "SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7)",
        {kUuid, kInteger, kInteger, kUuid, kText, kText, kText},
        [](const Query& row, postgres::Table& into) {
            into.add(
                row.uuid(0),
                row.integer(1),
                row.integer(2),
                id(row, 3),
                row.string(4),
                row.string(5),
                text(row, 6)
            );
        }
    );
}

// Assets are held for those that have not ended, by the id of the bulk.
Result<> copy_bulk_assets(Copy& copy) {
    return copy.table(
        "bulk_assets",
        "SELECT u.holder, u.asset FROM bulks b JOIN asset_uses u ON u.holder = b.id",
        "INSERT INTO bulk_assets (bulk, asset) SELECT * FROM unnest($1, $2)",
        {kUuid, kText},
        [](const Query& row, postgres::Table& into) {
            const std::string_view asset = row.bytes(1);
            into.add(
                row.uuid(0), asset.size() == 16 ? row.uuid(1).to_string() : std::string(asset)
            );
        }
    );
}

}  // namespace

Result<> copy_instances(Copy& copy) {
    return copy.table(
        "instances",
        "SELECT id, fleet, is_open, revision, changed_at, about, token FROM instances",
        "INSERT INTO instances (id, fleet, is_open, revision, changed_at, about, token) "
        "SELECT n.id, n.fleet, n.is_open = 1, n.revision, n.changed_at, n.about, n.token "
        "FROM unnest($1, $2, $3, $4, $5, $6, $7) "
        "AS n (id, fleet, is_open, revision, changed_at, about, token)",
        {kText, kText, kInteger, kInteger, kInteger, kText, kBytes},
        [&copy](const Query& row, postgres::Table& into) {
            into.add(
                row.string(0),
                row.string(1),
                row.integer(2),
                row.integer(3),
                row.integer(4),
                row.string(5),
                copy.texts().write(row.string(6), row.string(0))
            );
        }
    );
}

Result<> copy_fleet_pools(Copy& copy) {
    return copy.table(
        "fleet_pools",
        "SELECT fleet, name, revision, about FROM fleet_pools",
        "INSERT INTO fleet_pools (fleet, name, revision, about) "
        "SELECT * FROM unnest($1, $2, $3, $4)",
        {kText, kText, kInteger, kText},
        [](const Query& row, postgres::Table& into) {
            into.add(row.string(0), row.string(1), row.integer(2), row.string(3));
        }
    );
}

// With their numbers, by which it is known what was told of them.
Result<> copy_fleet_events(Copy& copy) {
    return copy.table(
        "fleet_events",
        "SELECT number, fleet, pool, instance, about FROM fleet_events ORDER BY number",
        "WITH copied AS (INSERT INTO fleet_events (number, turn, fleet, pool, instance, about) "
        "OVERRIDING SYSTEM VALUE SELECT n.number, '0', n.fleet, n.pool, n.instance, n.about "
        "FROM unnest($1, $2, $3, $4, $5) AS n (number, fleet, pool, instance, about) "
        "RETURNING number) "
        "SELECT setval(pg_get_serial_sequence('fleet_events', 'number'), max(number)) FROM copied",
        {kInteger, kText, kText, kText, kText},
        [](const Query& row, postgres::Table& into) {
            into.add(row.integer(0), row.string(1), row.string(2), row.string(3), row.string(4));
        }
    );
}

Result<> copy_others(Copy& copy) {
    for (const auto table :
         {copy_assets,    copy_contents,    copy_blobs,        copy_removals,
          copy_workflows, copy_versions,    copy_labels,       copy_workflow_assets,
          copy_notes,     copy_endpoints,   copy_identities,   copy_key_uses,
          copy_bulks,     copy_bulk_plans,  copy_bulk_items,   copy_bulk_assets,
          copy_instances, copy_fleet_pools, copy_fleet_events, copy_rollups,
          copy_models}) {
        if (auto copied = table(copy); !copied) {
            return copied;
        }
    }
    return {};
}

}  // namespace comfyd::ledger::copying
