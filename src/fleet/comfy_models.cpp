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
#include "fleet/comfy_worker.hpp"

namespace comfyd::fleet {
namespace {

using Fetched = jobs::ModelHolder::Fetched;

constexpr Millis kLook{500};  // between two looks at what has come
constexpr std::chrono::hours kTicketLife{1};
constexpr int kListsTriesMax = 20;  // until ComfyUI lists a new file
constexpr int kSilentMax = 20;      // looks in a row that the agent does not answer
constexpr std::string_view kModels = "/worker/v1/models";

std::uint64_t number_of(const json::object& from, std::string_view key) {
    const json::value* value = json::find(from, key);
    return value != nullptr && value->is_number() && value->to_number<double>() > 0
               ? static_cast<std::uint64_t>(value->to_number<double>())
               : 0;
}

// One file on its way, from the first of its sources that has it.
struct Wanted {
    json::object wish;
    std::vector<std::string> sources{};
    std::size_t source = 0;
    bool is_asked = false;
    bool is_ready = false;
    Fetched fetched{};

    explicit Wanted(json::object from) : wish(std::move(from)) {
        const json::array* list = json::find_array(wish, "sources").value_or(nullptr);
        for (const json::value& one : list == nullptr ? json::array() : *list) {
            sources.push_back(one.is_string() ? std::string(one.get_string()) : "");
        }
        wish.erase("sources");
        wish["required"] = false;
        fetched.total = number_of(wish, "bytes");
    }

    std::string path() const {
        return comfy::text_of(wish, "folder") + "/" + comfy::text_of(wish, "name");
    }
    json::object order() const {
        json::object made = wish;
        made["source"] = sources.at(source);
        return made;
    }
    bool is(const json::object& shown) const {
        return comfy::text_of(shown, "folder") == comfy::text_of(wish, "folder") &&
               comfy::text_of(shown, "name") == comfy::text_of(wish, "name");
    }
    Error failure(Code code, const std::string& why) const {
        return Error(
            code, "the model '" + path() + "' is not to be had: " + why, {{"model", path()}}
        );
    }
};

// A refusal in the agent's own words.
std::optional<Error> refusal_in(const Error& error) {
    const auto body = json::parse_object(comfy::text_of(error.details, "body"));
    const auto code = body ? parse_code(comfy::text_of(*body, "code")) : std::nullopt;
    return code ? std::optional(Error(*code, comfy::text_of(*body, "detail"))) : std::nullopt;
}

// What the agent says of it: nothing, or why it will not come from this source.
std::optional<Error> note(Wanted& wanted, const json::object& shown) {
    const std::string state = comfy::text_of(shown, "state");
    wanted.fetched = {
        number_of(shown, "bytes"), std::max(number_of(shown, "total"), number_of(shown, "bytes"))
    };
    wanted.is_ready = state == "ready";
    if (state != "failed") {
        return std::nullopt;
    }
    return wanted.failure(
        parse_code(comfy::text_of(shown, "code")).value_or(Code::upstream_error),
        comfy::text_of(shown, "error")
    );
}

Fetched sum_of(const std::vector<Wanted>& all) {
    Fetched sum;
    for (const Wanted& one : all) {
        sum.bytes += one.fetched.bytes;
        sum.total += one.fetched.total;
    }
    return sum;
}

// Brings all of a job's files to one machine.
class Bringing {
public:
    Bringing(comfy::Client& client, const std::vector<json::object>& wishes) : client_(client) {
        for (const json::object& wish : wishes) {
            all_.emplace_back(wish);
        }
    }

