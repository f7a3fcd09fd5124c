#include "auth/tickets.hpp"

#include <gtest/gtest.h>

namespace comfyd::auth {
namespace {

const Time kNow = Time(std::chrono::seconds(1'800'000'000));
const Caller kCaller{.tenant = "acme \"&?ü", .key_name = "ci", .scopes = kAllScopes};

TEST(Tickets, TellWhoHoldsThemAndLetReadOfJobsAlone) {
    const Tickets tickets;
    const auto ticket = tickets.issue(kCaller, "", kNow);
    EXPECT_EQ(
        ticket.text.find_first_not_of(
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
        ),
        std::string::npos
    );
    for (const char* execution : {"", "one", "another"}) {
        const auto caller = tickets.redeem(ticket.text, execution, kNow);
        ASSERT_TRUE(caller) << caller.error().message;
        EXPECT_EQ(caller->tenant, kCaller.tenant);
        EXPECT_EQ(caller->key_name, "ci");
        EXPECT_EQ(caller->scopes, Scopes{Scope::jobs_read});
    }
}

TEST(Tickets, MayBeForOneExecution) {
    const Tickets tickets;
    const auto ticket = tickets.issue(kCaller, "one", kNow);
    EXPECT_TRUE(tickets.redeem(ticket.text, "one", kNow));
    EXPECT_FALSE(tickets.redeem(ticket.text, "another", kNow));
    EXPECT_FALSE(tickets.redeem(ticket.text, "", kNow));
}

TEST(Tickets, Expire) {
    const Tickets tickets;
    const auto ticket = tickets.issue(kCaller, "", kNow);
    EXPECT_EQ(ticket.expires_at, kNow + std::chrono::seconds(60));
    EXPECT_TRUE(tickets.redeem(ticket.text, "", ticket.expires_at - Millis(1)));
    const auto late = tickets.redeem(ticket.text, "", ticket.expires_at);
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, Code::unauthorized);
}

TEST(Tickets, CannotBeMadeOrChangedByOthers) {
    const Tickets tickets;
    const std::string text = tickets.issue(kCaller, "one", kNow).text;
    for (std::size_t i = 0; i < text.size(); ++i) {
        std::string changed = text;
        changed[i] = changed[i] == 'a' ? 'b' : 'a';
        EXPECT_FALSE(tickets.redeem(changed, "one", kNow)) << changed;
        EXPECT_FALSE(tickets.redeem(text.substr(0, i), "one", kNow)) << i;
    }
    EXPECT_FALSE(tickets.redeem("", "", kNow));
    EXPECT_FALSE(tickets.redeem("....", "", kNow));
    EXPECT_FALSE(tickets.redeem(text + "0", "one", kNow));
    EXPECT_FALSE(Tickets().redeem(text, "one", kNow)) << "of another process";
}

}  // namespace
}  // namespace comfyd::auth
