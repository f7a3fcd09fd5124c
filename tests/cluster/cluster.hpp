// Several nodes of comfyd over one database, one Redis, one folder and some doubles of ComfyUI, for
// tests that see them as their users do.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "net/io_threads.hpp"
#include "support/comfy_double.hpp"
#include "support/comfyd.hpp"
#include "support/fault_proxy.hpp"
#include "support/postgres.hpp"
#include "support/redis.hpp"
#include "support/webhook_receiver.hpp"

namespace comfyd::support {

struct ClusterOptions {
    int nodes = 2;
    int workers = 2;
    bool redis = true;
    bool redis_comes_later = false;  // when it is started
    // Connections can be broken: each node reaches the database and Redis over proxies of its own,
    // and all reach a worker over one.
    bool proxies = false;
    DoubleOptions worker{};
    std::vector<std::string> arguments{};                            // of every node
    std::vector<std::vector<std::string>> own_arguments{};           // of each, where it has some
    std::vector<std::map<std::string, std::string>> environments{};  // likewise
};

class Cluster {
public:
    explicit Cluster(ClusterOptions options = {}) : options_(std::move(options)) {
        thread_.start();
        for (int i = 0; i < options_.workers; ++i) {
            doubles_.push_back(std::make_unique<ComfyDouble>(thread_.context(), options_.worker));
            doubles_.back()->start();
        }
        if (options_.redis) {
            redis_ = std::make_unique<Redis>();
        }
        if (options_.redis_comes_later) {
            redis_->kill();
        }
        database_ = postgres_.make_database();
        if (options_.proxies) {
            make_proxies();
        }
        for (int i = 0; i < options_.nodes; ++i) {
            nodes_.push_back(std::make_unique<Comfyd>(node_options(i)));
        }
    }
    ~Cluster() {
        nodes_.clear();
        doubles_.clear();
        thread_.stop();
    }

    Comfyd& node(std::size_t i) { return *nodes_[i]; }
    std::size_t size() const { return nodes_.size(); }
    ComfyDouble& worker(std::size_t i) { return *doubles_[i]; }
    PostgresServer& postgres() { return postgres_; }
    Redis& redis() { return *redis_; }
    const std::string& database() const { return database_; }

    // REQUIRES: ClusterOptions::proxies
    FaultProxy& to_postgres(std::size_t node) { return *to_postgres_[node]; }
    FaultProxy& to_redis(std::size_t node) { return *to_redis_[node]; }
    FaultProxy& to_worker(std::size_t i) { return *to_workers_[i]; }

    // The node that leads the domain; nullopt: none within a while.
    std::optional<std::size_t> leader() {
        std::optional<std::size_t> found;
        wait_until([&] {
            const std::string id = run_sql(
                database_, "SELECT coalesce(node::text, '') FROM leases WHERE domain = 'main'"
            );
            for (std::size_t i = 0; i < nodes_.size() && !found && !id.empty(); ++i) {
                if (node_id(i) == id) {
                    found = i;
                }
            }
            return found.has_value();
        });
        return found;
    }
    // Every node knows what the workers can run, so that it can judge workflows.
    bool wait_ready() {
        return wait_until([&] {
            for (const auto& node : nodes_) {
                if (node->http().get("/object_info/KSampler").body.find("KSampler") ==
                    std::string::npos) {
                    return false;
                }
            }
            return true;
        });
    }
    // What all nodes have logged, for messages of failures.
    std::string logs() const {
        std::string text;
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            text += "\nnode-" + std::to_string(i) + ":\n" + nodes_[i]->log();
        }
        return text;
    }
    // How often each workflow was executed, on all workers together.
    std::map<std::string, std::uint64_t> runs() const {
        std::map<std::string, std::uint64_t> runs;
        for (const auto& worker : doubles_) {
            for (const auto& [content, count] : worker->executions().by_content) {
                runs[content] += count;
            }
        }
        return runs;
    }

    ComfydOptions node_options(int i) const {
        ComfydOptions options;
        if (const auto own = static_cast<std::size_t>(i); own < options_.environments.size()) {
            options.environment = options_.environments[own];
        }
        options.arguments = {
            "--no-engine",
            "--ledger",
            database_url(i),
            "--set",
            "cluster.secret=a secret of thirty-two characters, or more",
            "--set",
            "cluster.node=node-" + std::to_string(i),
            "--set",
            "cluster.files=" + (files_ / "shared"),
            "--set",
            "fleet.poll_ms=50",
            "--set",
            "fleet.lost_after_s=2",
        };
        if (redis_) {
            options.arguments.insert(options.arguments.end(), {"--events", redis_url(i)});
        }
        for (std::size_t worker = 0; worker < doubles_.size(); ++worker) {
            options.arguments.insert(options.arguments.end(), {"--worker", worker_url(worker)});
        }
        options.arguments.insert(
            options.arguments.end(), options_.arguments.begin(), options_.arguments.end()
        );
        if (const auto own = static_cast<std::size_t>(i); own < options_.own_arguments.size()) {
            const auto& more = options_.own_arguments[own];
            options.arguments.insert(options.arguments.end(), more.begin(), more.end());
        }
        return options;
    }

private:
    using Proxies = std::vector<std::unique_ptr<FaultProxy>>;

    void make_proxies() {
        for (int i = 0; i < options_.nodes; ++i) {
            to_postgres_.push_back(
                std::make_unique<FaultProxy>(static_cast<std::uint16_t>(postgres_.port()))
            );
            if (redis_) {
                to_redis_.push_back(std::make_unique<FaultProxy>(redis_->port()));
            }
        }
        for (const auto& worker : doubles_) {
            to_workers_.push_back(std::make_unique<FaultProxy>(worker->port()));
        }
    }
    // The same URL over a proxy, if there are any.
    static std::string over(
        const Proxies& proxies, std::size_t i, std::string url, std::uint16_t port
    ) {
        if (i < proxies.size()) {
            const std::string direct = ":" + std::to_string(port);
            url.replace(
                url.find(direct) + 1, direct.size() - 1, std::to_string(proxies[i]->port())
            );
        }
        return url;
    }
    std::string database_url(int node) const {
        const auto port = static_cast<std::uint16_t>(postgres_.port());
        return over(to_postgres_, static_cast<std::size_t>(node), database_, port);
    }
    std::string redis_url(int node) const {
        return over(to_redis_, static_cast<std::size_t>(node), redis_->url(), redis_->port());
    }
    std::string worker_url(std::size_t i) const {
        return over(to_workers_, i, doubles_[i]->url(), doubles_[i]->port());
    }

    std::string node_id(std::size_t i) {
        const Reply told = nodes_[i]->http().get("/admin/v1/cluster");
        return told.status == 200 ? std::string(told.json_at("/node/id").as_string())
                                  : std::string();
    }

    ClusterOptions options_;
    TempDir files_;
    net::IoThread thread_{"doubles"};
    std::vector<std::unique_ptr<ComfyDouble>> doubles_;
    PostgresServer postgres_;
    std::unique_ptr<Redis> redis_;
    std::string database_;
    Proxies to_postgres_;
    Proxies to_redis_;
    Proxies to_workers_;
    std::vector<std::unique_ptr<Comfyd>> nodes_;
};

}  // namespace comfyd::support