    Task<Result<>> run(const std::function<void(Fetched)>& told) {
        int silent = 0;
        while (true) {
            auto looked = co_await ask_all();
            if (looked) {
                looked = co_await look();
            }
            if (!looked && !is_of_line(looked.error().code)) {
                co_return looked;
            }
            silent = looked ? 0 : silent + 1;
            if (silent > kSilentMax) {
                co_return fail(Code::worker_unavailable, looked.error().message);
            }
            told(sum_of(all_));
            if (std::ranges::all_of(all_, &Wanted::is_ready)) {
                co_return Result<>();
            }
            const bool goes_on = co_await sleep_for(kLook);
            if (!goes_on) {
                co_return fail(Code::cancelled, "the fetch is not waited for any more");
            }
        }
    }

private:
    static bool is_of_line(Code code) {
        return code == Code::connection_failed || code == Code::request_timeout ||
               code == Code::worker_unavailable;
    }

    // From the next source, where there is one.
    static Result<> go_on(Wanted& wanted, Error error) {
        if (wanted.source + 1 >= wanted.sources.size()) {
            return fail(std::move(error));
        }
        ++wanted.source;
        wanted.is_asked = false;
        return {};
    }

    Task<Result<>> ask_all() {
        for (Wanted& wanted : all_) {
            if (wanted.is_asked) {
                continue;
            }
            auto answer = co_await client_.tell_agent(std::string(kModels), wanted.order());
            if (answer) {
                wanted.is_asked = true;
                if (auto failed = note(wanted, *answer)) {
                    auto next = go_on(wanted, std::move(*failed));
                    if (!next) {
                        co_return next;
                    }
                }
                continue;
            }
            const auto refused = refusal_in(answer.error());
            if (!refused) {
                co_return fail(std::move(answer.error()));
            }
            // Another source of the same name is at it: it is asked for again.
            if (refused->code != Code::conflict && refused->code != Code::queue_full) {
                auto next = go_on(wanted, wanted.failure(refused->code, refused->message));
                if (!next) {
                    co_return next;
                }
            }
        }
        co_return Result<>();
    }

    Task<Result<>> look() {
        auto shown = co_await client_.ask_agent(std::string(kModels));
        if (!shown) {
            co_return fail(std::move(shown.error()));
        }
        const json::array* list = json::find_array(*shown, "models").value_or(nullptr);
        for (const json::value& one : list == nullptr ? json::array() : *list) {
            const json::object* model = one.if_object();
            const auto wanted = model == nullptr
                                    ? all_.end()
                                    : std::ranges::find_if(all_, [model](const Wanted& candidate) {
                                          return candidate.is_asked && candidate.is(*model);
                                      });
            auto failed = wanted == all_.end() ? std::nullopt : note(*wanted, *model);
            if (failed) {
                if (auto next = go_on(*wanted, std::move(*failed)); !next) {
                    co_return next;
                }
            }
        }
        co_return Result<>();
    }

    comfy::Client& client_;
    std::vector<Wanted> all_;
};

}  // namespace

// An answer that is none says that there is no agent.
Task<> ComfyMachine::look_for_agent() {
    if (link_.is_engine) {
        co_return;
    }
    auto status = co_await link_.client.ask_agent("/worker/v1/status");
    if (status) {
        known_.fetches_models = comfy::object_of(*status, "models") != nullptr;
        known_.disk_free_bytes = number_of(*status, "disk_free_bytes");
    }
}

Task<Result<>> ComfyMachine::fetch_models(
    std::vector<json::object> wishes, std::function<void(Fetched)> told
) {
    COMFYD_ON(parts_.executor);
    const auto self = shared_from_this();
    Bringing bringing(link_.client, wishes);
    auto brought = co_await bringing.run(told);
    if (!brought) {
        co_return brought;
    }
    co_await read_new_lists();
    co_return Result<>();
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

bool ComfyWorker::is_open() const {
    COMFYD_ON(parts_.core);
    return is_up() && !draining_ && !gives_back_ && !known_.is_quarantined;
}

// One that calls us has no address that another worker could use.
std::optional<std::string> ComfyWorker::content_address(const std::string& sha256) const {
    const bool has_address = config_.url.starts_with("http");
    if (!has_address || config_.token.empty() || !is_up()) {
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
