#include "fleet/bringing.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "comfy/members.hpp"

namespace comfyd::fleet {
namespace {

using Fetched = jobs::ModelHolder::Fetched;

constexpr Millis kLook{500};    // between two looks at what has come
constexpr int kSilentMax = 20;  // looks in a row that the agent does not answer
constexpr std::chrono::minutes kLinkLife{55};
constexpr std::string_view kModels = "/worker/v1/models";

// One file on its way, from the first of its sources that has it.
struct Wanted {
    json::object wish;
    std::vector<std::string> sources{};
    std::size_t source = 0;
    bool is_asked = false;
    std::chrono::steady_clock::time_point asked_at{};
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
    // The gateway alone can say where that is had from, for a while.
    bool needs_link() const {
        const std::string& from = sources.at(source);
        return from.starts_with("s3:") || from.starts_with("upload:");
    }
    json::object order(const std::string& link) const {
        json::object made = wish;
        made["source"] = sources.at(source);
        if (!link.empty()) {
            made["link"] = link;
        }
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

// A refusal in an agent's own words.
std::optional<Error> refusal_of_agent(const Error& error) {
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
    Bringing(comfy::Client& client, const std::vector<json::object>& wishes, LinkOf link_of)
        : client_(client), link_of_(std::move(link_of)) {
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
        const auto age = std::chrono::steady_clock::now() - wanted.asked_at;
        if (wanted.needs_link() && wanted.is_asked && age >= kLinkLife) {
            wanted.is_asked = false;  // its link has run out
            return {};
        }
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
            std::string link;
            if (wanted.needs_link()) {
                auto made = co_await make_link(wanted.sources.at(wanted.source));
                if (!made) {
                    auto next =
                        go_on(wanted, wanted.failure(made.error().code, made.error().message));
                    if (!next) {
                        co_return next;
                    }
                    continue;
                }
                link = std::move(*made);
            }
            auto answer = co_await client_.tell_agent(std::string(kModels), wanted.order(link));
            if (answer) {
                wanted.is_asked = true;
                wanted.asked_at = std::chrono::steady_clock::now();
                if (auto failed = note(wanted, *answer)) {
                    auto next = go_on(wanted, std::move(*failed));
                    if (!next) {
                        co_return next;
                    }
                }
                continue;
            }
            const auto refused = refusal_of_agent(answer.error());
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

    Task<Result<std::string>> make_link(std::string source) {
        if (!link_of_) {
            co_return fail(Code::not_found, "nobody here knows where '" + source + "' is");
        }
        auto link = co_await link_of_(std::move(source));
        co_return link;
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
    const LinkOf link_of_;
    std::vector<Wanted> all_;
};

}  // namespace

std::uint64_t number_of(const json::object& from, std::string_view key) {
    const json::value* value = json::find(from, key);
    return value != nullptr && value->is_number() && value->to_number<double>() > 0
               ? static_cast<std::uint64_t>(value->to_number<double>())
               : 0;
}

Task<Result<>> bring_models(
    comfy::Client& client,
    std::vector<json::object> wishes,
    LinkOf link_of,
    std::function<void(Fetched)> told
) {
    Bringing bringing(client, wishes, std::move(link_of));
    auto brought = co_await bringing.run(told);
    co_return brought;
}

}  // namespace comfyd::fleet
