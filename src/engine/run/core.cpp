#include "engine/run/core.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "engine/files.hpp"
#include "engine/run/executor.hpp"
#include "engine/run/plan.hpp"
#include "engine/run/validate.hpp"

namespace comfyd::engine {
namespace {

unsigned thread_count(unsigned wanted) {
    return wanted != 0 ? wanted : std::max(1U, std::thread::hardware_concurrency());
}

Error refused(Validation validation) {
    json::object details;
    std::string message = "The workflow was refused";
    if (const json::value* text = json::find(validation.error, "message")) {
        message += ": " + std::string(text->as_string());
    }
    details["error"] = std::move(validation.error);
    details["node_errors"] = std::move(validation.node_errors);
    return Error(Code::invalid_workflow, std::move(message), std::move(details));
}

// The graph as ComfyUI writes it into pictures: nodes with a fingerprint carry it.
json::object graph_for_pictures(json::object prompt, const Plan& plan) {
    for (const PlannedNode& node : plan.nodes) {
        if (!node.fingerprint.empty()) {
            prompt[node.id].as_object()["is_changed"] = json::array{node.fingerprint};
        }
    }
    return prompt;
}

// Keeps the run's results in the cache for as long as it lasts.
class RunGuard {
public:
    RunGuard(Cache& cache, const Plan& plan) : cache_(cache), run_(begin(cache, plan)) {}
    ~RunGuard() { cache_.end_run(run_); }
    RunGuard(const RunGuard&) = delete;
    RunGuard& operator=(const RunGuard&) = delete;

private:
    static std::uint64_t begin(Cache& cache, const Plan& plan) {
        std::vector<Digest> keys;
        keys.reserve(plan.nodes.size());
        for (const PlannedNode& node : plan.nodes) {
            keys.push_back(node.key);
        }
        return cache.begin_run(std::move(keys));
    }

    Cache& cache_;
    std::uint64_t run_;
};

}  // namespace

Core::Core(Registry registry, EngineOptions options)
    : registry_(std::move(registry)),
      options_(std::move(options)),
      only_user_{{}, options_.folders},
      memory_(std::make_shared<Memory>(options_.memory_bytes_max)),
      cache_(*memory_),
      pool_(thread_count(options_.threads)) {
    for (const auto* folder :
         {&options_.folders.input, &options_.folders.output, &options_.folders.temp}) {
        remove_leftovers(*folder);
    }
}

json::object Core::object_info() const {
    json::object info;
    for (const auto& [name, registered] : registry_.classes()) {
        info[name] = describe(registered, options_.folders);
    }
    return info;
}

Validation Core::validate(
    json::object& prompt, const std::vector<std::string>* targets, const Owner* owner
) const {
    const Owner& whose = owner != nullptr ? *owner : only_user_;
    return validate_prompt(prompt, registry_, whose.folders, targets);
}

Result<RunResult> Core::run(
    json::object prompt,
    json::object extra_data,
    Listener& listener,
    std::stop_token stop,
    std::vector<std::string> outputs,
    const Owner* owner
) {
    const Owner& whose = owner != nullptr ? *owner : only_user_;
    if (outputs.empty()) {
        Validation validation = validate(prompt, nullptr, owner);
        if (!validation.ok) {
            return fail(refused(std::move(validation)));
        }
        outputs = std::move(validation.outputs_to_execute);
    }
    auto plan = make_plan(prompt, outputs, registry_, whose);
    if (!plan) {
        return fail(Code::invalid_workflow, "The workflow was not validated: validate it first.");
    }
    const json::object graph = graph_for_pictures(prompt, *plan);
    json::object pnginfo;
    const json::value* extra = json::find(extra_data, "extra_pnginfo");
    if (extra != nullptr && extra->is_object()) {
        pnginfo = extra->get_object();
    }
    const RunGuard guard(cache_, *plan);
    Executor executor(
        {registry_, whose.folders, pool_, memory_, cache_, listener},
        *plan,
        graph,
        pnginfo,
        std::move(stop)
    );
    return executor.run();
}

}  // namespace comfyd::engine
