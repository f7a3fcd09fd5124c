#include "net/open_files.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace comfyd::net {
namespace {

TEST(OpenFiles, TheSoftLimitIsRaisedToTheHardOne) {
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit lower{256, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &lower), 0);
    const std::size_t allowed = raise_open_files_limit();
    rlimit after{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &after), 0);
    EXPECT_EQ(allowed, after.rlim_cur);
    EXPECT_EQ(after.rlim_cur, std::min<rlim_t>(before.rlim_max, 1U << 20));
    EXPECT_EQ(after.rlim_max, before.rlim_max);
    ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST(OpenFiles, ConnectionsLeaveAReserve) {
    EXPECT_EQ(connections_within(1024, 0), 768U);
    EXPECT_EQ(connections_within(1024, 10), 688U);
    EXPECT_EQ(connections_within(400, 0), 208U);
    EXPECT_EQ(connections_within(1 << 20, 100), (3U << 18) - 800);
    EXPECT_EQ(connections_within(64, 1000), 16U);
}

}  // namespace
}  // namespace comfyd::net
