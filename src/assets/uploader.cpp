#include "assets/uploader.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <boost/asio/this_coro.hpp>

#include "assets/back_off.hpp"
#include "assets/blake3.hpp"
#include "assets/guarded.hpp"
#include "base/log.hpp"

namespace comfyd::assets {
namespace {

constexpr int kStep = 64;
constexpr std::size_t kAtOnce = 8;
constexpr std::uint64_t kPartBytes = 4 * 1024 * 1024;
constexpr Millis kDoomedFor = std::chrono::hours(1);
constexpr BackOff kOutageBackOff{std::chrono::seconds(1), std::chrono::minutes(5)};
// Of what does not pass by itself: somebody must set it right, or bytes are gone.
constexpr BackOff kFaultBackOff{std::chrono::minutes(1), std::chrono::minutes(15)};

bool is_outage(Code code) {
    return code == Code::storage_unavailable || code == Code::storage_full;
}

Error changed(const std::string& hash) {
    return Error(
        Code::hash_mismatch,
        "the bytes of '" + hash + "' are not what they were: the disk has erred"
    );
}

// Blocks.
Result<> check_file(const std::filesystem::path& path, const std::string& hash) {
    const FileHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.is_open()) {
        return fail(storage_error("read", path, errno));
    }
    Blake3 hasher;
    std::string piece(kPartBytes, '\0');
    for (;;) {
        const ssize_t count = ::read(file.get(), piece.data(), piece.size());
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return fail(storage_error("read", path, errno));
        }
        if (count == 0) {
            break;
        }
        hasher.update(std::string_view(piece).substr(0, static_cast<std::size_t>(count)));
    }
    return "blake3:" + hasher.hex() == hash ? Result<>() : fail(changed(hash));
}

// Whence bytes are taken: from here before from elsewhere, and from what goes only if nothing
// stays.
int rank_of(const BlobRecord& blob) {
    if (blob.state == BlobState::uploading) {
        return 0;
    }
    return (blob.state == BlobState::live ? 2 : 0) + (blob.store == kLocalStore ? 2 : 1);
}

}  // namespace

Task<Result<int>> Uploader::run() {
    const Executor executor = co_await boost::asio::this_coro::executor;
    int done = 0;
    for (;;) {
        auto due = co_await catalogue_.uploads(clock_.now(), kStep);
        if (!due) {
            co_return fail(std::move(due.error()));
        }
        Round round{std::move(*due)};
        TaskGroup workers(executor);
        for (std::size_t i = 0; i < std::min(round.due.size(), kAtOnce); ++i) {
            workers.spawn("upload", work_off(round));  // which lives until all have ended
        }
        co_await workers.join_or_cancel();
        done += round.done;
        const bool stop = co_await is_cancelled();
        if (round.failure || stop) {
            co_return round.failure ? fail(std::move(*round.failure))
                                    : fail(Code::cancelled, "the upload was stopped");
        }
        if (round.due.size() < kStep) {
            co_return done;
        }
    }
}

Task<> Uploader::work_off(Round& round) {
    while (!round.failure && round.next < round.due.size()) {
        auto brought = co_await try_one(std::move(round.due[round.next++]));
        if (!brought) {
            round.failure = std::move(brought.error());
            co_return;
        }
        round.done += *brought ? 1 : 0;
    }
}

// False: not now.
Task<Result<bool>> Uploader::try_one(BlobRecords::Upload upload) {
    BlobRecord record = std::move(upload.record);
    const Time now = clock_.now();
    if (!upload.is_needed) {
        auto given_up = co_await catalogue_.give_up(std::move(record), now + kDoomedFor);
        co_return given_up ? Result<bool>(false) : fail(std::move(given_up.error()));
    }
    const std::string name(store_name(record.store));
    auto key = Result<std::string>();
    const auto away = away_until_.find(name);
    if (away != away_until_.end() && now < away->second) {
        auto later = co_await catalogue_.upload_later(record, away->second, record.error);
        co_return later ? Result<bool>(false) : fail(std::move(later.error()));
    }
    key = co_await bring(record);
    if (!key && key.error().code == Code::cancelled) {
        co_return fail(std::move(key.error()));
    }
    auto noted = Result<>();
    if (key) {
        away_until_.erase(name);
        record.key = *key;
        noted = co_await catalogue_.uploaded(std::move(record), "", clock_.now());
    } else {
        const bool may_pass = is_outage(key.error().code);
        const Millis pause = (may_pass ? kOutageBackOff : kFaultBackOff).after(record.attempts);
        if (may_pass) {
            away_until_[name] = clock_.now() + pause;
        }
        ++record.attempts;
        log::warning(
            "an output waits for its store",
            {{"store", record.store},
             {"hash", record.hash},
             {"attempts", record.attempts},
             {"error", key.error().message}}
        );
        noted = co_await catalogue_.upload_later(
            std::move(record), clock_.now() + pause, std::move(key.error().message)
        );
    }
    co_return noted ? Result<bool>(key.has_value()) : fail(std::move(noted.error()));
}

