// How many jobs a second become durable, and how fast one is read.
//   ledger_bench [--benchmark_filter=…]; TMPDIR chooses the disk. COMFYD_BENCH_LEDGER: the URL of
//   another ledger (postgres://…), to which jobs are added.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <boost/asio/co_spawn.hpp>

#include "ledger/storage.hpp"

namespace comfyd::ledger {
namespace {

constexpr std::size_t kWorkflowBytes = 3'000;

struct Fixture {
    Fixture() {
        auto pattern = (std::filesystem::temp_directory_path() / "ledger-bench-XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) {
            std::abort();
        }
        folder = pattern;
        const char* named = std::getenv("COMFYD_BENCH_LEDGER");
        const std::string url =
            named != nullptr ? named : "sqlite:" + (folder / "ledger.db").string();
        auto opened = open_storage(url, {}, clock);
        if (!opened) {
            std::abort();
        }
        ledger = std::move(*opened);
    }
    ~Fixture() {
        ledger.reset();
        std::filesystem::remove_all(folder);
    }

    SystemClock clock;
    std::filesystem::path folder;
    std::unique_ptr<Storage> ledger;
    boost::asio::io_context io{1};
};

jobs::NewJob make_new(const Clock& clock) {
    static const std::string workflow(kWorkflowBytes, 'w');
    jobs::NewJob job;
    job.spec.dialect = "comfy-v2";
    job.spec.workflow = workflow;
    job.spec.requirement =
        Requirement::decode("CLIPTextEncode\nCheckpointLoaderSimple\nKSampler\nSaveImage\nVAEDecode"
        );
    job.spec.request_hash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    const Time now = clock.now();
    job.change = jobs::make_job(JobId::make(now), job.spec, now);
    return job;
}

// One submitter of a closed loop: the next job only after the one before is durable.
Task<> submit(Fixture& fixture, std::int64_t& left, std::vector<JobId>& ids) {
    while (left > 0) {
        --left;
        auto job = make_new(fixture.clock);
        const JobId id = job.change.job.id;
        const auto accepted = co_await fixture.ledger->accept(std::move(job));
        if (!accepted || !accepted->created) {
            std::abort();
        }
        ids.push_back(id);
    }
}

std::vector<JobId> submit_all(Fixture& fixture, std::int64_t count, int submitters) {
    std::vector<JobId> ids;
    std::int64_t left = count;
    for (int i = 0; i < submitters; ++i) {
        boost::asio::co_spawn(fixture.io, submit(fixture, left, ids), [](std::exception_ptr) {});
    }
    fixture.io.restart();
    fixture.io.run();
    return ids;
}

// From queued to completed: two more durable steps for each.
Task<> finish(Fixture& fixture, std::vector<JobId>& ids) {
    jobs::Usage usage;
    usage.gpu = Millis(2'000);
    usage.inference = Millis(2'000);
    usage.images = 1;
    usage.models = 1;
    usage.vram_peak_bytes = 5'000'000'000;
    usage.gpu_second_usd = 0.0005;
    usage.cost_usd = jobs::cost_of(usage);
    while (!ids.empty()) {
        const JobId id = ids.back();
        ids.pop_back();
        const auto job = co_await fixture.ledger->find(id);
        auto started = jobs::start(**job, "worker-1", 2, fixture.clock.now());
        const auto first = co_await fixture.ledger->commit(*started);
        auto completed = jobs::complete(started->job, {}, {}, 3, fixture.clock.now());
        jobs::add_usage(*completed, usage);
        const auto second = co_await fixture.ledger->commit(std::move(*completed));
        if (!first || !second) {
            std::abort();
        }
    }
}

void accept_jobs(benchmark::State& state) {
    Fixture fixture;
    const std::int64_t count = state.range(0) == 1 ? 5'000 : 50'000;
    for (auto _ : state) {
        submit_all(fixture, count, static_cast<int>(state.range(0)));
    }
    state.SetItemsProcessed(state.iterations() * count);
    const auto stats = fixture.ledger->storage_stats();
    state.counters["batch"] =
        static_cast<double>(stats.commits) / static_cast<double>(stats.batches);
    state.counters["checkpoints"] = static_cast<double>(stats.checkpoints);
}
BENCHMARK(accept_jobs)
    ->Arg(1)
    ->Arg(64)
    ->Arg(1024)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MinTime(2);

void whole_life(benchmark::State& state) {
    Fixture fixture;
    constexpr std::int64_t kCount = 20'000;
    for (auto _ : state) {
        auto ids = submit_all(fixture, kCount, static_cast<int>(state.range(0)));
        for (int i = 0; i < state.range(0); ++i) {
            boost::asio::co_spawn(fixture.io, finish(fixture, ids), [](std::exception_ptr) {});
        }
        fixture.io.restart();
        fixture.io.run();
    }
    state.SetItemsProcessed(state.iterations() * kCount);
}
BENCHMARK(whole_life)->Arg(64)->Arg(1024)->Unit(benchmark::kMillisecond)->UseRealTime()->MinTime(2);

Task<> find_some(Fixture& fixture, const std::vector<JobId>& ids, std::size_t& next, int count) {
    for (int i = 0; i < count; ++i) {
        next = (next + 7919) % ids.size();
        const auto job = co_await fixture.ledger->find(ids[next]);
        benchmark::DoNotOptimize(job);
    }
}

void find_job(benchmark::State& state) {
    Fixture fixture;
    const auto ids = submit_all(fixture, state.range(0), 1024);
    std::size_t next = 0;
    constexpr int kEach = 1'000;
    for (auto _ : state) {
        boost::asio::co_spawn(
            fixture.io, find_some(fixture, ids, next, kEach), [](std::exception_ptr) {}
        );
        fixture.io.restart();
        fixture.io.run();
    }
    state.SetItemsProcessed(state.iterations() * kEach);
}
BENCHMARK(find_job)->Arg(1'000)->Arg(100'000)->Unit(benchmark::kMillisecond);

Task<> list_some(Fixture& fixture, int count) {
    for (int i = 0; i < count; ++i) {
        jobs::ListQuery query;
        query.tenant = "local";
        const auto page = co_await fixture.ledger->list(std::move(query));
        benchmark::DoNotOptimize(page);
    }
}

void list_50_jobs(benchmark::State& state) {
    Fixture fixture;
    submit_all(fixture, state.range(0), 1024);
    constexpr int kEach = 100;
    for (auto _ : state) {
        boost::asio::co_spawn(fixture.io, list_some(fixture, kEach), [](std::exception_ptr) {});
        fixture.io.restart();
        fixture.io.run();
    }
    state.SetItemsProcessed(state.iterations() * kEach);
}
BENCHMARK(list_50_jobs)->Arg(100'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace comfyd::ledger
