// What a batch has made, as answers that need no more memory however large they are.
#include <utility>

#include "api/dialects/asset_content.hpp"
#include "api/dialects/batches/batches.hpp"
#include "api/dialects/workflows/workflows.hpp"
#include "bulk/asset_reader.hpp"
#include "bulk/results.hpp"
#include "net/static_files.hpp"

namespace comfyd::api::batches {
namespace {

constexpr std::uint64_t kPieceBytes = 256 * 1024;

Task<> refuse(Call& call, const Tools& tools, Error error) {
    auto response = workflows::error_response(
        error, tools.services.clock.now(), workflows::kV2, call.request.path
    );
    co_await send(call, std::move(response));
}

net::Response zip_head(const jobs::Bulk& bulk, const std::string& etag) {
    net::Response head;
    head.headers.set("Content-Type", "application/zip");
    head.headers.set("ETag", etag);
    head.headers.set("Accept-Ranges", "bytes");
    head.headers.set("Cache-Control", "private, no-cache");
    head.headers.set("X-Content-Type-Options", "nosniff");
    head.headers.set(
        "Content-Disposition", content_disposition("batch-" + bulk.id.to_string() + ".zip", true)
    );
    return head;
}

// Opens the files of an archive one after the other.
class ArchiveBytes {
public:
    ArchiveBytes(const Tools& tools, const bulk::Archive& archive)
        : services_(tools.services), archive_(archive) {}

    Task<Result<std::string>> read(std::uint64_t position, std::uint64_t length_max) {
        auto piece = archive_.layout.piece_at(position, length_max);
        if (!piece.entry) {
            co_return std::move(piece.bytes);
        }
        if (open_ != piece.entry) {
            auto opened = co_await open(*piece.entry);
            if (!opened) {
                co_return fail(std::move(opened.error()));
            }
        }
        auto bytes = co_await file_->read(piece.offset, static_cast<std::size_t>(piece.length));
        if (bytes && bytes->size() != piece.length) {
            co_return fail(Code::output_unavailable, "a stored file is shorter than it was");
        }
        co_return bytes;
    }

private:
    Task<Result<>> open(std::size_t entry) {
        auto asset = co_await services_.assets.get(std::nullopt, archive_.assets[entry]);
        if (!asset) {
            co_return fail(std::move(asset.error()));
        }
        auto file = co_await bulk::AssetReader::open(
            services_.assets, *services_.parsing, std::move(*asset)
        );
        if (!file) {
            co_return fail(std::move(file.error()));
        }
        file_ = std::move(*file);
        open_ = entry;
        co_return Result<>();
    }

    const Services& services_;
    const bulk::Archive& archive_;
    std::optional<std::size_t> open_;
    std::optional<bulk::AssetReader> file_;
};

// A failure cuts the answer off: its client sees that it is shorter than it was told to be.
Task<> send_part(
    Call& call, const Tools& tools, const bulk::Archive& archive, net::ByteRange part
) {
    ArchiveBytes bytes(tools, archive);
    const std::uint64_t end = part.first + part.length;
    for (std::uint64_t at = part.first; at < end;) {
        auto piece = co_await bytes.read(at, std::min(kPieceBytes, end - at));
        if (!piece) {
            co_return;
        }
        at += piece->size();
        auto written = co_await call.exchange.write_stream(std::move(*piece));
        if (!written) {
            co_return;
        }
    }
    auto ended = co_await call.exchange.end_stream();
    static_cast<void>(ended);  // it makes no difference to a client that is gone
}

}  // namespace

Task<> send_zip(Call& call, const Tools& tools, jobs::Bulk bulk) {
    const bulk::ResultTools results{tools.bulks, tools.services.assets, *tools.services.parsing};
    auto archive = co_await bulk::plan_archive(results, bulk);
    if (!archive) {
        co_await refuse(call, tools, std::move(archive.error()));
        co_return;
    }
    const std::string etag = '"' + archive->layout.tag() + '"';
    const std::uint64_t size = archive->layout.size_bytes();
    net::Response head = zip_head(bulk, etag);
    const net::Headers& asked = call.request.headers;
    if (net::matches_etag(asked.get("If-None-Match"), etag)) {
        head.status = 304;
        co_await send(call, std::move(head));
        co_return;
    }
    const bool wants_range = !asked.contains("If-Range") || asked.get("If-Range") == etag;
    const auto range = net::parse_range(wants_range ? asked.get("Range") : "", size);
    if (!range) {
        net::Response refusal = encode_error(range.error());
        refusal.headers.set("Content-Range", "bytes */" + std::to_string(size));
        co_await send(call, std::move(refusal));
        co_return;
    }
    const net::ByteRange part = range->value_or(net::ByteRange{0, size});
    if (*range) {
        net::tell_part(head, part, size);
    }
    head.headers.set("Content-Length", std::to_string(part.length));
    auto begun = co_await call.exchange.begin_stream(std::move(head));
    if (begun && call.request.method != net::Method::head) {
        co_await send_part(call, tools, *archive, part);
    }
}

Task<> send_lines(
    Call& call, const Tools& tools, jobs::Bulk bulk, std::string file_name, EncodeLine encode
) {
    bool has_begun = false;
    jobs::BulkItemQuery query{.bulk = bulk.id};
    for (bool more = true; more;) {
        auto items = co_await tools.bulks.bulk_items(query);
        if (!items && !has_begun) {
            co_await refuse(call, tools, std::move(items.error()));
            co_return;
        }
        if (!items) {
            co_return;  // what is missing shows by the end that the stream does not have
        }
        if (!std::exchange(has_begun, true)) {
            net::Response head;
            head.headers.set("Content-Type", "application/jsonl");
            head.headers.set("Cache-Control", "private, no-cache");
            head.headers.set("Content-Disposition", content_disposition(file_name, true));
            auto begun = co_await call.exchange.begin_stream(std::move(head));
            if (!begun || call.request.method == net::Method::head) {
                co_return;
            }
        }
        more = items->size() == static_cast<std::size_t>(query.limit);
        std::string lines;
        for (const jobs::BulkItem& item : *items) {
            query.after = item.index;
            if (const auto line = encode(item)) {
                lines += json::serialize(*line);
                lines += '\n';
            }
        }
        auto written = co_await call.exchange.write_stream(std::move(lines));
        if (!written) {
            co_return;
        }
    }
    auto ended = co_await call.exchange.end_stream();
    static_cast<void>(ended);
}

}  // namespace comfyd::api::batches
