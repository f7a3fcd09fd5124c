#include "app/model_news.hpp"

#include <gtest/gtest.h>

#include <map>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "net/io_threads.hpp"
#include "support/wait.hpp"

namespace comfyd::app {
namespace {

class Records final : public models::RegisterStore {
public:
    Task<Result<>> save_model(models::ModelRecord record) override {
        const bool is_taken = records.contains(record.path);
        if (!is_taken) {
            records[record.path] = record;
            ++changes;
        }
        co_return is_taken ? fail(Code::conflict, "somebody was faster") : Result<>();
    }
    Task<Result<models::AllModels>> all_models() override {
        models::AllModels all{changes, {}};
        for (const auto& [path, record] : records) {
            all.records.push_back(record);
        }
        co_return all;
    }
    Task<Result<std::uint64_t>> model_changes() override { co_return changes; }

    std::map<std::string, models::ModelRecord> records;
    std::uint64_t changes = 0;
};

class Seen final : public observe::Metrics::Gauges {
public:
    void set(
        const std::string& name,
        const std::string&,
        std::initializer_list<std::pair<std::string, std::string>> labels,
        double value
    ) override {
        values[name + " " + labels.begin()->second] = value;
    }
    void
    set_histogram(const std::string&, const std::string&, std::initializer_list<std::pair<std::string, std::string>>, const Buckets&)
        override {}
    std::map<std::string, double> values;
};

class ModelNewsTest : public testing::Test {
protected:
    double fetched(const std::string& source) {
        Seen seen;
        news_.collect(seen);
        return seen.values.at("comfyd_model_bytes_fetched " + source);
    }
    ModelNewsTest() { thread_.start(); }
    ~ModelNewsTest() override { thread_.stop(); }

    template <class T>
    T run(Task<T> task) {
        return boost::asio::co_spawn(thread_.executor(), std::move(task), boost::asio::use_future)
            .get();
    }
    Task<bool> begin() {
        book_.start();
        co_return true;
    }
    Task<bool> end() {
        co_await book_.stop();
        auto refreshed = co_await book_.refresh();
        co_return refreshed.has_value();
    }
    Task<std::size_t> stored() { co_return records_.records.size(); }

    net::IoThread thread_{"test"};
    Records records_;
    models::RegisterBook book_{thread_.executor(), {}, records_};
    ModelNews news_{book_};
};

TEST_F(ModelNewsTest, BytesThatWereFetchedMeanwhileAreCounted) {
    constexpr std::chrono::hours kLong{1};
    news_.fetched("young", {10, 1, {}});
    EXPECT_EQ(fetched("outside"), 10) << "its agent was started after us";
    news_.fetched("old", {1'000, 500, kLong});
    EXPECT_EQ(fetched("outside"), 10) << "what it had before is not ours";
    news_.fetched("old", {1'005, 507, kLong});
    EXPECT_EQ(fetched("outside"), 15);
    EXPECT_EQ(fetched("peer"), 8);
    news_.fetched("young", {3, 0, {}});
    EXPECT_EQ(fetched("outside"), 18) << "it was started anew";
    news_.left("young");
    news_.fetched("young", {4, 0, {}});
    EXPECT_EQ(fetched("outside"), 22) << "another machine of that name";
}

TEST_F(ModelNewsTest, WhatAContentIsIsStoredOnce) {
    const std::string hash(64, 'a');
    const json::object told{
        {"files",
         json::array{
             json::object{
                 {"folder", "loras"},
                 {"name", "ink.safetensors"},
                 {"size", 5},
                 {"sha256", hash},
                 {"kind", "lora"},
                 {"family", "sd15"}
             },
             json::object{{"folder", "loras"}, {"name", "unread.pt"}, {"sha256", hash}},
             json::object{{"folder", "loras"}, {"name", "unhashed"}, {"kind", "lora"}},
         }}
    };
    news_.told("w", told);
    news_.told("w2", told);
    EXPECT_EQ(news_.files().of("w")->size(), 3U);
    EXPECT_TRUE(run(begin()));
    EXPECT_TRUE(support::wait_until([&] { return run(stored()) > 0; }));
    EXPECT_TRUE(run(end()));
    EXPECT_EQ(run(stored()), 1U);
    const auto now = book_.now();
    ASSERT_NE(now->find_content(hash), nullptr);
    EXPECT_EQ(now->find_content(hash)->family, "sd15");
    EXPECT_EQ(now->find_content(hash)->bytes, 5U);
}

}  // namespace
}  // namespace comfyd::app
