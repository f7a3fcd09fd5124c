// The decoders that the execution and task dialects share.
#include <algorithm>
#include <charconv>
#include <utility>

#include "api/dialects/execution/execution.hpp"
#include "api/dialects/undone_wishes.hpp"
#include "base/text.hpp"

namespace comfyd::api::execution {
namespace {

using jobs::State;

constexpr std::int64_t kListLimitMax = 1000;
constexpr std::int64_t kMaxRetriesMax = 9;

void copy_member(const json::object& from, std::string_view key, json::object& into) {
    if (const json::value* found = json::find(from, key); found != nullptr) {
        into[key] = *found;
    }
}

Result<> copy_max_retries(const json::object& from, json::object& into) {
    const auto max_retries = json::find_int(from, "max_retries");
    if (!max_retries) {
        return fail(max_retries.error());
    }
    if (!*max_retries) {
        return {};
    }
    if (**max_retries < 0 || **max_retries > kMaxRetriesMax) {
        return fail(
            Code::invalid_argument,
            "'max_retries' is " + std::to_string(**max_retries) + ", but must be from 0 to " +
                std::to_string(kMaxRetriesMax),
            {{"field", "max_retries"}}
        );
    }
    into["max_attempts"] = **max_retries + 1;
    return {};
}

Result<> decode_states(
    std::string_view text,
    const StatusParser& states_of_status,
    std::string_view status_names,
    std::vector<State>& into
) {
    while (!text.empty()) {
        const std::size_t comma = std::min(text.find(','), text.size());
        const std::string_view name = trim(text.substr(0, comma), " ");
        text.remove_prefix(std::min(comma + 1, text.size()));
        const auto states = states_of_status(name);
        if (states.empty()) {
            return fail(
                Code::invalid_argument,
                "'status' must be one of " + std::string(status_names) + ", or several with commas",
                {{"field", "status"}}
            );
        }
        for (const State state : states) {
            if (std::find(into.begin(), into.end(), state) == into.end()) {
                into.push_back(state);
            }
        }
    }
    return {};
}

}  // namespace

Result<std::optional<std::uint64_t>> parse_sequence(std::string_view text) {
    if (text.empty()) {
        return std::optional<std::uint64_t>();
    }
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) {
        return fail(
            Code::invalid_argument,
            "'since' must be the sequence of an earlier event, a whole number",
            {{"field", "since"}}
        );
    }
    return std::optional<std::uint64_t>(number);
}

Result<jobs::ListQuery> decode_list_query(
    const Call& call, const StatusParser& states_of_status, std::string_view status_names
) {
    jobs::ListQuery query;
    query.tenant = call.caller.tenant;
    query.workflow_id = std::string(call.query_value("workflow_id"));
    const auto states =
        decode_states(call.query_value("status"), states_of_status, status_names, query.states);
    if (!states) {
        return fail(states.error());
    }
    if (const std::string_view text = call.query_value("limit"); !text.empty()) {
        std::int64_t limit = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
        if (error != std::errc() || end != text.data() + text.size() || limit < 1 ||
            limit > kListLimitMax) {
            return fail(
                Code::invalid_argument,
                "'limit' must be a whole number from 1 to 1000",
                {{"field", "limit"}}
            );
        }
        query.limit = static_cast<int>(limit);
    }
    if (const std::string_view text = call.query_value("cursor"); !text.empty()) {
        query.cursor = JobId::parse(text);
        if (!query.cursor) {
            return fail(
                Code::invalid_argument, "cursor: must be the next_cursor of an earlier page"
            );
        }
    }
    return query;
}

Result<json::object> common_members(const json::object& body) {
    const auto config = json::find_object(body, "execution_config");
    if (!config) {
        return fail(config.error());
    }
    json::object common;
    for (const std::string_view key :
         {"metadata", "callback_url", "webhook_url", "webhook_config", "output_config", "retention"
         }) {
        copy_member(body, key, common);
    }
    for (const json::object* from : {&body, *config}) {
        if (from == nullptr) {
            continue;
        }
        for (const std::string_view key :
             {"timeout", "priority", "class", "fairness_key", "deadline", "max_attempts", "reuse"
             }) {
            copy_member(*from, key, common);
        }
        for (const std::string_view key : kMachineMembers) {
            copy_member(*from, key, common);
        }
        if (auto done = copy_max_retries(*from, common); !done) {
            return fail(std::move(done.error()));
        }
    }
    return common;
}

Result<Decoded> begin_decoding(const json::object& body, std::string_view dialect) {
    auto common = common_members(body);
    if (!common) {
        return fail(std::move(common.error()));
    }
    Decoded decoded;
    decoded.common = std::move(*common);
    decoded.submission.spec.dialect = dialect;
    decoded.submission.spec.warnings = undone_wishes(body);
    return decoded;
}

Result<> keep_objects(
    const json::object& body, std::initializer_list<std::string_view> keys, json::object& into
) {
    for (const std::string_view key : keys) {
        const auto found = json::find_object(body, key);
        if (!found) {
            return fail(found.error());
        }
        if (*found != nullptr) {
            into[key] = **found;
        }
    }
    return {};
}

Result<> take_inputs(const json::object& body, std::string_view key, Submission& into) {
    const auto inputs = json::find_object(body, key);
    if (!inputs) {
        return fail(inputs.error());
    }
    if (*inputs == nullptr) {
        return {};
    }
    into.parameters = **inputs;
    return {};
}

}  // namespace comfyd::api::execution
