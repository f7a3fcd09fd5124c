// What a client sees of several nodes: whichever it asks, the answer is that of one service.
#include <gtest/gtest.h>

#include <algorithm>

#include "cluster/cluster.hpp"

namespace comfyd::support {
namespace {

TEST(Nodes, AJobIsAcceptedByAnyNodeAndReadFromAnyOther) {
    Cluster cluster;
    ASSERT_TRUE(cluster.wait_ready());
    for (std::size_t i = 0; i < cluster.size(); ++i) {
        const std::string id =
            cluster.node(i).submit(text_to_image("from node " + std::to_string(i)));
        for (std::size_t j = 0; j < cluster.size(); ++j) {
            const json::value job = cluster.node(j).wait_finished(id);
            ASSERT_EQ(Comfyd::status_of(job), "succeeded")
                << json::serialize(job) << cluster.node(j).log();
            const std::string link(job.at("outputs").at(0).at("url").as_string());
            const Reply picture =
                cluster.node(j).http().get(link.substr(cluster.node(j).url().size()));
            EXPECT_EQ(picture.status, 200);
            EXPECT_NE(picture.body.find("from node " + std::to_string(i)), std::string::npos);
        }
    }
}

TEST(Nodes, TheSameKeyOnTwoNodesIsOneJob) {
    Cluster cluster;
    ASSERT_TRUE(cluster.wait_ready());
    net::Headers key;
    key.set("Idempotency-Key", "once");
    const json::object body{{"workflow", text_to_image("one")}};
    std::set<std::string> ids;
    for (std::size_t i = 0; i < cluster.size(); ++i) {
        const Reply reply = cluster.node(i).http().post_json("/v2/workflows/execute", body, key);
        ASSERT_EQ(reply.status, 202) << reply.body;
        ids.emplace(reply.json_at("/execution_id").as_string());
    }
    ASSERT_EQ(ids.size(), 1U);
    EXPECT_EQ(Comfyd::status_of(cluster.node(1).wait_finished(*ids.begin())), "succeeded");
    EXPECT_EQ(cluster.runs().size(), 1U);
}

TEST(Nodes, HaveTheSameEndpointsOfWebhooks) {
    Cluster cluster;
    ASSERT_TRUE(cluster.wait_ready());
    WebhookReceiver receiver;
    const Reply made = cluster.node(0).http().post_json(
        "/v2/webhooks/endpoints",
        {{"url", receiver.url()}, {"events", {"execution.queued", "execution.completed"}}}
    );
    ASSERT_EQ(made.status, 201) << made.body;
    for (std::size_t i = 0; i < cluster.size(); ++i) {
        const Reply listed = cluster.node(i).http().get("/v2/webhooks/endpoints");
        EXPECT_EQ(listed.json_at("/endpoints/0/id"), made.json_at("/id")) << listed.body;
    }
    std::set<std::string> expected;
    for (std::size_t i = 0; i < cluster.size(); ++i) {
        const std::string id = cluster.node(i).submit(text_to_image("told " + std::to_string(i)));
        expected.insert(id + " execution.queued");
        expected.insert(id + " execution.completed");
    }
    const auto told = [&receiver] {
        std::set<std::string> all;
        for (const ReceivedRequest& request : receiver.requests()) {
            const json::value body = request.json();
            all.insert(
                std::string(body.at("execution_id").as_string()) + " " +
                std::string(body.at("event").as_string())
            );
        }
        return all;
    };
    EXPECT_TRUE(wait_until([&] { return told() == expected; }))
        << testing::PrintToString(told()) << cluster.logs();
    const std::string path =
        "/v2/webhooks/endpoints/" + std::string(made.json_at("/id").as_string());
    EXPECT_EQ(cluster.node(1).http().del(path).status, 204);
    EXPECT_EQ(cluster.node(0).http().get(path).status, 404);
}

TEST(Nodes, AJobIsCancelledAndBroughtBackOnANodeThatDoesNotLead) {
    ClusterOptions options;
    options.workers = 1;
    options.worker.delay = Millis(60'000);
    Cluster cluster(options);
    ASSERT_TRUE(cluster.wait_ready());
    const auto leader = cluster.leader();
    ASSERT_TRUE(leader);
    Comfyd& other = cluster.node(1 - *leader);
    const std::string running = other.submit(text_to_image("long"));
    ASSERT_TRUE(other.wait_status(running, "running")) << other.log();
    const std::string waiting = other.submit(text_to_image("behind it"));
    EXPECT_EQ(other.http().post_json("/api/v2/jobs/" + waiting + "/cancel", {}).status, 200);
    EXPECT_EQ(Comfyd::status_of(other.wait_finished(waiting)), "canceled");
    EXPECT_EQ(other.http().post_json("/api/v2/jobs/" + running + "/cancel", {}).status, 200);
    EXPECT_EQ(Comfyd::status_of(other.wait_finished(running)), "canceled");
}

// Each node keeps what it answered about ended jobs, and hears nothing of what is asked of others.
TEST(Nodes, AnAnswerThatWasKeptIsNotSentAfterAnotherNodeChangedTheJob) {
    ClusterOptions options;
    options.workers = 1;
    options.worker.delay = Millis(60'000);
    Cluster cluster(options);
    ASSERT_TRUE(cluster.wait_ready());
    const std::string running = cluster.node(0).submit(text_to_image("long"));
    ASSERT_TRUE(cluster.node(0).wait_status(running, "running")) << cluster.logs();
    const std::string id = cluster.node(0).submit(text_to_image("behind it"));
    const std::string path = "/api/v2/jobs/" + id;
    const auto expect_everywhere = [&](const char* status) {
        for (int round = 0; round < 2; ++round) {
            for (std::size_t i = 0; i < cluster.size(); ++i) {
                const Reply reply = cluster.node(i).http().get(path);
                EXPECT_EQ(reply.json_at("/status"), json::value(status)) << i << ": " << reply.body;
            }
        }
    };
    for (std::size_t i = 0; i < 2 * cluster.size(); ++i) {
        Comfyd& asked = cluster.node(i % cluster.size());
        ASSERT_EQ(asked.http().post(path + "/cancel", "").status, 200);
        expect_everywhere("canceled");
        ASSERT_EQ(asked.http().post(path + "/retry", "").status, 200);
        expect_everywhere("queued");
    }
    ASSERT_EQ(cluster.node(0).http().post(path + "/cancel", "").status, 200);
    expect_everywhere("canceled");
    ASSERT_EQ(cluster.node(1).http().del("/v2/workflows/execution/" + id).status, 200);
    for (std::size_t i = 0; i < cluster.size(); ++i) {
        EXPECT_EQ(cluster.node(i).http().get(path).status, 404) << i;
    }
}

// Cuts the stream after every event and goes on with it on another node.
void expect_whole_stream(Cluster& cluster, const std::string& id) {
    const std::string path = "/v2/workflows/execution/" + id + "/events";
    std::vector<std::uint64_t> sequences;
    std::vector<std::string> statuses;
    for (std::size_t round = 0; round < 200; ++round) {
        net::Headers headers;
        if (!sequences.empty()) {
            headers.set("Last-Event-ID", std::to_string(sequences.back()));
        }
        auto stream = cluster.node(round % cluster.size()).http().events(path, headers);
        const auto next = stream->wait_for([](const SseEvent& event) {
            return !event.id.empty() || event.type == "close";
        });
        ASSERT_TRUE(next);
        if (next->type == "close") {
            break;
        }
        sequences.push_back(std::stoull(next->id));
        statuses.emplace_back(next->json().at("status").as_string());
    }
    EXPECT_TRUE(std::is_sorted(sequences.begin(), sequences.end()));
    EXPECT_EQ(std::adjacent_find(sequences.begin(), sequences.end()), sequences.end());
    ASSERT_FALSE(statuses.empty());
    EXPECT_EQ(statuses.back(), "completed");
    EXPECT_NE(std::find(statuses.begin(), statuses.end(), "processing"), statuses.end());
}

TEST(Nodes, AStreamGoesOnOnAnotherNodeAndMissesNothing) {
    ClusterOptions options;
    options.nodes = 3;
    options.worker.delay = Millis(500);
    Cluster cluster(options);
    ASSERT_TRUE(cluster.wait_ready());
    expect_whole_stream(cluster, cluster.node(1).submit(text_to_image("streamed")));
}

TEST(Nodes, WithoutRedisEverythingIsThereALittleLater) {
    ClusterOptions options;
    options.redis = false;
    options.worker.delay = Millis(300);
    Cluster cluster(options);
    ASSERT_TRUE(cluster.wait_ready());
    const auto leader = cluster.leader();
    ASSERT_TRUE(leader);
    Comfyd& other = cluster.node(1 - *leader);
    expect_whole_stream(cluster, other.submit(text_to_image("streamed")));
    const std::string cancelled = other.submit(text_to_image("cancelled", "hang_interruptible"));
    ASSERT_TRUE(other.wait_status(cancelled, "running"));
    EXPECT_EQ(other.http().post_json("/api/v2/jobs/" + cancelled + "/cancel", {}).status, 200);
    EXPECT_EQ(Comfyd::status_of(other.wait_finished(cancelled)), "canceled");
}

TEST(Nodes, ProgressIsSeenOnANodeThatDoesNotLead) {
    ClusterOptions options;
    options.worker.delay = Millis(2'000);
    Cluster cluster(options);
    ASSERT_TRUE(cluster.wait_ready());
    const auto leader = cluster.leader();
    ASSERT_TRUE(leader);
    Comfyd& other = cluster.node(1 - *leader);
    const std::string id = other.submit(text_to_image("watched"));
    auto stream = other.http().events("/api/v2/jobs/" + id + "/events");
    EXPECT_TRUE(stream->wait_for([](const SseEvent& event) { return event.type == "progress"; }));
    EXPECT_EQ(Comfyd::status_of(other.wait_finished(id)), "succeeded");
}

TEST(Nodes, WhatAClientGivesForWorkersReachesThemFromAnyNode) {
    Cluster cluster;
    ASSERT_TRUE(cluster.wait_ready());
    for (std::size_t i = 0; i < cluster.size(); ++i) {
        const std::string key = "key of node " + std::to_string(i);
        const json::object body{
            {"prompt", text_to_image(key)}, {"extra_data", {{"api_key_comfy_org", key}}}
        };
        const Reply accepted = cluster.node(i).http().post_json("/prompt", body);
        ASSERT_EQ(accepted.status, 200) << accepted.body;
        const auto has_it = [&] {
            for (std::size_t worker = 0; worker < 2; ++worker) {
                for (const json::object& prompt : cluster.worker(worker).accepted_prompts()) {
                    if (json::serialize(prompt).find("\"api_key_comfy_org\":\"" + key) !=
                        std::string::npos) {
                        return true;
                    }
                }
            }
            return false;
        };
        EXPECT_TRUE(wait_until(has_it)) << i;
    }
}

TEST(Nodes, EachShowsWhoLeads) {
    Cluster cluster;
    const auto leader = cluster.leader();
    ASSERT_TRUE(leader);
    for (std::size_t i = 0; i < cluster.size(); ++i) {
        ASSERT_TRUE(wait_until([&] {
            const Reply shown = cluster.node(i).http().get("/admin/v1/cluster");
            return shown.status == 200 && shown.json_at("/bus/up").as_bool();
        })) << cluster.node(i).log();
        const json::value shown = cluster.node(i).http().get("/admin/v1/cluster").json();
        EXPECT_EQ(shown.at("node").at("name").as_string(), "node-" + std::to_string(i));
        EXPECT_EQ(shown.at("domains").at(0).at("is_this_node").as_bool(), i == *leader);
        EXPECT_GE(shown.at("domains").at(0).at("epoch").as_int64(), 1);
        const std::string metrics = cluster.node(i).http().get("/metrics").body;
        const std::string leads = i == *leader ? "1" : "0";
        EXPECT_NE(
            metrics.find("comfyd_cluster_leads{domain=\"main\"} " + leads), std::string::npos
        );
    }
}

TEST(Nodes, AllAreOnTheListWithTheirClocksAndTheLeadersLag) {
    Cluster cluster;
    const auto leader = cluster.leader();
    ASSERT_TRUE(leader);
    json::value shown;
    // They say so every few seconds, at first before anybody leads.
    ASSERT_TRUE(wait_until([&] {
        shown = cluster.node(0).http().get("/admin/v1/cluster").json();
        const json::array& nodes = shown.at("nodes").as_array();
        return nodes.size() == cluster.size() &&
               std::ranges::all_of(nodes, [&](const json::value& node) {
                   const bool leads =
                       node.at("name").as_string() == "node-" + std::to_string(*leader);
                   return !node.at("clock_ahead_ms").is_null() &&
                          node.at("leads").as_object().contains("main") == leads;
               });
    })) << json::serialize(shown);
    Process command({COMFYD_BINARY, "cluster", "--url", cluster.node(0).url()});
    EXPECT_EQ(command.wait(), 0);
    const std::string told = command.output();
    EXPECT_NE(
        told.find("domain main: led by node-" + std::to_string(*leader) + ", epoch"),
        std::string::npos
    ) << told;
    EXPECT_NE(told.find("leads main with a lag of "), std::string::npos) << told;
    const std::string metrics = cluster.node(*leader).http().get("/metrics").body;
    EXPECT_NE(metrics.find("comfyd_cluster_lag_seconds{domain=\"main\"} "), std::string::npos);
    EXPECT_NE(metrics.find("comfyd_cluster_clock_ahead_seconds "), std::string::npos);

    cluster.node(1 - *leader).stop();
    EXPECT_TRUE(wait_until([&] {
        shown = cluster.node(*leader).http().get("/admin/v1/cluster").json();
        return shown.at("nodes").as_array().size() == cluster.size() - 1;
    })) << json::serialize(shown);
}

TEST(Nodes, AWorkerThatWasDrainedStaysSoUnderTheNextLeader) {
    Cluster cluster;
    ASSERT_TRUE(cluster.wait_ready());
    const auto leader = cluster.leader();
    ASSERT_TRUE(leader);
    Comfyd& other = cluster.node(1 - *leader);
    const std::string drained = cluster.worker(0).url().substr(std::string("http://").size());
    const std::string worker = "/admin/v1/workers/" + drained;
    ASSERT_EQ(other.http().post(worker + "/drain", "").status, 200);
    cluster.node(*leader).kill();
    for (int i = 0; i < 6; ++i) {
        const std::string id = other.submit(text_to_image("picture " + std::to_string(i)));
        ASSERT_EQ(Comfyd::status_of(other.wait_finished(id)), "succeeded") << other.log();
    }
    EXPECT_EQ(cluster.worker(0).executions().total, 0U);
    EXPECT_EQ(other.http().post(worker + "/resume", "").status, 200);
}

TEST(Nodes, OneLeadsOnlyWhatItMay) {
    ClusterOptions options;
    options.arguments = {"--set", "cluster.domains=default=eu"};
    options.own_arguments = {{"--set", "cluster.leads=main"}, {"--set", "cluster.leads=eu"}};
    Cluster cluster(options);
    ASSERT_TRUE(cluster.wait_ready());
    const auto leader_of = [&](const std::string& domain) {
        return run_sql(
            cluster.database(), "SELECT node FROM leases WHERE domain = '" + domain + "'"
        );
    };
    for (const char* domain : {"main", "eu"}) {
        EXPECT_TRUE(wait_until([&] { return !leader_of(domain).empty(); })) << domain;
    }
    EXPECT_NE(leader_of("main"), leader_of("eu"));
    const json::object pool{{"pool", "default"}};
    const std::string id = cluster.node(0).submit(text_to_image("by the other"), pool);
    EXPECT_EQ(Comfyd::status_of(cluster.node(0).wait_finished(id)), "succeeded");
    cluster.node(1).stop();
    const std::string later = cluster.node(0).submit(text_to_image("by nobody"), pool);
    cluster.node(1).start();
    EXPECT_EQ(Comfyd::status_of(cluster.node(0).wait_finished(later)), "succeeded");
}

TEST(Nodes, OneThatSeesAnotherFolderDoesNotStart) {
    ClusterOptions options;
    options.nodes = 1;
    Cluster cluster(options);
    ComfydOptions stranger = cluster.node_options(1);
    TempDir other;
    stranger.arguments.insert(
        stranger.arguments.end(), {"--set", "cluster.files=" + (other / "private")}
    );
    try {
        Comfyd node(stranger);
        ADD_FAILURE() << "it started";
    } catch (const std::runtime_error& refusal) {
        EXPECT_NE(
            std::string(refusal.what()).find("not the one that the other nodes"), std::string::npos
        ) << refusal.what();
    }
}

TEST(Nodes, WhoLeadsIsKilledAndAnotherGoesOn) {
    ClusterOptions options;
    options.worker.delay = Millis(300);
    Cluster cluster(options);
    ASSERT_TRUE(cluster.wait_ready());
    const auto leader = cluster.leader();
    ASSERT_TRUE(leader);
    Comfyd& other = cluster.node(1 - *leader);
    std::vector<std::string> ids;
    for (int i = 0; i < 20; ++i) {
        ids.push_back(cluster.node(*leader).submit(text_to_image("picture " + std::to_string(i))));
    }
    ASSERT_TRUE(other.wait_status(ids.front(), "succeeded"));
    cluster.node(*leader).kill();
    for (const std::string& id : ids) {
        ASSERT_EQ(Comfyd::status_of(other.wait_finished(id, std::chrono::seconds(60))), "succeeded")
            << other.log();
    }
    const auto runs = cluster.runs();
    EXPECT_EQ(runs.size(), ids.size());
    for (const auto& [content, count] : runs) {
        EXPECT_EQ(count, 1U);
    }
}

}  // namespace
}  // namespace comfyd::support
