// How bytes become a blob, or are kept with their record, and how records are made.
#include <algorithm>
#include <utility>

#include "assets/blob_key.hpp"
#include "assets/content_type.hpp"
#include "assets/guarded.hpp"
#include "assets/store_impl.hpp"
#include "base/assert.hpp"
#include "net/safe_content.hpp"

namespace comfyd::assets {
namespace {

constexpr std::size_t kFilePathBytesMax = 4096;
constexpr std::size_t kTagsMax = 64;
constexpr std::size_t kTagBytesMax = 256;

bool has_control_characters(std::string_view text) {
    return std::any_of(text.begin(), text.end(), [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
    });
}

// A type that is none counts as not given. It may come from anybody: a client's form, a worker.
Result<> check(NewAsset& asset) {
    if (asset.file_path.size() > kFilePathBytesMax || has_control_characters(asset.file_path)) {
        return fail(
            Code::invalid_argument,
            "file_path: at most 4096 bytes without control characters are allowed"
        );
    }
    if (!net::is_media_type(asset.content_type)) {
        asset.content_type.clear();
    }
    const bool has_long_tag =
        std::any_of(asset.tags.begin(), asset.tags.end(), [](const auto& tag) {
            return tag.size() > kTagBytesMax;
        });
    if (asset.tags.size() > kTagsMax || has_long_tag) {
        return fail(
            Code::invalid_argument, "tags: at most 64 of at most 256 bytes each are allowed"
        );
    }
    return {};
}

// Where ids of assets that were made with a key come from.
constexpr Uuid kKeySpace{
    {0x9d, 0x1b, 0x52, 0xc6, 0x3e, 0x0a, 0x4f, 0x77, 0x8a, 0x21, 0x6c, 0x05, 0xd8, 0x4b, 0xe3, 0x10}
};

AssetId id_for(const NewAsset& asset, Time now) {
    if (asset.idempotency_key.empty()) {
        return AssetId::make(now);
    }
    return AssetId{Uuid::derive(kKeySpace, asset.tenant + '\0' + asset.idempotency_key)};
}

}  // namespace

// The hash is asked for first: most of what is sent again is known, and then nothing is written.
Task<Result<Store::Impl::Bytes>> Store::Impl::put(Incoming& incoming, std::string expected_hash) {
    auto work = guarded([&incoming]() -> Result<Bytes> {
        if (incoming.failure()) {
            return fail(*incoming.failure());
        }
        return Bytes{incoming.hash(), incoming.size(), incoming.crc32()};
    });
    auto bytes = co_await pool_.run(std::move(work));
    if (!bytes) {
        co_return fail(std::move(bytes.error()));
    }
    if (!expected_hash.empty() && expected_hash != bytes->hash) {
        co_return fail(
            Code::hash_mismatch,
            "the bytes have the hash " + bytes->hash + ", not the expected " + expected_hash,
            {{"expected", expected_hash}, {"actual", bytes->hash}}
        );
    }
    auto held = co_await hold(bytes->hash, std::string(kLocalStore));
    if (held && *held) {
        co_return bytes;
    }
    // Nor does an output wait for a ledger that is away: should the bytes be known, these are too
    // many, and the record says so.
    const Time now = clock_.now();
    auto synced = co_await pool_.run(guarded([&incoming, now] { return incoming.sync(now); }));
    if (!synced) {
        co_return fail(std::move(synced.error()));
    }
    bytes->generation = make_generation(now);
    Source source{incoming.path(), bytes->size_bytes, bytes->hash};
    source.may_move = true;
    auto put = co_await stores_.local().put(
        make_blob_key(bytes->hash, bytes->generation), std::move(source)
    );
    if (!put) {
        co_return fail(std::move(put.error()));
    }
    incoming.give_away();
    co_return bytes;
}

// Nothing is written here: the commit that ends the job writes the bytes too.
Task<Result<Store::Added>> Store::Impl::keep(Incoming& incoming, NewAsset asset) {
    Bytes bytes{incoming.hash(), incoming.size(), incoming.crc32()};
    auto recorded = co_await record(std::move(asset), std::move(bytes));
    if (!recorded) {
        co_return fail(std::move(recorded.error()));
    }
    recorded->asset.bytes = incoming.take();
    co_return Added{std::move(recorded->asset), true};
}

Task<Result<Store::Added>> Store::Impl::publish(
    std::unique_ptr<Incoming> incoming, NewAsset asset
) {
    if (asset.content_type.empty()) {
        const bool is_whole = incoming->head().size() == incoming->size();
        asset.content_type = guess_content_type(asset.file_path, incoming->head(), is_whole);
    }
    if (asset.job && asset.expected_hash.empty() && incoming->is_in_memory() &&
        is_small(incoming->size())) {
        auto kept = co_await keep(*incoming, std::move(asset));
        co_return kept;
    }
    auto bytes = co_await put(*incoming, asset.expected_hash);
    if (!bytes) {
        co_return fail(std::move(bytes.error()));
    }
    // Asked per tenant: whether somebody else has the same bytes is nobody's business.
    bool is_known = false;
    if (bytes->generation == 0) {
        auto known = co_await catalogue_.find_by_hash(asset.tenant, bytes->hash);
        if (!known) {
            co_return fail(std::move(known.error()));
        }
        is_known = known->has_value();
    }
    auto recorded = co_await record(std::move(asset), std::move(*bytes));
    if (!recorded) {
        co_return fail(std::move(recorded.error()));
    }
    co_return Added{std::move(recorded->asset), !is_known, recorded->replayed};
}

Task<Result<std::optional<Asset>>> Store::Impl::find_earlier(AssetId id, std::string hash) {
    auto earlier = co_await catalogue_.find(id);
    if (!earlier || !*earlier) {
        co_return earlier;
    }
    if ((*earlier)->expires_at && *(*earlier)->expires_at <= clock_.now()) {
        auto removed = co_await catalogue_.remove(id);
        if (!removed) {
            co_return fail(std::move(removed.error()));
        }
        co_return std::nullopt;
    }
    if ((*earlier)->hash != hash) {
        co_return fail(
            Code::idempotency_key_reuse,
            "this Idempotency-Key was used before, for asset " + id.to_string() +
                " with other content; send a new key for a new file",
            {{"asset_id", id.to_string()}}
        );
    }
    co_return earlier;
}

Task<Result<Store::Impl::Recorded>> Store::Impl::add(Asset made, bool has_key) {
    if (has_key) {
        auto earlier = co_await find_earlier(made.id, made.hash);
        if (!earlier) {
            co_return fail(std::move(earlier.error()));
        }
        if (*earlier) {
            co_return Recorded{std::move(**earlier), true};
        }
    }
    if (options_.may_store) {
        auto allowed = co_await options_.may_store(made.tenant, made.size_bytes);
        if (!allowed) {
            co_return fail(std::move(allowed.error()));
        }
    }
    auto added = co_await catalogue_.add(made);
    if (!added && has_key) {  // perhaps because the same request came twice at once
        auto earlier = co_await find_earlier(made.id, made.hash);
        if (!earlier || *earlier) {
            co_return earlier ? Result<Recorded>(Recorded{std::move(**earlier), true})
                              : fail(std::move(earlier.error()));
        }
    }
    if (!added) {
        co_return fail(std::move(added.error()));
    }
    co_return Recorded{std::move(made)};
}

Task<Result<Store::Impl::Recorded>> Store::Impl::record(NewAsset asset, Bytes bytes) {
    const Time now = clock_.now();
    const bool has_key = !asset.idempotency_key.empty();
    Asset made{
        .id = id_for(asset, now),
        .tenant = std::move(asset.tenant),
        .hash = std::move(bytes.hash),
        .size_bytes = bytes.size_bytes,
        .content_type = std::move(asset.content_type),
        .file_path = std::move(asset.file_path),
        .tags = std::move(asset.tags),
        .created_at = now,
        .expires_at = asset.expires_at,
        .job = asset.job,
        .crc32 = bytes.crc32,
        .store = std::move(bytes.store),
        .bytes = std::move(bytes.kept),
        .generation = bytes.generation,
    };
    if (made.job) {
        co_return Recorded{std::move(made)
        };  // recorded with the end of the job, in one transaction
    }
    auto added = co_await add(std::move(made), has_key);
    co_return added;
}

Result<std::unique_ptr<BlobWriter>> Store::write() {
    return std::unique_ptr<BlobWriter>(impl_->inbox().create());
}

Task<Result<>> Store::append(BlobWriter& writer, std::string bytes) {
    auto* incoming = dynamic_cast<Incoming*>(&writer);
    COMFYD_ASSERT(incoming != nullptr);
    if (incoming->may_buffer(bytes.size())) {
        co_return incoming->append(bytes);
    }
    auto work = guarded([incoming, bytes = std::move(bytes)] { return incoming->append(bytes); });
    auto appended = co_await impl_->pool().run(std::move(work));
    co_return appended;
}

Task<Result<Store::Added>> Store::finish(std::unique_ptr<BlobWriter> writer, NewAsset asset) {
    auto* incoming = dynamic_cast<Incoming*>(writer.get());
    COMFYD_ASSERT(incoming != nullptr);
    static_cast<void>(writer.release());
    std::unique_ptr<Incoming> owned(incoming);
    auto checked = check(asset);
    if (!checked) {
        co_return fail(std::move(checked.error()));
    }
    auto added = co_await impl_->publish(std::move(owned), std::move(asset));
    co_return added;
}

Task<Result<Store::Added>> Store::add(std::string bytes, NewAsset asset) {
    auto checked = check(asset);
    if (!checked) {
        co_return fail(std::move(checked.error()));
    }
    auto work = guarded([this, bytes = std::move(bytes)]() -> Result<std::unique_ptr<Incoming>> {
        auto incoming = impl_->inbox().create();
        auto appended = incoming->append(bytes);
        if (!appended) {
            return fail(std::move(appended.error()));
        }
        return incoming;
    });
    auto incoming = co_await impl_->pool().run(std::move(work));
    if (!incoming) {
        co_return fail(std::move(incoming.error()));
    }
    auto added = co_await impl_->publish(std::move(*incoming), std::move(asset));
    co_return added;
}

Task<Result<Asset>> Store::from_hash(std::string hash, NewAsset asset) {
    auto checked = check(asset);
    if (!checked) {
        co_return fail(std::move(checked.error()));
    }
    auto known = co_await impl_->catalogue().find_by_hash(asset.tenant, hash);
    if (!known) {
        co_return fail(std::move(known.error()));
    }
    std::optional<std::string> held_in;
    std::shared_ptr<const std::string> kept;
    if (*known) {
        auto held = co_await impl_->hold(hash, (*known)->store);
        if (!held) {
            co_return fail(std::move(held.error()));
        }
        held_in = std::move(*held);
        if (!held_in && impl_->is_small((*known)->size_bytes)) {
            auto bytes = co_await impl_->catalogue().kept_bytes(hash);
            if (!bytes) {
                co_return fail(std::move(bytes.error()));
            }
            if (*bytes) {
                kept = std::make_shared<const std::string>(std::move(**bytes));
            }
        }
    }
    if (!held_in && !kept) {
        co_return fail(
            Code::blob_not_found,
            "no content with the hash '" + hash + "' is stored: upload the bytes"
        );
    }
    if (asset.content_type.empty()) {
        asset.content_type = (*known)->content_type;
    }
    Impl::Bytes bytes{
        .hash = std::move(hash),
        .size_bytes = (*known)->size_bytes,
        .crc32 = (*known)->crc32,
        .store = held_in.value_or(std::string(kLocalStore)),
        .kept = std::move(kept),  // should the record that keeps them go in this moment
    };
    auto recorded = co_await impl_->record(std::move(asset), std::move(bytes));
    if (!recorded) {
        co_return fail(std::move(recorded.error()));
    }
    co_return std::move(recorded->asset);
}

}  // namespace comfyd::assets
