// Three nodes, four doubles of ComfyUI and 500 jobs with webhooks, while something is killed,
// stopped or cut off. What is checked is only what is public: the API, the doubles' own count of
// what they ran, and the webhooks that arrived.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cluster/cluster.hpp"

namespace comfyd::support {

inline unsigned seed_of_run() {
    const char* given = std::getenv("COMFYD_CHAOS_SEED");
    return given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10))
                            : std::random_device()();
}

class ClusterChaos : public testing::Test {
protected:
    static constexpr int kJobs = 500;
    static constexpr std::size_t kClients = 4;

    ClusterChaos() : ClusterChaos(options()) {}
    explicit ClusterChaos(const ClusterOptions& options)
        : seed_(seed_of_run()), random_(seed_), cluster_(options) {
        RecordProperty("seed", static_cast<int>(seed_));
        std::printf("seed %u (COMFYD_CHAOS_SEED repeats it)\n", seed_);
        EXPECT_TRUE(cluster_.wait_ready());
        for (std::size_t i = 0; i < cluster_.size(); ++i) {
            urls_.push_back(cluster_.node(i).url());
        }
    }

    static ClusterOptions options() {
        ClusterOptions options;
        options.nodes = 3;
        options.workers = 4;
        // Some run at any time: the workers are busy for as long as jobs come.
        options.worker.delay = Millis(70);
        // Without it a node that is stopped between its look at its lease and the send may have a
        // prompt run twice, as docs/cluster.md says.
        options.worker.fence = true;
        options.arguments = {"--log-level", "warning"};
        return options;
    }
    static ClusterOptions with_proxies() {
        ClusterOptions made = options();
        made.proxies = true;
        return made;
    }

    Reply submit(std::size_t node, int number) const {
        net::Headers key;
        key.set("Idempotency-Key", "chaos-" + std::to_string(number));
        const json::object body{
            {"workflow", text_to_image("picture " + std::to_string(number))},
            {"webhook_config", {{"url", receiver_.url("/job/" + std::to_string(number))}}},
            {"execution_config", {{"max_retries", 9}}}
        };
        Http http(urls_[node % urls_.size()]);
        return http.post_json("/v2/workflows/execute", body, key);
    }
    // To some node until one answers, over whatever happens: the idempotency key makes that safe.
    std::string submit_surely(std::size_t first, int number) const {
        Reply reply;
        std::size_t node = first;
        const bool accepted = wait_until(
            [&] {
                reply = submit(node++, number);
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

    // Submits all jobs from a few clients, each of which has a node of its own as long as that
    // answers, and calls `disturb` so often meanwhile. The ids.
    std::vector<std::string> submit_while(const std::function<void()>& disturb, int times) {
        const auto submit_one = [this](std::size_t client, int number) {
            return submit_surely(client, number);
        };
        return submit_while(disturb, times, submit_one);
    }
    using Submit = std::function<std::string(std::size_t client, int number)>;
    std::vector<std::string> submit_while(
        const std::function<void()>& disturb, int times, const Submit& submit_one
    ) {
        std::vector<std::string> ids(kJobs);
        std::atomic<int> next{0};
        std::vector<std::thread> clients;
        for (std::size_t i = 0; i < kClients; ++i) {
            clients.emplace_back([&, i, pace = std::mt19937(random_())]() mutable {
                for (int number = next++; number < kJobs; number = next++) {
                    ids[static_cast<std::size_t>(number)] = submit_one(i, number);
                    std::this_thread::sleep_for(Millis(pace() % 150));
                }
            });
        }
        for (int done = 0; done < times; ++done) {
            pause();
            disturb();
        }
        for (std::thread& client : clients) {
            client.join();
        }
        return ids;
    }

    void pause() { std::this_thread::sleep_for(Millis(200 + random_() % 800)); }
    std::size_t leader() {
        const auto found = cluster_.leader();
        EXPECT_TRUE(found) << "nobody leads" << cluster_.logs();
        return found.value_or(0);
    }
    // One that does not lead.
    std::size_t follower() { return (leader() + 1 + random_() % 2) % cluster_.size(); }
    std::size_t any_node() { return random_() % cluster_.size(); }

    void expect_all_done(const std::vector<std::string>& ids) {
        EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), ids.size());
        // Nobody is asked all the time meanwhile.
        receiver_.wait_for(ids.size(), std::chrono::seconds(120));
        for (std::size_t i = 0; i < ids.size(); ++i) {
            Comfyd& node = cluster_.node(i % cluster_.size());
            const json::value job = node.wait_finished(ids[i], std::chrono::seconds(120));
            ASSERT_EQ(Comfyd::status_of(job), "succeeded")
                << i << " " << json::serialize(job) << cluster_.logs();
            const std::string link(job.at("outputs").at(0).at("url").as_string());
            const Reply picture = node.http().get(link.substr(node.url().size()));
            ASSERT_EQ(picture.status, 200);
            ASSERT_NE(picture.body.find("picture " + std::to_string(i)), std::string::npos);
        }
        EXPECT_TRUE(
            wait_until([&] { return webhooks().size() == ids.size(); }, std::chrono::seconds(120))
        ) << webhooks().size()
          << " of " << ids.size() << " webhooks" << cluster_.logs();
        for (const auto& [path, messages] : webhooks()) {
            EXPECT_EQ(messages.size(), 1U) << path << " was told of two different ends";
        }
        const auto runs = cluster_.runs();
        EXPECT_EQ(runs.size(), ids.size());
        for (const auto& [content, count] : runs) {
            EXPECT_EQ(count, 1U) << "a workflow was executed more than once" << cluster_.logs();
        }
    }

    // The ids of the messages that came to each path.
    std::map<std::string, std::set<std::string>> webhooks() {
        std::map<std::string, std::set<std::string>> ids;
        for (const ReceivedRequest& request : receiver_.requests()) {
            ids[request.path].insert(std::string(request.headers.get("webhook-id")));
        }
        return ids;
    }

    unsigned seed_;
    std::mt19937 random_;
    WebhookReceiver receiver_;
    Cluster cluster_;
    std::vector<std::string> urls_;  // of the nodes: they stay when those are restarted
};

}  // namespace comfyd::support
