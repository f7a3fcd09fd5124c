// Nothing is lost and nothing happens twice, whatever is killed when.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "net/io_threads.hpp"
#include "support/comfy_double.hpp"
#include "support/comfyd.hpp"
#include "support/webhook_receiver.hpp"

namespace comfyd::support {
namespace {

unsigned seed_of_run() {
    const char* given = std::getenv("COMFYD_CHAOS_SEED");
    return given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10))
                            : std::random_device()();
}

class Chaos : public testing::Test {
protected:
    static constexpr int kWorkers = 4;

    Chaos() : Chaos(std::vector<std::string>()) {}
    explicit Chaos(const std::vector<std::string>& more_arguments)
        : seed_(seed_of_run()), random_(seed_) {
        RecordProperty("seed", static_cast<int>(seed_));
        std::printf("seed %u (COMFYD_CHAOS_SEED repeats it)\n", seed_);
        thread_.start();
        ComfydOptions options;
        options.arguments = {
            "--no-engine",
            "--set",
            "fleet.poll_ms=50",
            "--set",
            "fleet.lost_after_s=1",
            "--set",
            "retries.workers_lost_max=20",  // whoever loses its workers here is not to blame
            "--log-level",
            "warning"
        };
        for (int i = 0; i < kWorkers; ++i) {
            DoubleOptions worker;
            worker.delay = Millis(2 + 10 * i);
            worker.output_bytes = i % 2 == 0 ? 0 : 40'000;  // kept with their records, and files
            doubles_.push_back(std::make_unique<ComfyDouble>(thread_.context(), worker));
            doubles_.back()->start();
            options.arguments.insert(options.arguments.end(), {"--worker", doubles_.back()->url()});
        }
        options.arguments.insert(
            options.arguments.end(), more_arguments.begin(), more_arguments.end()
        );
        comfyd_ = std::make_unique<Comfyd>(options);
        url_ = comfyd_->url();
    }
    ~Chaos() override {
        comfyd_.reset();
        doubles_.clear();
        thread_.stop();
    }

    // Submits until it is answered, over any number of restarts: the idempotency key makes that
    // safe.
    std::string submit_surely(Http& http, int number) {
        net::Headers key;
        key.set("Idempotency-Key", "chaos-" + std::to_string(number));
        const json::object body{
            {"workflow", text_to_image("picture " + std::to_string(number))},
            {"webhook_config", {{"url", receiver_.url("/job/" + std::to_string(number))}}},
            {"execution_config", {{"max_retries", 9}}}
        };
        Reply reply;
        const bool accepted = wait_until(
            [&] {
                reply = http.post_json("/v2/workflows/execute", body, key);
                return reply.status == 202 || reply.status / 100 == 4;
            },
            std::chrono::seconds(120)
        );
        if (!accepted || reply.status != 202) {
            ADD_FAILURE() << "not accepted: " << reply.status << reply.body;
            return {};
        }
        return std::string(reply.json_at("/execution_id").as_string());
    }

    // Submits `count` jobs from a few threads while `disturb` is called again and again.
    template <class Disturb>
    std::vector<std::string> submit_while(int count, Disturb disturb) {
        std::vector<std::string> ids(static_cast<std::size_t>(count));
        std::atomic<int> next{0};
        std::atomic<int> active{0};
        std::vector<std::thread> clients;
        for (int i = 0; i < 4; ++i) {
            ++active;
            clients.emplace_back([&] {
                Http http(url_);
                for (int number = next++; number < count; number = next++) {
                    ids[static_cast<std::size_t>(number)] = submit_surely(http, number);
                }
                --active;
            });
        }
        disturb(active);
        for (std::thread& client : clients) {
            client.join();
        }
        return ids;
    }

