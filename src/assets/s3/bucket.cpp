#include "assets/s3/bucket.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "assets/blob_key.hpp"
#include "assets/s3/xml.hpp"

namespace comfyd::assets::s3 {
namespace {

constexpr std::size_t kObjectsPerPage = 1'000;
constexpr Millis kCopyTimeout{600'000};

std::uint64_t to_number(std::string_view text) {
    std::uint64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

bool must_be_restored(std::string_view storage_class) {
    return storage_class == "GLACIER" || storage_class == "DEEP_ARCHIVE";
}

ObjectInfo::State state_of(const net::Headers& headers, std::string_view storage_class) {
    const std::string_view restore = headers.get("x-amz-restore");
    if (restore.find("ongoing-request=\"true\"") != std::string_view::npos) {
        return ObjectInfo::State::restoring;
    }
    const bool is_archived =
        must_be_restored(storage_class) || !headers.get("x-amz-archive-status").empty();
    return is_archived && restore.empty() ? ObjectInfo::State::archived
                                          : ObjectInfo::State::at_hand;
}

}  // namespace

const std::string& StorageClasses::of(StorageClass storage_class) const {
    switch (storage_class) {
        case StorageClass::archive:
            return archive;
        case StorageClass::glacier:
            return glacier;
        case StorageClass::standard:
            break;
    }
    return standard;
}

StorageClasses default_classes(const BucketName& name) {
    if (is_aws(name)) {
        return {.archive = "STANDARD_IA", .glacier = "GLACIER_IR"};
    }
    const bool is_r2 = name.endpoint.find(".r2.cloudflarestorage.com") != std::string::npos;
    return is_r2 ? StorageClasses{.archive = "STANDARD_IA", .glacier = "STANDARD_IA"}
                 : StorageClasses{};
}

Bucket::Bucket(std::unique_ptr<Requests> requests, BucketOptions options)
    : requests_(std::move(requests)), options_(std::move(options)) {}

// Only what was set: services refuse headers that they do not know.
net::Headers Bucket::object_headers(const std::string& storage_class) const {
    net::Headers headers;
    if (!storage_class.empty()) {
        headers.set("x-amz-storage-class", storage_class);
    }
    if (!options_.encryption.empty()) {
        headers.set("x-amz-server-side-encryption", options_.encryption);
    }
    if (!options_.kms_key.empty()) {
        headers.set("x-amz-server-side-encryption-aws-kms-key-id", options_.kms_key);
    }
    return headers;
}

Task<Result<>> Bucket::put(std::string key, Source source) {
    if (source.size_bytes <= options_.part_bytes) {
        auto done = co_await put_whole(std::move(key), std::move(source));
        co_return done;
    }
    UploadPlan plan{.key = name_of(key)};
    plan.headers = object_headers(options_.classes.of(source.storage_class));
    if (!source.content_type.empty()) {
        plan.headers.set("Content-Type", source.content_type);
    }
    plan.size_bytes = source.size_bytes;
    plan.part_bytes = part_bytes_for(source.size_bytes, options_.part_bytes);
    plan.source = std::move(source);
    auto done = co_await upload(*requests_, std::move(plan));
    co_return done;
}

Task<Result<>> Bucket::put_whole(std::string key, Source source) {
    Call call{.method = "PUT", .key = name_of(key)};
    call.headers = object_headers(options_.classes.of(source.storage_class));
    if (!source.content_type.empty()) {
        call.headers.set("Content-Type", source.content_type);
    }
    const std::uint64_t size = source.size_bytes;
    const auto pass = co_await requests_->payload_gate().enter();
    if (!pass) {
        co_return fail(Code::cancelled, "the upload was cancelled");
    }
    auto payload = co_await requests_->read_payload(std::move(source), 0, size);
    if (!payload) {
        co_return fail(std::move(payload.error()));
    }
    call.payload = std::move(*payload);
    auto answer = co_await requests_->send(std::move(call));
    co_return answer ? Result<>() : fail(std::move(answer.error()));
}

Task<Result<ObjectInfo>> Bucket::head(std::string key) {
    Call call{.method = "HEAD", .key = name_of(key)};
    auto answer = co_await requests_->send(std::move(call));
    if (!answer) {
        co_return fail(std::move(answer.error()));
    }
    const std::string_view named = answer->headers.get("x-amz-storage-class");
    ObjectInfo info;
    info.size_bytes = to_number(answer->headers.get("Content-Length"));
    info.storage_class = named.empty() ? "STANDARD" : std::string(named);
    info.state = state_of(answer->headers, info.storage_class);
    co_return info;
}

Task<Result<std::string>> Bucket::read(std::string key, std::uint64_t first, std::uint64_t length) {
    if (length == 0) {
        co_return std::string();
    }
    Call call{.key = name_of(key)};
    call.headers.set(
        "Range", "bytes=" + std::to_string(first) + "-" + std::to_string(first + length - 1)
    );
    call.answer_bytes_max = std::max(length, call.answer_bytes_max);
    call.answer_timeout += time_for(length);
    auto answer = co_await requests_->send(std::move(call));
    if (!answer) {
        const bool is_behind_end = answer.error().code == Code::range_not_satisfiable;
        co_return is_behind_end ? Result<std::string>("") : fail(std::move(answer.error()));
    }
    // Whoever knows no ranges, or thinks that it is all, sends all.
    std::string bytes = std::move(answer->body);
    if (answer->status == 200) {
        bytes.erase(0, std::min<std::uint64_t>(first, bytes.size()));
        bytes.resize(std::min<std::uint64_t>(length, bytes.size()));
    }
    if (bytes.size() > length) {
        co_return fail(Code::storage_unavailable, "the store sent more than it was asked for");
    }
    co_return bytes;
}

Task<Result<>> Bucket::remove(std::string key) {
    if (options_.removes_versions) {
        auto removed = co_await remove_versions(name_of(key));
        co_return removed;
    }
    Call call{.method = "DELETE", .key = name_of(key)};
    auto answer = co_await requests_->send(std::move(call));
    const bool is_gone = answer || answer.error().code == Code::not_found;
    co_return is_gone ? Result<>() : fail(std::move(answer.error()));
}

// Also those that a repeated upload has left behind the newest, and marks of removals.
Task<Result<>> Bucket::remove_versions(std::string key) {
    Call list{.query = {{"versions", ""}, {"prefix", key}}};
    auto answer = co_await requests_->send(std::move(list));
    if (!answer) {
        co_return fail(std::move(answer.error()));
    }
    auto entries = find_elements(answer->body, "Version", kObjectsPerPage);
    const auto marks = find_elements(answer->body, "DeleteMarker", kObjectsPerPage);
    entries.insert(entries.end(), marks.begin(), marks.end());
    for (const auto entry : entries) {
        if (find_text(entry, "Key") != key) {
            continue;
        }
        Call call{.method = "DELETE", .key = key};
        call.query = {{"versionId", find_text(entry, "VersionId")}};
        auto removed = co_await requests_->send(std::move(call));
        if (!removed && removed.error().code != Code::not_found) {
            co_return fail(std::move(removed.error()));
        }
    }
    co_return Result<>();
}

Task<Result<>> Bucket::change_class(std::string key, StorageClass to) {
    const std::string wanted = options_.classes.of(to);
    if (wanted.empty() && to != StorageClass::standard) {
        co_return Result<>();  // the service has no such class
    }
    auto now = co_await head(key);
    if (!now) {
        co_return fail(std::move(now.error()));
    }
    const std::string target = wanted.empty() ? "STANDARD" : wanted;
    if (now->storage_class == target) {
        co_return Result<>();
    }
    if (now->state != ObjectInfo::State::at_hand) {
        auto asked = co_await restore(key);
        co_return asked ? fail(Code::output_unavailable, "it must be restored first")
                        : fail(std::move(asked.error()));
    }
    auto copied = co_await copy_onto_itself(name_of(key), target, now->size_bytes);
    co_return copied;
}

Task<Result<>> Bucket::copy_onto_itself(std::string key, std::string to, std::uint64_t size) {
    const std::string source = encode_path("/" + requests_->name().bucket + "/" + key);
    if (size > options_.copy_bytes_max) {
        UploadPlan plan{.key = std::move(key)};
        plan.headers = object_headers(to);
        plan.size_bytes = size;
        plan.part_bytes = part_bytes_for(size, options_.copy_part_bytes);
        plan.copy_source = source;
        auto done = co_await upload(*requests_, std::move(plan));
        co_return done;
    }
    Call call{.method = "PUT", .key = std::move(key)};
    call.headers = object_headers(to);
    call.headers.set("x-amz-copy-source", source);
    call.headers.set("x-amz-metadata-directive", "COPY");
    call.may_fail_late = true;
    call.answer_timeout = kCopyTimeout;
    auto answer = co_await requests_->send(std::move(call));
    co_return answer ? Result<>() : fail(std::move(answer.error()));
}

Task<Result<>> Bucket::restore(std::string key) {
    Call call{.method = "POST", .key = name_of(key), .query = {{"restore", ""}}};
    call.payload = requests_->make_payload(
        "<RestoreRequest><Days>" + std::to_string(options_.restore_days) +
        "</Days><GlacierJobParameters><Tier>Standard</Tier></GlacierJobParameters>"
        "</RestoreRequest>"
    );
    auto answer = co_await requests_->send(std::move(call));
    const bool is_asked = answer || answer.error().code == Code::conflict;
    co_return is_asked ? Result<>() : fail(std::move(answer.error()));
}

Task<Result<BlobStore::Page>> Bucket::list(std::string after) {
    Call call{.query = {{"list-type", "2"}, {"prefix", options_.prefix}}};
    if (!after.empty()) {
        call.query.emplace_back("continuation-token", after);
    }
    auto answer = co_await requests_->send(std::move(call));
    if (!answer) {
        co_return fail(std::move(answer.error()));
    }
    BlobStore::Page page;
    for (const auto entry : find_elements(answer->body, "Contents", kObjectsPerPage)) {
        const std::string name = find_text(entry, "Key");
        if (!name.starts_with(options_.prefix)) {
            continue;
        }
        const std::string key = name.substr(options_.prefix.size());
        const auto modified_at = parse_rfc3339(find_text(entry, "LastModified"));
        if (modified_at && parse_blob_key(key)) {
            page.blobs.push_back({key, key, to_number(find_text(entry, "Size")), *modified_at});
        }
    }
    page.next = find_text(answer->body, "NextContinuationToken");
    co_return page;
}

Task<Result<>> Bucket::remove_unfinished(Time before) {
    auto aborted =
        co_await abort_uploads(*requests_, options_.prefix, options_.owns_prefix, before);
    co_return aborted ? Result<>() : fail(std::move(aborted.error()));
}

Task<Result<std::optional<Place>>> Bucket::find(std::string key, LinkTerms terms) {
    // Looked at only where it may not be at hand: a link costs no request.
    if (must_be_restored(options_.classes.archive) || must_be_restored(options_.classes.glacier)) {
        auto info = co_await head(key);
        if (!info) {
            co_return info.error().code == Code::not_found
                ? Result<std::optional<Place>>(std::nullopt)
                : fail(std::move(info.error()));
        }
        if (info->state == ObjectInfo::State::archived) {
            auto asked = co_await restore(key);
            if (!asked) {
                co_return fail(std::move(asked.error()));
            }
        }
        if (info->state != ObjectInfo::State::at_hand) {
            co_return Place(Restoring{});
        }
    }
    Query overrides;
    if (!terms.content_type.empty()) {
        overrides.emplace_back("response-content-type", terms.content_type);
    }
    if (!terms.content_disposition.empty()) {
        overrides.emplace_back("response-content-disposition", terms.content_disposition);
    }
    auto link = co_await requests_->link_to(name_of(key), terms.life, std::move(overrides));
    if (!link) {
        co_return fail(std::move(link.error()));
    }
    co_return Place(std::move(*link));
}

}  // namespace comfyd::assets::s3
