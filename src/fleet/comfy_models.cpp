// Model files that a worker lacks: what its agent is asked for, and the lists that have them then.
#include <algorithm>
#include <optional>
#include <utility>

#include <boost/asio/post.hpp>

#include "agent/content_ticket.hpp"
#include "base/cancellable_hop.hpp"
#include "base/log.hpp"
#include "base/on_executor.hpp"
#include "comfy/members.hpp"
#include "fleet/bringing.hpp"
#include "fleet/comfy_worker.hpp"

namespace comfyd::fleet {
namespace {

using Fetched = jobs::ModelHolder::Fetched;

constexpr Millis kLook{500};  // between two looks at the lists
constexpr std::chrono::hours kTicketLife{1};
constexpr int kListsTriesMax = 20;  // until ComfyUI lists a new file

}  // namespace

// An answer that is none says that there is no agent.
Task<> ComfyMachine::look_for_agent() {
    if (link_.is_engine) {
        co_return;
    }
    agent_asked_at_ = Ticks::now();
    auto status = co_await link_.client.ask_agent("/worker/v1/status");
    const bool is_busy = status && status->empty() && known_.fetches_models;
    if (!status || is_busy) {
        co_return;
    }
    known_.fetches_models = comfy::object_of(*status, "models") != nullptr;
    known_.agent_answers = known_.fetches_models;
    const json::value* rest = json::find(*status, "wants_rest");
    known_.wants_rest = rest != nullptr && rest->is_bool() && rest->get_bool();
    known_.disk_free_bytes = number_of(*status, "disk_free_bytes");
    known_.ram_total_bytes = number_of(*status, "ram_total_bytes");
    if (known_.fetches_models) {
        note_fetched(*status);
        co_await read_files(number_of(*status, "files_revision"));
    }
}

// ComfyUI is not there yet, and somebody says so: if that is an agent, it can do something
// meanwhile.
Task<> ComfyMachine::meet_agent(Error refusal) {
    if (known_.state == State::up || link_.is_engine || refusal.code != Code::upstream_error) {
        known_.agent_answers = false;
        co_return;
    }
    if (!known_.agent_answers || Ticks::now() - agent_asked_at_ >= options_.agent_interval) {
        co_await look_for_agent();
        report();
    }
}

void ComfyMachine::note_fetched(const json::object& status) {
    const json::object* fetched = comfy::object_of(*comfy::object_of(status, "models"), "fetched");
    if (fetched == nullptr) {
        return;
    }
    known_.fetched_outside = number_of(*fetched, "outside");
    known_.fetched_from_peers = number_of(*fetched, "peers");
    if (options_.fetched_told) {
        options_.fetched_told(
            id_,
            {known_.fetched_outside,
             known_.fetched_from_peers,
             std::chrono::seconds(number_of(status, "uptime_s"))}
        );
    }
}

// What it has, and what it is by its heads.
Task<> ComfyMachine::read_files(std::uint64_t revision) {
    if (!options_.files_told || files_revision_ == revision) {
        co_return;
    }
    auto files = co_await link_.client.ask_agent("/worker/v1/files");
    if (files && json::find(*files, "files") != nullptr) {
        files_revision_ = number_of(*files, "revision");
        options_.files_told(id_, std::move(*files));
    }
}

Task<Result<>> ComfyMachine::fetch_models(
    std::vector<json::object> wishes, std::function<void(Fetched)> told
) {
    COMFYD_ON(parts_.executor);
    const auto self = shared_from_this();
    auto brought =
        co_await bring_models(link_.client, std::move(wishes), options_.link_of, std::move(told));
    if (brought && known_.state == State::up) {
        co_await read_new_lists();
    }
    co_return brought;
}

// ComfyUI sees a new file when its folder has another time.
Task<> ComfyMachine::read_new_lists() {
    const auto before = known_.classes;
    bool go_on = true;
    for (int i = 0; i < kListsTriesMax && go_on; ++i) {
        auto refreshed = co_await refresh_classes();
        go_on = !refreshed || known_.classes == before;
        if (go_on) {
            go_on = co_await sleep_for(kLook);
        }
    }
    co_await look_for_agent();
    report();
}

std::optional<std::vector<std::string>> ComfyWorker::lacking(const Requirement& requirement) const {
    COMFYD_ON(parts_.core);
    if (known_.classes == nullptr || !requirement.allows(facts())) {
        return std::nullopt;
    }
    std::vector<std::string> values;
    const bool has_classes = requirement.each(
        [&](std::string_view class_type, std::string_view input, std::string_view value) {
            if (known_.classes->has(class_type, input, value)) {
                return true;
            }
            values.emplace_back(value);
            return !input.empty() && known_.classes->find(class_type) != nullptr;
        }
    );
    return has_classes ? std::optional(std::move(values)) : std::nullopt;
}

// ComfyUI tells of the whole machine, its agent of what they may have of it.
std::uint64_t ComfyWorker::ram_total() const {
    const std::uint64_t told = known_.ram_total_bytes;
    const std::uint64_t whole = known_.stats.ram_total;
    return told == 0 ? whole : whole == 0 ? told : std::min(told, whole);
}

bool ComfyWorker::is_open() const {
    COMFYD_ON(parts_.core);
    return is_up() && !draining_ && !gives_back_ && !known_.is_quarantined;
}

bool ComfyWorker::is_coming() const {
    COMFYD_ON(parts_.core);
    return !is_up() && known_.agent_answers && !draining_ && !gives_back_;
}

bool ComfyWorker::may_run(const Requirement& requirement) const {
    return known_.classes == nullptr ? requirement.allows(facts())
                                     : lacking(requirement).has_value();
}

// One that calls us has no address that another worker could use.
std::optional<std::string> ComfyWorker::content_address(const std::string& sha256) const {
    const bool has_address = config_.url.starts_with("http");
    if (!has_address || config_.token.empty() || !(is_up() || is_coming())) {
        return std::nullopt;
    }
    return config_.url +
           agent::content_address(config_.token, sha256, parts_.clock.now() + kTicketLife);
}

Task<Result<>> ComfyWorker::fetch_models(
    std::vector<json::object> wishes, std::function<void(Fetched)> told
) {
    auto to_core = [core = parts_.core, told = std::move(told)](Fetched fetched) {
        boost::asio::post(core, [told, fetched] { told(fetched); });
    };
    auto fetched = co_await await_cancellable_on(
        machine_->executor(), machine_->fetch_models(std::move(wishes), std::move(to_core))
    );
    co_return fetched;
}

}  // namespace comfyd::fleet
