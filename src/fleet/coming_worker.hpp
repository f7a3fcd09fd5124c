// A worker that is on its way: shown to people and to the scheduler, which knows by it that waiting
// has an end, and never given a job. As soon as its agent answers, models are brought there. Owned
// by the Fleet; core executor only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "comfy/client.hpp"
#include "fleet/options.hpp"
#include "jobs/fleet.hpp"
#include "jobs/give_back.hpp"
#include "jobs/model_holder.hpp"
#include "workflow/catalogue/catalogue.hpp"

namespace comfyd::fleet {

class ComingWorker final : public jobs::Worker, public jobs::ModelHolder {
public:
    // `classes`: that workers of its pool could last run; null: nobody knows.
    ComingWorker(jobs::WorkerInfo info, std::shared_ptr<const workflow::NodeClasses> classes)
        : info_(std::move(info)), classes_(std::move(classes)) {}

    void tell(jobs::WorkerInfo info) { info_ = std::move(info); }

    // Its agent, where it has answered; all outlive this.
    struct Agent {
        Executor lane;
        net::Client& http;  // of the lane
        Pool& pool;
        const FleetOptions& options;
        const Clock& clock;
        std::string url;
        std::string token;
        std::uint64_t disk_free_bytes = 0;
    };
    void meet(Agent agent);

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

    ModelHolder* models() override { return agent_ ? this : nullptr; }
    std::optional<std::vector<std::string>> lacking(const Requirement&) const override {
        return std::nullopt;  // what lies on its disk nobody has told
    }
    bool is_open() const override { return false; }
    bool is_coming() const override { return info_.status == jobs::WorkerStatus::starting; }
    bool may_run(const Requirement& requirement) const override {
        return requirement.allows(info_.facts());
    }
    std::uint64_t free_bytes() const override { return agent_ ? agent_->disk_free_bytes : 0; }
    std::optional<std::string> content_address(const std::string& sha256) const override;
    Task<Result<>> fetch_models(std::vector<json::object> wishes, std::function<void(Fetched)> told)
        override;

private:
    jobs::WorkerInfo info_;
    const std::shared_ptr<const workflow::NodeClasses> classes_;
    std::optional<Agent> agent_{};
    std::shared_ptr<comfy::Client> client_{};  // shared with fetches on the lane
};

}  // namespace comfyd::fleet
