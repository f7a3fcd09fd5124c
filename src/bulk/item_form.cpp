#include "bulk/item_form.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "workflow/parameters/parameters.hpp"

namespace comfyd::bulk {
namespace {

constexpr std::string_view kParams = "params";

// The same failure, at this row.
tl::unexpected<Error> at_row(const Row& row, Error error) {
    auto told = wrong_row(row.record, row.line, std::move(error.message));
    for (auto& detail : error.details) {
        told.value().details[detail.key()] = std::move(detail.value());
    }
    return told;
}

// The values, out of their wrapper where they have one.
Result<> unwrap(Row& row) {
    const json::value* params = row.values.if_contains("params");
    if (row.is_text || params == nullptr || !params->is_object()) {
        return {};
    }
    for (const auto& member : row.values) {
        if (view(member.key()) != kParams) {
            return wrong_row(
                row.record,
                row.line,
                "'" + std::string(view(member.key()).substr(0, 100)) +
                    "' stands beside 'params': values of parameters belong into it"
            );
        }
    }
    json::object values = params->get_object();
    row.values = std::move(values);
    return {};
}

}  // namespace

Result<std::string> CustomIds::take(Row& row) {
    const auto found = row.values.find("custom_id");
    if (found == row.values.end() || found->value().is_null()) {
        return std::string();
    }
    if (!found->value().is_string()) {
        return wrong_row(row.record, row.line, "'custom_id' must be a text");
    }
    std::string id(view(found->value().get_string()));
    if (id.empty() || id.size() > kCustomIdBytesMax) {
        return wrong_row(
            row.record,
            row.line,
            "'custom_id' must have 1 to " + std::to_string(kCustomIdBytesMax) + " bytes"
        );
    }
    if (!seen_.insert(id).second) {
        return wrong_row(
            row.record, row.line, "an earlier one has the same custom_id '" + id + "'"
        );
    }
    row.values.stable_erase(found);
    return id;
}

Result<ItemForm> ItemForm::make(Of of, const workflow::PromptClasses& classes) {
    ItemForm form(std::make_unique<Of>(std::move(of)), classes);
    if (auto made = form.make_schema(); !made) {
        return fail(std::move(made.error()));
    }
    if (auto learned = form.learn_names(form.of_->common); !learned) {
        return fail(std::move(learned.error()));
    }
    // What is required may stand in the rows alone.
    for (const auto& value : form.of_->common) {
        if (!form.schema_->contains(view(value.key()))) {
            return fail(
                Code::invalid_argument,
                "'params': the workflow has no parameter '" + std::string(view(value.key())) + "'",
                {{"field", "params"}}
            );
        }
    }
    return form;
}

Result<> ItemForm::make_schema() {
    auto schema = workflow::ParameterSchema::make(of_->declared, of_->graph, *classes_);
    if (!schema) {
        return fail(std::move(schema.error()));
    }
    schema_ = std::make_unique<workflow::ParameterSchema>(std::move(*schema));
    return {};
}

// Names that nobody declared are declared now, as what they mean in the graph.
Result<> ItemForm::learn_names(const json::object& values) {
    if (!of_->takes_other_names || std::ranges::all_of(values, [this](const auto& value) {
            return schema_->contains(view(value.key()));
        })) {
        return {};
    }
    const workflow::ParameterNames names(of_->graph, nullptr);
    for (const auto& value : values) {
        const std::string_view name = view(value.key());
        if (schema_->contains(name)) {
            continue;
        }
        if (of_->declared.size() >= workflow::kParametersMax) {
            return fail(
                Code::invalid_argument,
                "more than " + std::to_string(workflow::kParametersMax) + " parameters are set"
            );
        }
        auto targets = names.find(name);
        if (!targets) {
            return fail(std::move(targets.error()));
        }
        json::array inputs;
        for (const workflow::ParameterNames::Target& target : *targets) {
            inputs.emplace_back(std::string(names.graph()[target.node].id) + "." + target.input);
        }
        of_->declared[value.key()] = json::object{{"target", std::move(inputs)}};
    }
    return make_schema();
}

Result<jobs::BulkItem> ItemForm::make_item(Row row, int index) {
    jobs::BulkItem item;
    item.index = index;
    auto custom_id = custom_ids_.take(row);
    if (!custom_id) {
        return fail(std::move(custom_id.error()));
    }
    item.custom_id = std::move(*custom_id);
    if (auto unwrapped = unwrap(row); !unwrapped) {
        return fail(std::move(unwrapped.error()));
    }
    if (auto learned = learn_names(row.values); !learned) {
        return at_row(row, std::move(learned.error()));
    }
    json::object values = of_->common;
    for (auto& value : row.values) {
        values[value.key()] =
            row.is_text ? schema_->read_text(view(value.key()), view(value.value().as_string()))
                        : std::move(value.value());
    }
    auto accepted = schema_->accept(values);
    if (!accepted) {
        return at_row(row, std::move(accepted.error()));
    }
    item.params = json::serialize(*accepted);
    return item;
}

}  // namespace comfyd::bulk