    void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(20 + random_() % 250)); }

    // Every job completed with its picture, once; every webhook arrived.
    void expect_all_done(const std::vector<std::string>& ids) {
        EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), ids.size())
            << "ids are distinct";
        for (std::size_t i = 0; i < ids.size(); ++i) {
            const json::value job = comfyd_->wait_finished(ids[i], std::chrono::seconds(120));
            ASSERT_EQ(Comfyd::status_of(job), "succeeded")
                << i << " " << json::serialize(job) << comfyd_->log();
            ASSERT_EQ(job.at("outputs").as_array().size(), 1U) << "output missing";
            const std::string link(job.at("outputs").at(0).at("url").as_string());
            const Reply picture = comfyd_->http().get(link.substr(url_.size()));
            ASSERT_EQ(picture.status, 200);
            ASSERT_NE(picture.body.find("picture " + std::to_string(i)), std::string::npos)
                << "the wrong picture";
        }
        const auto webhook_seen = [&] {
            std::map<std::string, std::set<std::string>> ids_by_path;
            for (const ReceivedRequest& request : receiver_.requests()) {
                ids_by_path[request.path].insert(std::string(request.headers.get("webhook-id")));
            }
            for (const auto& [path, messages] : ids_by_path) {
                EXPECT_EQ(messages.size(), 1U) << path << " was told of two different ends";
            }
            return ids_by_path.size();
        };
        EXPECT_TRUE(
            wait_until([&] { return webhook_seen() == ids.size(); }, std::chrono::seconds(120))
        ) << webhook_seen()
          << " of " << ids.size() << " webhooks";
    }

    unsigned seed_;
    std::mt19937 random_;
    net::IoThread thread_{"doubles"};
    std::vector<std::unique_ptr<ComfyDouble>> doubles_;
    WebhookReceiver receiver_;
    std::unique_ptr<Comfyd> comfyd_;
    std::string url_;
};

TEST_F(Chaos, KillingComfydLosesNothingAndRunsNothingTwice) {
    constexpr int kJobs = 500;
    constexpr int kKills = 20;
    int kills = 0;
    const auto ids = submit_while(kJobs, [&](std::atomic<int>& active) {
        while (active > 0 || kills < kKills) {
            pause();
            comfyd_->restart();
            ++kills;
        }
    });
    std::printf("killed comfyd %d times while %d jobs came in\n", kills, kJobs);
    expect_all_done(ids);
    std::map<std::string, std::uint64_t> runs;
    for (const auto& worker : doubles_) {
        for (const auto& [content, count] : worker->executions().by_content) {
            runs[content] += count;
        }
    }
    EXPECT_EQ(runs.size(), static_cast<std::size_t>(kJobs));
    for (const auto& [content, count] : runs) {
        EXPECT_EQ(count, 1U) << "a workflow was executed more than once";
    }
}

TEST_F(Chaos, KillingWorkersLosesNothing) {
    constexpr int kJobs = 200;
    constexpr int kKills = 20;
    int kills = 0;
    const auto ids = submit_while(kJobs, [&](std::atomic<int>& active) {
        while (active > 0 || kills < kKills) {
            pause();
            ComfyDouble& victim = *doubles_[random_() % doubles_.size()];
            victim.crash();
            pause();
            // The port may be taken for a moment by a connection of somebody else.
            ASSERT_TRUE(wait_until([&] {
                try {
                    victim.start();
                    return true;
                } catch (const std::runtime_error&) {
                    return false;
                }
            }));
            ++kills;
        }
    });
    std::printf("killed workers %d times while %d jobs came in\n", kills, kJobs);
    expect_all_done(ids);
}

class ShortLived : public Chaos {
protected:
    // Less than two seconds.
    ShortLived() : Chaos(std::vector<std::string>{"--set", "retention_days=0.00002"}) {}

