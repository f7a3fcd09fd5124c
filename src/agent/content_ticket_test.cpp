#include "agent/content_ticket.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace comfyd::agent {
namespace {

struct Parts {
    std::string sha256;
    std::string until;
    std::string ticket;
};

Parts parts_of(const std::string& address) {
    const auto question = address.find('?');
    const auto ampersand = address.find('&');
    return {
        address.substr(kContentsPath.size(), question - kContentsPath.size()),
        address.substr(question + 7, ampersand - question - 7),
        address.substr(ampersand + 8)
    };
}

TEST(ContentTicket, IsGoodForOneContentOfOneAgentForAWhile) {
    const Time now(std::chrono::seconds(1'700'000'000));
    const std::string sha256(64, 'a');
    const Parts made = parts_of(content_address("token", sha256, now + std::chrono::seconds(60)));
    EXPECT_EQ(made.sha256, sha256);
    EXPECT_TRUE(is_good_ticket("token", sha256, made.until, made.ticket, now));
    EXPECT_FALSE(is_good_ticket("other", sha256, made.until, made.ticket, now));
    EXPECT_FALSE(is_good_ticket("", sha256, made.until, made.ticket, now));
    EXPECT_FALSE(is_good_ticket("token", std::string(64, 'b'), made.until, made.ticket, now));
    const Time later = now + std::chrono::seconds(61);
    EXPECT_FALSE(is_good_ticket("token", sha256, made.until, made.ticket, later));
    EXPECT_FALSE(is_good_ticket("token", sha256, "1900000000", made.ticket, now)) << "prolonged";
    for (const char* odd : {"", "x", "-1", "99999999999999999999999", "1700000060 "}) {
        EXPECT_FALSE(is_good_ticket("token", sha256, odd, made.ticket, now)) << odd;
        EXPECT_FALSE(is_good_ticket("token", sha256, made.until, odd, now)) << odd;
    }
}

}  // namespace
}  // namespace comfyd::agent
