// What the audit log costs a request, and how many lines it ties and writes in a second.
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <filesystem>

#include "audit/journal.hpp"

namespace comfyd::audit {
namespace {

namespace fs = std::filesystem;

Event submit() {
    Event event;
    event.at = SystemClock().now();
    event.action = "job.create";
    event.status = 201;
    event.tenant = "acme";
    event.key = "app";
    event.key_id = "p0Y3rTqK";
    event.from = "198.51.100.9";
    event.request = "019a9a9e-5b1c-7c3e-8f10-2f6f3f1d2c11";
    event.method = "POST";
    event.route = "/api/v2/jobs";
    event.object = "019a9a9e-5b1c-7c3e-8f10-2f6f3f1d2c12";
    return event;
}

// As a request pays for it; as many as may wait, so that none is lost.
void record(benchmark::State& state) {
    SystemClock clock;
    std::string folder = fs::temp_directory_path() / "comfyd-audit-XXXXXX";
    JournalOptions options;
    options.folder = ::mkdtemp(folder.data());
    options.node = "node-a";
    auto journal = std::move(*Journal::open(options, *Signer::make(std::string(32, 'k')), clock));
    for (auto _ : state) {
        journal->record(submit());
    }
    if (journal->counts().lost != 0) {
        state.SkipWithError("some were lost");
    }
    journal.reset();
    fs::remove_all(folder);
}
BENCHMARK(record)->Iterations(15'000);

void tie_a_line(benchmark::State& state) {
    Link link;
    const Event event = submit();
    for (auto _ : state) {
        benchmark::DoNotOptimize(make_line(event, "node-a", link));
    }
}
BENCHMARK(tie_a_line);

}  // namespace
}  // namespace comfyd::audit
