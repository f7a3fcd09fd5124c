#include "api/submission.hpp"

#include <algorithm>
#include <utility>

#include <boost/json/monotonic_resource.hpp>

#include "admission/admit.hpp"

namespace comfyd::api {
namespace {

bool is_plain_host(std::string_view host) {
    return !host.empty() && host.size() <= 260 &&
           std::all_of(host.begin(), host.end(), [](unsigned char c) {
               return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                      c == '.' || c == '-' || c == '_' || c == ':' || c == '[' || c == ']';
           });
}

}  // namespace

Task<Result<json::object>> read_json_body(
    Call& call, const Services& services, std::uint64_t bytes_max
) {
    const std::string_view encoding = call.request.headers.get("Content-Encoding");
    if (!encoding.empty() && !net::equal_ignoring_case(encoding, "identity")) {
        co_return fail(
            Code::unsupported_media_type,
            "Content-Encoding '" + std::string(encoding) + "' is not supported: send plain JSON"
        );
    }
    const std::string_view type = call.request.headers.get("Content-Type");
    if (type.starts_with("multipart/")) {
        co_return fail(
            Code::unsupported_media_type,
            "this route takes a JSON body, not '" + std::string(type) + "'"
        );
    }
    auto body =
        co_await call.exchange.read_body(std::min(bytes_max, services.options.json_body_bytes_max));
    if (!body) {
        co_return fail(std::move(body.error()));
    }
    if (body->find_first_not_of(" \t\r\n") == std::string::npos) {
        co_return fail(Code::invalid_argument, "the request needs a JSON object as its body");
    }
    // A workflow is thousands of small values that die together.
    auto parsed = json::parse_object(
        *body,
        boost::json::make_shared_resource<boost::json::monotonic_resource>(body->size() + 256)
    );
    co_return parsed;
}

Task<Result<jobs::Submitted>> submit(
    const Call& call, const Services& services, Submission submission
) {
    submission.spec.tenant = call.caller.tenant;
    auto admitted = co_await admission::admit(services, std::move(submission));
    if (!admitted) {
        co_return fail(std::move(admitted.error().error));
    }
    if (admitted->earlier) {
        co_return std::move(*admitted->earlier);
    }
    auto submitted = co_await submit_admitted(call, services, std::move(admitted->spec));
    co_return submitted;
}

void keep_tier(const Call& call, jobs::Spec& spec) {
    if (!call.caller.tier.empty()) {
        spec.dialect_data[jobs::kTierMember] = call.caller.tier;
    }
}

Task<Result<jobs::Submitted>> submit_admitted(
    const Call& call, const Services& services, jobs::Spec spec
) {
    if (spec.webhook && services.options.public_url.empty()) {
        // A webhook has no request whose host its links could name.
        spec.dialect_data["base_url"] = base_url(call.request, services.options);
    }
    keep_tier(call, spec);
    const std::string dialect = spec.dialect;
    auto submitted = co_await services.jobs.submit(std::move(spec));
    if (submitted) {
        call.has_made(submitted->view.job.id.to_string());
    }
    if (submitted && !submitted->replayed) {
        services.metrics.job_submitted(dialect);
    }
    co_return submitted;
}

std::string without_last_slash(std::string url) {
    while (url.ends_with('/')) {
        url.pop_back();
    }
    return url;
}

std::string base_url(const net::Request& request, const ApiOptions& options) {
    if (!options.public_url.empty()) {
        return without_last_slash(options.public_url);
    }
    const std::string_view host = request.headers.get("Host");
    return request.scheme + "://" + (is_plain_host(host) ? std::string(host) : "localhost");
}

Download download_link(const AssetId& id, const net::Request& request, const Services& services) {
    auto link = services.links.sign(id, services.clock.now());
    const std::string& cdn = services.options.cdn_url;
    std::string base = cdn.empty() ? base_url(request, services.options) : without_last_slash(cdn);
    return {std::move(base) + link.target, link.expires_at};
}

}  // namespace comfyd::api
