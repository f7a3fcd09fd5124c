// Two nodes over one database: one adds and removes references to the same few contents while the
// other sweeps.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "assets/blake3.hpp"
#include "assets/blob_key.hpp"
#include "ledger/postgres_ledger.hpp"
#include "ledger/storage.hpp"
#include "ledger/test_support.hpp"

namespace comfyd::ledger::test {
namespace {

using assets::BlobRecord;
using assets::BlobState;

// As await(), on a thread of the test's own.
template <class T>
T await_here(boost::asio::io_context& io, Task<Result<T>> task) {
    io.restart();
    std::optional<Result<T>> value;
    boost::asio::co_spawn(io, std::move(task), [&](std::exception_ptr, Result<T> result) {
        value.emplace(std::move(result));
    });
    io.run();
    return get(std::move(*value));
}

TEST(PostgresBlobs, NoSweepOfAnotherNodeTakesWhatIsJustBeingReferredTo) {
    constexpr int kContents = 3;
    constexpr int kSteps = 300;
    ManualClock clock;
    const std::string url = make_postgres_database();
    boost::asio::io_context adders_io(1);
    boost::asio::io_context sweepers_io(1);
    const auto adder = get(open_storage(url, {}, clock));
    const auto sweeper = get(open_storage(url, {}, clock));
    const auto hash_of = [](int content) { return assets::blake3_name(std::to_string(content)); };

    std::atomic<bool> is_over{false};
    std::thread sweeping([&] {
        while (!is_over) {
            const Time now = clock.now();
            await_here(sweepers_io, sweeper->doom(now, now, 10));
            await_here(sweepers_io, sweeper->take_out(now, now, 10));
            for (const auto& upload : await_here(sweepers_io, sweeper->uploads(now, 10))) {
                if (upload.is_needed) {
                    await_here(sweepers_io, sweeper->uploaded(upload.record, "", now));
                }
            }
        }
    });
    std::mt19937_64 random(7);
    std::vector<assets::Asset> held;
    for (int step = 0; step < kSteps; ++step) {
        if (held.size() > 4 || (!held.empty() && random() % 2 == 0)) {
            const auto at = held.begin() + static_cast<std::ptrdiff_t>(random() % held.size());
            await_here(adders_io, adder->remove(at->id));
            held.erase(at);
            continue;
        }
        assets::Asset asset;
        asset.id = AssetId::make(clock.now());
        asset.tenant = "acme";
        asset.hash = hash_of(static_cast<int>(random() % kContents));
        asset.size_bytes = 1;
        asset.created_at = clock.now();
        // Half of them bring bytes along.
        asset.generation = random() % 2 == 0 ? assets::make_generation(clock.now()) : 0;
        await_here(adders_io, adder->add(asset));
        held.push_back(asset);
        // Whatever the other has done: there is a record, and it will not be taken out.
        bool is_safe = false;
        for (const BlobRecord& one : await_here(adders_io, adder->blobs_of(asset.hash))) {
            is_safe = is_safe || one.state != BlobState::doomed;
        }
        ASSERT_TRUE(is_safe) << step;
    }
    is_over = true;
    sweeping.join();
    for (const auto& asset : held) {
        int live = 0;
        for (const BlobRecord& one : await_here(adders_io, adder->blobs_of(asset.hash))) {
            live += one.state != BlobState::doomed ? 1 : 0;
        }
        EXPECT_EQ(live, 1);
    }
}

}  // namespace
}  // namespace comfyd::ledger::test