    // What is shown of a job is all there; or the job has gone meanwhile, and all of it.
    void expect_whole(const json::value& job) {
        const std::string path = "/api/v2/jobs/" + std::string(job.at("id").as_string());
        const json::array* outputs = job.at("outputs").if_array();
        for (const json::value& output : outputs != nullptr ? *outputs : json::array()) {
            const std::string link(output.at("url").as_string());
            const int content = comfyd_->http().get(link.substr(url_.size())).status;
            if (content != 200) {
                EXPECT_EQ(comfyd_->http().get(path).status, 404) << "without its output";
            }
        }
    }
    std::vector<json::value> shown() {
        std::vector<json::value> jobs;
        const json::value page = comfyd_->http().get("/api/v2/jobs?limit=100").json_at("/jobs");
        if (const json::array* listed = page.if_array()) {
            for (const json::value& entry : *listed) {
                const Reply job =
                    comfyd_->http().get("/api/v2/jobs/" + std::string(entry.at("id").as_string()));
                if (job.status == 200) {
                    jobs.push_back(job.json());
                }
            }
        }
        return jobs;
    }
    std::size_t files() const {
        std::size_t count = 0;
        for (const auto& entry :
             std::filesystem::recursive_directory_iterator(comfyd_->data() + "/assets")) {
            count += entry.is_regular_file() ? 1 : 0;
        }
        return count;
    }
};

TEST_F(ShortLived, KillingComfydWhileItRemovesOldJobsLeavesNothingHalf) {
    constexpr int kJobs = 300;
    constexpr int kKills = 12;
    int kills = 0;
    std::size_t looked_at = 0;
    submit_while(kJobs, [&](std::atomic<int>& active) {
        while (active > 0 || kills < kKills) {
            pause();
            comfyd_->restart();
            ++kills;
            for (const json::value& job : shown()) {
                expect_whole(job);
                ++looked_at;
            }
        }
    });
    std::printf("killed comfyd %d times and looked at %zu jobs\n", kills, looked_at);
    EXPECT_TRUE(wait_until([&] { return shown().empty(); }, std::chrono::seconds(120)));
    EXPECT_TRUE(wait_until([&] { return files() == 0; }, std::chrono::seconds(120)))
        << files() << " files are left";
}

class DeliveryChaos : public Chaos {
protected:
    struct Told {
        std::vector<std::string> events;            // each once, in the order of their arrival
        std::map<std::string, std::string> ids;     // of messages, by event
        std::map<std::string, std::string> bodies;  // likewise
    };
    static inline const std::vector<std::string> kInOrder{
        "execution.queued", "execution.started", "execution.completed"
    };

    // What the receiver of this path was told of each job. What is repeated is the same message,
    // and none comes behind a later one.
    std::map<std::string, Told> told_at(const std::string& path) {
        std::map<std::string, Told> told;
        for (const ReceivedRequest& request : receiver_.requests()) {
            if (request.path != path || !request.json().is_object()) {
                continue;
            }
            const json::value body = request.json();
            const std::string event(body.at("event").as_string());
            const std::string id(request.headers.get("webhook-id"));
            Told& of_job = told[std::string(body.at("execution_id").as_string())];
            const auto [known, is_new] = of_job.ids.emplace(event, id);
            EXPECT_EQ(known->second, id) << "another id for the same event";
            const std::string& first = of_job.bodies.emplace(event, request.body).first->second;
            EXPECT_EQ(first, request.body) << "another body for the same event";
            if (is_new) {
                of_job.events.push_back(event);
            }
            EXPECT_EQ(of_job.events.back(), event) << "it comes again behind a later one";
        }
        return told;
    }
    bool has_all(const std::string& path, const std::vector<std::string>& jobs) {
        const auto told = told_at(path);
        return std::ranges::all_of(jobs, [&](const std::string& job) {
            const auto found = told.find(job);
            return found != told.end() && found->second.events.size() == 3;
        });
    }
};

