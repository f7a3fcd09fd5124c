#include "admission/own_checks.hpp"

#include <utility>

namespace comfyd::admission {

Task<std::optional<workflow::PromptVerdict>> ask_own_checks(
    const Desk& desk,
    const workflow::Catalogue& catalogue,
    const json::object& prompt,
    std::vector<std::string> targets,
    Requirement requirement
) {
    if (!desk.ask_worker || !catalogue.needs_worker_to_judge(prompt)) {
        co_return std::nullopt;
    }
    auto verdict = co_await desk.ask_worker(prompt, std::move(targets), std::move(requirement));
    co_return verdict;
}

}  // namespace comfyd::admission
