#include "api/dialects/asset_content.hpp"

#include <algorithm>
#include <utility>

#include "net/safe_content.hpp"
#include "net/static_files.hpp"

namespace comfyd::api {
namespace {

std::string etag_of(const assets::Asset& asset) {
    const auto colon = asset.hash.find(':');
    return '"' + asset.hash.substr(colon == std::string::npos ? 0 : colon + 1) + '"';
}

// The bytes behind an id never change. Others than the client may keep them where the operator has
// put a CDN before us, and the link itself says for how long it is good.
std::string caching_of(const Call& call, const Services& services) {
    const bool is_for_all =
        !services.options.cdn_url.empty() && !call.query_value("signature").empty();
    return is_for_all ? "public, max-age=86400, immutable" : "private, max-age=86400";
}

net::Response make_head(const assets::Asset& asset, bool attachment, std::string caching) {
    net::Response head;
    const std::string_view type = net::sent_type(asset.content_type);
    head.headers.set("Content-Type", std::string(type));
    head.headers.set("ETag", etag_of(asset));
    head.headers.set("Accept-Ranges", "bytes");
    head.headers.set("Cache-Control", std::move(caching));
    head.headers.set("X-Content-Type-Options", "nosniff");
    head.headers.set("Content-Security-Policy", "sandbox; default-src 'none'");
    const auto slash = asset.file_path.rfind('/');
    const std::string name =
        asset.file_path.empty()
            ? asset.id.to_string()
            : asset.file_path.substr(slash == std::string::npos ? 0 : slash + 1);
    head.headers.set(
        "Content-Disposition", content_disposition(name, attachment || net::is_active_type(type))
    );
    return head;
}

net::Response redirect_to(const assets::Redirect& elsewhere) {
    net::Response found;
    found.status = 302;
    found.headers.set("Location", elsewhere.url);
    found.headers.set("Cache-Control", "no-store");  // the address is good for a while only
    return found;
}

// It may take hours; asking again is what brings it nearer.
net::Response being_restored(const assets::Asset& asset) {
    net::Response response = json_response(
        202,
        json::object{
            {"status", "restoring"},
            {"asset_id", asset.id.to_string()},
            {"message", "the content is being brought back from cold storage; ask again later"},
        }
    );
    response.headers.set("Retry-After", "900");
    response.headers.set("Cache-Control", "no-store");
    return response;
}

// From a store whose clients are not sent there. A part at a time: memory stays flat.
Task<Result<>> stream_parts(
    Call& call,
    const Services& services,
    net::Response head,
    assets::Asset asset,
    net::ByteRange range
) {
    const bool is_head = call.request.method == net::Method::head;
    head.headers.set("Content-Length", std::to_string(range.length));
    auto first = Result<std::string>();
    if (!is_head && range.length > 0) {
        first = co_await services.assets.read_part(asset, range.first);
        if (!first) {
            co_return fail(std::move(first.error()));
        }
    }
    auto going = co_await call.exchange.begin_stream(std::move(head));
    std::uint64_t left = is_head ? 0 : range.length;
    std::string part = std::move(*first);
    while (going && left > 0) {
        part.resize(std::min<std::uint64_t>(part.size(), left));
        left -= part.size();
        if (part.empty()) {  // the store has less than it should
            co_return Result<>();
        }
        going = co_await call.exchange.write_stream(std::move(part));
        if (going && left > 0) {
            auto next =
                co_await services.assets.read_part(asset, range.first + range.length - left);
            if (!next) {  // a cut answer, so that nobody takes it for all
                co_return Result<>();
            }
            part = std::move(*next);
        }
    }
    if (going) {
        going = co_await call.exchange.end_stream();
    }
    co_return Result<>();
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
    net::Response head =
        make_head(asset, download == "1" || download == "true", caching_of(call, services));
    if (!call.query_value("signature").empty()) {
        // The link itself is what lets one in: any page may show what is behind it.
        head.headers.set("Cross-Origin-Resource-Policy", "cross-origin");
    }
    const std::string etag = etag_of(asset);
    const net::Headers& asked = call.request.headers;
    if (net::matches_etag(asked.get("If-None-Match"), etag)) {
        head.status = 304;
        auto sent = co_await call.exchange.send(std::move(head));
        static_cast<void>(sent);  // here and below: a client that is gone needs no answer
        co_return Result<>();
    }
    const std::uint64_t size_bytes = asset.size_bytes;
    assets::LinkTerms terms;
    terms.content_type = head.headers.get("Content-Type");
    terms.content_disposition = head.headers.get("Content-Disposition");
    auto content = co_await services.assets.content(asset, std::move(terms));
    if (!content) {
        co_return fail(std::move(content.error()));
    }
    const bool is_head = call.request.method == net::Method::head;
    if (const auto* elsewhere = std::get_if<assets::Redirect>(&*content); elsewhere && !is_head) {
        auto sent = co_await call.exchange.send(redirect_to(*elsewhere));
        static_cast<void>(sent);
        co_return Result<>();
    }
    if (std::holds_alternative<assets::Restoring>(*content)) {
        auto sent = co_await call.exchange.send(being_restored(asset));
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
    if (!std::holds_alternative<std::filesystem::path>(*content)) {
        auto sent = co_await stream_parts(call, services, std::move(head), std::move(asset), part);
        co_return sent;
    }
    net::FileBody file{std::get<std::filesystem::path>(*content).string(), part.first, part.length};
    auto sent = co_await call.exchange.send_file(std::move(head), std::move(file));
    if (!sent && !call.exchange.answered()) {
        co_return sent;
    }
    co_return Result<>();
}

}  // namespace comfyd::api
