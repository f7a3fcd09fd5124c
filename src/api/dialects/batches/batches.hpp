// Batches: /v2/batches run one workflow with many sets of parameters; /v1/batches and /v1/files are
// the same in the shape of OpenAI's batch API. Inside they are bulks (jobs/bulk.hpp). A tenant sees
// its own only. `tools.services` outlives the router.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/dialects/named/named.hpp"
#include "api/router.hpp"
#include "api/services.hpp"
#include "assets/store.hpp"
#include "bulk/item_form.hpp"
#include "bulk/plan.hpp"
#include "bulk/rows.hpp"
#include "jobs/bulk_store.hpp"

namespace comfyd::api {

// What its routes work with. Owned by app/application; outlives the router.
struct BatchTools {
    const Services& services;
    jobs::BulkStore& bulks;
    std::function<void(jobs::BulkId)> wake;  // it was made or changed; any thread
    int items_max = 10'000;                  // of one batch
};

void add_batches(Router& router, const BatchTools& tools);

namespace batches {

using Tools = BatchTools;

void add_openai(Router& router, const Tools& tools);

// What is asked for, decoded: everything but the rows.
struct Order {
    jobs::Bulk bulk;
    bulk::Plan plan;
};
// Makes the item of a row, or refuses it.
using MakeItem = std::function<Result<jobs::BulkItem>(bulk::Row row, int index)>;
// Where the rows are.
struct RowSource {
    std::optional<json::array> rows{};                // in the request itself
    std::optional<assets::Asset> asset{};             // or in a file,
    bulk::RowFormat format = bulk::RowFormat::jsonl;  // written so
};

// A workflow, and what items of it must look like.
struct Work {
    json::object wrapped;  // {"prompt", "parameters"}, as a plan has it
    std::string name;      // of a stored one
    int version = 0;
    bulk::ItemForm::Of form;
};
Result<Work> make_work(const jobs::WorkflowVersion& version, bool takes_other_names);
Task<Result<Work>> load_named(const Call& call, const Tools& tools, named::Choice choice);

struct Made {
    jobs::Bulk bulk;
    bool replayed = false;
};
// Stores the bulk and all of its items, and lets it begin. All or nothing: whatever is wrong with a
// row, nothing of it stays. The first item is admitted as if it were run now.
Task<Result<Made>> make_bulk(const Tools& tools, Order order, RowSource source, MakeItem make_item);

// Of a POST to /v2/batches.
Task<Result<Made>> make_as_asked(Call& call, const Tools& tools);

// The file of a form, into the asset store; the other parts are members of an object, as JSON or
// else as text.
struct Form {
    json::object members;
    std::optional<assets::Asset> file{};
};
Task<Result<Form>> read_form(Call& call, const Tools& tools);

// Of the caller. Code::not_found.
Task<Result<jobs::Bulk>> get_bulk(const Call& call, const Tools& tools, std::string id);
// Changes it, however often others do so meanwhile. nullopt: there is nothing to change.
using Change = std::function<Result<std::optional<jobs::BulkChange>>(const jobs::Bulk&)>;
Task<Result<jobs::Bulk>> change_bulk(
    const Call& call, const Tools& tools, std::string id, Change change
);

// As /v2/batches shows it.
json::object encode_batch(const jobs::Bulk& bulk);
// Its frames, until it ends or the client is gone. What is wrong is told before anything is sent.
Task<Result<>> send_events(Call& call, const Tools& tools, jobs::Bulk bulk);

// Sends a line for every item that `encode` says something of, in the order of their indexes.
using EncodeLine = std::function<std::optional<json::object>(const jobs::BulkItem&)>;
Task<> send_lines(
    Call& call, const Tools& tools, jobs::Bulk bulk, std::string file_name, EncodeLine encode
);
Task<> send_zip(Call& call, const Tools& tools, jobs::Bulk bulk);

// ?limit= (1..1000). Code::invalid_argument.
Result<int> decode_limit(const Call& call, int otherwise);

json::object operation(std::string_view id, std::string_view text);
json::object schemas();

}  // namespace batches
}  // namespace comfyd::api
