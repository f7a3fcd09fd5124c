#include "fleet/providers/vast.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <utility>

#include "base/on_executor.hpp"
#include "comfy/members.hpp"
#include "fleet/providers/cloud_api.hpp"
#include "fleet/providers/foreign_words.hpp"
#include "fleet/providers/machine_names.hpp"
#include "fleet/providers/vast_contracts.hpp"
#include "net/http.hpp"

namespace comfyd::fleet {
namespace {

using Ticks = std::chrono::steady_clock;

constexpr int kPageSize = 25;
constexpr int kPagesMax = 100;
constexpr int kLogLooks = 10;
constexpr int kLogLinesMax = 5000;
constexpr std::uint64_t kLogBytesMax = 2 * 1024 * 1024;

std::string contract_path(const std::string& id, std::string_view before = {}) {
    return "/v0/instances/" + std::string(before) + net::percent_encode(id) + "/";
}

class Vast final : public MachineProvider {
public:
    Vast(Executor executor, VastOptions options, const Clock& clock)
        : executor_(executor),
          options_(std::move(options)),
          clock_(clock),
          api_(
              executor,
              {.service = "Vast",
               .url = options_.url,
               .key = options_.key,
               .ca_file = options_.ca_file,
               .words_of = words_of_vast},
              clock
          ),
          files_(executor, {.ca_file = options_.ca_file}) {}

    std::string_view name() const override { return options_.name; }
    // A stopped machine's disk costs, and its GPU may be another's when it is started.
    MachineTraits traits() const override {
        return {.can_park = true, .bills_parked = true, .dials_in = options_.dials_in};
    }

    Task<Result<std::vector<Offer>>> offers(OfferWish wish) override;
    Task<Result<std::string>> create(MachineOrder order) override;
    Task<Result<std::vector<Machine>>> list(std::string fleet) override;
    Task<Result<>> start(std::string id) override;
    Task<Result<>> stop(std::string id) override;
    Task<Result<>> remove(std::string id) override;
    Task<Result<std::string>> logs(std::string id, int lines) override;
    void on_change(std::function<void()>) override {}  // it tells nobody
    Task<> end() override;

private:
    // `what` names the calls that have one pace.
    Task<Result<json::value>> call(CloudCall call, std::string_view what, Millis gap);
    Task<Result<std::vector<Machine>>> contracts();
    Task<Result<>> set_state(std::string id, std::string state);

