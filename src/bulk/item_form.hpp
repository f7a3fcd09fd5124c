// Makes items of rows: takes the client's own name of each, types its values by the parameters of
// the workflow, and refuses what could not be set, with record and line. Pure; one thread.
#pragma once

#include <memory>
#include <string>
#include <unordered_set>

#include "base/error.hpp"
#include "base/json.hpp"
#include "bulk/rows.hpp"
#include "jobs/bulk.hpp"
#include "workflow/parameters/parameters_schema.hpp"
#include "workflow/rules/prompt_rules.hpp"

namespace comfyd::bulk {

inline constexpr std::string_view kCustomId = "custom_id";
inline constexpr std::size_t kCustomIdBytesMax = 256;

// Each may be there once.
class CustomIds {
public:
    // Empty where the row has none. Takes it out of the row.
    Result<std::string> take(Row& row);

private:
    std::unordered_set<std::string> seen_;
};

class ItemForm {
public:
    struct Of {
        json::object graph;     // in API format
        json::object declared;  // its parameters, as a stored workflow keeps them
        // Further names are looked for in the graph: "6.text", titles, "seed".
        bool takes_other_names = false;
        json::object common{};  // values of all items, where a row does not say otherwise
    };
    // `classes` outlive it. Code::invalid_argument.
    static Result<ItemForm> make(Of of, const workflow::PromptClasses& classes);

    // {"custom_id"?, "params": {…}}, or the values beside custom_id.
    Result<jobs::BulkItem> make_item(Row row, int index);

private:
    ItemForm(std::unique_ptr<Of> of, const workflow::PromptClasses& classes)
        : of_(std::move(of)), classes_(&classes) {}

    Result<> make_schema();
    Result<> learn_names(const json::object& values);

    std::unique_ptr<Of> of_;  // stays where it is: the schema points into it
    const workflow::PromptClasses* classes_;
    std::unique_ptr<workflow::ParameterSchema> schema_;
    CustomIds custom_ids_;
};

}  // namespace comfyd::bulk
