// Moves all that lies in one store into another.
#include <algorithm>
#include <utility>

#include "assets/blob_key.hpp"
#include "assets/store_impl.hpp"

namespace comfyd::assets {
namespace {

constexpr int kStep = 100;
// A server that runs meanwhile leaves to us what we have begun.
constexpr Millis kOurs = std::chrono::hours(24);

}  // namespace

Task<Result<bool>> Store::Impl::copy_one(BlobRecord from, std::string to) {
    BlobRecord target;
    target.hash = from.hash;
    target.store = std::move(to);
    target.generation = make_generation(clock_.now());
    target.key = make_blob_key(target.hash, target.generation, store_folder(target.store));
    target.size_bytes = from.size_bytes;
    auto begun = co_await catalogue_.begin_upload(target, clock_.now() + kOurs);
    if (!begun) {
        co_return fail(std::move(begun.error()));
    }
    auto blobs = co_await catalogue_.blobs_of(from.hash);
    if (!blobs) {
        co_return fail(std::move(blobs.error()));
    }
    const auto there = std::ranges::find_if(*blobs, [&](const BlobRecord& blob) {
        return blob.store == target.store && blob.state != BlobState::doomed;
    });
    if (there == blobs->end()) {
        co_return fail(Code::conflict, "'" + from.hash + "' was removed meanwhile");
    }
    const bool is_new = there->state == BlobState::uploading;
    if (is_new) {
        auto key = co_await uploader_.bring(*there);
        if (!key) {
            co_return fail(std::move(key.error()));
        }
        there->key = std::move(*key);
    }
    auto noted = co_await catalogue_.uploaded(*there, std::move(from.store), clock_.now());
    co_return noted ? Result<bool>(is_new) : fail(std::move(noted.error()));
}

Task<Result<Store::Copied>> Store::copy(
    std::string from, std::string to, std::function<void(const Copied&)> tell
) {
    for (const std::string& name : {from, to}) {
        if (auto known = impl_->stores().get(name); !known) {
            co_return fail(std::move(known.error()));
        }
    }
    if (store_name(from) == store_name(to)) {
        co_return fail(Code::invalid_argument, "the two stores are the same");
    }
    Copied copied;
    std::optional<BlobRecord> after;
    for (;;) {
        auto blobs = co_await impl_->catalogue().blobs_in(from, after, kStep);
        if (!blobs) {
            co_return fail(std::move(blobs.error()));
        }
        for (BlobRecord& blob : *blobs) {
            after = blob;
            const std::uint64_t size = blob.size_bytes;
            std::string target = to + blob.store.substr(from.size());
            auto done = co_await impl_->copy_one(std::move(blob), std::move(target));
            if (!done && done.error().code == Code::hash_mismatch) {
                ++copied.damaged;
                continue;
            }
            if (!done) {
                co_return fail(std::move(done.error()));
            }
            ++copied.contents;
            copied.bytes += *done ? size : 0;
            if (tell) {
                tell(copied);
            }
        }
        if (blobs->size() < kStep) {
            co_return copied;
        }
    }
}

}  // namespace comfyd::assets
