// What a bulk has made, for its client: a line of the manifest for each item, and all files as one
// archive. Pure but for what says Task.
#pragma once

#include <string>
#include <vector>

#include "assets/store.hpp"
#include "base/pool.hpp"
#include "base/task.hpp"
#include "bulk/zip.hpp"
#include "jobs/bulk_store.hpp"

namespace comfyd::bulk {

// Where an output lies in the archive: "00007-cat.png", "00007-cat--2.png". Relative, of one part,
// and unlike that of every other output of the bulk.
std::string output_path(const jobs::BulkItem& item, std::size_t output);

// {"index", "custom_id", "job_id", "status", "params", "outputs", "error"}
json::object encode_item(const jobs::BulkItem& item);

struct Archive {
    ZipLayout layout;
    std::vector<AssetId> assets;  // of its entries
};

// Whom it asks. All of it outlives the task.
struct ResultTools {
    jobs::BulkStore& store;
    assets::Store& assets;
    Pool& pool;
};

// Of a bulk that has ended, with those outputs that are still there. A checksum that nobody knows
// is computed and kept. Code::conflict where it has not ended.
Task<Result<Archive>> plan_archive(ResultTools tools, jobs::Bulk bulk);

}  // namespace comfyd::bulk
