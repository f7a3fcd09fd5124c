#include "assets/s3/upload.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "assets/blob_key.hpp"
#include "assets/s3/md5.hpp"
#include "assets/s3/xml.hpp"
#include "base/crypto.hpp"
#include "base/log.hpp"

namespace comfyd::assets::s3 {
namespace {

constexpr std::size_t kPartsAtATime = 4;
constexpr std::size_t kUploadsPerPage = 1'000;
constexpr Millis kCompleteTimeout{600'000};  // a service may put the parts together for minutes

struct Part {
    std::string etag;
    std::string md5;  // binary; empty where the bytes are not ours
};

std::uint64_t to_number(std::string_view text) {
    std::uint64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

bool is_etag_of(std::string_view etag, std::string_view md5_hex) {
    return etag == md5_hex || etag == "\"" + std::string(md5_hex) + "\"";
}

Error in_upload(Error error) {
    if (error.code == Code::not_found) {
        error.code = Code::storage_unavailable;  // somebody aborted it; another may go well
    }
    return error;
}

class Upload {
public:
    Upload(Requests& requests, UploadPlan plan)
        : requests_(requests),
          plan_(std::move(plan)),
          parts_((plan_.size_bytes + plan_.part_bytes - 1) / plan_.part_bytes),
          finished_(requests.executor()) {}

    Task<Result<>> run();

private:
    Task<Result<>> begin();
    // Goes on with what an earlier try has begun. False: there is nothing of it any more.
    Task<Result<bool>> resume();
    Task<Result<>> find_parts();
    bool may_be_resumed(const Error& why) const;
    Task<Result<>> send_parts();
    Task<> work();
    Task<Result<>> send_part(std::size_t index);
    Task<Result<>> copy_part(std::size_t index);
    Task<Result<>> complete();
    // Whether the object is there, although nobody knows of the upload any more: it was completed,
    // and the answer was lost.
    Task<bool> is_there();
    Task<> abort();
    std::string expected_etag() const;
    Query part_query(std::size_t index) const {
        return {{"partNumber", std::to_string(index + 1)}, {"uploadId", id_}};
    }
    std::uint64_t first_of(std::size_t index) const { return index * plan_.part_bytes; }
    std::uint64_t length_of(std::size_t index) const {
        return std::min(plan_.part_bytes, plan_.size_bytes - first_of(index));
    }

    Requests& requests_;
    const UploadPlan plan_;
    std::string id_;
    std::vector<Part> parts_;
    std::size_t next_ = 0;
    std::size_t working_ = 0;
    std::optional<Error> failure_;
    Signal finished_;  // one of the tasks has
};

Task<Result<>> Upload::run() {
    auto resumed = co_await resume();
    if (!resumed) {
        co_return fail(std::move(resumed.error()));
    }
    if (!*resumed) {
        if (!plan_.source.note.last.empty()) {
            const bool is_done = co_await is_there();
            if (is_done) {  // it was completed, and we ended before that was written down
                co_return Result<>();
            }
        }
        auto begun = co_await begin();
        if (!begun) {
            co_return begun;
        }
    }
    auto done = co_await send_parts();
    if (done) {
        done = co_await complete();
    }
    if (!done && !may_be_resumed(done.error())) {
        co_await abort();
    }
    co_return done;
}

// What was noted is gone on with at the next try; what nobody comes back to is left to
// abort_uploads().
bool Upload::may_be_resumed(const Error& why) const {
    const bool may_pass = why.code == Code::storage_unavailable || why.code == Code::cancelled;
    return may_pass && plan_.source.note.keep;
}

Task<Result<bool>> Upload::resume() {
    const std::string& note = plan_.source.note.last;
    const auto colon = note.find(':');
    if (colon == std::string::npos) {
        co_return false;
    }
    id_ = note.substr(colon + 1);
    // With parts of another length than ours it is of no use.
    const bool fits = note.substr(0, colon) == std::to_string(plan_.part_bytes);
    Result<> found = fail(Code::not_found, "the parts have another length");
    if (fits) {
        found = co_await find_parts();
    }
    if (found) {
        co_return true;
    }
    const Code why = found.error().code;
    if (why == Code::storage_unavailable || why == Code::cancelled) {
        co_return fail(std::move(found.error()));
    }
    if (why != Code::not_found || !fits) {
        co_await abort();
    }
    for (Part& part : parts_) {
        part = {};
    }
    co_return false;
}

// Those that the service has. Their bytes were checked when they came, and under a key they are
// always the same.
Task<Result<>> Upload::find_parts() {
    std::string after;
    do {
        Call call{.key = plan_.key, .query = {{"uploadId", id_}}};
        if (!after.empty()) {
            call.query.emplace_back("part-number-marker", after);
        }
        auto answer = co_await requests_.send(std::move(call));
        if (!answer) {
            co_return fail(std::move(answer.error()));
        }
        for (const auto entry : find_elements(answer->body, "Part", kPartsMax)) {
            const std::uint64_t number = to_number(find_text(entry, "PartNumber"));
            const bool is_ours = number >= 1 && number <= parts_.size();
            if (is_ours && to_number(find_text(entry, "Size")) == length_of(number - 1)) {
                parts_[number - 1].etag = find_text(entry, "ETag");
            }
        }
        std::string next = find_text(answer->body, "NextPartNumberMarker");
        const bool goes_on = find_text(answer->body, "IsTruncated") == "true" && next != after;
        after = goes_on ? std::move(next) : std::string();
    } while (!after.empty());
    co_return Result<>();
}

Task<Result<>> Upload::begin() {
    Call call{.method = "POST", .key = plan_.key, .query = {{"uploads", ""}}};
    call.headers = plan_.headers;
    auto answer = co_await requests_.send(std::move(call));
    if (!answer) {
        co_return fail(in_upload(std::move(answer.error())));
    }
    id_ = find_text(answer->body, "UploadId");
    if (id_.empty()) {
        co_return fail(Code::storage_unavailable, "the store began an upload without an id");
    }
    if (plan_.source.note.keep) {
        auto kept = co_await plan_.source.note.keep(std::to_string(plan_.part_bytes) + ":" + id_);
        if (!kept) {  // it would be begun anew after a crash, and this one be swept
            log::warning("an upload is not noted", {{"reason", kept.error().message}});
        }
    }
    co_return Result<>();
}

Task<Result<>> Upload::send_parts() {
    TaskGroup group(requests_.executor());
    working_ = std::min(parts_.size(), kPartsAtATime);
    for (std::size_t i = working_; i > 0; --i) {
        group.spawn("send parts", work());
    }
    bool stop = false;
    while (working_ > 0 && !stop) {
        const bool woken = co_await finished_.wait();
        stop = !woken || failure_;
    }
    if (stop) {
        group.cancel();
    }
    co_await group.join();
    if (failure_) {
        co_return fail(in_upload(std::move(*failure_)));
    }
    if (stop) {
        co_return fail(Code::cancelled, "the upload was cancelled");
    }
    co_return Result<>();
}

Task<> Upload::work() {
    while (next_ < parts_.size() && !failure_) {
        const std::size_t index = next_++;
        if (!parts_[index].etag.empty()) {
            continue;  // it is there
        }
        Result<> sent;
        if (plan_.copy_source.empty()) {
            sent = co_await send_part(index);
        } else {
            sent = co_await copy_part(index);
        }
        if (!sent && !failure_) {
            failure_ = std::move(sent.error());
        }
    }
    --working_;
    finished_.notify();
}

Task<Result<>> Upload::send_part(std::size_t index) {
    const auto pass = co_await requests_.payload_gate().enter();
    if (!pass) {
        co_return fail(Code::cancelled, "the upload was cancelled");
    }
    auto payload = co_await requests_.read_payload(plan_.source, first_of(index), length_of(index));
    if (!payload) {
        co_return fail(std::move(payload.error()));
    }
    parts_[index].md5 = payload->md5;
    Call call{.method = "PUT", .key = plan_.key, .query = part_query(index)};
    call.payload = std::move(*payload);
    auto answer = co_await requests_.send(std::move(call));
    if (!answer) {
        co_return fail(std::move(answer.error()));
    }
    parts_[index].etag = answer->headers.get("ETag");
    if (parts_[index].etag.empty()) {
        co_return fail(Code::storage_unavailable, "the store took a part without an ETag");
    }
    co_return Result<>();
}

Task<Result<>> Upload::copy_part(std::size_t index) {
    Call call{.method = "PUT", .key = plan_.key, .query = part_query(index)};
    const std::uint64_t first = first_of(index);
    call.headers.set("x-amz-copy-source", plan_.copy_source);
    call.headers.set(
        "x-amz-copy-source-range",
        "bytes=" + std::to_string(first) + "-" + std::to_string(first + length_of(index) - 1)
    );
    call.may_fail_late = true;
    call.answer_timeout = kCompleteTimeout;
    auto answer = co_await requests_.send(std::move(call));
    if (!answer) {
        co_return fail(std::move(answer.error()));
    }
    parts_[index].etag = find_text(answer->body, "ETag");
    co_return Result<>();
}

Task<Result<>> Upload::complete() {
    std::string list = "<CompleteMultipartUpload>";
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        list += "<Part><PartNumber>" + std::to_string(i + 1) + "</PartNumber><ETag>" +
                escape_xml(parts_[i].etag) + "</ETag></Part>";
    }
    list += "</CompleteMultipartUpload>";
    Call call{.method = "POST", .key = plan_.key, .query = {{"uploadId", id_}}};
    call.payload = requests_.make_payload(std::move(list));
    call.may_fail_late = true;
    call.answer_timeout = kCompleteTimeout;
    auto answer = co_await requests_.send(std::move(call));
    if (answer) {
        co_return Result<>();
    }
    if (answer.error().code == Code::not_found) {
        const bool is_done = co_await is_there();
        if (is_done) {
            co_return Result<>();
        }
    }
    co_return fail(in_upload(std::move(answer.error())));
}

Task<bool> Upload::is_there() {
    Call call{.method = "HEAD", .key = plan_.key};
    auto answer = co_await requests_.send(std::move(call));
    if (!answer || answer->headers.get("Content-Length") != std::to_string(plan_.size_bytes)) {
        co_return false;
    }
    const std::string expected = expected_etag();
    co_return expected.empty() || is_etag_of(answer->headers.get("ETag"), expected);
}

// Empty where the service's ETags are no MD5 sums, as with keys of a KMS.
std::string Upload::expected_etag() const {
    std::string sums;
    for (const Part& part : parts_) {
        if (part.md5.empty() || !is_etag_of(part.etag, to_hex(part.md5.data(), part.md5.size()))) {
            return {};
        }
        sums += part.md5;
    }
    const std::string sum = md5(sums);
    return to_hex(sum.data(), sum.size()) + "-" + std::to_string(parts_.size());
}

Task<> Upload::abort() {
    Call call{.method = "DELETE", .key = plan_.key, .query = {{"uploadId", id_}}};
    auto answer = co_await requests_.send(std::move(call));
    if (!answer && answer.error().code != Code::not_found) {
        log::warning(
            "parts of an upload stay in the store until they are swept",
            {{"key", plan_.key}, {"reason", answer.error().message}}
        );
    }
}

}  // namespace

std::uint64_t part_bytes_for(std::uint64_t size, std::uint64_t part_bytes_min) {
    constexpr std::uint64_t kMiB = 1024 * 1024;
    if (size <= part_bytes_min * kPartsMax) {
        return part_bytes_min;
    }
    const std::uint64_t least = (size + kPartsMax - 1) / kPartsMax;
    return (least + kMiB - 1) / kMiB * kMiB;
}

Task<Result<>> upload(Requests& requests, UploadPlan plan) {
    Upload one(requests, std::move(plan));
    auto done = co_await one.run();
    co_return done;
}

Task<Result<int>> abort_uploads(
    Requests& requests, std::string prefix, bool of_any_name, Time before
) {
    int aborted = 0;
    Query marker;
    while (true) {
        Call list{.query = {{"uploads", ""}, {"prefix", prefix}}};
        list.query.insert(list.query.end(), marker.begin(), marker.end());
        auto answer = co_await requests.send(std::move(list));
        if (!answer) {
            co_return fail(std::move(answer.error()));
        }
        for (const auto entry : find_elements(answer->body, "Upload", kUploadsPerPage)) {
            const auto begun_at = parse_rfc3339(find_text(entry, "Initiated"));
            const std::string name = find_text(entry, "Key");
            const bool is_ours = name.starts_with(prefix) &&
                                 (of_any_name || parse_blob_key(name.substr(prefix.size())));
            if (!is_ours || !begun_at || *begun_at >= before) {
                continue;
            }
            Call abort{.method = "DELETE", .key = name};
            abort.query = {{"uploadId", find_text(entry, "UploadId")}};
            auto done = co_await requests.send(std::move(abort));
            if (!done && done.error().code != Code::not_found) {
                co_return fail(std::move(done.error()));
            }
            ++aborted;
        }
        std::string key = find_text(answer->body, "NextKeyMarker");
        std::string id = find_text(answer->body, "NextUploadIdMarker");
        if (find_text(answer->body, "IsTruncated") != "true" || key.empty()) {
            co_return aborted;
        }
        marker = {{"key-marker", std::move(key)}, {"upload-id-marker", std::move(id)}};
    }
}

}  // namespace comfyd::assets::s3
