#include "app/cluster_machines.hpp"

#include <utility>

#include "base/hop.hpp"
#include "cluster/members.hpp"

namespace comfyd::app {
namespace {

using cluster::flag_in;
using cluster::list_in;
using cluster::object_in;
using cluster::text_in;
using Verdict = workflow::PromptVerdict;

constexpr char kJudge[] = "judge";
constexpr char kHasInput[] = "has_input";
constexpr char kDrain[] = "drain";
constexpr Millis kPatience{5'000};

json::array to_json(const std::vector<std::string>& words) {
    return json::array(words.begin(), words.end());
}

std::vector<std::string> words_in(const json::object& from, std::string_view key) {
    std::vector<std::string> words;
    const json::array* list = list_in(from, key);
    for (const json::value& word : list == nullptr ? json::array() : *list) {
        if (word.is_string()) {
            words.emplace_back(word.get_string());
        }
    }
    return words;
}

json::object copy_in(const json::object& from, std::string_view key) {
    const json::object* found = object_in(from, key);
    return found == nullptr ? json::object() : *found;
}

json::object to_json(const Verdict& verdict) {
    return {
        {"accepted", verdict.accepted},
        {"error", verdict.error},
        {"node_errors", verdict.node_errors},
        {"outputs", to_json(verdict.outputs_to_execute)},
        {"repairs", to_json(verdict.repairs)},
    };
}

Verdict verdict_from_json(const json::object& from) {
    return {
        flag_in(from, "accepted"),
        copy_in(from, "error"),
        copy_in(from, "node_errors"),
        words_in(from, "outputs"),
        words_in(from, "repairs"),
    };
}

tl::unexpected<Error> no_such_worker(const std::string& worker) {
    return fail(Code::not_found, "there is no worker '" + worker + "'");
}

}  // namespace

ClusterMachines::ClusterMachines(Executor core, ClusterNode& node) : core_(core), node_(node) {
    node.mail().on_question(kJudge, [this](NodeId, json::value details) {
        return answer_judge(std::move(details));
    });
    node.mail().on_question(kHasInput, [this](NodeId, json::value details) {
        return answer_has_input(std::move(details));
    });
    node.mail().on_question(kDrain, [this](NodeId, json::value details) {
        return answer_drain(std::move(details));
    });
}

std::shared_ptr<const workflow::Catalogue> ClusterMachines::catalogue() const {
    return node_.classes().catalogue();
}

Task<std::optional<Verdict>> ClusterMachines::judge(
    json::object prompt, std::vector<std::string> targets, Requirement requirement
) {
    return await_on(
        core_, judge_anywhere(std::move(prompt), std::move(targets), std::move(requirement))
    );
}

Task<std::optional<Verdict>> ClusterMachines::judge_here(
    json::object prompt, std::vector<std::string> targets, Requirement requirement
) {
    for (const auto& office : node_.offices()) {
        auto verdict = co_await office->fleet().judge(prompt, targets, requirement);
        if (verdict) {
            co_return verdict;
        }
    }
    co_return std::nullopt;
}

Task<std::optional<Verdict>> ClusterMachines::judge_anywhere(
    json::object prompt, std::vector<std::string> targets, Requirement requirement
) {
    auto verdict = co_await judge_here(prompt, targets, requirement);
    if (verdict) {
        co_return verdict;
    }
    const json::object details{
        {"prompt", std::move(prompt)},
        {"targets", to_json(targets)},
        {"requirement", requirement.encoded()},
    };
    for (const NodeId& node : node_.others().nodes()) {
        auto answer = co_await node_.mail().ask(node, kJudge, details, Deadline::in(kPatience));
        if (answer && answer->is_object()) {
            co_return verdict_from_json(answer->get_object());
        }
    }
    co_return std::nullopt;
}

Task<Result<json::value>> ClusterMachines::answer_judge(json::value details) {
    if (!details.is_object()) {
        co_return fail(Code::protocol_error, "the question has no prompt");
    }
    const json::object& asked = details.get_object();
    auto verdict = co_await judge_here(
        copy_in(asked, "prompt"),
        words_in(asked, "targets"),
        Requirement::decode(text_in(asked, "requirement"))
    );
    if (!verdict) {
        co_return fail(Code::lead_lost, "no worker here can say");
    }
    co_return json::value(to_json(*verdict));
}

Task<bool> ClusterMachines::has_input(std::string tenant, std::string name) {
    return await_on(core_, find_anywhere(std::move(tenant), std::move(name)));
}

Task<bool> ClusterMachines::find_here(std::string tenant, std::string name) {
    for (const auto& office : node_.offices()) {
        const bool found = co_await office->fleet().has_input(tenant, name);
        if (found) {
            co_return true;
        }
    }
    co_return false;
}

Task<bool> ClusterMachines::find_anywhere(std::string tenant, std::string name) {
    const bool found = co_await find_here(tenant, name);
    if (found) {
        co_return true;
    }
    const json::object details{{"tenant", tenant}, {"name", name}};
    for (const NodeId& node : node_.others().nodes()) {
        auto answer = co_await node_.mail().ask(node, kHasInput, details, Deadline::in(kPatience));
        if (answer && answer->is_object() && flag_in(answer->get_object(), "found")) {
            co_return true;
        }
    }
    co_return false;
}

Task<Result<json::value>> ClusterMachines::answer_has_input(json::value details) {
    if (!details.is_object()) {
        co_return fail(Code::protocol_error, "the question names no file");
    }
    const json::object& asked = details.get_object();
    const bool found = co_await find_here(text_in(asked, "tenant"), text_in(asked, "name"));
    co_return json::value(json::object{{"found", found}});
}

Task<Result<>> ClusterMachines::set_draining(std::string worker, bool draining) {
    return await_on(core_, drain_anywhere(std::move(worker), draining));
}

Task<Result<>> ClusterMachines::drain_anywhere(std::string worker, bool draining) {
    if (const auto office = node_.office_of(worker)) {
        auto done = co_await office->set_draining(std::move(worker), draining);
        co_return done;
    }
    const json::object details{{"worker", worker}, {"draining", draining}};
    for (const NodeId& node : node_.others().nodes()) {
        auto answer = co_await node_.mail().ask(node, kDrain, details, Deadline::in(kPatience));
        if (answer || answer.error().code == Code::conflict) {
            co_return answer ? Result<>() : fail(std::move(answer.error()));
        }
    }
    co_return no_such_worker(worker);
}

Task<Result<json::value>> ClusterMachines::answer_drain(json::value details) {
    const json::object none;
    const json::object& asked = details.is_object() ? details.get_object() : none;
    const std::string worker = text_in(asked, "worker");
    const auto office = node_.office_of(worker);
    if (!office) {
        co_return no_such_worker(worker);
    }
    auto done = co_await office->set_draining(worker, flag_in(asked, "draining"));
    if (!done) {
        co_return fail(std::move(done.error()));
    }
    co_return json::value(json::object());
}

void ClusterMachines::hear_ready(const std::string& worker) {
    if (const auto office = node_.office_of(worker)) {
        office->hear_ready(worker);
    }
}

void ClusterMachines::hear_stopping(const std::string& worker, bool is_stopping) {
    if (const auto office = node_.office_of(worker)) {
        office->hear_stopping(worker, is_stopping);
    }
}

Task<std::uint64_t> ClusterMachines::engine_ends() {
    co_return 0;
}

}  // namespace comfyd::app
