// Mails of several nodes over one database: whoever takes a job or runs it, each event is one mail.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "cluster/cluster.hpp"
#include "support/mail_server.hpp"
#include "support/temp_dir.hpp"

namespace comfyd::support {
namespace {

std::string mail_config(const MailServer& server) {
    return "notify:\n  channels:\n    - {name: ops, kind: mail, host: localhost, port: " +
           std::to_string(server.port()) +
           ", security: none, from: comfyd@example.com, per_minute: 0, recipient_per_hour: 0}\n"
           "  rules:\n    - {channel: ops, to: [one@example.com, two@example.com],"
           " events: [queued, completed]}\n";
}

// Which recipient was told of what, and how often.
std::map<std::string, int> told_of(const std::vector<ReceivedMail>& mails) {
    std::map<std::string, int> told;
    for (const ReceivedMail& mail : mails) {
        ++told[mail.to() + " " + mail.header("Message-ID")];
    }
    return told;
}

// Nothing waits to be told any more, in the ledger that all share.
bool has_told_all(Cluster& cluster) {
    return wait_until([&cluster] {
        return cluster.node(0).http().get("/metrics").body.find("\ncomfyd_webhooks_pending 0\n") !=
               std::string::npos;
    });
}

TEST(ClusterMail, OfTwoNodesEachEventIsOneMail) {
    constexpr std::size_t kJobs = 8;
    constexpr std::size_t kMails = kJobs * 2 * 2;  // events and recipients
    const TempDir folder;
    MailServer server;
    ClusterOptions options;
    options.arguments = {"--config", folder.write("comfyd.yaml", mail_config(server))};
    Cluster cluster(std::move(options));
    ASSERT_TRUE(cluster.wait_ready());
    for (std::size_t i = 0; i < kJobs; ++i) {
        cluster.node(i % 2).submit(text_to_image("mailed " + std::to_string(i)));
    }
    ASSERT_EQ(server.wait_for(kMails).size(), kMails) << cluster.logs();
    ASSERT_TRUE(has_told_all(cluster)) << cluster.logs();
    const auto told = told_of(server.mails());
    EXPECT_EQ(told.size(), kMails);
    for (const auto& [mail, times] : told) {
        EXPECT_EQ(times, 1) << mail;
    }
}

// A node that is killed may have sent what it could not write down: that mail comes again from the
// other, with the same id, and no event is left out.
TEST(ClusterMail, WhatOneNodeLeavesTheOtherSends) {
    constexpr std::size_t kJobs = 6;
    constexpr std::size_t kMails = kJobs * 2 * 2;
    const TempDir folder;
    MailServer server;
    ClusterOptions options;
    options.arguments = {"--config", folder.write("comfyd.yaml", mail_config(server))};
    Cluster cluster(std::move(options));
    ASSERT_TRUE(cluster.wait_ready());
    for (std::size_t i = 0; i < kJobs; ++i) {
        cluster.node(0).submit(text_to_image("left " + std::to_string(i)));
    }
    ASSERT_FALSE(server.wait_for(1).empty());
    cluster.node(1).kill();
    ASSERT_TRUE(wait_until(
        [&] { return told_of(server.mails()).size() == kMails; }, std::chrono::seconds(120)
    )) << cluster.logs();
}

}  // namespace
}  // namespace comfyd::support
