#include "api/own_checks.hpp"

#include <utility>

#include "workflow/check_errors.hpp"

namespace comfyd::api {

Task<std::optional<workflow::PromptVerdict>> ask_own_checks(
    const Services& services,
    const workflow::Catalogue& catalogue,
    const json::object& prompt,
    std::vector<std::string> targets,
    std::string requirement
) {
    if (!services.ask_worker || !catalogue.needs_worker_to_judge(prompt)) {
        co_return std::nullopt;
    }
    auto verdict = co_await services.ask_worker(prompt, std::move(targets), std::move(requirement));
    co_return verdict;
}

Task<Result<>> pass_own_checks(
    const Services& services,
    const workflow::Catalogue& catalogue,
    const json::object& prompt,
    std::vector<std::string> targets,
    std::string requirement
) {
    auto verdict = co_await ask_own_checks(
        services, catalogue, prompt, std::move(targets), std::move(requirement)
    );
    const auto findings =
        verdict ? workflow::findings_of(verdict->node_errors) : std::vector<workflow::Finding>();
    if (!findings.empty()) {
        co_return fail(workflow::findings_error(findings, {}));
    }
    co_return Result<>();
}

}  // namespace comfyd::api
