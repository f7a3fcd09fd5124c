// Comfy API v2: files that workflows read, and files that they made.
#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

#include "api/dialects/asset_content.hpp"
#include "api/dialects/comfy_v2/comfy_v2_parts.hpp"
#include "api/dialects/comfy_v2/comfy_v2_shapes.hpp"
#include "api/submission.hpp"
#include "api/wrong_field.hpp"
#include "assets/blake3.hpp"
#include "net/multipart_receive.hpp"
#include "net/safe_content.hpp"

namespace comfyd::api::v2 {
namespace {

constexpr std::size_t kFieldBytesMax = 16 * 1024;
constexpr std::size_t kPathBytesMax = 1024;
constexpr std::size_t kTagsMax = 32;
constexpr std::size_t kTagBytesMax = 128;
constexpr std::int64_t kExpiresInMin = 60;
constexpr std::int64_t kExpiresInMax = 604'800;

tl::unexpected<Error> too_long(std::string_view field, std::size_t bytes, std::size_t bytes_max) {
    return wrong(
        field,
        "'" + std::string(field) + "' has " + std::to_string(bytes) +
            " bytes, but may have at most " + std::to_string(bytes_max)
    );
}

bool has_control_characters(std::string_view text) {
    return std::any_of(text.begin(), text.end(), [](unsigned char c) {
        return c < 0x20 || c == 0x7F;
    });
}

// The path becomes a file name on a worker, so it may not lead anywhere.
Result<> check_file_path(const std::string& path) {
    if (path.size() > kPathBytesMax) {
        return too_long("file_path", path.size(), kPathBytesMax);
    }
    std::string_view rest = path;
    bool is_safe = !path.starts_with('/') && path.find('\\') == std::string::npos &&
                   !has_control_characters(path);
    while (is_safe && !rest.empty()) {
        const auto slash = std::min(rest.find('/'), rest.size());
        is_safe = rest.substr(0, slash) != "..";
        rest.remove_prefix(std::min(slash + 1, rest.size()));
    }
    if (!is_safe) {
        return wrong(
            "file_path",
            "'file_path' must be a relative path without '..', backslashes and control characters"
        );
    }
    return {};
}

Result<> check_tags(const std::vector<std::string>& tags) {
    if (tags.size() > kTagsMax) {
        return wrong(
            "tags",
            "'tags' has " + std::to_string(tags.size()) + " entries, but may have at most " +
                std::to_string(kTagsMax)
        );
    }
    for (const std::string& tag : tags) {
        if (tag.size() > kTagBytesMax || has_control_characters(tag)) {
            return wrong(
                "tags",
                "a tag may have at most " + std::to_string(kTagBytesMax) +
                    " bytes and no control characters"
            );
        }
    }
    return {};
}

Result<Time> expiry_after(std::int64_t seconds, Time now) {
    if (seconds < kExpiresInMin || seconds > kExpiresInMax) {
        return wrong(
            "expires_in",
            "'expires_in' is " + std::to_string(seconds) + ", but must be from " +
                std::to_string(kExpiresInMin) + " to " + std::to_string(kExpiresInMax) + " seconds"
        );
    }
    return now + std::chrono::seconds(seconds);
}

// Takes the parts of an upload as they arrive: the file goes to the store, the rest is small.
class Upload final : public net::PartSink {
public:
    explicit Upload(const Services& services) : services_(services) {}

    Result<> begin_part(net::PartHead head) override {
        field_ = std::move(head.name);
        value_.clear();
        if (field_ != "file") {
            return {};
        }
        if (writer_) {
            return wrong("file", "an upload has one 'file', but this one has several");
        }
        filename_ = std::move(head.filename).value_or("");
        part_type_ = std::move(head.content_type);
        auto writer = services_.assets.write();
        if (!writer) {
            return fail(std::move(writer.error()));
        }
        writer_ = std::move(*writer);
        return {};
    }

