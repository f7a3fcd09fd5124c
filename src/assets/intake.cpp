#include "assets/intake.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "assets/blake3.hpp"
#include "assets/content_type.hpp"
#include "assets/media.hpp"
#include "base/crypto.hpp"
#include "base/deadline.hpp"
#include "net/client.hpp"
#include "net/location.hpp"

namespace comfyd::assets {
namespace {

constexpr std::string_view kAsset = "asset:";
constexpr std::string_view kHash = "blake3:";
constexpr std::string_view kData = "data:";

tl::unexpected<Error> too_large(std::uint64_t bytes_max) {
    return fail(
        Code::payload_too_large,
        "the files of one request may have at most " + std::to_string(bytes_max) +
            " bytes together (inputs.total_mb)"
    );
}

bool is_redirect(int status) {
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// The bytes of one answer on their way to the store.
struct Download {
    std::unique_ptr<BlobWriter> writer;
    MediaKind kind = MediaKind::any;
    std::string head;  // the first kSniffBytes
    std::uint64_t size = 0;
};

class Intake {
public:
    Intake(Executor executor, Store& store, IntakeRequest request)
        : executor_(executor),
          store_(store),
          request_(std::move(request)),
          bytes_left_(request_.limits.bytes_max),
          deadline_(Deadline::in(request_.limits.timeout)),
          finished_(executor) {}

    Task<std::vector<Result<Asset>>> run();

private:
    struct Item {
        std::string source;
        MediaKind kind;
        Result<Asset> result = fail(Code::cancelled, "the request was cancelled");
    };

    Task<> work();
    Task<Result<Asset>> take(const Item& item);
    Task<Result<Asset>> take_asset(std::string id);
    Task<Result<Asset>> take_hash(std::string hash);
    Task<Result<Asset>> take_data(const Item& item);
    Task<Result<Asset>> take_url(const Item& item);
    Task<Result<net::ClientResponse>> ask(net::Url url, Download& into);
    Result<> append(Download& download, std::string_view piece);
    Task<Result<Asset>> finish(Download download, net::ClientResponse response, std::string target);
    Result<net::Client*> client_for(const net::Url& url);
    NewAsset new_asset(std::string content_type, std::string name) const;

    Executor executor_;
    Store& store_;
    IntakeRequest request_;
    std::uint64_t bytes_left_;
    Deadline deadline_;
    std::map<net::AddressPolicy, std::unique_ptr<net::Client>> clients_;
    std::vector<Item> items_;  // each source once
    std::size_t next_ = 0;
    std::size_t working_ = 0;
    Signal finished_;  // one of the tasks has
};

Task<std::vector<Result<Asset>>> Intake::run() {
    std::vector<std::size_t> places;
    std::map<std::pair<std::string_view, MediaKind>, std::size_t> known;
    if (request_.files.size() > request_.limits.files_max) {
        const Error error(
            Code::invalid_argument,
            "a request may name at most " + std::to_string(request_.limits.files_max) + " files"
        );
        co_return std::vector<Result<Asset>>(request_.files.size(), fail(error));
    }
    for (const Wanted& file : request_.files) {
        const auto [place, is_new] = known.try_emplace({file.source, file.kind}, items_.size());
        if (is_new) {
            items_.push_back({file.source, file.kind});
        }
        places.push_back(place->second);
    }
    TaskGroup group(executor_);
    working_ = std::min(items_.size(), request_.limits.parallel_max);
    for (std::size_t i = working_; i > 0; --i) {
        group.spawn("take in a file", work());
    }
    // Not join() alone: a cancellation of ours must reach the downloads.
    while (working_ > 0) {
        const bool woken = co_await finished_.wait();
        if (!woken) {
            group.cancel();
            break;
        }
    }
    co_await group.join();
    for (auto& [policy, client] : clients_) {
        client->close_idle();
    }
    std::vector<Result<Asset>> results;
    for (const std::size_t place : places) {
        results.push_back(items_[place].result);
    }
    co_return results;
}

Task<> Intake::work() {
    while (next_ < items_.size()) {
        Item& item = items_[next_++];  // stays where it is: the list does not grow any more
        auto taken = co_await take(item);
        item.result = std::move(taken);
        const bool stop = co_await is_cancelled();
        if (stop) {
            break;
        }
    }
    --working_;
    finished_.notify();
}

Task<Result<Asset>> Intake::take(const Item& item) {
    if (item.source.starts_with(kAsset)) {
        return take_asset(item.source.substr(kAsset.size()));
    }
    if (item.source.starts_with(kHash)) {
        return take_hash(item.source);
    }
    return item.source.starts_with(kData) ? take_data(item) : take_url(item);
}

Task<Result<Asset>> Intake::take_asset(std::string id) {
    const auto parsed = AssetId::parse(id);
    if (!parsed) {
        co_return fail(Code::missing_asset, "'" + id.substr(0, 64) + "' is not the id of an asset");
    }
    auto asset = co_await store_.get(request_.tenant, *parsed);
    if (!asset && asset.error().code == Code::not_found) {
        co_return fail(Code::missing_asset, "there is no asset " + id);
    }
    co_return asset;
}

Task<Result<Asset>> Intake::take_hash(std::string hash) {
    if (!is_blake3_name(hash)) {
        co_return fail(
            Code::missing_asset, "a hash is \"blake3:\" and 64 hexadecimal digits in lower case"
        );
    }
    auto found = co_await store_.find_hash(request_.tenant, hash);
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    if (!*found) {
        co_return fail(Code::missing_asset, "there is no asset with hash " + hash);
    }
    co_return std::move(**found);
}

NewAsset Intake::new_asset(std::string content_type, std::string name) const {
    NewAsset made;
    made.tenant = request_.tenant;
    made.content_type = std::move(content_type);
    made.file_path = std::move(name);
    made.expires_at = request_.expires_at;
    return made;
}

Task<Result<Asset>> Intake::take_data(const Item& item) {
    auto content = decode_data_url(item.source, bytes_left_);
    if (!content) {
        const bool is_large = content.error().code == Code::payload_too_large;
        co_return is_large ? too_large(request_.limits.bytes_max)
                           : fail(std::move(content.error()));
    }
    std::string& bytes = content->bytes;
    bytes_left_ -= bytes.size();
    const std::string_view first = std::string_view(bytes).substr(0, kSniffBytes);
    auto type = judge_media(item.kind, first, first.size() == bytes.size(), content->content_type);
    if (!type) {
        co_return fail(std::move(type.error()));
    }
    auto added = co_await store_.add(std::move(bytes), new_asset(std::move(*type), ""));
    if (!added) {
        co_return fail(std::move(added.error()));
    }
    co_return std::move(added->asset);
}

Result<net::Client*> Intake::client_for(const net::Url& url) {
    std::string host = url.host;
    while (host.ends_with('.')) {
        host.pop_back();
    }
    const HostRule rule = request_.judge_host(host);
    if (rule == HostRule::refused) {
        return fail(
            Code::address_refused,
            "the domain '" + host + "' is not allowed (security.allowed_domains)",
            {{"domain", host}}
        );
    }
    const auto policy =
        rule == HostRule::any ? net::AddressPolicy::any : net::AddressPolicy::public_only;
    auto& client = clients_[policy];
    if (client == nullptr) {
        net::ClientOptions options;
        options.policy = policy;
        options.ca_file = request_.limits.ca_file;
        client = std::make_unique<net::Client>(executor_, std::move(options));
    }
    return client.get();
}

Result<> Intake::append(Download& download, std::string_view piece) {
    if (piece.size() > bytes_left_) {
        return too_large(request_.limits.bytes_max);
    }
    bytes_left_ -= piece.size();
    download.size += piece.size();
    if (download.head.size() < kSniffBytes) {
        download.head += piece.substr(0, kSniffBytes - download.head.size());
        if (download.head.size() == kSniffBytes) {
            if (auto judged = judge_first_bytes(download.kind, download.head); !judged) {
                return judged;
            }
        }
    }
    return download.writer->append(piece);
}

// One request of a chain.
Task<Result<net::ClientResponse>> Intake::ask(net::Url url, Download& into) {
    auto client = client_for(url);
    if (!client) {
        co_return fail(std::move(client.error()));
    }
    net::ClientRequest request;
    request.url = url.to_string();
    request.timeout = deadline_.left();
    request.response_bytes_max = bytes_left_;
    auto response = co_await (*client)->download(
        std::move(request), [this, &into](std::string_view piece) { return append(into, piece); }
    );
    if (!response && response.error().code == Code::payload_too_large) {
        co_return too_large(request_.limits.bytes_max);
    }
    co_return response;
}

Task<Result<Asset>> Intake::take_url(const Item& item) {
    auto url = net::Url::parse(item.source);
    if (!url) {
        co_return fail(std::move(url.error()));
    }
    auto writer = store_.write();
    if (!writer) {
        co_return fail(std::move(writer.error()));
    }
    Download download;
    download.writer = std::move(*writer);
    download.kind = item.kind;
    std::string target = url->target;
    for (int redirects = 0; redirects <= kRedirectsMax; ++redirects) {
        auto response = co_await ask(*url, download);
        if (!response) {
            co_return fail(std::move(response.error()));
        }
        const std::string location(response->headers.get("Location"));
        if (!is_redirect(response->status) || location.empty()) {
            auto stored =
                co_await finish(std::move(download), std::move(*response), std::move(target));
            co_return stored;
        }
        url = net::follow_redirect(*url, location);
        if (!url) {
            co_return fail(std::move(url.error()));
        }
    }
    co_return fail(
        Code::upstream_error,
        "the address redirects more than " + std::to_string(kRedirectsMax) + " times"
    );
}

Task<Result<Asset>> Intake::finish(
    Download download, net::ClientResponse response, std::string target
) {
    if (response.status != 200) {
        co_return fail(
            Code::upstream_error,
            "the address answers " + std::to_string(response.status) + " and not 200",
            {{"status_code", response.status}}
        );
    }
    const std::string_view encoding = response.headers.get("Content-Encoding");
    if (!encoding.empty() && !net::equal_ignoring_case(encoding, "identity")) {
        co_return fail(Code::protocol_error, "the address sends a compressed file, unasked");
    }
    auto type = judge_media(
        download.kind,
        download.head,
        download.size == download.head.size(),
        response.headers.get("Content-Type")
    );
    if (!type) {
        co_return fail(std::move(type.error()));
    }
    std::string name = name_from_target(target, *type);
    auto added = co_await store_.finish(
        std::move(download.writer), new_asset(std::move(*type), std::move(name))
    );
    if (!added) {
        co_return fail(std::move(added.error()));
    }
    co_return std::move(added->asset);
}

}  // namespace

Result<DataContent> decode_data_url(std::string_view url, std::uint64_t bytes_max) {
    const auto comma = url.find(',');
    const std::string_view head = url.substr(0, comma);
    if (!url.starts_with(kData) || comma == std::string_view::npos || !head.ends_with(";base64")) {
        return fail(
            Code::invalid_argument, "a data URL must look like \"data:image/png;base64,…\""
        );
    }
    const std::string_view type = head.substr(kData.size(), head.find(';') - kData.size());
    const std::string_view base64 = url.substr(comma + 1);
    if (base64.size() / 4 * 3 > bytes_max + 3) {
        return too_large(bytes_max);
    }
    auto bytes = from_base64(base64);
    if (!bytes) {
        return fail(Code::invalid_argument, "the content of the data URL is not base64");
    }
    if (bytes->size() > bytes_max) {
        return too_large(bytes_max);
    }
    return DataContent{std::string(type), std::move(*bytes)};
}

Task<std::vector<Result<Asset>>> take_in(Executor executor, Store& store, IntakeRequest request) {
    Intake intake(executor, store, std::move(request));
    auto results = co_await intake.run();
    co_return results;
}

}  // namespace comfyd::assets
