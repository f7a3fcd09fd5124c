// Batches in the shape of OpenAI's batch API: a file of requests (JSONL) goes in by /v1/files, a
// batch is made of it, and what came of the requests is two files again. Those files are made of
// the items whenever they are read.
#pragma once

#include <string>
#include <string_view>

#include "api/dialects/batches/batches.hpp"

namespace comfyd::api::batches::openai {

constexpr std::string_view kFilePrefix = "file-";
constexpr std::string_view kBatchPrefix = "batch_";
constexpr std::string_view kOutput = "-output";  // the file of what has succeeded,
constexpr std::string_view kErrors = "-errors";  // and of the rest
constexpr std::string_view kWindow = "24h";

// Without the prefix that clients see; what has none is as good as unknown.
std::string without(std::string_view prefix, const std::string& id);
std::string batch_id(const jobs::Bulk& bulk);

net::Response encode_error(const Error& error);
json::object encode_file(const assets::Asset& asset);
json::object encode(const jobs::Bulk& bulk);
// A line of a file of results: {"id", "custom_id", "response", "error"}
json::object encode_line(const Call& call, const Tools& tools, const jobs::BulkItem& item);
json::object schemas();

// Of the caller. Code::not_found.
Task<Result<assets::Asset>> get_file(const Call& call, const Tools& tools, std::string id);
// Of a POST to /v1/batches.
Task<Result<Made>> make_as_asked(Call& call, const Tools& tools);

}  // namespace comfyd::api::batches::openai
