#include "bulk/telling.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "bulk/news.hpp"

namespace comfyd::bulk {
namespace {

using notify::EndpointId;
using notify::Outcome;
using testing::ElementsAre;

constexpr Time kNow{Millis(1'700'000'000'000)};

// A store of which only the items are asked for.
class NoItems final : public jobs::BulkStore {
public:
    Task<Result<jobs::BulkAdded>> add_bulk(jobs::Bulk, std::string) override {
        co_return fail(Code::internal, "not asked for");
    }
    Task<Result<>> commit_bulk(jobs::BulkChange) override { co_return Result<>(); }
    Task<Result<>> remove_bulk(jobs::BulkId) override { co_return Result<>(); }
    Task<Result<std::optional<jobs::Bulk>>> find_bulk(jobs::BulkId) override {
        co_return std::nullopt;
    }
    Task<Result<std::optional<std::string>>> find_bulk_plan(jobs::BulkId) override {
        co_return std::nullopt;
    }
    Task<Result<jobs::BulkPage>> list_bulks(std::string, std::optional<jobs::BulkId>, int)
        override {
        co_return jobs::BulkPage();
    }
    Task<Result<std::vector<jobs::BulkItem>>> bulk_items(jobs::BulkItemQuery) override {
        co_return std::vector<jobs::BulkItem>();
    }
    Task<Result<std::vector<jobs::Bulk>>> open_bulks(int) override {
        co_return std::vector<jobs::Bulk>();
    }
    Task<Result<std::vector<jobs::BulkId>>> ended_bulks(Time, int) override {
        co_return std::vector<jobs::BulkId>();
    }
};

class Telling : public testing::Test {
protected:
    Telling() {
        bulk_.id = jobs::BulkId::make(kNow);
        bulk_.tenant = "acme";
        bulk_.state = jobs::BulkState::completed;
        bulk_.created_at = kNow - Millis(60'000);
        bulk_.ended_at = kNow;
        own_.url = "https://own.example/";
        messengers_.announce = [this](notify::Target to, notify::Announcement announcement) {
            return announce(std::move(to), std::move(announcement));
        };
        messengers_.retry_wish = [this](const notify::Target&) { return wish_; };
        messengers_.listeners = [this](const std::string& tenant, std::string_view event) {
            EXPECT_EQ(tenant, "acme");
            asked_for_ = event;
            return listeners_;
        };
    }

    Task<Outcome> announce(notify::Target to, notify::Announcement announcement) {
        const auto* endpoint = std::get_if<notify::EndpointTarget>(&to);
        const std::string name = endpoint == nullptr ? "own" : endpoint->id.to_string();
        told_.push_back(name);
        events_.push_back(announcement.event);
        const auto answer = answers_.find(name);
        co_return answer == answers_.end() ? Outcome{.kind = Outcome::Kind::delivered}
                                           : answer->second;
    }

    // One round; what is left to do is kept in the bulk.
    void tell(Time now) {
        Result<std::optional<jobs::BulkNews>> left;
        boost::asio::io_context io;
        boost::asio::co_spawn(
            io,
            tell_end(store_, messengers_, {}, bulk_, own_, now),
            [&left](std::exception_ptr, Result<std::optional<jobs::BulkNews>> result) {
                left = std::move(result);
            }
        );
        io.run();
        outcome_ = left ? std::nullopt : std::optional(left.error().code);
        if (left) {
            bulk_.news = std::move(*left);
        }
    }
    static Outcome retry() { return {.kind = Outcome::Kind::retry, .error = "no answer"}; }

    NoItems store_;
    jobs::Bulk bulk_;
    jobs::Webhook own_;
    Messengers messengers_;
    std::vector<EndpointId> listeners_;
    notify::RetryWish wish_;
    std::map<std::string, Outcome> answers_;
    std::string asked_for_;
    std::vector<std::string> told_;
    std::vector<std::string> events_;
    std::optional<Code> outcome_;
};

TEST_F(Telling, TheOwnWebhookHearsOfBothEndsUnlessItsFilterSaysOtherwise) {
    for (const auto state : {jobs::BulkState::completed, jobs::BulkState::cancelled}) {
        bulk_.state = state;
        own_.events.clear();
        EXPECT_TRUE(news_of(bulk_, own_, messengers_));
        own_.events = {end_event_of(bulk_)};
        EXPECT_TRUE(news_of(bulk_, own_, messengers_));
        own_.events = {"execution.completed"};
        EXPECT_FALSE(news_of(bulk_, own_, messengers_));
    }
    EXPECT_EQ(asked_for_, "batch.cancelled");
    own_.events = {"batch.completed"};
    EXPECT_FALSE(news_of(bulk_, own_, messengers_)) << "it was cancelled";
    EXPECT_FALSE(news_of(bulk_, std::nullopt, messengers_));
}

TEST_F(Telling, EverybodyHearsItOnce) {
    listeners_ = {EndpointId::make(kNow), EndpointId::make(kNow)};
    bulk_.news = news_of(bulk_, own_, messengers_);
    ASSERT_TRUE(bulk_.news);
    EXPECT_EQ(bulk_.news->due, kNow);
    EXPECT_EQ(bulk_.news->to.size(), 3U);
    answers_[listeners_[1].to_string()] = retry();
    tell(kNow);
    EXPECT_EQ(told_.size(), 3U);
    EXPECT_THAT(events_, testing::Each("batch.completed"));
    ASSERT_TRUE(bulk_.news) << "one has not heard it";
    EXPECT_THAT(bulk_.news->to, ElementsAre(listeners_[1].to_string()));
    EXPECT_EQ(bulk_.news->attempts, 1);
    EXPECT_EQ(bulk_.news->error, "no answer");
    EXPECT_GT(bulk_.news->due, kNow);
    told_.clear();
    answers_.clear();
    tell(bulk_.news->due);
    EXPECT_THAT(told_, ElementsAre(listeners_[1].to_string()));
    EXPECT_FALSE(bulk_.news);
}

TEST_F(Telling, WaitsLongerEachTimeAndGivesUp) {
    answers_["own"] = retry();
    bulk_.news = news_of(bulk_, own_, messengers_);
    Time now = kNow;
    Millis before{0};
    for (int i = 0; i < 8; ++i) {
        tell(now);
        ASSERT_TRUE(bulk_.news);
        EXPECT_GT(bulk_.news->due - now, before);
        before = bulk_.news->due - now;
        now = bulk_.news->due;
    }
    tell(kNow + TellingOptions().give_up_after);
    EXPECT_FALSE(bulk_.news);
}

TEST_F(Telling, IsTriedAgainAsOftenAsWished) {
    answers_["own"] = retry();
    wish_ = {.retries_max = 2, .first_retry = Millis(5)};
    bulk_.news = news_of(bulk_, own_, messengers_);
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(bulk_.news) << i;
        tell(kNow);
    }
    EXPECT_FALSE(bulk_.news);
    EXPECT_EQ(told_.size(), 3U);
}

TEST_F(Telling, WhoeverWantsNoMoreAndWhoeverIsNotToBeReachedIsLeftOut) {
    answers_["own"] = {.kind = Outcome::Kind::give_up, .error = "gone"};
    bulk_.news = news_of(bulk_, own_, messengers_);
    bulk_.news->to.emplace_back("of a later version");
    tell(kNow);
    EXPECT_FALSE(bulk_.news);
    EXPECT_THAT(told_, ElementsAre("own"));
}

TEST_F(Telling, OneThatIsBrokenOffIsKnownNothingOf) {
    answers_["own"] = {.kind = Outcome::Kind::cancelled};
    bulk_.news = news_of(bulk_, own_, messengers_);
    tell(kNow);
    EXPECT_EQ(outcome_, Code::cancelled);
    EXPECT_TRUE(bulk_.news);
}

}  // namespace
}  // namespace comfyd::bulk
