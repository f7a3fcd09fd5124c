#include "workflow/merge/merge_prompt.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "workflow/merge/merge_shape.hpp"

namespace comfyd::workflow {

std::string own_node_id(const JobNode& node) {
    return "job" + std::to_string(node.job) + "-" + node.node_id;
}

std::optional<JobNode> own_node(std::string_view id) {
    constexpr std::string_view kStart = "job";
    if (!id.starts_with(kStart)) {
        return std::nullopt;
    }
    id.remove_prefix(kStart.size());
    JobNode node{};
    const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), node.job);
    if (error != std::errc() || end == id.data() + id.size() || *end != '-') {
        return std::nullopt;
    }
    node.node_id = id.substr(static_cast<std::size_t>(end - id.data()) + 1);
    return node;
}

std::string MergedPrompt::add_shared(std::string_view class_type, json::object inputs) {
    json::object texts;
    for (const auto& [name, value] : inputs) {
        texts[name] = literal_text(value);
    }
    auto& id = shared_[std::string(class_type) + json::serialize_canonical(texts)];
    if (id.empty()) {
        id = write(std::to_string(merged_.prompt.size() + 1), class_type, std::move(inputs));
    }
    return id;
}

std::string MergedPrompt::add_own(
    std::string_view class_type, json::object inputs, const JobNode& origin
) {
    return write(own_node_id(origin), class_type, std::move(inputs));
}

void MergedPrompt::add_origin(const std::string& id, JobNode origin) {
    auto& origins = merged_.origins[id];
    if (std::ranges::find(origins, origin) == origins.end()) {
        origins.push_back(std::move(origin));
    }
}

Merged MergedPrompt::take(std::vector<std::size_t> samples) {
    merged_.samples = std::move(samples);
    return std::move(merged_);
}

std::string MergedPrompt::write(std::string id, std::string_view class_type, json::object inputs) {
    merged_.prompt[id] = json::object{{"class_type", class_type}, {"inputs", std::move(inputs)}};
    merged_.origins[id];
    return id;
}

}  // namespace comfyd::workflow
