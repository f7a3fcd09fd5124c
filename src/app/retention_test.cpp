#include "app/retention.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "base/wait_for.hpp"
#include "ledger/sqlite_ledger.hpp"
#include "net/io_threads.hpp"

namespace comfyd::app {
namespace {

namespace fs = std::filesystem;

constexpr Millis kKept = std::chrono::hours(24 * 30);

class RetentionTest : public testing::Test {
protected:
    RetentionTest() {
        thread_.start();
        auto opened = ledger::SqliteLedger::open({.path = folder_ / "db"}, clock_);
        ledger_ = std::move(opened.value());
        assets::StoreOptions options;
        options.directory = folder_ / "assets";
        store_ = std::make_unique<assets::Store>(options, *ledger_, clock_, pool_);
        EXPECT_TRUE(store_->open());
        Retention::Options kept;
        kept.kept_for = kKept;
        kept.engine_folders = {folder_ / "engine"};
        kept.tell = [this](const Retention::Removed& removed) { told_ += removed.jobs; };
        retention_ =
            std::make_unique<Retention>(thread_.executor(), clock_, pool_, *ledger_, *store_, kept);
    }
    ~RetentionTest() override {
        retention_.reset();
        thread_.stop();
        ledger_->stop();
        fs::remove_all(folder_);
    }

    template <class T>
    T wait_for(Task<T> task) {
        return comfyd::wait_for(thread_.executor(), std::move(task));
    }
    bool is_stored(const std::string& hash) {
        const fs::path folder = folder_ / "assets" / "blobs" / hash.substr(7, 2);
        return std::ranges::any_of(fs::directory_iterator(folder), [&](const auto& entry) {
            return entry.path().filename().string().starts_with(hash.substr(9));
        });
    }
    Retention::Removed sweep() { return wait_for(retention_->sweep()).value(); }
    jobs::Output store_output(const JobId& job, std::string bytes) {
        assets::NewAsset asset;
        asset.tenant = "local";
        asset.job = job;
        const auto added = wait_for(store_->add(std::move(bytes), asset)).value();
        jobs::Output output;
        output.asset = added.asset.id;
        output.hash = added.asset.hash;
        output.bytes = added.asset.bytes;
        output.size_bytes = added.asset.size_bytes;
        output.generation = added.asset.generation;
        return output;
    }
    jobs::Job finish(std::string output = {}) {
        jobs::NewJob made;
        made.change = jobs::make_job(JobId::make(clock_.now()), made.spec, clock_.now());
        const jobs::Job job = made.change.job;
        EXPECT_TRUE(wait_for(ledger_->accept(made)).value().created);
        const auto started = jobs::start(job, "worker", 2, clock_.now()).value();
        EXPECT_TRUE(wait_for(ledger_->commit(started)));
        std::vector<jobs::Output> outputs;
        if (!output.empty()) {
            outputs.push_back(store_output(job.id, std::move(output)));
        }
        const auto ended =
            jobs::complete(started.job, std::move(outputs), {}, 3, clock_.now()).value();
        EXPECT_TRUE(wait_for(ledger_->commit(ended)));
        return ended.job;
    }
    bool has(const jobs::Job& job) {
        jobs::Ledger& ledger = *ledger_;
        return wait_for(ledger.find(job.id)).value().has_value();
    }

    const fs::path folder_ =
        fs::path(testing::TempDir()) / ("comfyd-retention-" + std::to_string(::getpid()));
    ManualClock clock_{SystemClock().now()};  // files have the time of the system
    net::IoThread thread_{"retention"};
    Pool pool_{1};
    std::unique_ptr<ledger::SqliteLedger> ledger_;
    std::unique_ptr<assets::Store> store_;
    std::unique_ptr<Retention> retention_;
    int told_ = 0;
};

TEST_F(RetentionTest, JobsGoWithTheirFilesWhenTheirTimeHasPassed) {
    const std::string large(100'000, 'x');
    const auto old = finish(large);
    const auto shared = finish(large + "shared");
    clock_.advance(std::chrono::hours(1));
    const auto young = finish(large + "shared");
    clock_.advance(kKept - std::chrono::hours(1));
    EXPECT_EQ(sweep().jobs, 0) << "not yet";
    clock_.advance(Millis(1));
    const auto removed = sweep();
    EXPECT_EQ(removed.jobs, 2);
    EXPECT_EQ(removed.files, 0) << "somebody may be reading it";
    EXPECT_EQ(told_, 2);
    EXPECT_FALSE(has(old));
    EXPECT_FALSE(has(shared));
    EXPECT_TRUE(has(young));
    EXPECT_EQ(sweep().jobs + sweep().files, 0);
    clock_.advance(std::chrono::hours(1) - Millis(1));
    EXPECT_EQ(sweep().files, 0);
    clock_.advance(Millis(1));
    EXPECT_EQ(sweep().files, 1);
    EXPECT_FALSE(is_stored(old.outputs[0].hash));
    EXPECT_TRUE(is_stored(young.outputs[0].hash));
}

TEST_F(RetentionTest, ManyJobsGoInOneRound) {
    for (int i = 0; i < 100; ++i) {
        finish();
    }
    clock_.advance(kKept + Millis(1));
    EXPECT_EQ(sweep().jobs, 100);
}

TEST_F(RetentionTest, TheEnginesFilesGoToo) {
    const fs::path engine = folder_ / "engine";
    const fs::path made = engine / "output" / "sub" / "picture_00001_.png";
    const fs::path placed = engine / "input" / "comfyd_0123" / "hash.png";
    const fs::path own = engine / "input" / "mine.png";
    for (const fs::path& file : {made, placed, own}) {
        fs::create_directories(file.parent_path());
        std::ofstream(file) << "bytes";
    }
    EXPECT_EQ(sweep().files, 0);
    clock_.advance(kKept + std::chrono::hours(1));
    EXPECT_EQ(sweep().files, 2);
    EXPECT_FALSE(fs::exists(made));
    EXPECT_FALSE(fs::exists(placed));
    EXPECT_TRUE(fs::exists(own));
}

}  // namespace
}  // namespace comfyd::app
