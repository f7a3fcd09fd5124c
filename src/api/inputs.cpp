#include "api/inputs.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

namespace comfyd::api {
namespace {

using workflow::FileKind;
using workflow::FileSource;
using workflow::Issue;

constexpr std::string_view kMissing = "missing_asset";
// Longer than jobs are kept, because one may wait for a week before it runs.
constexpr Millis kKeptLonger = std::chrono::hours(24 * 8);

// One of the requests that may fetch files at the same time; counts until it is destroyed.
class FetchSlot {
public:
    static Result<FetchSlot> open(const Services& services) {
        FetchSlot slot(services.fetches);
        if (services.fetches->fetch_add(1) >= services.options.fetches_max) {
            return fail(
                Code::rate_limited,
                "too many requests fetch files from addresses at this moment; try again soon, or "
                "upload the file and refer to it"
            );
        }
        return slot;
    }
    FetchSlot(FetchSlot&& other) noexcept = default;
    FetchSlot& operator=(FetchSlot&&) = delete;
    ~FetchSlot() {
        if (count_) {
            count_->fetch_sub(1);
        }
    }

private:
    explicit FetchSlot(std::shared_ptr<std::atomic<std::size_t>> count)
        : count_(std::move(count)) {}
    std::shared_ptr<std::atomic<std::size_t>> count_;
};

bool is_address(const FileSource& source) {
    workflow::InputUrl url;
    return workflow::read_input_url(source.source, url);
}

assets::MediaKind media_of(FileKind kind) {
    switch (kind) {
        case FileKind::image:
            return assets::MediaKind::image;
        case FileKind::audio:
            return assets::MediaKind::audio;
        case FileKind::video:
            return assets::MediaKind::video;
        case FileKind::other:
            break;
    }
    return assets::MediaKind::any;
}

// An operator who names a host by itself means it, wherever it is.
assets::HostRule judge_host(const workflow::SecurityPolicy& policy, const std::string& host) {
    if (!workflow::is_allowed_host(policy, host)) {
        return assets::HostRule::refused;
    }
    const bool is_named =
        std::ranges::find(policy.allowed_domains, host) != policy.allowed_domains.end();
    return policy.allow_private_hosts || is_named ? assets::HostRule::any
                                                  : assets::HostRule::public_only;
}

// The word for a failure that the client can mend; empty: it cannot.
std::string_view issue_code(Code code) {
    switch (code) {
        case Code::address_refused:
            return "UNAUTHORIZED_DOMAIN";
        case Code::connection_failed:
        case Code::request_timeout:
        case Code::protocol_error:
        case Code::upstream_error:
            return "URL_NOT_ACCESSIBLE";
        case Code::unsupported_media_type:
            return "INVALID_CONTENT_TYPE";
        case Code::payload_too_large:
            return "FILE_TOO_LARGE";
        case Code::invalid_argument:
            return "INVALID_FILE_SOURCE";
        case Code::missing_asset:
            return kMissing;
        default:
            return {};
    }
}

Issue issue_about(const FileSource& source, std::string_view code, const Error& error) {
    Issue issue;
    issue.stage = workflow::Stage::security;
    issue.code = code;
    issue.node_id = source.node_id;
    issue.class_type = source.class_type;
    issue.input = source.input;
    issue.message = (source.node_id.empty() ? "'" + source.input + "': "
                                            : "node " + source.node_id + " (" + source.class_type +
                                                  "), input '" + source.input + "': ") +
                    error.message;
    issue.got = workflow::shortened(json::value(source.source));
    issue.details = error.details;
    return issue;
}

// By content, so that equal files make equal workflows; by id only where the client chose one.
json::object reference_to(const FileSource& source, const assets::Asset& asset) {
    json::object info;
    if (source.source.starts_with("asset:")) {
        info["id"] = asset.id.to_string();
    }
    info["hash"] = asset.hash;
    info["file_path"] = asset.file_path.substr(asset.file_path.rfind('/') + 1);
    // What the client is shown in its place; it may send that again.
    info["name"] = source.source.starts_with("data:") ? asset.hash : source.source;
    json::object reference;
    reference["__type"] = "core/ASSET";
    reference["info"] = std::move(info);
    return reference;
}

assets::IntakeRequest intake_of(
    const Call& call, const Services& services, const std::vector<FileSource>& sources
) {
    assets::IntakeRequest request;
    request.tenant = call.caller.tenant;
    for (const FileSource& source : sources) {
        request.files.push_back({source.source, media_of(source.kind)});
    }
    request.judge_host = [&policy = services.options.security](const std::string& host) {
        return judge_host(policy, host);
    };
    request.limits = services.options.inputs;
    request.expires_at = services.clock.now() + services.options.retention + kKeptLonger;
    return request;
}

}  // namespace

Task<Result<Fetched>> fetch_inputs(
    const Call& call, const Services& services, std::vector<FileSource> sources
) {
    std::optional<FetchSlot> slot;
    if (std::ranges::any_of(sources, is_address)) {
        auto opened = FetchSlot::open(services);
        if (!opened) {
            co_return fail(std::move(opened.error()));
        }
        slot.emplace(std::move(*opened));
    }
    auto taken = co_await assets::take_in(
        call.exchange.executor(), services.assets, intake_of(call, services, sources)
    );
    Fetched fetched;
    for (std::size_t i = 0; i < sources.size(); ++i) {
        json::object reference;
        if (taken[i]) {
            reference = reference_to(sources[i], *taken[i]);
        } else if (const auto code = issue_code(taken[i].error().code); !code.empty()) {
            fetched.issues.push_back(issue_about(sources[i], code, taken[i].error()));
        } else {
            co_return fail(std::move(taken[i].error()));
        }
        fetched.references.push_back(std::move(reference));
    }
    co_return fetched;
}

Error inputs_error(const std::vector<Issue>& issues) {
    Error error = workflow::issues_error(issues);
    if (std::ranges::all_of(issues, [](const Issue& issue) { return issue.code == kMissing; })) {
        error.code = Code::missing_asset;
    }
    return error;
}

Task<Result<>> place_inputs(
    const Call& call, const Services& services, std::vector<FileSource> sources, json::object& graph
) {
    auto fetched = co_await fetch_inputs(call, services, sources);
    if (!fetched) {
        co_return fail(std::move(fetched.error()));
    }
    if (!fetched->issues.empty()) {
        co_return fail(inputs_error(fetched->issues));
    }
    for (std::size_t i = 0; i < sources.size(); ++i) {
        workflow::place_file(graph, sources[i], std::move(fetched->references[i]));
    }
    co_return Result<>();
}

}  // namespace comfyd::api
