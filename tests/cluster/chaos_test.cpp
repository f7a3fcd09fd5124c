// Nothing is lost and nothing runs twice, whatever is killed, stopped or cut off when. What is
// checked is only what is public: the API, the doubles' own count of what they ran, and the
// webhooks that arrived.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <random>
#include <thread>

#include "cluster/cluster.hpp"

namespace comfyd::support {
namespace {

unsigned seed_of_run() {
    const char* given = std::getenv("COMFYD_CHAOS_SEED");
    return given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10))
                            : std::random_device()();
}

class ClusterChaos : public testing::Test {
protected:
    static constexpr int kJobs = 500;

    ClusterChaos() : seed_(seed_of_run()), random_(seed_), cluster_(options()) {
        RecordProperty("seed", static_cast<int>(seed_));
        std::printf("seed %u (COMFYD_CHAOS_SEED repeats it)\n", seed_);
        EXPECT_TRUE(cluster_.wait_ready());
    }

    static ClusterOptions options() {
        ClusterOptions options;
        options.nodes = 3;
        options.workers = 4;
        options.worker.delay = Millis(20);
        // Without it a node that is stopped between its look at its lease and the send may have a
        // prompt run twice, as docs/cluster.md says.
        options.worker.fence = true;
        options.arguments = {"--log-level", "warning"};
        return options;
    }

    // To some node until one answers, over whatever happens: the idempotency key makes that safe.
    std::string submit_surely(std::size_t first, int number) {
        net::Headers key;
        key.set("Idempotency-Key", "chaos-" + std::to_string(number));
        const json::object body{
            {"workflow", text_to_image("picture " + std::to_string(number))},
            {"webhook_config", {{"url", receiver_.url("/job/" + std::to_string(number))}}},
            {"execution_config", {{"max_retries", 9}}}
        };
        Reply reply;
        std::size_t node = first;
        const bool accepted = wait_until(
            [&] {
                Http http(cluster_.node(node++ % cluster_.size()).url());
                reply = http.post_json("/v2/workflows/execute", body, key);
                return reply.status == 202 || reply.status / 100 == 4;
            },
            std::chrono::seconds(180)
        );
        if (!accepted || reply.status != 202) {
            ADD_FAILURE() << "not accepted: " << reply.status << reply.body;
            return {};
        }
        return std::string(reply.json_at("/execution_id").as_string());
    }

    // Submits jobs from a few threads while `disturb` is called again and again.
    std::vector<std::string> submit_while(const std::function<void()>& disturb, int times) {
        std::vector<std::string> ids(kJobs);
        std::atomic<int> next{0};
        std::atomic<int> active{0};
        std::vector<std::thread> clients;
        for (std::size_t i = 0; i < 4; ++i) {
            ++active;
            clients.emplace_back([&, i] {
                for (int number = next++; number < kJobs; number = next++) {
                    ids[static_cast<std::size_t>(number)] = submit_surely(i, number);
                }
                --active;
            });
        }
        for (int done = 0; active > 0 || done < times; ++done) {
            pause();
            disturb();
        }
        for (std::thread& client : clients) {
            client.join();
        }
        return ids;
    }

    void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(200 + random_() % 800)); }
    std::size_t any_node() { return random_() % cluster_.size(); }

    void expect_all_done(const std::vector<std::string>& ids) {
        EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), ids.size());
        for (std::size_t i = 0; i < ids.size(); ++i) {
            Comfyd& node = cluster_.node(i % cluster_.size());
            const json::value job = node.wait_finished(ids[i], std::chrono::seconds(120));
            ASSERT_EQ(Comfyd::status_of(job), "succeeded")
                << i << " " << json::serialize(job) << node.log();
            const std::string link(job.at("outputs").at(0).at("url").as_string());
            const Reply picture = node.http().get(link.substr(node.url().size()));
            ASSERT_EQ(picture.status, 200);
            ASSERT_NE(picture.body.find("picture " + std::to_string(i)), std::string::npos);
        }
        const auto told = [&] {
            std::map<std::string, std::set<std::string>> ids_by_path;
            for (const ReceivedRequest& request : receiver_.requests()) {
                ids_by_path[request.path].insert(std::string(request.headers.get("webhook-id")));
            }
            for (const auto& [path, messages] : ids_by_path) {
                EXPECT_EQ(messages.size(), 1U) << path << " was told of two different ends";
            }
            return ids_by_path.size();
        };
        EXPECT_TRUE(wait_until([&] { return told() == ids.size(); }, std::chrono::seconds(120)))
            << told() << " of " << ids.size() << " webhooks";
        const auto runs = cluster_.runs();
        EXPECT_EQ(runs.size(), ids.size());
        for (const auto& [content, count] : runs) {
            EXPECT_EQ(count, 1U) << "a workflow was executed more than once";
        }
    }

    unsigned seed_;
    std::mt19937 random_;
    WebhookReceiver receiver_;
    Cluster cluster_;
};

TEST_F(ClusterChaos, KillingAnyNode) {
    expect_all_done(submit_while([&] { cluster_.node(any_node()).restart(); }, 10));
}

TEST_F(ClusterChaos, StoppingWhoLeads) {
    expect_all_done(submit_while(
        [&] {
            const auto leader = cluster_.leader();
            ASSERT_TRUE(leader);
            Process& process = cluster_.node(*leader).process();
            process.kill(SIGSTOP);
            std::this_thread::sleep_for(std::chrono::seconds(10));
            process.kill(SIGCONT);
        },
        2
    ));
}

TEST_F(ClusterChaos, KillingTheDatabase) {
    expect_all_done(submit_while(
        [&] {
            cluster_.postgres().crash();
            pause();
            cluster_.postgres().start();
        },
        4
    ));
}

TEST_F(ClusterChaos, KillingRedis) {
    expect_all_done(submit_while(
        [&] {
            cluster_.redis().kill();
            pause();
            cluster_.redis().start();
        },
        5
    ));
}

}  // namespace
}  // namespace comfyd::support
