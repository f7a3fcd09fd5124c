// A worker that is on its way: shown to people and to the scheduler, which knows by it that waiting
// has an end, and never given anything. Owned by the Fleet; core executor only.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "jobs/fleet.hpp"
#include "jobs/give_back.hpp"
#include "workflow/catalogue/catalogue.hpp"

namespace comfyd::fleet {

class ComingWorker final : public jobs::Worker {
public:
    // `classes`: that workers of its pool could last run; null: nobody knows.
    ComingWorker(jobs::WorkerInfo info, std::shared_ptr<const workflow::NodeClasses> classes)
        : info_(std::move(info)), classes_(std::move(classes)) {}

    void tell(jobs::WorkerInfo info) { info_ = std::move(info); }

    jobs::WorkerInfo info() const override { return info_; }
    const std::string& id() const override { return info_.id; }
    bool available() const override { return false; }
    std::size_t running() const override { return 0; }
    bool can_run(const Requirement& requirement) const override {
        return classes_ != nullptr && requirement.allows(info_.facts()) &&
               classes_->has_all(requirement);
    }
    std::string abilities() const override {
        return std::to_string(reinterpret_cast<std::uintptr_t>(classes_.get())) + "/" + info_.pool +
               "/" + info_.region + "/" + info_.gpu + "/" + std::to_string(info_.vram_total);
    }
    Task<Result<jobs::AttemptResult>>
    run(jobs::Assignment, jobs::AttemptListener&, jobs::StopRequest&) override {
        co_return fail(
            Code::worker_unavailable,
            "worker " + info_.id + " is not there yet",
            {{std::string(jobs::kGivenBack), true}}
        );
    }

private:
    jobs::WorkerInfo info_;
    const std::shared_ptr<const workflow::NodeClasses> classes_;
};

}  // namespace comfyd::fleet
