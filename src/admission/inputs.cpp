#include "admission/inputs.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include <boost/asio/this_coro.hpp>

#include "admission/asset_check.hpp"

namespace comfyd::admission {
namespace {

using workflow::FileKind;
using workflow::FileSource;
using workflow::Issue;

// Longer than jobs are kept, because one may wait for a week before it runs.
constexpr Millis kKeptLonger = std::chrono::hours(24 * 8);

// One of the requests that may fetch files at the same time; counts until it is destroyed.
class FetchSlot {
public:
    static Result<FetchSlot> open(const Desk& desk) {
        FetchSlot slot(desk.fetches);
        if (desk.fetches->fetch_add(1) >= desk.rules.fetches_max) {
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
            return kMissingAsset;
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
workflow::AssetRef reference_to(const FileSource& source, const assets::Asset& asset) {
    workflow::AssetRef made;
    if (source.source.starts_with("asset:")) {
        made.id = asset.id.to_string();
    }
    made.hash = asset.hash;
    made.file_path = asset.file_path.substr(asset.file_path.rfind('/') + 1);
    // It may be sent again.
    made.name = source.source.starts_with("data:") ? asset.hash : source.source;
    return made;
}

assets::IntakeRequest intake_of(
    const Desk& desk, const std::string& tenant, const std::vector<FileSource>& sources
) {
    assets::IntakeRequest request;
    request.tenant = tenant;
    for (const FileSource& source : sources) {
        request.files.push_back({source.source, media_of(source.kind)});
    }
    request.judge_host = [policy = desk.rules.security_of(tenant)](const std::string& host) {
        return judge_host(*policy, host);
    };
    request.limits = desk.rules.inputs;
    request.expires_at = desk.clock.now() + desk.rules.retention + kKeptLonger;
    return request;
}

struct Taken {
    std::vector<std::optional<assets::Asset>> assets;  // in the order of the sources
    std::vector<Issue> issues;
};

Task<Result<Taken>> take(
    const Desk& desk,
    const std::vector<FileSource>& sources,  // of the caller, which waits
    assets::IntakeRequest request
) {
    std::optional<FetchSlot> slot;
    if (std::ranges::any_of(sources, is_address)) {
        auto opened = FetchSlot::open(desk);
        if (!opened) {
            co_return fail(std::move(opened.error()));
        }
        slot.emplace(std::move(*opened));
    }
    const Executor here = co_await boost::asio::this_coro::executor;
    auto files = co_await assets::take_in(here, desk.assets, std::move(request));
    Taken taken;
    for (std::size_t i = 0; i < sources.size(); ++i) {
        std::optional<assets::Asset> asset;
        if (files[i]) {
            asset = std::move(*files[i]);
        } else if (const auto code = issue_code(files[i].error().code); !code.empty()) {
            taken.issues.push_back(issue_about(sources[i], code, files[i].error()));
        } else {
            co_return fail(std::move(files[i].error()));
        }
        taken.assets.push_back(std::move(asset));
    }
    co_return taken;
}

}  // namespace

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

Task<Result<Fetched>> fetch_inputs(
    const Desk& desk, std::string tenant, std::vector<FileSource> sources
) {
    auto taken = co_await take(desk, sources, intake_of(desk, tenant, sources));
    if (!taken) {
        co_return fail(std::move(taken.error()));
    }
    Fetched fetched;
    fetched.issues = std::move(taken->issues);
    for (std::size_t i = 0; i < sources.size(); ++i) {
        const auto& asset = taken->assets[i];
        fetched.assets.push_back(asset ? reference_to(sources[i], *asset) : workflow::AssetRef());
    }
    co_return fetched;
}

Task<Result<std::string>> fetch_bytes(
    const Desk& desk,
    std::string tenant,
    std::string source,
    std::string field,
    std::uint64_t bytes_max
) {
    std::vector<FileSource> sources(1);
    sources[0].input = std::move(field);
    sources[0].source = workflow::file_source_in(source);
    bytes_max = std::min(bytes_max, desk.rules.inputs.bytes_max);
    if (sources[0].source.starts_with("data:")) {
        auto content = assets::decode_data_url(sources[0].source, bytes_max);
        if (!content) {
            const auto code = issue_code(content.error().code);
            co_return fail(inputs_error({issue_about(sources[0], code, content.error())}));
        }
        co_return std::move(content->bytes);
    }
    assets::IntakeRequest request = intake_of(desk, tenant, sources);
    request.limits.bytes_max = bytes_max;
    auto taken = co_await take(desk, sources, std::move(request));
    if (!taken) {
        co_return fail(std::move(taken.error()));
    }
    if (!taken->issues.empty()) {
        co_return fail(inputs_error(taken->issues));
    }
    const assets::Asset& asset = *taken->assets[0];
    auto bytes = co_await desk.assets.read(asset, bytes_max);
    if (is_address(sources[0])) {
        auto removed = co_await desk.assets.remove(tenant, asset.id);
        static_cast<void>(removed);  // else it goes when it expires
    }
    co_return bytes;
}

Error inputs_error(const std::vector<Issue>& issues) {
    Error error = workflow::issues_error(issues);
    if (std::ranges::all_of(issues, [](const Issue& issue) {
            return issue.code == kMissingAsset;
        })) {
        error.code = Code::missing_asset;
    }
    return error;
}

}  // namespace comfyd::admission
