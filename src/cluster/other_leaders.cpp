#include "cluster/other_leaders.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <boost/asio/post.hpp>

#include "base/crypto.hpp"
#include "base/hop.hpp"
#include "cluster/leader_json.hpp"
#include "cluster/members.hpp"
#include "cluster/questions.hpp"

namespace comfyd::cluster {
namespace {

// Who asks after a job waits no longer for what is only nice to know.
constexpr Millis kLookPatience{1'000};
constexpr Millis kDeedPatience{5'000};
constexpr Millis kLookAgain{100};

bool has_answered(const Result<json::value>& answer) {
    constexpr std::array kUnanswered{
        Code::lead_lost,
        Code::connection_failed,
        Code::request_timeout,
        Code::cancelled,
        Code::shutting_down
    };
    return answer || std::ranges::find(kUnanswered, answer.error().code) == kUnanswered.end();
}

}  // namespace

OtherLeaders::OtherLeaders(const Parts& parts) : p_(parts), tasks_(parts.core) {}
OtherLeaders::~OtherLeaders() = default;

void OtherLeaders::start() {
    tasks_.spawn("who leads", look());
}

Task<> OtherLeaders::stop() {
    tasks_.cancel();
    co_await tasks_.join();
}

Task<> OtherLeaders::look() {
    for (bool goes_on = true; goes_on;) {
        auto leases = co_await p_.leases.all();
        if (leases) {
            note(*leases);
        }
        goes_on = co_await sleep_for(kLookEvery);
    }
}

void OtherLeaders::note(const std::vector<Lease>& leases) {
    leaders_.clear();
    std::size_t queued = 0;
    for (const Lease& lease : leases) {
        if (lease.term.node != NodeId{} && lease.term.node != p_.mail.self()) {
            leaders_.emplace(lease.term.domain, lease.term.node);
            queued += lease.queued;
        }
    }
    queued_.store(queued, std::memory_order_relaxed);
}

std::set<NodeId> OtherLeaders::nodes() const {
    std::set<NodeId> nodes;
    for (const auto& [domain, node] : leaders_) {
        nodes.insert(node);
    }
    return nodes;
}

void OtherLeaders::tell_of_arrival(const std::string& domain) {
    boost::asio::post(p_.core, [this, domain] { p_.mail.poke(domain); });
}

Task<Result<json::value>> OtherLeaders::ask_leader(
    std::string domain, std::string question, json::object details, Millis patience
) {
    const auto leader = leaders_.find(domain);
    if (leader == leaders_.end()) {
        co_return fail(Code::lead_lost, "no node leads the domain '" + domain + "' now");
    }
    auto answer = co_await p_.mail.ask(
        leader->second, std::move(question), std::move(details), Deadline::in(patience)
    );
    co_return answer;
}

Task<std::vector<json::value>> OtherLeaders::ask_all(std::string question, json::object details) {
    std::vector<json::value> answers;
    for (const NodeId& node : nodes()) {
        auto answer = co_await p_.mail.ask(node, question, details, Deadline::in(kLookPatience));
        if (answer) {
            answers.push_back(std::move(*answer));
        }
    }
    co_return answers;
}

Task<Result<>> OtherLeaders::cancel(jobs::LedJob job, jobs::Cancel how) {
    json::object details = to_json(job);
    details["while_waiting"] = how == jobs::Cancel::while_waiting;
    auto answer = co_await await_on(
        p_.core, ask_leader(job.domain, question::kCancel, std::move(details), kDeedPatience)
    );
    if (!has_answered(answer)) {
        auto wished = co_await cancel_by_wish(std::move(job), how);
        co_return wished;
    }
    co_return answer ? Result<>() : fail(std::move(answer.error()));
}

Task<Result<>> OtherLeaders::cancel_by_wish(jobs::LedJob job, jobs::Cancel how) {
    jobs::Wish wish;
    wish.domain = job.domain;
    wish.kind =
        how == jobs::Cancel::anyway ? jobs::Wish::Kind::cancel : jobs::Wish::Kind::cancel_waiting;
    wish.job = job.id;
    auto wished = co_await p_.shared.wish(std::move(wish));
    if (!wished) {
        co_return wished;
    }
    tell_of_arrival(job.domain);
    const Deadline deadline = Deadline::in(kDeedPatience);
    while (!deadline.has_passed()) {
        auto known = co_await outcome(job.id, how);
        if (known) {
            co_return std::move(*known);
        }
        const bool goes_on = co_await sleep_for(kLookAgain);
        if (!goes_on) {
            break;
        }
    }
    co_return fail(
        Code::lead_lost,
        "no node leads the domain '" + job.domain +
            "' now; the job is cancelled as soon as one does"
    );
}

Task<std::optional<Result<>>> OtherLeaders::outcome(JobId id, jobs::Cancel how) {
    auto job = co_await p_.ledger.find(id);
    if (!job) {
        co_return fail(std::move(job.error()));
    }
    if (!*job || jobs::is_terminal((*job)->state) || (*job)->cancel_requested) {
        co_return Result<>();
    }
    if (how == jobs::Cancel::while_waiting && (*job)->state == jobs::State::running) {
        co_return fail(Code::conflict, "the job is on a worker already");
    }
    co_return std::nullopt;
}

Task<std::optional<jobs::Forecast::Live>> OtherLeaders::live(jobs::LedJob job) {
    auto answer = co_await await_on(
        p_.core, ask_leader(job.domain, question::kLive, to_json(job), kLookPatience)
    );
    co_return answer && answer->is_object() ? std::optional(live_from_json(answer->get_object()))
                                            : std::nullopt;
}

Task<std::optional<jobs::Waiting>> OtherLeaders::explain(jobs::LedJob job) {
    auto answer = co_await await_on(
        p_.core, ask_leader(job.domain, question::kExplain, to_json(job), kLookPatience)
    );
    co_return answer && answer->is_object() ? std::optional(waiting_from_json(answer->get_object()))
                                            : std::nullopt;
}

Task<Result<std::string>> OtherLeaders::read_output(
    jobs::LedJob job, jobs::WorkerFile file, std::uint64_t bytes_max
) {
    json::object details = to_json(job);
    details["name"] = file.name;
    details["subfolder"] = file.subfolder;
    details["folder"] = file.folder;
    details["bytes_max"] = std::min(bytes_max, question::kFileBytesMax);
    auto answer = co_await await_on(
        p_.core, ask_leader(job.domain, question::kReadOutput, std::move(details), kDeedPatience)
    );
    if (!answer) {
        co_return fail(std::move(answer.error()));
    }
    const auto bytes =
        answer->is_object() ? from_base64(text_in(answer->get_object(), "bytes")) : std::nullopt;
    if (!bytes) {
        co_return fail(Code::protocol_error, "the leader's answer is no file");
    }
    co_return *bytes;
}

Task<std::optional<jobs::Load>> OtherLeaders::load(std::string domain) {
    json::object details{{"domain", domain}};
    auto answer = co_await await_on(
        p_.core, ask_leader(std::move(domain), question::kLoad, std::move(details), kLookPatience)
    );
    co_return answer && answer->is_object() ? std::optional(load_from_json(answer->get_object()))
                                            : std::nullopt;
}

Task<std::vector<jobs::WorkerInfo>> OtherLeaders::workers() {
    const auto answers = co_await await_on(p_.core, ask_all(question::kWorkers, {}));
    std::vector<jobs::WorkerInfo> workers;
    for (const json::value& answer : answers) {
        const json::array* list =
            answer.is_object() ? list_in(answer.get_object(), "workers") : nullptr;
        for (const json::value& worker : list == nullptr ? json::array() : *list) {
            if (worker.is_object()) {
                workers.push_back(worker_from_json(worker.get_object()));
            }
        }
    }
    co_return workers;
}

Task<> OtherLeaders::free_idle_workers(bool models, bool results) {
    const auto answers = co_await await_on(
        p_.core, ask_all(question::kFreeMemory, {{"models", models}, {"results", results}})
    );
    static_cast<void>(answers);
}

}  // namespace comfyd::cluster
