#include "api/dialects/asset_content.hpp"

#include <utility>

#include "net/safe_content.hpp"
#include "net/static_files.hpp"

namespace comfyd::api {
namespace {

std::string etag_of(const assets::Asset& asset) {
    const auto colon = asset.hash.find(':');
    return '"' + asset.hash.substr(colon == std::string::npos ? 0 : colon + 1) + '"';
}

net::Response make_head(const assets::Asset& asset, bool attachment) {
    net::Response head;
    head.headers.set(
        "Content-Type", asset.content_type.empty() ? "application/octet-stream" : asset.content_type
    );
    head.headers.set("ETag", etag_of(asset));
    head.headers.set("Accept-Ranges", "bytes");
    head.headers.set("Cache-Control", "private, max-age=86400");
    head.headers.set("X-Content-Type-Options", "nosniff");
    const auto slash = asset.file_path.rfind('/');
    const std::string name =
        asset.file_path.empty()
            ? asset.id.to_string()
            : asset.file_path.substr(slash == std::string::npos ? 0 : slash + 1);
    head.headers.set(
        "Content-Disposition",
        content_disposition(name, attachment || net::is_active_type(asset.content_type))
    );
    return head;
}

}  // namespace

std::string content_disposition(std::string_view name, bool attachment) {
    std::string plain;
    for (const char c : name) {
        const bool is_plain = c >= 0x20 && c < 0x7F && c != '"' && c != '\\' && c != '%';
        plain += is_plain ? c : '_';
    }
    std::string header = attachment ? "attachment" : "inline";
    header += "; filename=\"" + plain + "\"";
    header += "; filename*=UTF-8''" + net::percent_encode(name);
    return header;
}

Task<Result<>> send_asset(Call& call, const Services& services, assets::Asset asset) {
    const std::string_view download = call.query_value("download");
    net::Response head = make_head(asset, download == "1" || download == "true");
    const std::string etag = etag_of(asset);
    const net::Headers& asked = call.request.headers;
    if (net::matches_etag(asked.get("If-None-Match"), etag)) {
        head.status = 304;
        auto sent = co_await call.exchange.send(std::move(head));
        static_cast<void>(sent);  // here and below: a client that is gone needs no answer
        co_return Result<>();
    }
    const std::uint64_t size_bytes = asset.size_bytes;
    auto content = co_await services.assets.content(std::move(asset));
    if (!content) {
        co_return fail(std::move(content.error()));
    }
    if (const auto* elsewhere = std::get_if<assets::Redirect>(&*content)) {
        net::Response found;
        found.status = 302;
        found.headers.set("Location", elsewhere->url);
        found.headers.set("Cache-Control", "no-store");  // the address is good for a while only
        auto sent = co_await call.exchange.send(std::move(found));
        static_cast<void>(sent);
        co_return Result<>();
    }
    const bool wants_range = !asked.contains("If-Range") || asked.get("If-Range") == etag;
    const auto range = net::parse_range(wants_range ? asked.get("Range") : "", size_bytes);
    if (!range) {
        net::Response refusal = encode_error(range.error());
        refusal.headers.set("Content-Range", "bytes */" + std::to_string(size_bytes));
        auto sent = co_await call.exchange.send(std::move(refusal));
        static_cast<void>(sent);
        co_return Result<>();
    }
    const net::ByteRange part = range->value_or(net::ByteRange{0, size_bytes});
    if (*range) {
        net::tell_part(head, part, size_bytes);
    }
    if (const auto* bytes = std::get_if<std::string>(&*content)) {
        head.body = bytes->substr(part.first, part.length);
        auto sent = co_await call.exchange.send(std::move(head));
        static_cast<void>(sent);
        co_return Result<>();
    }
    net::FileBody file{std::get<std::filesystem::path>(*content).string(), part.first, part.length};
    auto sent = co_await call.exchange.send_file(std::move(head), std::move(file));
    if (!sent && !call.exchange.answered()) {
        co_return sent;
    }
    co_return Result<>();
}

}  // namespace comfyd::api
