// For tests: what makes of a SQLite file what an older comfyd wrote.
#pragma once

#include <string>

namespace comfyd::ledger::test {

// What came after version 9, but for the shape of the outbox, which the steps since then take too.
inline const std::string kAsVersion9 =
    "DROP TABLE blobs; DROP TABLE blob_removals; DROP INDEX assets_moving; DROP INDEX "
    "assets_by_tenant; "
    "ALTER TABLE assets DROP COLUMN crc32; ALTER TABLE assets DROP COLUMN store; "
    "ALTER TABLE assets DROP COLUMN retention; ALTER TABLE assets DROP COLUMN moves_at; "
    "DROP TABLE outbox_targets; DROP TABLE endpoints; DROP TABLE endpoint_changes; "
    "DROP TABLE identities; DROP TABLE identity_changes; DROP TABLE key_uses; "
    "DROP TABLE sessions; DROP TABLE models; DROP TABLE model_changes; "
    "DROP TABLE instances; DROP TABLE fleet_pools; DROP TABLE fleet_events; "
    "DROP TABLE bulks; DROP TABLE bulk_plans; DROP TABLE bulk_items; "
    "PRAGMA user_version = 9; ";

}  // namespace comfyd::ledger::test
