#include "limits/budgets.hpp"

#include <gmock/gmock.h>

#include "limits/test_support.hpp"
#include "net/test_support.hpp"

namespace comfyd::limits {
namespace {

using std::chrono::hours;
using test::directory_of;
using test::tenant;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// What attempts cost, by tenant and hour, as the ledger would add it up.
class Ledger final : public jobs::Notebook {
public:
    Task<Result<jobs::Stats>> stats(jobs::StatsQuery query) {
        if (is_broken) {
            co_return fail(Code::storage_unavailable, "the database is away");
        }
        jobs::StatsSum sum(query.group_by);
        for (const auto& [key, usd] : spent) {
            const bool is_asked = !query.tenant || *query.tenant == key.tenant;
            if (is_asked && key.hour >= jobs::hour_of(query.from) && key.hour <= query.to) {
                jobs::Totals totals;
                totals.cost_usd = usd;
                sum.add(key, totals);
            }
        }
        ++asked;
        co_return sum.take();
    }
    Task<Result<>> write_note(std::string name, std::string text) override {
        notes[name] = std::move(text);
        co_return Result<>();
    }
    Task<Result<std::optional<std::string>>> read_note(std::string name) override {
        co_return notes.contains(name) ? std::optional(notes[name]) : std::nullopt;
    }

    std::map<jobs::StatsKey, double> spent;
    std::map<std::string, std::string> notes;
    bool is_broken = false;
    int asked = 0;
};

class BudgetsTest : public testing::Test {
protected:
    BudgetsTest() { restart(); }
    void restart() {
        budgets_.emplace(
            board_,
            book_,
            clock_,
            ledger_,
            Budgets::Sources{
                [this](jobs::StatsQuery query) { return ledger_.stats(std::move(query)); },
                [this](std::string tenant, autoscale::LimitNews news) {
                    return hear(std::move(tenant), std::move(news));
                }
            }
        );
    }
    void set(json::object members) {
        board_.set(directory_of({tenant("acme", std::move(members)), tenant("other", {})}));
    }
    void spend(double usd, const std::string& who = "acme") {
        ledger_.spent[{jobs::hour_of(clock_.now()), who, "w", "gpu"}] += usd;
    }
    bool look(bool tells = true) { return loop_.run(budgets_->look(tells)); }
    std::string hold() const { return budgets_->hold_of("acme"); }
    std::vector<std::string> heard() { return std::exchange(heard_, {}); }
    void go_to(const char* time) {
        clock_.advance(std::chrono::duration_cast<Millis>(*parse_rfc3339(time) - clock_.now()));
    }

