// What a double tells of its classes besides /object_info: the routes of the node pack comfyd, and
// the new names of old classes.
#include <algorithm>
#include <utility>

#include "support/double/routes.hpp"
#include "support/double/validation.hpp"

namespace comfyd::support {

using net::Response;

Response Routes::get_replacements(Call&) {
    if (!core_.behaviour.replaces_nodes) {
        return empty_answer(404);
    }
    const std::string& told = core_.options.replacements_json;
    return json_answer(told.empty() ? json::value(json::object()) : boost::json::parse(told));
}

Response Routes::get_pack_classes(Call&) {
    if (!core_.options.batch_pack) {
        return empty_answer(404);
    }
    return json_answer(json::object{
        {"own_checks", core_.catalogue.own_checks()}, {"changing", json::array{"LoadImage"}}
    });
}

Response Routes::post_pack_validate(Call& call) {
    if (!core_.options.batch_pack) {
        return empty_answer(404);
    }
    const auto request = json::parse_object(call.body);
    const auto* graph = request ? json::find(*request, "prompt") : nullptr;
    const auto is_node = [](const auto& member) { return member.value().is_object(); };
    if (!graph || !graph->is_object() || !std::ranges::all_of(graph->get_object(), is_node)) {
        return trouble();
    }
    const auto* targets = json::find(*request, "partial_execution_targets");
    core_.look_at_models();
    auto verdict = validate(
        graph->get_object(),
        targets ? &targets->as_array() : nullptr,
        core_.catalogue,
        core_.files,
        core_.behaviour
    );
    if (verdict.error) {
        return prompt_error(std::move(*verdict.error), std::move(verdict.node_errors));
    }
    return json_answer(json::object{
        {"outputs", json::array(verdict.outputs.begin(), verdict.outputs.end())},
        {"node_errors", std::move(verdict.node_errors)}
    });
}

std::optional<Response> Routes::refuse_lead(const json::object& lead) {
    std::int64_t& highest = core_.epochs[std::string(lead.at("domain").as_string())];
    const std::int64_t epoch = lead.at("epoch").to_number<std::int64_t>();
    if (epoch < highest) {
        const auto error = make_prompt_error("comfyd_lower_epoch", "Another node leads", "");
        return json_answer(json::object{{"error", error}}, 409);
    }
    highest = epoch;
    return std::nullopt;
}

std::optional<Response> Routes::refuse_prompt(const json::object& request, const Prompt& prompt) {
    const json::value* extra = json::find(request, "extra_data");
    const json::value* lead =
        extra != nullptr ? json::find(extra->as_object(), "comfyd_lead") : nullptr;
    if (!has_fence() || lead == nullptr) {
        return std::nullopt;
    }
    if (auto refused = refuse_lead(lead->as_object())) {
        return refused;
    }
    if (!core_.fenced_prompts.insert(prompt.id).second) {
        const auto error = make_prompt_error("comfyd_known_prompt", "The prompt is known", "");
        return json_answer(json::object{{"error", error}}, 409);
    }
    return std::nullopt;
}

Response Routes::post_pack_lead(Call& call) {
    if (!has_fence()) {
        return empty_answer(404);
    }
    const auto lead = json::parse_object(call.body);
    if (!lead || !json::find(*lead, "domain") || !json::find(*lead, "epoch")) {
        return trouble();
    }
    auto refused = refuse_lead(*lead);
    return refused ? std::move(*refused) : json_answer(*lead);
}

}  // namespace comfyd::support
