// What can be done about model files that a worker does not have. Implemented by the fleet room,
// for workers with an agent in front of their ComfyUI. Core executor.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/requirement.hpp"
#include "base/task.hpp"

namespace comfyd::jobs {

class ModelHolder {
public:
    virtual ~ModelHolder() = default;

    // The choices of inputs that it lacks of the requirement, where it has all else; empty: it can
    // run it. nullopt: it lacks more than files, or has nobody who brings them.
    virtual std::optional<std::vector<std::string>> lacking(const Requirement& requirement
    ) const = 0;
    // It answers, and takes new work.
    virtual bool is_open() const = 0;
    // It is on its way up, and brings files already; fetch_models() does not wait for lists then.
    virtual bool is_coming() const { return false; }
    // Once it is up it may run this, perhaps with more files, for all that is known of it.
    virtual bool may_run(const Requirement& requirement) const {
        static_cast<void>(requirement);
        return false;
    }
    // Of its disk; 0: not known.
    virtual std::uint64_t free_bytes() const = 0;

    // Where other workers may have a content from it, if it has it; nullopt: nowhere, or not now.
    virtual std::optional<std::string> content_address(const std::string& sha256) const = 0;

    struct Fetched {
        std::uint64_t bytes = 0;
        std::uint64_t total = 0;  // 0: not known
    };
    // Until all are there and stand in its lists. `wishes` are as models::WantedModel writes them,
    // with "peers", addresses of other workers' contents, where there are some;
    // `told` is called on the core, until this returns. Failures by code: worker_lost and
    // worker_unavailable (another worker may do it), else as of the one that failed, whose path is
    // in the details as "model".
    virtual Task<Result<>> fetch_models(
        std::vector<json::object> wishes, std::function<void(Fetched)> told
    ) = 0;
};

}  // namespace comfyd::jobs
