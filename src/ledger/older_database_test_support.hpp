// For tests: what makes of a SQLite file what an older comfyd wrote.
#pragma once

#include <string>

namespace comfyd::ledger::test {

// Before version 10.
inline const std::string kWithoutBlobs =
    "DROP TABLE blobs; DROP TABLE blob_removals; DROP INDEX assets_moving; "
    "ALTER TABLE assets DROP COLUMN crc32; ALTER TABLE assets DROP COLUMN store; "
    "ALTER TABLE assets DROP COLUMN retention; ALTER TABLE assets DROP COLUMN moves_at; ";

}  // namespace comfyd::ledger::test
