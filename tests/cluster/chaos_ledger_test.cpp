// Transactions that nobody hears the end of, that stay open, or that come together.
#include <future>

#include "cluster/chaos.hpp"

namespace comfyd::support {
namespace {

using Way = FaultProxy::Way;
using Fault = FaultProxy::Fault;

class ClusterTransactions : public ClusterChaos {
protected:
    ClusterTransactions() : ClusterChaos(with_proxies()) {}

    // In the text of a job, which is stored when it is accepted, after its row was.
    static constexpr char kInAnAccept[] = "picture ";
    // In the name of an output, which is stored when its job has ended.
    static constexpr char kInAnEnd[] = "ComfyUI_";

    // While the next transaction of this kind is in the middle.
    bool inflict_within(std::size_t node, const char* kind, Fault fault) {
        FaultProxy& network = cluster_.to_postgres(node);
        network.inflict_after(Way::to_server, kind, fault);
        return wait_until([&] { return network.has_struck(); }, std::chrono::seconds(3));
    }
};

TEST_F(ClusterTransactions, WhoseAnswersAreLost) {
    int lost = 0;
    expect_all_done(submit_while(
        [&] {
            const bool is_accept = random_() % 2 == 0;
            lost += is_accept ? inflict_within(any_node(), kInAnAccept, Fault::lose_answer)
                              : inflict_within(leader(), kInAnEnd, Fault::lose_answer);
        },
        12
    ));
    EXPECT_GT(lost, 6);
}

// Others come later and are committed earlier.
TEST_F(ClusterTransactions, ThatAreCommittedLate) {
    int held = 0;
    expect_all_done(submit_while(
        [&] {
            const std::size_t node = follower();
            held += inflict_within(node, kInAnAccept, Fault::hold_requests);
            std::this_thread::sleep_for(std::chrono::seconds(2));
            cluster_.to_postgres(node).release();
        },
        4
    ));
    EXPECT_GT(held, 2);
}

// Nobody waits for a node that stopped while it accepted a job, nor does the lead.
TEST_F(ClusterTransactions, ThatAreHalfSentHoldUpNobody) {
    const std::size_t leading = leader();
    const std::size_t stopped = follower();
    cluster_.to_postgres(stopped).inflict_after(Way::to_server, kInAnAccept, Fault::hold_requests);
    auto first = std::async(std::launch::async, [&] { return submit(stopped, 0); });
    ASSERT_TRUE(wait_until([&] { return cluster_.to_postgres(stopped).has_struck(); }));
    std::set<std::string> ids;
    for (std::size_t node = 0; node < cluster_.size(); ++node) {
        if (node != stopped) {
            const Reply reply = submit(node, 0);
            ASSERT_EQ(reply.status, 202) << reply.body << cluster_.logs();
            ids.emplace(reply.json_at("/execution_id").as_string());
        }
    }
    const std::string& id = *ids.begin();
    EXPECT_EQ(Comfyd::status_of(cluster_.node(leading).wait_finished(id)), "succeeded");
    EXPECT_EQ(leader(), leading) << cluster_.logs();
    cluster_.to_postgres(stopped).release();
    const Reply late = first.get();
    ASSERT_EQ(late.status, 202) << late.body;
    ids.emplace(late.json_at("/execution_id").as_string());
    EXPECT_EQ(ids.size(), 1U) << "two jobs under one key";
    EXPECT_EQ(cluster_.runs().size(), 1U);
}

// As somebody does who dumps the database.
TEST_F(ClusterTransactions, ThatOthersKeepOpen) {
    PostgresSession held(cluster_.database());
    held.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
    held.run("SELECT txid_current()");
    expect_all_done(submit_while([] {}, 1));
    held.run("ROLLBACK");
}

TEST_F(ClusterChaos, TheSameKeysOnAllNodes) {
    const auto to_all = [this](std::size_t client, int number) {
        std::vector<std::future<std::string>> answers;
        for (std::size_t i = 0; i < cluster_.size(); ++i) {
            answers.push_back(std::async(std::launch::async, [this, client, i, number] {
                return submit_surely(client + i, number);
            }));
        }
        std::set<std::string> ids;
        for (auto& answer : answers) {
            ids.insert(answer.get());
        }
        EXPECT_EQ(ids.size(), 1U) << "of job " << number;
        return *ids.begin();
    };
    expect_all_done(submit_while([&] { cluster_.node(any_node()).restart(); }, 6, to_all));
}

}  // namespace
}  // namespace comfyd::support
