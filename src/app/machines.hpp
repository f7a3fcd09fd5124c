// The workers as admission and operators ask after them, whoever leads them.
//
// Members may be called on any executor; a Task continues on the executor that awaited it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/office.hpp"
#include "base/json.hpp"
#include "base/requirement.hpp"
#include "base/task.hpp"
#include "fleet/fleet.hpp"
#include "workflow/catalogue/catalogue.hpp"

namespace comfyd::app {

class Machines {
public:
    virtual ~Machines() = default;

    virtual std::shared_ptr<const workflow::Catalogue> catalogue() const = 0;
    // As of fleet::Fleet, like has_input().
    virtual Task<std::optional<workflow::PromptVerdict>> judge(
        json::object prompt, std::vector<std::string> targets, Requirement requirement
    ) = 0;
    virtual Task<bool> has_input(std::string tenant, std::string name) = 0;
    // A draining worker ends what it runs and gets nothing more. Code::not_found, Code::conflict.
    virtual Task<Result<>> set_draining(std::string worker, bool draining) = 0;
    // Its agent said so (app/office.hpp); nothing where this process does not lead it. Core
    // executor only.
    virtual void hear_stopping(const std::string& worker, bool is_stopping) = 0;
    virtual void hear_ready(const std::string& worker) = 0;
    // Ends of engines' processes since the start.
    virtual Task<std::uint64_t> engine_ends() = 0;
};

// Those of one office of this process, which outlives it.
class OwnMachines final : public Machines {
public:
    OwnMachines(Executor core, Office& office)
        : core_(core), office_(office), fleet_(office.fleet()) {}

    std::shared_ptr<const workflow::Catalogue> catalogue() const override;
    Task<std::optional<workflow::PromptVerdict>> judge(
        json::object prompt, std::vector<std::string> targets, Requirement requirement
    ) override;
    Task<bool> has_input(std::string tenant, std::string name) override;
    Task<Result<>> set_draining(std::string worker, bool draining) override;
    void hear_stopping(const std::string& worker, bool is_stopping) override;
    void hear_ready(const std::string& worker) override;
    Task<std::uint64_t> engine_ends() override;

private:
    Executor core_;
    Office& office_;
    fleet::Fleet& fleet_;
};

}  // namespace comfyd::app