// The receiver fails in every way it can, and comfyd is killed while it delivers.
TEST_F(DeliveryChaos, EveryEventReachesEveryReceiverInOrderWithItsId) {
    constexpr int kJobs = 40;
    constexpr int kKills = 20;
    const json::array events{"execution.queued", "execution.started", "execution.completed"};
    for (const char* path : {"/a", "/b"}) {
        const Reply made = comfyd_->http().post_json(
            "/v2/webhooks/endpoints", {{"url", receiver_.url(path)}, {"events", events}}
        );
        ASSERT_EQ(made.status, 201) << made.body;
    }
    std::vector<ScriptedAnswer> answers;
    for (int i = 0; i < 400; ++i) {
        ScriptedAnswer answer;
        switch (random_() % 6) {
            case 0:
                answer.status = 500;
                break;
            case 1:
                answer.status = 429;
                break;
            case 2:
                answer.drop = true;
                break;
            case 3:
                answer.delay = std::chrono::milliseconds(random_() % 200);
                break;
            default:
                break;
        }
        answers.push_back(answer);
    }
    receiver_.script(answers);
    std::vector<std::string> jobs;
    for (int i = 0; i < kJobs; ++i) {
        jobs.push_back(comfyd_->submit(
            text_to_image("told " + std::to_string(i)),
            {{"webhook_config", {{"url", receiver_.url("/own")}, {"events", events}}}}
        ));
    }
    for (int i = 0; i < kKills; ++i) {
        pause();
        comfyd_->restart();
    }
    for (const char* path : {"/a", "/b", "/own"}) {
        EXPECT_TRUE(wait_until([&] { return has_all(path, jobs); }, std::chrono::seconds(120)))
            << path;
        for (const auto& [job, told] : told_at(path)) {
            EXPECT_EQ(told.events, kInOrder) << path << " " << job;
        }
    }
}

// What is under way between comfyd and a receiver when comfyd is killed.
enum class Step { stored, sent, accepted, refused, broken_off };

// Each step of each of the three deliveries of a job, in turn; 20 kills and more.
TEST_F(DeliveryChaos, AKillAtAnyStepOfADeliveryLosesNothing) {
    constexpr int kRounds = 2;
    const json::array events(kInOrder.begin(), kInOrder.end());
    std::vector<std::string> jobs;
    for (int round = 0; round < kRounds; ++round) {
        for (const Step step :
             {Step::stored, Step::sent, Step::accepted, Step::refused, Step::broken_off}) {
            for (std::size_t delivery = 0; delivery < (step == Step::stored ? 1 : 3); ++delivery) {
                const std::string path = "/step/" + std::to_string(jobs.size());
                const auto arrived = [&] {
                    return std::ranges::count(receiver_.requests(), path, &ReceivedRequest::path);
                };
                ScriptedAnswer last;
                last.status = step == Step::refused ? 500 : 200;
                last.drop = step == Step::broken_off;
                if (step == Step::sent) {
                    last.delay = std::chrono::seconds(1);  // the kill comes before the answer
                }
                std::vector<ScriptedAnswer> answers(delivery);
                answers.push_back(last);
                receiver_.script(answers);
                jobs.push_back(comfyd_->submit(
                    text_to_image("step " + std::to_string(jobs.size())),
                    {{"webhook_config", {{"url", receiver_.url(path)}, {"events", events}}}}
                ));
                if (step != Step::stored) {
                    ASSERT_TRUE(wait_until(
                        [&] { return arrived() > static_cast<std::ptrdiff_t>(delivery); },
                        std::chrono::seconds(60)
                    ));
                }
                comfyd_->restart();
                const std::vector<std::string> one{jobs.back()};
                ASSERT_TRUE(
                    wait_until([&] { return has_all(path, one); }, std::chrono::seconds(120))
                ) << path
                  << " " << arrived();
                EXPECT_EQ(told_at(path)[jobs.back()].events, kInOrder) << path;
            }
        }
    }
    std::printf("killed comfyd %zu times\n", jobs.size());
    EXPECT_GE(jobs.size(), 20U);
}

}  // namespace
}  // namespace comfyd::support
