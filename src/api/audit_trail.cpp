#include "api/audit_trail.hpp"

#include <algorithm>
#include <utility>

#include "api/router.hpp"
#include "base/log.hpp"

namespace comfyd::api {
namespace {

constexpr std::string_view kAdmin = "/admin/v1/";
constexpr std::string_view kModels = "/v2/model";  // and /v2/model-contents

bool changes(const Route& route) {
    return route.method != net::Method::get && route.method != net::Method::head &&
           route.access != Access::jobs_read;
}

std::string_view subject_of(const Route& route) {
    if (route.pattern.starts_with(kAdmin)) {
        // "/admin/v1/keys/{id}" is about a key.
        std::string_view word = std::string_view(route.pattern).substr(kAdmin.size());
        word = word.substr(0, word.find('/'));
        return word.ends_with('s') ? word.substr(0, word.size() - 1) : word;
    }
    if (route.pattern.starts_with(kModels)) {
        return "model";
    }
    switch (route.access) {
        case Access::jobs:
        case Access::jobs_read:
            return "job";
        case Access::assets:
        case Access::open:  // a signed link
            return "asset";
        case Access::workflows:
            return "workflow";
        case Access::metrics:
            return "metrics";
        case Access::admin:
        case Access::undeclared:
            break;
    }
    return "worker";
}

std::string_view verb_of(const Route& route) {
    // "/admin/v1/keys/{id}/rotate" says what it does.
    const std::string_view pattern = route.pattern;
    const auto last = pattern.substr(pattern.rfind('/') + 1);
    const bool is_of_one = pattern.find('}') < pattern.rfind('/');
    if (is_of_one && !last.starts_with('{') && changes(route)) {
        return last;
    }
    switch (route.method) {
        case net::Method::post:
            return changes(route) ? "create" : "read";
        case net::Method::put:
        case net::Method::patch:
            return "change";
        case net::Method::del:
            return "delete";
        default:
            return "read";
    }
}

// "00-<32 hex digits of the trace>-<16>-<2>"; empty: it is none.
std::string trace_of(const net::Request& request) {
    const std::string_view header = request.headers.get("traceparent");
    const std::string_view id = header.size() == 55 && header.starts_with("00-")
                                    ? header.substr(3, 32)
                                    : std::string_view();
    const bool is_id = id.find_first_not_of("0123456789abcdef") == std::string_view::npos &&
                       id.find_first_not_of('0') != std::string_view::npos;
    return is_id ? std::string(id) : std::string();
}

// The word for what is wrong, wherever the dialect has it; no more than a word, for messages quote
// what was sent.
std::string error_word(std::string_view body) {
    constexpr std::size_t kBytesMax = 16 * 1024;
    constexpr std::size_t kWordMax = 64;
    const auto parsed =
        body.size() <= kBytesMax ? json::parse_object(body) : fail(Code::payload_too_large, "");
    if (!parsed) {
        return {};
    }
    const json::value* error = json::find(*parsed, "error");
    const json::object& within =
        error != nullptr && error->is_object() ? error->get_object() : *parsed;
    for (const std::string_view member : {"code", "error_code", "type", "category", "status"}) {
        const auto word = json::find_string(within, member).value_or(std::nullopt).value_or("");
        const bool is_word = !word.empty() && word.size() <= kWordMax &&
                             std::ranges::all_of(word, [](unsigned char c) {
                                 return std::isalnum(c) != 0 || c == '_' || c == '-';
                             });
        if (is_word) {
            return word;
        }
    }
    return {};
}

}  // namespace

std::string action_of(const Route& route) {
    if (route.pattern.ends_with("/free")) {
        return "worker.free";
    }
    return std::string(subject_of(route)) + "." + std::string(verb_of(route));
}

void AuditTrail::set_request(
    const std::string& id, const std::vector<std::string>& path_parameters
) {
    request_id_ = id;
    for (const std::string& parameter : path_parameters) {
        object_ += (object_.empty() ? "" : "/") + parameter;
    }
}

bool AuditTrail::is_told(int status) const {
    using audit::Extent;
    if (status == 401 || status == 403) {
        return true;
    }
    const Route& route = p_.route;
    if (route.access == Access::open && object_.empty()) {
        return false;  // health, documents
    }
    switch (p_.extent) {
        case Extent::security:
            return route.access == Access::admin && changes(route);
        case Extent::changes:
            return changes(route);
        case Extent::all:
            return true;
    }
    return true;
}

audit::Event AuditTrail::event_of(int status, std::string_view body) const {
    audit::Event event;
    event.at = p_.clock.now();
    event.action = status == 401 ? "login.refused" : action_of(p_.route);
    event.status = status;
    event.error = status >= 400 ? error_word(body) : std::string();
    if (caller_) {
        event.tenant = caller_->tenant;
        event.key = caller_->key_name;
        event.key_id = caller_->key_id;
        event.subject = caller_->subject;
    }
    event.from = p_.request.peer;
    event.request = request_id_;
    event.trace = trace_of(p_.request);
    event.method = net::to_string(p_.request.method);
    event.route = p_.route.pattern;
    event.object = made.empty() ? object_ : made;
    return event;
}

void AuditTrail::answered(int status, std::string_view body) {
    if (std::exchange(is_answered_, true) || !is_told(status)) {
        return;
    }
    audit::Event event = event_of(status, body);
    if (p_.route.access == Access::admin && changes(p_.route) && status < 400) {
        to_store_ = std::move(event);
    } else {
        p_.journal.record(std::move(event));
    }
}

Task<> AuditTrail::store() {
    audit::Event event = std::move(*to_store_);
    to_store_.reset();
    const bool stored = co_await p_.journal.store(std::move(event));
    if (!stored) {
        log::error("the audit log does not have a change", {{"request_id", request_id_}});
    }
}

}  // namespace comfyd::api
