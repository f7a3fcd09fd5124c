// The prompt that a merge writes, node by node: equal nodes are written once unless they belong to
// one job alone. Ids of those that are shared are numbers in the order of writing. Not thread safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "workflow/merge/merge.hpp"

namespace comfyd::workflow {

class MergedPrompt {
public:
    // The id of the node, a new one or that of an equal one.
    std::string add_shared(std::string_view class_type, json::object inputs);
    std::string add_own(std::string_view class_type, json::object inputs, const JobNode& origin);
    void add_origin(const std::string& id, JobNode origin);

    Merged take(std::vector<std::size_t> samples);

private:
    std::string write(std::string id, std::string_view class_type, json::object inputs);

    std::unordered_map<std::string, std::string> shared_;  // ids by what the node is
    Merged merged_;
};

}  // namespace comfyd::workflow
