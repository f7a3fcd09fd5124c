#include "jobs/job.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "jobs/cause.hpp"

namespace comfyd::jobs {
namespace {

constexpr std::array<std::string_view, 7> kStates{
    "queued", "running", "retry_waiting", "completed", "failed", "cancelled", "expired"
};
constexpr std::array<std::string_view, 12> kEventTypes{
    "queued",
    "started",
    "progress",
    "output",
    "retrying",
    "cancelling",
    "completed",
    "failed",
    "cancelled",
    "expired",
    "preview",
    "warning"
};

constexpr int kWebhookRetriesMax = 100;
constexpr std::chrono::seconds kWebhookRetryDelayMax = std::chrono::hours(1);
constexpr std::chrono::seconds kWebhookTimeoutMax = std::chrono::minutes(5);

template <class Enum, std::size_t N>
std::optional<Enum> parse_name(
    const std::array<std::string_view, N>& names, std::string_view text
) {
    const auto found = std::find(names.begin(), names.end(), text);
    if (found == names.end()) {
        return std::nullopt;
    }
    return static_cast<Enum>(found - names.begin());
}

std::string string_of(const json::object& from, std::string_view key) {
    const json::value* found = json::find(from, key);
    return found != nullptr && found->is_string() ? std::string(found->get_string())
                                                  : std::string();
}

Result<std::optional<Millis>> find_seconds(
    const json::object& from, std::string_view key, Millis shortest, std::chrono::seconds longest
) {
    const auto seconds = json::find_number(from, key);
    if (!seconds) {
        return fail(seconds.error());
    }
    if (!*seconds) {
        return std::nullopt;
    }
    const std::chrono::duration<double> given(**seconds);
    if (!(given >= shortest && given <= longest)) {
        return fail(
            Code::invalid_argument,
            "'" + std::string(key) + "' must be from " + std::to_string(shortest.count()) +
                " ms to " + std::to_string(longest.count()) + " seconds",
            {{"field", boost::json::string_view(key.data(), key.size())}}
        );
    }
    return std::chrono::duration_cast<Millis>(given);
}

std::uint64_t unsigned_of(const json::object& from, std::string_view key) {
    const json::value* found = json::find(from, key);
    return found != nullptr && found->is_number() ? found->to_number<std::uint64_t>() : 0;
}

}  // namespace

Spec::Spec() = default;
Spec::Spec(const Spec& other) = default;
Spec::Spec(Spec&& other) noexcept = default;
Spec& Spec::operator=(const Spec& other) = default;
Spec& Spec::operator=(Spec&& other) = default;
Spec::~Spec() = default;

Output::Output() = default;
Output::Output(const Output& other) = default;
Output::Output(Output&& other) noexcept = default;
Output& Output::operator=(const Output& other) = default;
Output& Output::operator=(Output&& other) = default;
Output::~Output() = default;

Failure::Failure() = default;
Failure::Failure(const Failure& other) = default;
Failure::Failure(Failure&& other) noexcept = default;
Failure& Failure::operator=(const Failure& other) = default;
Failure& Failure::operator=(Failure&& other) = default;
Failure::~Failure() = default;

Job::Job() = default;
Job::Job(const Job& other) = default;
Job::Job(Job&& other) noexcept = default;
Job& Job::operator=(const Job& other) = default;
Job& Job::operator=(Job&& other) = default;
Job::~Job() = default;

std::string_view to_string(State state) {
    return kStates.at(static_cast<std::size_t>(state));
}
std::optional<State> parse_state(std::string_view text) {
    return parse_name<State>(kStates, text);
}
std::string_view to_string(EventType type) {
    return kEventTypes.at(static_cast<std::size_t>(type));
}
std::optional<EventType> parse_event_type(std::string_view text) {
    return parse_name<EventType>(kEventTypes, text);
}

std::string webhook_event_name(EventType type) {
    switch (type) {
        case EventType::retrying:
            return "execution.warning";
        case EventType::expired:
            return "execution.failed";
        default:
            return "execution." + std::string(to_string(type));
    }
}

bool Webhook::is_wanted(std::string_view event, const std::vector<std::string>& events) {
    if (events.empty()) {
        return event == "execution.completed" || event == "execution.failed" ||
               event == "execution.cancelled";
    }
    return std::find(events.begin(), events.end(), event) != events.end();
}

json::object Webhook::to_json() const {
    json::object header_map;
    for (const auto& [name, value] : headers) {
        header_map[name] = value;
    }
    json::object object{
        {"url", url},
        {"secret", secret},
        {"headers", std::move(header_map)},
        {"events", json::array(events.begin(), events.end())},
    };
    if (max_retries) {
        object["max_retries"] = *max_retries;
    }
    if (retry_delay) {
        object["retry_delay"] = std::chrono::duration<double>(*retry_delay).count();
    }
    if (timeout) {
        object["timeout"] = std::chrono::duration<double>(*timeout).count();
    }
    if (method != "POST") {
        object["method"] = method;
    }
    if (!verify_tls) {
        object["verify_ssl"] = false;
    }
    return object;
}

Result<Webhook> Webhook::from_json(const json::object& from) {
    Webhook webhook;
    auto url = json::find_string(from, "url");
    if (!url) {
        return fail(std::move(url.error()));
    }
    if (!*url || (*url)->empty()) {
        return fail(Code::invalid_argument, "a webhook needs a 'url'", {{"field", "url"}});
    }
    webhook.url = std::move(**url);
    auto secret = json::find_string(from, "secret");
    if (!secret) {
        return fail(std::move(secret.error()));
    }
    webhook.secret = secret->value_or("");
    const auto headers = json::find_object(from, "headers");
    if (!headers) {
        return fail(headers.error());
    }
    if (*headers != nullptr) {
        for (const auto& header : **headers) {
            if (!header.value().is_string()) {
                return fail(
                    Code::invalid_argument,
                    "webhook header '" + std::string(header.key()) + "' must be a string",
                    {{"field", "headers"}}
                );
            }
            webhook.headers.emplace_back(header.key(), header.value().get_string());
        }
    }
    const auto events = json::find_array(from, "events");
    if (!events) {
        return fail(events.error());
    }
    if (*events != nullptr) {
        for (const json::value& event : **events) {
            if (!event.is_string()) {
                return fail(
                    Code::invalid_argument,
                    "'events' must be a list of names such as \"execution.completed\"",
                    {{"field", "events"}}
                );
            }
            webhook.events.emplace_back(event.get_string());
        }
    }
    const auto max_retries = json::find_int(from, "max_retries");
    if (!max_retries) {
        return fail(max_retries.error());
    }
    if (*max_retries) {
        if (**max_retries < 0 || **max_retries > kWebhookRetriesMax) {
            return fail(
                Code::invalid_argument,
                "'max_retries' must be from 0 to " + std::to_string(kWebhookRetriesMax),
                {{"field", "max_retries"}}
            );
        }
        webhook.max_retries = static_cast<int>(**max_retries);
    }
    auto retry_delay = find_seconds(from, "retry_delay", Millis(1), kWebhookRetryDelayMax);
    if (!retry_delay) {
        return fail(std::move(retry_delay.error()));
    }
    webhook.retry_delay = *retry_delay;
    auto timeout = find_seconds(from, "timeout", Millis(100), kWebhookTimeoutMax);
    if (!timeout) {
        return fail(std::move(timeout.error()));
    }
    webhook.timeout = *timeout;
    auto method = json::find_string(from, "method");
    if (!method) {
        return fail(std::move(method.error()));
    }
    if (*method && **method != "POST" && **method != "PUT" && **method != "PATCH") {
        return fail(
            Code::invalid_argument, "'method' must be POST, PUT or PATCH", {{"field", "method"}}
        );
    }
    webhook.method = method->value_or("POST");
    const auto verify = json::find_bool(from, "verify_ssl");
    if (!verify) {
        return fail(verify.error());
    }
    webhook.verify_tls = verify->value_or(true);
    return webhook;
}

json::object Output::to_json() const {
    json::object made{
        {"asset_id", asset.to_string()},
        {"node_id", node_id},
        {"name", name},
        {"subfolder", subfolder},
        {"folder", folder},
        {"type", type},
        {"content_type", content_type},
        {"size_bytes", size_bytes},
        {"hash", hash},
    };
    if (!media.empty()) {
        made["media"] = media;
    }
    if (!variant.empty()) {
        made["variant"] = variant;
    }
    if (!variants.empty()) {
        json::array& listed = made["variants"].emplace_array();
        for (const Output& one : variants) {
            listed.emplace_back(one.to_json());
        }
    }
    if (!failed_variants.empty()) {
        made["failed_variants"] = failed_variants;
    }
    if (!exported.empty()) {
        made["exported"] = exported;
    }
    if (crc32) {
        made["crc32"] = *crc32;
    }
    if (!store.empty()) {
        made["store"] = store;
    }
    if (!retention.empty()) {
        made["retention"] = retention;
    }
    if (expires_at) {
        made["expires_at"] = to_unix_ms(*expires_at);
    }
    return made;
}

Output Output::from_json(const json::object& from) {
    Output output;
    output.asset = AssetId::parse(string_of(from, "asset_id")).value_or(AssetId{});
    output.node_id = string_of(from, "node_id");
    output.name = string_of(from, "name");
    output.subfolder = string_of(from, "subfolder");
    output.folder = string_of(from, "folder");
    output.type = string_of(from, "type");
    output.content_type = string_of(from, "content_type");
    output.size_bytes = unsigned_of(from, "size_bytes");
    output.hash = string_of(from, "hash");
    output.variant = string_of(from, "variant");
    if (const json::value* media = json::find(from, "media"); media && media->is_object()) {
        output.media = media->get_object();
    }
    const json::value* variants = json::find(from, "variants");
    // Variants have none of their own: what claims otherwise is not followed.
    if (variants != nullptr && variants->is_array() && output.variant.empty()) {
        for (const json::value& one : variants->get_array()) {
            if (one.is_object() && !string_of(one.get_object(), "variant").empty()) {
                output.variants.push_back(from_json(one.get_object()));
            }
        }
    }
    if (const json::value* failed = json::find(from, "failed_variants");
        failed && failed->is_array()) {
        output.failed_variants = failed->get_array();
    }
    if (const json::value* exported = json::find(from, "exported");
        exported && exported->is_object()) {
        output.exported = exported->get_object();
    }
    if (from.contains("crc32")) {
        output.crc32 = static_cast<std::uint32_t>(unsigned_of(from, "crc32"));
    }
    output.store = string_of(from, "store");
    output.retention = string_of(from, "retention");
    if (from.contains("expires_at")) {
        output.expires_at =
            from_unix_ms(static_cast<std::int64_t>(unsigned_of(from, "expires_at")));
    }
    return output;
}

std::vector<const Output*> files_of(const std::vector<Output>& outputs) {
    std::vector<const Output*> files;
    each_file(outputs, [&files](const Output& file) { files.push_back(&file); });
    return files;
}

const Output& as_wanted(const Output& output) {
    const auto made = std::ranges::find_if(output.variants, [](const Output& variant) {
        return variant.variant == "converted" || variant.variant == "stripped";
    });
    return made == output.variants.end() ? output : *made;
}

json::object Keeping::to_json() const {
    json::object made;
    if (!store.empty()) {
        made["store"] = store;
    }
    if (!retention.empty()) {
        made["retention"] = retention;
    }
    if (life) {
        made["life_ms"] = life->count();
    }
    if (moves_after) {
        made["moves_after_ms"] = moves_after->count();
    }
    if (in_answers) {
        made["in_answers"] = true;
    }
    return made;
}

Keeping Keeping::from_json(const json::object& from) {
    const auto millis = [&from](std::string_view key) {
        return from.contains(key) ? std::optional(Millis(unsigned_of(from, key))) : std::nullopt;
    };
    Keeping keeping;
    keeping.store = string_of(from, "store");
    keeping.retention = string_of(from, "retention");
    keeping.life = millis("life_ms");
    keeping.moves_after = millis("moves_after_ms");
    keeping.in_answers = from.contains("in_answers");
    return keeping;
}

Failure Failure::from(const Error& error) {
    Failure failure;
    failure.code = error.code;
    failure.message = error.message;
    failure.node_id = string_of(error.details, "node_id");
    failure.class_type = string_of(error.details, "node_type");
    if (const json::value* lines = json::find(error.details, "traceback");
        lines != nullptr && lines->is_array()) {
        for (const json::value& line : lines->get_array()) {
            if (line.is_string()) {
                failure.traceback += line.get_string();
            }
        }
    }
    failure.details = error.details;
    failure.details.erase("traceback");
    return failure;
}

json::object Failure::to_json() const {
    json::object object{
        {"code", to_string(code)},
        {"category", to_string(category_of(*this))},
        {"message", message},
        {"retryable", info(code).retryable},
        {"suggested_action", suggested_action_of(*this)},
    };
    if (is_judged(*this)) {
        object["cause"] = to_string(cause_of(*this));
    }
    if (!node_id.empty()) {
        object["node_id"] = node_id;
    }
    if (!class_type.empty()) {
        object["class_type"] = class_type;
    }
    if (!traceback.empty()) {
        object["traceback"] = traceback;
    }
    if (!details.empty()) {
        object["details"] = details;
    }
    return object;
}

Failure Failure::from_json(const json::object& from) {
    Failure failure;
    failure.code = parse_code(string_of(from, "code")).value_or(Code::internal);
    failure.message = string_of(from, "message");
    failure.node_id = string_of(from, "node_id");
    failure.class_type = string_of(from, "class_type");
    failure.traceback = string_of(from, "traceback");
    if (const json::value* details = json::find(from, "details");
        details != nullptr && details->is_object()) {
        failure.details = details->get_object();
    }
    return failure;
}

json::object Progress::to_json() const {
    json::object object{{"value", value}, {"nodes_done", nodes_done}, {"nodes_total", nodes_total}};
    const auto set = [&object](std::string_view key, json::value known, bool is_known) {
        object[boost::json::string_view(key.data(), key.size())] =
            is_known ? std::move(known) : json::value(nullptr);
    };
    set("current_node", json::value(current_node), !current_node.empty());
    set("current_node_class", json::value(current_node_class), !current_node_class.empty());
    set("step", step, steps > 0);
    set("steps", steps, steps > 0);
    set("message", json::value(message), !message.empty());
    return object;
}

std::optional<Millis> Job::queue_time() const {
    if (!started_at) {
        return std::nullopt;
    }
    return std::max(Millis(0), *started_at - created_at);
}

std::optional<Millis> Job::execution_time() const {
    if (!started_at || !finished_at) {
        return std::nullopt;
    }
    return std::max(Millis(0), *finished_at - *started_at);
}

PromptId prompt_id(const JobId& job, int attempt) {
    return {Uuid::derive(job.uuid, "attempt " + std::to_string(attempt))};
}

std::uint64_t next_sequence_block(std::uint64_t last) {
    constexpr int kBlockBits = 20;
    return ((last >> kBlockBits) + 1) << kBlockBits;
}

Millis retry_delay(int attempt, double jitter) {
    const double seconds = std::min(60.0, std::pow(2.0, std::max(0, attempt - 1)));
    return Millis(static_cast<std::int64_t>(seconds * 1000.0 * (0.5 + 0.5 * jitter)));
}

}  // namespace comfyd::jobs