    Result<> part_data(std::string_view piece) override {
        if (field_ == "file") {
            return writer_->append(piece);
        }
        if (value_.size() + piece.size() > kFieldBytesMax) {
            return too_long(field_.substr(0, 64), value_.size() + piece.size(), kFieldBytesMax);
        }
        value_ += piece;
        return {};
    }

    Result<> end_part() override {
        if (field_ == "content_type") {
            if (!value_.empty() && !net::is_media_type(value_)) {
                return wrong(
                    "content_type", "'content_type' is not a media type, such as image/png"
                );
            }
            asset_.content_type = std::move(value_);
        } else if (field_ == "file_path") {
            asset_.file_path = std::move(value_);
        } else if (field_ == "expected_hash") {
            return take_expected_hash();
        } else if (field_ == "tags" || field_ == "tags[]") {
            asset_.tags.push_back(std::move(value_));
            return check_tags(asset_.tags);
        } else if (field_ == "expires_in") {
            return take_expires_in();
        }
        return {};
    }

    Result<> check() {
        if (!writer_) {
            return wrong("file", "the upload has no part named 'file'");
        }
        if (asset_.file_path.empty()) {
            asset_.file_path = filename_.substr(filename_.find_last_of("/\\") + 1);
        }
        if (asset_.content_type.empty()) {
            asset_.content_type = std::move(part_type_);
        }
        return check_file_path(asset_.file_path);
    }

    std::unique_ptr<assets::BlobWriter> take_writer() { return std::move(writer_); }
    assets::NewAsset take_asset() { return std::move(asset_); }

private:
    Result<> take_expected_hash() {
        if (value_.empty()) {
            return {};
        }
        if (!assets::is_blake3_name(value_)) {
            return wrong(
                "expected_hash", "'expected_hash' must be \"blake3:\" and 64 hexadecimal digits"
            );
        }
        asset_.expected_hash = std::move(value_);
        return {};
    }

    Result<> take_expires_in() {
        std::int64_t seconds = 0;
        const auto parsed = std::from_chars(value_.data(), value_.data() + value_.size(), seconds);
        if (parsed.ec != std::errc() || parsed.ptr != value_.data() + value_.size()) {
            return wrong("expires_in", "'expires_in' must be a whole number of seconds");
        }
        auto expiry = expiry_after(seconds, services_.clock.now());
        if (!expiry) {
            return fail(std::move(expiry.error()));
        }
        asset_.expires_at = *expiry;
        return {};
    }

