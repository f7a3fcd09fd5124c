#include <algorithm>
#include <array>
#include <chrono>
#include <map>

#include "admission/inputs.hpp"
#include "api/dialects/workflow_tools/workflow_tools.hpp"
#include "base/deadline.hpp"
#include "net/client.hpp"

namespace comfyd::api::workflow_tools {
namespace {

using workflow::Issue;

bool is_type(std::string_view type, std::string_view beginning) {
    return type.size() >= beginning.size() &&
           net::equal_ignoring_case(type.substr(0, beginning.size()), beginning);
}

bool is_allowed_type(std::string_view type, workflow::FileKind kind) {
    static constexpr std::array<std::string_view, 7> kFiles{
        "image/",
        "video/",
        "audio/",
        "model/",
        "text/plain",
        "application/zip",
        "application/json",
    };
    // So do servers say that do not know.
    if (type.empty() || is_type(type, "application/octet-stream") ||
        is_type(type, "binary/octet-stream")) {
        return true;
    }
    switch (kind) {
        case workflow::FileKind::image:
            return is_type(type, "image/");
        case workflow::FileKind::audio:  // some formats are both
        case workflow::FileKind::video:
            return is_type(type, "audio/") || is_type(type, "video/");
        case workflow::FileKind::other:
            break;
    }
    return std::ranges::any_of(kFiles, [type](std::string_view one) { return is_type(type, one); });
}

Issue issue_about(const workflow::UrlInput& input, std::string_view code, std::string message) {
    Issue issue;
    issue.stage = workflow::Stage::security;
    issue.code = code;
    issue.node_id = input.node_id;
    issue.class_type = input.class_type;
    issue.input = input.input;
    issue.message = "node " + input.node_id + " (" + input.class_type + "), input '" + input.input +
                    "': " + std::move(message);
    issue.got = workflow::shortened(json::value(input.url));
    return issue;
}

net::AddressPolicy addresses_for(const std::string& url, const workflow::SecurityPolicy& policy) {
    workflow::InputUrl parts;
    const bool any = workflow::read_input_url(url, parts) &&
                     admission::judge_host(policy, parts.host) == assets::HostRule::any;
    return any ? net::AddressPolicy::any : net::AddressPolicy::public_only;
}

std::optional<Issue> judge(const Probed& probed, const net::ClientResponse& response) {
    const workflow::UrlInput& input = probed.input;
    if (response.status != 200) {
        Issue issue = issue_about(
            input,
            "URL_NOT_ACCESSIBLE",
            "the address answers " + std::to_string(response.status) + " and not 200"
        );
        issue.details["status_code"] = response.status;
        return issue;
    }
    const std::string type(response.headers.get("Content-Type"));
    if (!is_allowed_type(type, probed.kind)) {
        Issue issue = issue_about(
            input,
            "INVALID_CONTENT_TYPE",
            "the address gives '" + type.substr(0, 100) + "', which is no file for this input"
        );
        issue.details["content_type"] = type.substr(0, 100);
        return issue;
    }
    return std::nullopt;
}

}  // namespace

Task<std::vector<Issue>> probe_urls(
    Executor executor,
    std::vector<Probed> urls,
    workflow::SecurityPolicy policy,
    std::string ca_file
) {
    std::vector<Issue> issues;
    std::map<net::AddressPolicy, std::unique_ptr<net::Client>> clients;
    const Deadline end = Deadline::in(kProbeTime);
    std::size_t probed = 0;
    for (const Probed& one : urls) {
        const workflow::UrlInput& input = one.input;
        if (probed++ == kUrlsProbed || end.has_passed()) {
            issues.push_back(issue_about(
                input, "URL_VALIDATION_ERROR", "there was no time to look at this address"
            ));
            issues.back().severity = workflow::Severity::warning;
            break;
        }
        const net::AddressPolicy addresses = addresses_for(input.url, policy);
        auto& client = clients[addresses];
        if (client == nullptr) {
            net::ClientOptions options;
            options.policy = addresses;
            options.ca_file = ca_file;
            client = std::make_unique<net::Client>(executor, options);
        }
        net::ClientRequest request;
        request.method = "HEAD";
        request.url = input.url;
        request.timeout = std::min(end.left(), Millis(5'000));
        auto response = co_await client->send(std::move(request));
        if (!response) {
            const bool is_unreachable = response.error().code == Code::connection_failed ||
                                        response.error().code == Code::request_timeout;
            issues.push_back(issue_about(
                input,
                is_unreachable ? "URL_NOT_ACCESSIBLE" : "URL_VALIDATION_ERROR",
                response.error().message
            ));
        } else if (auto issue = judge(one, *response)) {
            issues.push_back(std::move(*issue));
        }
    }
    for (auto& [addresses, client] : clients) {
        client->close_idle();
    }
    co_return issues;
}

}  // namespace comfyd::api::workflow_tools
