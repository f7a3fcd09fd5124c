#include "app/fleet_news.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include "app/fleet_announcements.hpp"
#include "fleet/instances/memory_store.hpp"

namespace comfyd::app {
namespace {

using notify::EndpointId;
using notify::Outcome;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSupersetOf;

class Notes final : public jobs::Notebook {
public:
    Task<Result<>> write_note(std::string name, std::string text) override {
        notes[name] = std::move(text);
        co_return Result<>();
    }
    Task<Result<std::optional<std::string>>> read_note(std::string name) override {
        const auto found = notes.find(name);
        co_return found == notes.end() ? std::nullopt : std::optional(found->second);
    }

    std::map<std::string, std::string> notes;
};

class News : public testing::Test {
protected:
    ~News() override { stop(); }

    void start() {
        FleetNews::Parts parts{
            io_.get_executor(),
            clock_,
            store_,
            notes_,
            "main",
            {},
            [this] { return listeners_; },
            [this] { return is_ours_; },
        };
        parts.messengers.announce = [this](notify::Target to, notify::Announcement news) {
            return hear(std::move(to), std::move(news));
        };
        parts.messengers.retry_wish = [this](const notify::Target&) { return wish_; };
        bulk::TellingOptions options;
        options.give_up_after = Millis(60'000);
        news_ = std::make_unique<FleetNews>(std::move(parts), options, Millis(1));
        news_->start();
    }
    void stop() {
        if (news_) {
            wait(news_->stop());
            news_.reset();
        }
    }
    // As after a crash: what it knew is gone.
    void restart() {
        stop();
        start();
    }

    Task<Outcome> hear(notify::Target to, notify::Announcement news) {
        const EndpointId id = std::get<notify::EndpointTarget>(to).id;
        ++tries_;
        Outcome outcome{.kind = Outcome::Kind::delivered};
        if (!answers_[id].empty()) {
            outcome = answers_[id].front();
            answers_[id].erase(answers_[id].begin());
        }
        if (outcome.kind == Outcome::Kind::delivered) {
            heard_[id].push_back(news.event);
            ids_.push_back(news.id);
        }
        co_return outcome;
    }

    template <class T>
    T wait(Task<T> task) {
        auto done = boost::asio::co_spawn(
            Executor(io_.get_executor()), std::move(task), boost::asio::use_future
        );
        while (done.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
            io_.run_one();
        }
        return done.get();
    }
    bool run_until(const std::function<bool()>& holds) {
        const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        while (!holds() && std::chrono::steady_clock::now() < give_up) {
            io_.run_one_for(std::chrono::milliseconds(100));
        }
        return holds();
    }
    // As long as it takes to look some times.
    void let_look() {
        for (int i = 0; i < 50; ++i) {
            io_.run_one_for(std::chrono::milliseconds(100));
        }
    }

    EndpointId listen(std::vector<std::string> events) {
        auto endpoint = std::make_shared<notify::Endpoint>();
        endpoint->id = EndpointId::make(clock_.now());
        endpoint->webhook.events = std::move(events);
        endpoint->updated_at = clock_.now();
        listeners_.push_back(endpoint);
        return endpoint->id;
    }
    void happen(std::string what, std::string instance = "a") {
        fleet::FleetEvent event;
        event.at = clock_.now();
        event.fleet = "main";
        event.what = std::move(what);
        event.instance = std::move(instance);
        event.pool = "gpu";
        wait(store_.note_fleet_event(std::move(event)));
    }
    static Outcome refusal(Outcome::Kind kind = Outcome::Kind::retry) {
        return {.kind = kind, .error = "no"};
    }

    boost::asio::io_context io_{1};
    boost::asio::executor_work_guard<Executor> open_{io_.get_executor()};
    ManualClock clock_;
    fleet::MemoryInstances store_;
    Notes notes_;
    std::vector<notify::EndpointPtr> listeners_;
    notify::RetryWish wish_;
    bool is_ours_ = true;
    std::map<EndpointId, std::vector<Outcome>> answers_;
    std::map<EndpointId, std::vector<std::string>> heard_;
    std::vector<std::string> ids_;
    int tries_ = 0;
    std::unique_ptr<FleetNews> news_;
};

TEST_F(News, EachHearsWhatItAskedForInOrder) {
    const auto some = listen({"fleet.instance.ready", "fleet.pool.paused"});
    const auto all = listen({"fleet.*"});
    start();
    for (const char* what : {"requested", "ready", "gone", "paused", "something new"}) {
        happen(what);
    }
    EXPECT_TRUE(run_until([&] { return heard_[all].size() == 5; }));
    EXPECT_THAT(heard_[some], ElementsAre("fleet.instance.ready", "fleet.pool.paused"));
    EXPECT_THAT(
        heard_[all],
        ElementsAre(
            "fleet.instance.requested",
            "fleet.instance.ready",
            "fleet.instance.removed",
            "fleet.pool.paused",
            "fleet.something new"
        )
    );
}

TEST_F(News, WhatHappenedBeforeItListenedIsNotTold) {
    happen("requested");
    clock_.advance(Millis(1));
    const auto id = listen({"fleet.*"});
    start();
    happen("ready");
    EXPECT_TRUE(run_until([&] { return !heard_[id].empty(); }));
    EXPECT_THAT(heard_[id], ElementsAre("fleet.instance.ready"));
}

TEST_F(News, WhatHappensWhileNobodyTellsIsToldLaterAndOnce) {
    const auto id = listen({"fleet.*"});
    start();
    happen("ready");
    ASSERT_TRUE(run_until([&] { return heard_[id].size() == 1; }));
    stop();
    for (int i = 0; i < 1'200; ++i) {  // several pages
        happen("gone", std::to_string(i));
    }
    start();
    EXPECT_TRUE(run_until([&] { return heard_[id].size() == 1'201; }));
    restart();
    let_look();
    EXPECT_EQ(heard_[id].size(), 1'201U);
    EXPECT_EQ(std::set<std::string>(ids_.begin(), ids_.end()).size(), ids_.size());
}

TEST_F(News, OneThatFailsIsTriedAgainLaterAndHoldsUpNobody) {
    const auto bad = listen({"fleet.*"});
    const auto good = listen({"fleet.*"});
    answers_[bad] = {refusal(), refusal()};
    start();
    happen("ready");
    happen("gone");
    EXPECT_TRUE(run_until([&] { return heard_[good].size() == 2 && answers_[bad].size() == 1; }));
    let_look();
    EXPECT_EQ(answers_[bad].size(), 1U) << "not before its time";
    restart();
    let_look();
    EXPECT_EQ(answers_[bad].size(), 1U) << "nor after a restart";
    clock_.advance(Millis(1'000));
    EXPECT_TRUE(run_until([&] { return answers_[bad].empty(); }));
    clock_.advance(Millis(1'000));
    let_look();
    EXPECT_THAT(heard_[bad], IsEmpty()) << "it is left alone for twice as long";
    clock_.advance(Millis(1'000));
    EXPECT_TRUE(run_until([&] { return heard_[bad].size() == 2; }));
    EXPECT_THAT(heard_[bad], ElementsAre("fleet.instance.ready", "fleet.instance.removed"));
}

TEST_F(News, IsGivenUpAfterTheLastAttemptAndTheNextFollows) {
    wish_.retries_max = 1;
    const auto id = listen({"fleet.*"});
    answers_[id] = {refusal(), refusal()};
    start();
    happen("ready");
    happen("gone");
    const auto goes_on = [&] {
        clock_.advance(Millis(100));
        return !heard_[id].empty();
    };
    EXPECT_TRUE(run_until(goes_on));
    EXPECT_THAT(heard_[id], ElementsAre("fleet.instance.removed"));
    EXPECT_EQ(tries_, 3);
}

TEST_F(News, IsGivenUpWhenItIsOldOrCannotBe) {
    const auto id = listen({"fleet.*"});
    start();
    answers_[id] = {refusal()};
    happen("requested");
    ASSERT_TRUE(run_until([&] { return tries_ == 1; }));
    clock_.advance(Millis(60'000));
    answers_[id] = {refusal(), refusal(Outcome::Kind::give_up)};
    happen("creating");
    happen("ready");
    const auto goes_on = [&] {
        clock_.advance(Millis(100));
        return !heard_[id].empty();
    };
    EXPECT_TRUE(run_until(goes_on));
    EXPECT_THAT(heard_[id], ElementsAre("fleet.instance.ready"));
    EXPECT_EQ(tries_, 4);
}

TEST_F(News, OneThatListensNoMoreBeginsAnewWhenItDoesAgain) {
    const auto id = listen({"fleet.*"});
    start();
    happen("ready");
    ASSERT_TRUE(run_until([&] { return heard_[id].size() == 1; }));
    const auto away = std::exchange(listeners_, {});
    let_look();
    happen("draining");
    clock_.advance(Millis(5));
    auto back = std::make_shared<notify::Endpoint>(*away.front());
    back->updated_at = clock_.now();
    listeners_ = {back};
    happen("gone");
    EXPECT_TRUE(run_until([&] { return heard_[id].size() == 2; }));
    EXPECT_THAT(heard_[id], ElementsAre("fleet.instance.ready", "fleet.instance.removed"));
}

TEST_F(News, OnlyTheNodeThatKeepsHouseTells) {
    const auto id = listen({"fleet.*"});
    is_ours_ = false;
    start();
    happen("ready");
    let_look();
    EXPECT_THAT(heard_[id], IsEmpty());
    is_ours_ = true;
    EXPECT_TRUE(run_until([&] { return heard_[id].size() == 1; }));
}

TEST_F(News, ANoteThatCannotBeReadCostsNothingButARepetition) {
    notes_.notes["fleet-news/main"] = R"({"x": 1, "y": {}, "z)";
    const auto id = listen({"fleet.*"});
    start();
    happen("ready");
    EXPECT_TRUE(run_until([&] { return heard_[id].size() == 1; }));
}

TEST(FleetAnnouncements, SayWhatTheLogSays) {
    fleet::FleetEvent event;
    event.number = 7;
    event.at = from_unix_ms(1'700'000'000'000);
    event.fleet = "main";
    event.what = "provider_closed";
    event.why = "no money";
    event.provider = "cloud";
    const auto told = announcement_of(event);
    EXPECT_EQ(told.id, "msg_fleet_main_7_1700000000000");
    EXPECT_EQ(told.about, "cloud");
    EXPECT_EQ(told.event, "fleet.provider.closed");
    EXPECT_EQ(told.body.at("data").at("why"), "no money");
    EXPECT_EQ(told.body.at("data").at("number"), 7);
    EXPECT_THAT(fleet_event_names(), IsSupersetOf({"fleet.*", "fleet.provider.closed"}));
    jobs::Webhook webhook;
    EXPECT_FALSE(wants_fleet(webhook)) << "nobody hears of it who did not ask";
    EXPECT_FALSE(wants(webhook, told));
}

}  // namespace
}  // namespace comfyd::app