    ManualClock clock_{*parse_rfc3339("2026-11-19T10:30:00Z")};
    auth::DirectoryBoard board_{directory_of({})};
    Book book_{board_, Tiers(), ""};
    Ledger ledger_;
    std::optional<Budgets> budgets_;
    net::test::Loop loop_;

private:
    Task<> hear(std::string tenant, autoscale::LimitNews news) {
        EXPECT_THAT(news.sentence, HasSubstr("'" + tenant + "'"));
        heard_.push_back(
            std::string(news.what()) + " in a " + std::string(to_string(news.limit.span))
        );
        co_return;
    }
    std::vector<std::string> heard_;
};

TEST_F(BudgetsTest, WhoHasNoLimitIsNotLookedAt) {
    set({{"tier", "pro"}});
    spend(1'000);
    EXPECT_FALSE(look());
    EXPECT_EQ(ledger_.asked, 0);
    EXPECT_EQ(hold(), "");
}

TEST_F(BudgetsTest, ItIsToldWhenLittleAndWhenNothingIsLeftAndThenJobsWait) {
    set({{"budget", {{"usd_per_day", 10}}}});
    spend(7);
    EXPECT_FALSE(look());
    EXPECT_THAT(heard(), IsEmpty());
    EXPECT_EQ(budgets_->left_usd().at("acme"), 3);
    spend(1);
    EXPECT_FALSE(look());
    EXPECT_THAT(heard(), ElementsAre("budget_low in a day"));
    clock_.advance(hours(1));
    spend(1.5);
    EXPECT_FALSE(look()) << "hours before this one count, too";
    EXPECT_NEAR(budgets_->left_usd().at("acme"), 0.5, 1e-9);
    spend(2);
    EXPECT_TRUE(look());
    EXPECT_THAT(heard(), ElementsAre("budget_spent in a day"));
    EXPECT_EQ(
        hold(),
        "what its tenant may spend in a day is spent; it goes on at 2026-11-20T00:00:00.000Z"
    );
    EXPECT_EQ(budgets_->hold_of("other"), "");
    EXPECT_FALSE(look()) << "nothing else is so";
    EXPECT_THAT(heard(), IsEmpty());
    go_to("2026-11-20T00:00:00Z");
    EXPECT_TRUE(look());
    EXPECT_EQ(hold(), "");
    EXPECT_EQ(budgets_->left_usd().at("acme"), 10);
}

TEST_F(BudgetsTest, ARestartForgetsNothing) {
    set({{"budget", {{"usd_per_hour", 100}, {"usd_per_month", 10}}}});
    spend(4);
    go_to("2026-11-21T08:00:00Z");
    spend(4.5);
    EXPECT_FALSE(look());
    EXPECT_THAT(heard(), ElementsAre("budget_low in a month"));
    restart();
    EXPECT_FALSE(look());
    EXPECT_THAT(heard(), IsEmpty());
    clock_.advance(hours(1));
    spend(3);
    restart();
    EXPECT_TRUE(look()) << "before anything starts";
    EXPECT_THAT(hold(), HasSubstr("in a month is spent; it goes on at 2026-12-01T00:00:00"));
    EXPECT_THAT(heard(), ElementsAre("budget_spent in a month"));
}

TEST_F(BudgetsTest, JobsWaitForTheLimitThatBeginsAnewLast) {
    set({{"budget", {{"usd_per_hour", 1}, {"usd_per_day", 2}}}});
    spend(1);
    EXPECT_TRUE(look());
    EXPECT_THAT(hold(), HasSubstr("in an hour"));
    go_to("2026-11-19T11:00:00Z");
    EXPECT_TRUE(look());
    EXPECT_EQ(hold(), "");
    spend(1);
    EXPECT_TRUE(look());
    EXPECT_THAT(hold(), HasSubstr("in a day"));
    set({{"budget", {{"usd_per_hour", 5}, {"usd_per_day", 20}}}});
    EXPECT_TRUE(look()) << "somebody gives more";
    EXPECT_EQ(hold(), "");
}

TEST_F(BudgetsTest, QuotasOfMoneyAreToldOfAndHoldNothingBack) {
    set({{"usd_per_month", 5}, {"budget", {{"usd_per_month", 100}}}});
    spend(4.5);
    EXPECT_FALSE(look());
    EXPECT_THAT(heard(), ElementsAre("budget_low in a month"));
    spend(1);
    EXPECT_FALSE(look());
    EXPECT_THAT(heard(), ElementsAre("budget_spent in a month"));
    EXPECT_EQ(hold(), "") << "new jobs are refused, those that were accepted run";
}

TEST_F(BudgetsTest, OfSeveralNodesOneTellsAndAllHoldBack) {
    set({{"budget", {{"usd_per_day", 1}}}});
    spend(2);
    EXPECT_TRUE(look(false));
    EXPECT_THAT(heard(), IsEmpty());
    EXPECT_NE(hold(), "");
    look(true);
    EXPECT_THAT(heard(), ElementsAre("budget_spent in a day"));
    look(false);
    look(true);
    EXPECT_THAT(heard(), IsEmpty()) << "it reads what was told before";
}

TEST_F(BudgetsTest, WhatWasKnownHoldsWhileTheLedgerIsAway) {
    set({{"budget", {{"usd_per_day", 1}}}});
    spend(2);
    EXPECT_TRUE(look());
    ledger_.is_broken = true;
    EXPECT_FALSE(look());
    EXPECT_NE(hold(), "");
    ledger_.is_broken = false;
    EXPECT_FALSE(look());
    EXPECT_THAT(heard(), ElementsAre("budget_spent in a day"));
}

TEST_F(BudgetsTest, OfVeryManyTenantsNoneIsPassedOver) {
    set({{"budget", {{"usd_per_day", 1}}}});
    for (int i = 0; i < 1'100; ++i) {
        spend(1, "a" + std::to_string(i));
    }
    spend(2);
    EXPECT_TRUE(look());
    EXPECT_NE(hold(), "");
}

}  // namespace
}  // namespace comfyd::limits