Task<Result<std::string>> Uploader::bring(BlobRecord record) {
    const auto store = stores_.get(record.store);
    if (!store) {
        co_return fail(store.error());
    }
    auto at_hand = co_await find_source(record);
    if (!at_hand) {
        co_return fail(std::move(at_hand.error()));
    }
    auto assets = co_await catalogue_.sharing(record.hash, record.store, 1);
    if (!assets) {
        co_return fail(std::move(assets.error()));
    }
    if (!assets->empty()) {
        at_hand->source.content_type = std::move(assets->front().content_type);
    }
    at_hand->source.storage_class = record.storage_class;
    at_hand->source.note.last = record.note;
    at_hand->source.note.keep = [this, record](std::string note) {
        return catalogue_.note_upload(record, std::move(note));
    };
    auto key = co_await (*store)->put(std::move(record.key), at_hand->source);
    co_return key;
}

Task<Result<Uploader::AtHand>> Uploader::find_source(BlobRecord record) {
    auto blobs = co_await catalogue_.blobs_of(record.hash);
    if (!blobs) {
        co_return fail(std::move(blobs.error()));
    }
    const auto best = std::ranges::max_element(*blobs, {}, rank_of);
    if (best != blobs->end() && rank_of(*best) > 0) {
        auto taken = co_await take_from(std::move(*best));
        co_return taken;
    }
    auto kept = co_await catalogue_.kept_bytes(record.hash);
    if (!kept || !*kept) {
        co_return kept ? fail(
                             Code::output_unavailable,
                             "the content of '" + record.hash + "' is no longer stored"
                         )
                       : fail(std::move(kept.error()));
    }
    auto bytes = std::make_shared<const std::string>(std::move(**kept));
    co_return AtHand{Source{std::move(bytes), record.size_bytes, record.hash}};
}

Task<Result<Uploader::AtHand>> Uploader::take_from(BlobRecord from) {
    const auto store = stores_.get(from.store);
    if (!store) {
        co_return fail(store.error());
    }
    auto place = co_await (*store)->find(from.key, {});
    if (!place || !*place) {
        co_return place
            ? fail(
                  Code::output_unavailable,
                  "the content of '" + from.hash + "' is not in store '" + from.store + "' any more"
              )
            : fail(std::move(place.error()));
    }
    const auto* path = std::get_if<std::filesystem::path>(&**place);
    if (path == nullptr) {
        auto fetched = co_await fetch(std::move(from), **store);
        co_return fetched;
    }
    auto checked = co_await pool_.run(guarded([path = *path, hash = from.hash] {
        return check_file(path, hash);
    }));
    if (!checked) {
        co_return fail(std::move(checked.error()));
    }
    co_return AtHand{Source{*path, from.size_bytes, from.hash}};
}

Task<Result<Uploader::AtHand>> Uploader::fetch(BlobRecord from, BlobStore& store) {
    auto incoming = inbox_.create();
    while (incoming->size() < from.size_bytes) {
        auto part = co_await store.read(from.key, incoming->size(), kPartBytes);
        if (!part || part->empty()) {
            co_return fail(part ? changed(from.hash) : std::move(part.error()));
        }
        auto appended =
            co_await pool_.run(guarded([into = incoming.get(), piece = std::move(*part)] {
                return into->append(piece);
            }));
        if (!appended) {
            co_return fail(std::move(appended.error()));
        }
    }
    const Time now = clock_.now();
    auto synced =
        co_await pool_.run(guarded([into = incoming.get(), now] { return into->sync(now); }));
    if (!synced || incoming->hash() != from.hash) {
        co_return fail(synced ? changed(from.hash) : std::move(synced.error()));
    }
    Source source{incoming->path(), from.size_bytes, from.hash};
    co_return AtHand{std::move(source), std::move(incoming)};
}

}  // namespace comfyd::assets
