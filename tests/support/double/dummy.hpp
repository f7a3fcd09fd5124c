// The dummy tensors that a double with the node pack comfyd computes: along the batch axis,
// each sample says what made it. A sample of a merged run is equal to that of the job alone exactly
// when texts, seed, latent, models and settings of the job reached it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.hpp"

namespace comfyd::support {

struct DummySample {
    std::string text{};  // the prompt and, once it was sampled, "seed 5/0": its seed and its place
    std::string what{};  // a hash of all that made it

    bool operator==(const DummySample&) const = default;
};
using DummyTensor = std::vector<DummySample>;

class DummyTensors {
public:
    explicit DummyTensors(const json::object& graph) : graph_(graph) {}

    // What a node gives at a slot; made once. Throws std::runtime_error where the real node would
    // raise.
    const DummyTensor& get(const std::string& node, std::int64_t slot);
    // What is linked to an input; empty when it is a literal.
    DummyTensor input(const std::string& node, std::string_view name);

private:
    DummyTensor make(const std::string& node, std::int64_t slot);
    DummyTensor join_latents(const std::string& node, bool seeds);
    DummyTensor join_conditionings(const std::string& node);
    DummyTensor part(const std::string& node);
    DummyTensor sample(const std::string& node);
    DummyTensor apply(const std::string& node);
    DummySample describe(const std::string& node, std::size_t at, std::string_view without);
    std::string seed_of(const std::string& node, std::size_t at);

    const json::object& graph_;
    std::map<std::pair<std::string, std::int64_t>, DummyTensor> made_;
};

}  // namespace comfyd::support
