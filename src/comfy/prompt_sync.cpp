#include "comfy/prompt_sync.hpp"

#include <charconv>
#include <cmath>
#include <utility>

#include "comfy/members.hpp"

namespace comfyd::comfy::prompt_sync {
namespace {

tl::unexpected<Error> wrong(std::string_view field, std::string message) {
    return fail(
        Code::invalid_argument,
        std::move(message),
        {{"field", boost::json::string_view(field.data(), field.size())}}
    );
}

Result<Millis> to_timeout(double seconds) {
    constexpr double kMin = static_cast<double>(kTimeoutMin.count()) / 1000.0;
    constexpr double kMax = static_cast<double>(kTimeoutMax.count()) / 1000.0;
    if (!(seconds >= kMin && seconds <= kMax)) {
        return wrong("timeout", "'timeout' must be from 0.1 to 86400 seconds");
    }
    return Millis(std::llround(seconds * 1000));
}

std::string_view title_of(int status) {
    switch (status) {
        case 408:
            return "Task timed out";
        case 503:
            return "No worker available";
        case 400:
            return "Task execution failed";
        case 422:
            return "Validation failed";
        default:
            return status < 500 ? "Request refused" : "Internal error";
    }
}

// node id -> ["Value not in list: sampler_name: …"], of ComfyUI's own form, which has an object for
// each node with a list of errors.
json::object in_words(const json::object& node_errors) {
    json::object made;
    for (const auto& [node, entry] : node_errors) {
        json::array texts;
        const json::object* described = entry.if_object();
        const json::array* errors = described == nullptr ? nullptr : array_of(*described, "errors");
        for (std::size_t i = 0; errors != nullptr && i < errors->size(); ++i) {
            if (const json::object* error = (*errors)[i].if_object()) {
                const std::string details = text_of(*error, "details");
                texts.emplace_back(
                    text_of(*error, "message") + (details.empty() ? "" : ": " + details)
                );
            }
        }
        made[node] = std::move(texts);
    }
    return made;
}

}  // namespace

Result<Options> decode_options(
    const json::object& body, std::string_view timeout_query, Millis timeout_default
) {
    Options options;
    options.timeout = timeout_default;
    const auto base64 = json::find_bool(body, "return_image_base64");
    if (!base64) {
        return fail(base64.error());
    }
    options.return_base64 = base64->value_or(false);
    auto seconds = json::find_number(body, "timeout");
    if (!seconds) {
        return fail(seconds.error());
    }
    if (!timeout_query.empty()) {
        double number = 0;
        const char* end = timeout_query.data() + timeout_query.size();
        const auto parsed = std::from_chars(timeout_query.data(), end, number);
        if (parsed.ec != std::errc() || parsed.ptr != end) {
            return wrong("timeout", "'timeout' must be a number of seconds");
        }
        *seconds = number;
    }
    if (*seconds) {
        const auto timeout = to_timeout(**seconds);
        if (!timeout) {
            return fail(timeout.error());
        }
        options.timeout = *timeout;
    }
    const auto on_timeout = json::find_string(body, "on_timeout");
    const std::string what = on_timeout ? on_timeout->value_or("cancel") : std::string();
    if (what != "cancel" && what != "continue") {
        return wrong("on_timeout", "'on_timeout' must be \"cancel\" or \"continue\"");
    }
    options.cancel_on_timeout = what == "cancel";
    return options;
}

int http_status(Code code) {
    switch (code) {
        case Code::request_timeout:
        case Code::execution_timeout:
        case Code::deadline_exceeded:
            return 408;
        case Code::worker_unavailable:
        case Code::worker_lost:
        case Code::shutting_down:
        case Code::storage_unavailable:
            return 503;
        case Code::node_execution_error:
        case Code::out_of_memory:
        case Code::cancelled:
            return 400;
        case Code::invalid_argument:
        case Code::malformed_json:
        case Code::address_refused:
            return 422;
        default: {
            const int status = info(code).http_status;
            return status < 500 ? status : 500;
        }
    }
}

json::object encode_trouble(const Trouble& trouble, Time now) {
    const int status = http_status(trouble.error.code);
    json::object body;
    body["status"] = status == 408 ? "timeout" : "error";
    body["error"] = title_of(status);
    body["code"] = to_string(trouble.error.code);
    body["detail"] = trouble.error.message;
    body["prompt_id"] =
        trouble.prompt_id.empty() ? json::value(nullptr) : json::value(trouble.prompt_id);
    body["node_errors"] = in_words(trouble.node_errors);
    if (!trouble.outputs.empty()) {
        body["outputs"] = trouble.outputs;
    }
    body["timestamp"] = to_rfc3339(now);
    return body;
}

Error out_of_time(const std::string& prompt_id, const Options& options) {
    return Error(
        Code::request_timeout,
        "no result within " + std::to_string(options.timeout.count()) + " ms; " +
            (options.cancel_on_timeout
                 ? "the prompt was cancelled"
                 : "the prompt goes on, /history/" + prompt_id + " will have its result")
    );
}

Error too_large_inline(std::uint64_t bytes) {
    return Error(
        Code::payload_too_large,
        "the pictures have " + std::to_string(bytes) + " bytes, but at most " +
            std::to_string(kInlineBytesMax) + " come as base64; fetch them as 'outputs' names them"
    );
}

json::object encode_result(
    const std::string& prompt_id, Millis took, json::object outputs, const json::object& node_errors
) {
    json::object body;
    body["prompt_id"] = prompt_id;
    body["status"] = "success";
    body["execution_time"] = std::round(static_cast<double>(took.count()) / 10.0) / 100.0;
    body["outputs"] = std::move(outputs);
    body["node_errors"] = in_words(node_errors);
    return body;
}

void add_picture(json::object& images, std::string_view node, Picture picture) {
    json::value& list = images[boost::json::string_view(node.data(), node.size())];
    if (!list.is_array()) {
        list = json::array();
    }
    json::object image;
    image["filename"] = std::move(picture.filename);
    image["subfolder"] = std::move(picture.subfolder);
    image["type"] = std::move(picture.type);
    image["data"] = std::move(picture.base64);
    list.get_array().push_back(std::move(image));
}

}  // namespace comfyd::comfy::prompt_sync