    Executor executor_;
    const VastOptions options_;
    const Clock& clock_;
    CloudApi api_;
    net::Client files_;  // of logs, which lie elsewhere
    std::map<std::string, Ticks::time_point, std::less<>> open_at_;
};

// Those that come together wait in turn.
Task<Result<json::value>> Vast::call(CloudCall call, std::string_view what, Millis gap) {
    const Ticks::time_point now = Ticks::now();
    Ticks::time_point& open = open_at_[std::string(what)];
    const Ticks::time_point turn = std::max(now, open);
    open = turn + gap;
    if (turn > now) {
        const bool slept = co_await sleep_for(std::chrono::ceil<Millis>(turn - now));
        if (!slept) {
            co_return fail(Code::cancelled, "Vast: the request was cancelled");
        }
    }
    if (!call.meaning) {
        call.meaning = meaning_of_vast;
    }
    auto answer = co_await api_.call(std::move(call));
    co_return answer;
}

// Kinds are asked for one by one: those that are cheaper would fill the list.
Task<Result<std::vector<Offer>>> Vast::offers(OfferWish wish) {
    COMFYD_ON(executor_);
    std::vector<std::string> kinds = wish.gpus;
    if (kinds.empty()) {
        kinds.emplace_back();
    }
    for (const std::string& kind : kinds) {
        auto answer = co_await call(
            {.method = "POST", .path = "/v0/bundles/", .body = make_search(options_, wish, kind)},
            "search",
            options_.other_gap
        );
        if (!answer) {
            co_return fail(std::move(answer.error()));
        }
        auto found = read_offers(options_, *answer, wish, kind);
        if (!found.empty()) {
            co_return found;
        }
    }
    co_return std::vector<Offer>();
}

Task<Result<std::vector<Machine>>> Vast::contracts() {
    std::vector<Machine> machines;
    std::string token;
    for (int page = 0; page < kPagesMax; ++page) {
        std::string path = "/v1/instances/?limit=" + std::to_string(kPageSize);
        path += token.empty() ? "" : "&after_token=" + net::percent_encode(token);
        auto answer = co_await call({.path = std::move(path)}, "list", options_.other_gap);
        if (!answer) {
            co_return fail(std::move(answer.error()));
        }
        const json::object* body = answer->if_object();
        const json::array* all = body != nullptr ? comfy::array_of(*body, "instances") : nullptr;
        if (all == nullptr) {  // nothing there would be taken for everything gone
            co_return fail(
                Code::protocol_error, "Vast: GET /v1/instances/: the answer has no 'instances'"
            );
        }
        for (const json::value& entry : *all) {
            auto machine = read_contract(options_, entry, clock_.now());
            if (machine) {
                machines.push_back(std::move(*machine));
            }
        }
        std::string next = comfy::text_of(*body, "next_token");
        if (next.empty() || next == token) {
            co_return machines;
        }
        token = std::move(next);
    }
    co_return fail(Code::protocol_error, "Vast: GET /v1/instances/: its pages have no end");
}

Task<Result<std::string>> Vast::create(MachineOrder order) {
    COMFYD_ON(executor_);
    auto made_of = make_contract(options_, order);
    if (!made_of) {
        co_return fail(std::move(made_of.error()));
    }
    // Labels are not unique there: whoever made it before us is looked for.
    const auto there = co_await contracts();
    if (!there) {
        co_return fail(there.error());
    }
    const auto same = std::ranges::find(*there, order.name, &Machine::name);
    if (same != there->end()) {
        co_return same->id;
    }
    std::string half_made;
    auto made = co_await call(
        {.method = "PUT",
         .path = "/v0/asks/" + made_of->ask + "/",
         .body = std::move(made_of->body),
         .kind = CloudCall::Kind::once,
         .secrets = secrets_of(order),
         .meaning =
             [&half_made](const CloudRefusal& refusal) {
                 half_made = contract_in(refusal.body);
                 return meaning_of_vast(refusal);
             }},
        "create",
        options_.create_gap
    );
    if (made) {
        std::string id = contract_in(*made);
        const json::object* body = made->if_object();
        const json::value* success = body != nullptr ? json::find(*body, "success") : nullptr;
        const bool is_made = success == nullptr || *success != json::value(false);
        if (is_made && !id.empty()) {
            co_return id;
        }
        half_made = std::move(id);
        made = fail(Code::protocol_error, "Vast: PUT /v0/asks/: the answer has no 'new_contract'");
    }
    if (!half_made.empty()) {
        // It said no, and made one that is stopped and costs.
        auto removed = co_await remove(half_made);
        if (!removed) {
            co_return fail(
                Code::upstream_error,
                made.error().message + "; and the stopped machine " + half_made +
                    " that came of it could not be removed yet: " + removed.error().message
            );
        }
    }
    co_return fail(std::move(made.error()));
}

Task<Result<std::vector<Machine>>> Vast::list(std::string fleet) {
    COMFYD_ON(executor_);
    auto machines = co_await contracts();
    if (machines) {
        std::erase_if(*machines, [&](const Machine& machine) {
            return !is_of_fleet(machine.name, fleet);
        });
    }
    co_return machines;
}

Task<Result<>> Vast::set_state(std::string id, std::string state) {
    auto done = co_await call(
        {.method = "PUT", .path = contract_path(id), .body = json::object{{"state", state}}},
        "state",
        options_.other_gap
    );
    co_return done ? Result<>() : fail(std::move(done.error()));
}

Task<Result<>> Vast::start(std::string id) {
    COMFYD_ON(executor_);
    return set_state(std::move(id), "running");
}

Task<Result<>> Vast::stop(std::string id) {
    COMFYD_ON(executor_);
    return set_state(std::move(id), "stopped");
}

Task<Result<>> Vast::remove(std::string id) {
    COMFYD_ON(executor_);
    auto removed = co_await call(
        {.method = "DELETE", .path = contract_path(id)}, "remove", options_.remove_gap
    );
    const bool is_gone = removed || removed.error().code == Code::not_found;
    co_return is_gone ? Result<>() : fail(std::move(removed.error()));
}

// Vast puts the log somewhere and says where; it is there some seconds later. Our key is not.
Task<Result<std::string>> Vast::logs(std::string id, int lines) {
    COMFYD_ON(executor_);
    const json::object wanted{{"tail", std::to_string(std::clamp(lines, 1, kLogLinesMax))}};
    auto answer = co_await call(
        {.method = "PUT", .path = contract_path(id, "request_logs/"), .body = wanted},
        "logs",
        options_.other_gap
    );
    if (!answer) {
        co_return fail(std::move(answer.error()));
    }
    net::ClientRequest request;
    request.url = answer->is_object() ? comfy::text_of(answer->get_object(), "result_url") : "";
    request.response_bytes_max = kLogBytesMax;
    if (!check_cloud_url(request.url)) {
        co_return fail(Code::protocol_error, "Vast: it does not say where the log is");
    }
    for (int look = 0; look < kLogLooks; ++look) {
        const bool slept = co_await sleep_for(options_.log_pause);
        if (!slept) {
            co_return fail(Code::cancelled, "Vast: the request was cancelled");
        }
        auto log = co_await files_.send(request);
        if (log && log->status == 200) {
            co_return std::move(log->body);
        }
    }
    co_return fail(Code::upstream_error, "Vast: the log of " + presentable(id) + " does not come");
}

Task<> Vast::end() {
    COMFYD_ON(executor_);
    api_.close_idle();
    files_.close_idle();
    co_return;
}

}  // namespace

Result<> check_vast(const VastOptions& options) {
    const auto wrong = [&](std::string what) {
        return fail(Code::config_invalid, "provider '" + options.name + "': " + std::move(what));
    };
    if (options.key.empty()) {
        return wrong("key is missing");
    }
    auto url = check_cloud_url(options.url);
    if (!url) {
        return wrong("url: " + url.error().message);
    }
    if (options.disk_gb < 8) {
        return wrong("disk_gb must be at least 8");
    }
    if (!(options.reliability_min >= 0 && options.reliability_min <= 1)) {
        return wrong("reliability_min must be 0 … 1");
    }
    if (!(options.bid_factor >= 1 && options.bid_factor <= 10)) {
        return wrong("bid_factor must be 1 … 10");
    }
    const bool is_version = options.cuda_min.find_first_not_of("0123456789.") == std::string::npos;
    if (!is_version || (!options.cuda_min.empty() && std::atof(options.cuda_min.c_str()) <= 0)) {
        return wrong("cuda_min must look like 12.8");
    }
    return {};
}

Result<std::unique_ptr<MachineProvider>> make_vast(
    Executor executor, VastOptions options, const Clock& clock
) {
    auto checked = check_vast(options);
    if (!checked) {
        return fail(std::move(checked.error()));
    }
    return std::make_unique<Vast>(executor, std::move(options), clock);
}

}  // namespace comfyd::fleet
