// How bulks and their items lie in columns, of any database: what is searched for has a column of
// its own, the rest is one JSON text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "jobs/bulk.hpp"

namespace comfyd::ledger {

std::string encode_bulk(const jobs::Bulk& bulk);
// Code::internal when the text is not what encode_bulk() wrote.
Result<jobs::Bulk> decode_bulk(std::string_view text);

// What became of an item; nullopt: nothing yet.
std::optional<std::string> encode_outcome(const jobs::BulkItem& item);
Result<> decode_outcome(std::string_view text, jobs::BulkItem& into);

Error stale_bulk(const jobs::Bulk& bulk);
Error no_bulk(const jobs::BulkId& id);

}  // namespace comfyd::ledger
