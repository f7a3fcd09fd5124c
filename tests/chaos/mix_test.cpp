// Everything at once, under load: comfyd and its workers are killed and stopped, networks and disks
// fail, clocks jump, workers lie and flood, names do not resolve. COMFYD_CHAOS_SEED repeats a run,
// COMFYD_CHAOS_SECONDS makes it longer.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <mutex>
#include <thread>

#include "chaos/checker.hpp"
#include "chaos/troubled.hpp"

namespace comfyd::support {
namespace {

constexpr int kClients = 3;
[[maybe_unused]] constexpr std::size_t kPeakMbMax = 700;  // large messages of four workers among it

unsigned number_of(const char* variable, unsigned otherwise) {
    const char* given = std::getenv(variable);
    return given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : otherwise;
}

std::string mark_of(int number) {
    return "picture " + std::to_string(number) + ".";
}

class Mix : public testing::Test {
protected:
    Mix() : seed_(number_of("COMFYD_CHAOS_SEED", std::random_device()())), troubled_(seed_) {
        std::printf("seed %u (COMFYD_CHAOS_SEED repeats it)\n", seed_);
        RecordProperty("seed", std::to_string(seed_));
    }

    void SetUp() override {
        // It hears of every job, and nobody can be told.
        const Reply made = troubled_.comfyd().http().post_json(
            "/v2/webhooks/endpoints",
            {{"url", "http://nowhere.invalid/hook"}, {"events", json::array{"execution.completed"}}}
        );
        ASSERT_EQ(made.status, 201) << made.body;
        std::vector<ScriptedAnswer> answers(300);
        for (std::size_t i = 0; i < answers.size(); i += 3) {
            answers[i].status = i % 2 == 0 ? 500 : 429;
            answers[i + 1].drop = i % 5 == 0;
        }
        receiver_.script(answers);
    }

    // Until comfyd takes it: the idempotency key makes that safe.
    std::string submit(Http& http, int number) {
        net::Headers key;
        key.set("Idempotency-Key", "mix-" + std::to_string(number));
        const json::array events{
            "execution.queued",
            "execution.started",
            "execution.warning",
            "execution.completed",
            "execution.failed",
            "execution.cancelled"
        };
        const json::object body{
            {"workflow", text_to_image(mark_of(number))},
            {"webhook_config", {{"url", receiver_.url("/job")}, {"events", events}}},
            {"execution_config", {{"max_retries", 5}, {"timeout", 20}}}
        };
        Reply reply;
        const bool is_taken = wait_until(
            [&] {
                reply = http.post_json("/v2/workflows/execute", body, key);
                return reply.status == 202;
            },
            std::chrono::seconds(120)
        );
        EXPECT_TRUE(is_taken) << reply.status << reply.body;
        return is_taken ? std::string(reply.json_at("/execution_id").as_string()) : "";
    }

    // Jobs, by their numbers, submitted while `trouble` goes on.
    template <class Trouble>
    std::map<int, std::string> submit_while(Trouble trouble) {
        std::map<int, std::string> jobs;
        std::mutex mutex;
        std::atomic<bool> goes_on{true};
        std::atomic<int> next{0};
        std::vector<std::thread> clients;
        for (int i = 0; i < kClients; ++i) {
            clients.emplace_back([&, url = troubled_.comfyd().url()] {
                Http http(url);
                while (goes_on) {
                    const int number = next++;
                    const std::string id = submit(http, number);
                    const std::lock_guard lock(mutex);
                    jobs[number] = id;
                    std::this_thread::sleep_for(std::chrono::milliseconds(100));
                }
            });
        }
        trouble();
        goes_on = false;
        for (std::thread& client : clients) {
            client.join();
        }
        return jobs;
    }

    unsigned seed_;
    WebhookReceiver receiver_;
    Troubled troubled_;
};

TEST_F(Mix, EveryAcceptedJobEndsOnceAndNothingIsLost) {
    const std::chrono::seconds lasts(number_of("COMFYD_CHAOS_SECONDS", 30));
    const auto begun = std::chrono::steady_clock::now();
    int troubles = 0;
    const auto jobs = submit_while([&] {
        std::mt19937 pace(seed_);
        while (std::chrono::steady_clock::now() - begun < lasts) {
            const auto at = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun);
            std::printf("%6.1f s  %s\n", at.count(), troubled_.trouble().c_str());
            ++troubles;
            std::this_thread::sleep_for(std::chrono::milliseconds(50 + pace() % 400));
            troubled_.end_what_is_over();
        }
        troubled_.heal();
    });
    Checker checker(troubled_.comfyd().http());
    for (const auto& [number, id] : jobs) {
        checker.check_job(id, mark_of(number));
    }
    const auto messages_are_right = [&] {
        Checker now = checker;
        now.check_messages(receiver_.requests());
        return now.complaints().size() == checker.complaints().size();
    };
    wait_until(messages_are_right, std::chrono::seconds(120));
    checker.check_messages(receiver_.requests());
    checker.check_runs(troubled_.journal());
    std::printf(
        "%zu jobs, %d troubles, at most %zu MB:", jobs.size(), troubles, troubled_.peak_mb()
    );
    for (const auto& [status, count] : checker.ends()) {
        std::printf(" %d %s", count, status.c_str());
    }
    std::printf("\n");
    for (const std::string& complaint : checker.complaints()) {
        ADD_FAILURE() << complaint;
    }
    if (HasFailure()) {
        std::printf("%s\n", troubled_.comfyd().log().c_str());
    }
    EXPECT_GT(jobs.size(), 0U);
#if !defined(COMFYD_IS_SANITIZED)
    EXPECT_LT(troubled_.peak_mb(), kPeakMbMax);
#endif
}

}  // namespace
}  // namespace comfyd::support