    const Services& services_;
    std::string field_;
    std::string value_;
    std::string filename_;
    std::string part_type_;
    std::unique_ptr<assets::BlobWriter> writer_;
    assets::NewAsset asset_;
};

Task<Result<>> receive(Call& call, const Services& services, Upload& upload) {
    const std::uint64_t bytes_max = services.options.upload_bytes_max;
    auto received = co_await net::receive_multipart(call.exchange, upload, bytes_max);
    if (!received && received.error().code == Code::payload_too_large) {
        co_return fail(
            Code::payload_too_large,
            "the upload is larger than " + std::to_string(bytes_max) + " bytes"
        );
    }
    if (!received) {
        co_return received;
    }
    co_return upload.check();
}

Task<> post_asset(Call& call, const Services& services) {
    auto key = decode_idempotency_key(call);
    if (!key) {
        co_await refuse(call, std::move(key.error()));
        co_return;
    }
    Upload upload(services);
    auto received = co_await receive(call, services, upload);
    if (!received) {
        co_await refuse(call, std::move(received.error()));
        co_return;
    }
    assets::NewAsset asset = upload.take_asset();
    asset.tenant = call.caller.tenant;
    asset.idempotency_key = std::move(*key);
    auto added = co_await services.assets.finish(upload.take_writer(), std::move(asset));
    if (!added) {
        co_await refuse(call, std::move(added.error()));
        co_return;
    }
    call.has_made(added->asset.id.to_string());
    json::object body = encode_asset(added->asset, Scope{call.request, services});
    body["created_new"] = added->created_new;
    net::Response response = json_response(added->created_new ? 201 : 200, body);
    if (added->replayed) {
        response.headers.set("Idempotency-Replayed", "true");
    }
    co_await send(call, std::move(response));
}

Result<assets::NewAsset> decode_new_asset(const json::object& body, const Services& services) {
    assets::NewAsset asset;
    auto path = json::find_string(body, "file_path");
    if (!path) {
        return fail(std::move(path.error()));
    }
    asset.file_path = std::move(*path).value_or("");
    if (auto checked = check_file_path(asset.file_path); !checked) {
        return fail(std::move(checked.error()));
    }
    const auto tags = json::find_array(body, "tags");
    if (!tags) {
        return fail(tags.error());
    }
    for (const json::value& tag : *tags == nullptr ? json::array() : **tags) {
        if (!tag.is_string()) {
            return wrong("tags", "'tags' must be a list of strings");
        }
        asset.tags.emplace_back(tag.get_string());
    }
    if (auto checked = check_tags(asset.tags); !checked) {
        return fail(std::move(checked.error()));
    }
    const auto expires_in = json::find_int(body, "expires_in");
    if (!expires_in) {
        return fail(expires_in.error());
    }
    if (*expires_in) {
        auto expiry = expiry_after(**expires_in, services.clock.now());
        if (!expiry) {
            return fail(std::move(expiry.error()));
        }
        asset.expires_at = *expiry;
    }
    return asset;
}

Task<Result<assets::Asset>> make_from_hash(Call& call, const Services& services) {
    auto key = decode_idempotency_key(call);
    if (!key) {
        co_return fail(std::move(key.error()));
    }
    auto body = co_await read_json_body(call, services);
    if (!body) {
        co_return fail(std::move(body.error()));
    }
    auto hash = json::find_string(*body, "hash");
    if (!hash) {
        co_return fail(std::move(hash.error()));
    }
    if (!*hash || !assets::is_blake3_name(**hash)) {
        co_return wrong("hash", "'hash' must be \"blake3:\" and 64 hexadecimal digits");
    }
    auto asset = decode_new_asset(*body, services);
    if (!asset) {
        co_return fail(std::move(asset.error()));
    }
    asset->tenant = call.caller.tenant;
    asset->idempotency_key = std::move(*key);
    auto made = co_await services.assets.from_hash(std::move(**hash), std::move(*asset));
    co_return made;
}

Task<> post_from_hash(Call& call, const Services& services) {
    auto asset = co_await make_from_hash(call, services);
    if (!asset) {
        co_await refuse(call, std::move(asset.error()));
        co_return;
    }
    json::object body = encode_asset(*asset, Scope{call.request, services});
    body["created_new"] = false;
    co_await answer(call, 201, std::move(body));
}

Task<> head_by_hash(Call& call, const Services& services) {
    const std::string hash = call.path_parameters.at(0);
    Result<bool> known = false;
    if (assets::is_blake3_name(hash)) {
        known = co_await services.assets.has_hash(call.caller.tenant, hash);
    }
    if (!known) {
        co_await refuse(call, std::move(known.error()));
        co_return;
    }
    net::Response response;
    response.status = *known ? 200 : 404;
    auto sent = co_await call.exchange.send(std::move(response));
    static_cast<void>(sent);
}

Result<AssetId> asset_id(const Call& call) {
    const auto id = AssetId::parse(call.path_parameters.at(0));
    if (!id) {
        return fail(Code::not_found, "no asset has the id '" + call.path_parameters.at(0) + "'");
    }
    return *id;
}

Task<> get_asset(Call& call, const Services& services) {
    const auto id = asset_id(call);
    if (!id) {
        co_await refuse(call, id.error());
        co_return;
    }
    auto asset = co_await services.assets.get(call.caller.tenant, *id);
    if (!asset) {
        co_await refuse(call, std::move(asset.error()));
        co_return;
    }
    co_await answer(call, 200, encode_asset(*asset, Scope{call.request, services}));
}

Task<> delete_asset(Call& call, const Services& services) {
    const auto id = asset_id(call);
    if (!id) {
        co_await refuse(call, id.error());
        co_return;
    }
    auto removed = co_await services.assets.remove(call.caller.tenant, *id);
    if (!removed) {
        co_await refuse(call, std::move(removed.error()));
        co_return;
    }
    net::Response response;
    response.status = 204;
    auto sent = co_await call.exchange.send(std::move(response));
    static_cast<void>(sent);
}

// A link's signature stands for the owner's consent; without one the caller must be the owner.
Task<Result<assets::Asset>> find_readable(const Call& call, const Services& services) {
    const auto id = asset_id(call);
    if (!id) {
        co_return fail(id.error());
    }
    const std::string_view signature = call.query_value("signature");
    const bool is_signed =
        !signature.empty() &&
        services.links.verify(*id, call.query_value("expires"), signature, services.clock.now());
    if (!is_signed && call.caller.tenant.empty()) {
        if (!signature.empty()) {
            co_return fail(
                Code::forbidden,
                "this link has expired or is not complete; ask for the asset again to get a new one"
            );
        }
        co_return fail(
            Code::unauthorized,
            "a download needs an API key or a signed link from the asset's 'url'"
        );
    }
    std::optional<std::string> owner;
    if (!is_signed) {
        owner = call.caller.tenant;
    }
    auto asset = co_await services.assets.get(std::move(owner), *id);
    co_return asset;
}

Task<> get_content(Call& call, const Services& services) {
    auto asset = co_await find_readable(call, services);
    if (!asset) {
        co_await refuse(call, std::move(asset.error()));
        co_return;
    }
    auto sent = co_await send_asset(call, services, std::move(*asset));
    if (!sent) {
        co_await refuse(call, std::move(sent.error()));
    }
}

}  // namespace

void add_asset_routes(Router& router, const Services& services) {
    using net::Method;
    using Action = Task<> (*)(Call&, const Services&);
    const auto add = [&router, &services](
                         Method method,
                         const char* pattern,
                         const char* operation_id,
                         Action action,
                         Access access = Access::assets,
                         std::string_view same_as = {}
                     ) {
        json::object described = operation(same_as.empty() ? operation_id : same_as);
        described["operationId"] = operation_id;
        Route route{
            method,
            pattern,
            [action, &services](Call& call) { return action(call, services); },
            v2::encode_error,
            access,
            std::move(described),
        };
        route.streams_body = action == post_asset;
        router.add(std::move(route));
    };
    add(Method::post, "/api/v2/assets", "postAssets", post_asset);
    add(Method::post, "/api/v2/assets/from-hash", "assetFromHash", post_from_hash);
    add(Method::head, "/api/v2/assets/by-hash/{hash}", "headAssetByHash", head_by_hash);
    add(Method::get, "/api/v2/assets/{id}", "getAsset", get_asset);
    add(Method::del, "/api/v2/assets/{id}", "deleteAsset", delete_asset);
    add(Method::get, "/api/v2/assets/{id}/content", "getAssetContent", get_content, Access::open);
    // The same, as comfyd's other paths begin.
    constexpr const char* kShort = "/v2/assets/{id}";
    add(Method::get, kShort, "getAssetShort", get_asset, Access::assets, "getAsset");
    add(Method::del, kShort, "deleteAssetShort", delete_asset, Access::assets, "deleteAsset");
    add(Method::get,
        "/v2/assets/{id}/content",
        "getAssetContentShort",
        get_content,
        Access::open,
        "getAssetContent");
}

}  // namespace comfyd::api::v2
