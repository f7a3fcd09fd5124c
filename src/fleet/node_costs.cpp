#include "fleet/node_costs.hpp"

#include <algorithm>
#include <cmath>
#include <ranges>

#include "base/learned_json.hpp"
#include "workflow/graph/graph.hpp"
#include "workflow/plan/plan.hpp"

namespace comfyd::fleet {
namespace {

constexpr int kVersion = 1;
constexpr double kSecondsPerUnit = 0.05;
constexpr double kSecondsMin = 1e-4;
constexpr double kSecondsMax = 24 * 3600.0;
constexpr double kWorkMin = 0.01;
constexpr std::size_t kSizesMax = 48;

std::string class_key(std::string_view class_type, std::string_view gpu_type) {
    return std::string(gpu_type) + "\t" + std::string(class_type);
}

int size_of(double work) {
    return static_cast<int>(std::floor(std::log2(work)));
}

// Knows no class: which outputs are run is then seen from the links alone.
class NoClasses final : public workflow::PromptClasses {
public:
    const workflow::NodeDefinition* find(std::string_view) const override { return nullptr; }
};

}  // namespace

double NodeCosts::seconds(std::string_view class_type, double work, std::string_view gpu_type)
    const {
    const double units = std::max(work, kWorkMin);
    const Lock lock(mutex_);
    if (const Sizes* sizes = classes_.find(class_key(class_type, gpu_type))) {
        const auto above = sizes->lower_bound(size_of(units));
        // The nearest size, the larger of two that are equally near.
        auto nearest = above;
        if (above == sizes->end() ||
            (above != sizes->begin() &&
             size_of(units) - std::prev(above)->first < above->first - size_of(units))) {
            nearest = std::prev(above);
        }
        return units * std::exp(nearest->second.median());
    }
    const auto* type = gpu_types_.find(gpu_type);
    return units * (type == nullptr || type->empty() ? kSecondsPerUnit : std::exp(type->median()));
}

void NodeCosts::learn(
    std::string_view class_type, double work, std::string_view gpu_type, double seconds
) {
    if (!std::isfinite(seconds) || seconds < 0 || seconds > kSecondsMax || !std::isfinite(work)) {
        return;
    }
    const double units = std::max(work, kWorkMin);
    const double log_rate = std::log(std::max(seconds, kSecondsMin) / units);
    const Lock lock(mutex_);
    Sizes& sizes = classes_.use(class_key(class_type, gpu_type));
    if (sizes.size() < kSizesMax || sizes.contains(size_of(units))) {
        sizes[size_of(units)].add(log_rate);
    }
    gpu_types_.use(gpu_type).add(log_rate);
    ++learned_;
}

std::uint64_t NodeCosts::learned() const {
    const Lock lock(mutex_);
    return learned_;
}

json::object NodeCosts::to_json() const {
    const Lock lock(mutex_);
    json::array classes;
    for (const auto& [key, sizes] : classes_.entries() | std::views::reverse) {
        json::array list;
        for (const auto& [size, recent] : sizes) {
            list.emplace_back(json::array{size, samples_json(recent)});
        }
        classes.emplace_back(json::array{key, std::move(list)});
    }
    json::array types;
    for (const auto& [key, recent] : gpu_types_.entries() | std::views::reverse) {
        types.emplace_back(json::array{key, samples_json(recent)});
    }
    return {
        {"version", kVersion}, {"classes", std::move(classes)}, {"gpu_types", std::move(types)}
    };
}

NodeCosts::Sizes NodeCosts::read_sizes(const json::value& from) {
    Sizes sizes;
    const json::array* entries = from.if_array();
    if (entries == nullptr || entries->size() > kSizesMax) {
        return sizes;
    }
    for (const json::value& entry : *entries) {
        const json::array* fields = entry.if_array();
        if (fields == nullptr || fields->size() != 2 || !fields->front().is_int64() ||
            std::abs(fields->front().get_int64()) > 64) {
            continue;
        }
        auto samples = read_samples<kRecent>(fields->back());
        if (!samples.empty()) {
            sizes[static_cast<int>(fields->front().get_int64())] = samples;
        }
    }
    return sizes;
}

Result<> NodeCosts::restore(const json::object& from) {
    const json::value* version = json::find(from, "version");
    if (version == nullptr || *version != kVersion) {
        return fail(
            Code::invalid_argument,
            "what was learned of nodes is of another version of comfyd; it is learned anew"
        );
    }
    std::vector<std::pair<std::string, Sizes>> classes;
    each_learned(
        json::find(from, "classes"),
        2,
        [&classes](std::string_view key, const json::array& fields) {
            Sizes sizes = read_sizes(fields[1]);
            if (!sizes.empty()) {
                classes.emplace_back(key, std::move(sizes));
            }
        }
    );
    std::vector<std::pair<std::string, RecentMedian<kRecentMany>>> gpu_types;
    each_learned(
        json::find(from, "gpu_types"),
        2,
        [&gpu_types](std::string_view key, const json::array& fields) {
            gpu_types.emplace_back(key, read_samples<kRecentMany>(fields[1]));
        }
    );
    const Lock lock(mutex_);
    classes_.clear();
    for (auto& [key, sizes] : classes) {
        classes_.use(key) = std::move(sizes);
    }
    gpu_types_.clear();
    for (auto& [key, samples] : gpu_types) {
        gpu_types_.use(key) = std::move(samples);
    }
    return {};
}

NodeTimes::NodeTimes(NodeCosts& costs, const json::object& prompt, std::string gpu_type)
    : costs_(costs), gpu_type_(std::move(gpu_type)) {
    const workflow::Graph graph(prompt);
    const std::vector<double> work = workflow::node_work(graph, NoClasses());
    for (std::size_t at = 0; at < graph.size(); ++at) {
        nodes_.emplace(graph[at].id, Node{std::string(graph[at].class_type), work[at]});
    }
}

std::map<std::string, double, std::less<>> NodeTimes::expected() const {
    std::map<std::string, double, std::less<>> made;
    for (const auto& [id, node] : nodes_) {
        made.emplace(id, node.work > 0 ? costs_.seconds(node.class_type, node.work, gpu_type_) : 0);
    }
    return made;
}

void NodeTimes::at(const std::string& node, double seconds) {
    if (node == current_) {
        return;
    }
    if (const auto ended = nodes_.find(current_); ended != nodes_.end()) {
        costs_.learn(ended->second.class_type, ended->second.work, gpu_type_, seconds - since_);
    }
    current_ = node;
    since_ = seconds;
}

}  // namespace comfyd::fleet
