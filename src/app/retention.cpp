#include "app/retention.hpp"

#include <algorithm>
#include <utility>

#include "app/old_files.hpp"
#include "base/log.hpp"

namespace comfyd::app {
namespace {

constexpr int kJobsInAStep = 32;
constexpr Millis kPauseMax{60'000};
constexpr Millis kPauseMin{200};

Task<Result<bool>> are_kept(
    assets::Store& assets, std::string tenant, std::vector<jobs::Output> outputs
) {
    for (const jobs::Output* file : jobs::files_of(outputs)) {
        auto kept = co_await assets.has_hash(tenant, file->hash);
        if (!kept || !*kept) {
            co_return kept;
        }
    }
    co_return true;
}

}  // namespace

Retention::Retention(
    Executor executor,
    Clock& clock,
    Pool& pool,
    jobs::Ledger& ledger,
    assets::Store& assets,
    Options options
)
    : clock_(clock),
      pool_(pool),
      ledger_(ledger),
      assets_(assets),
      options_(std::move(options)),
      tasks_(executor) {}

void Retention::start() {
    tasks_.spawn("retention", keep_sweeping());
}

Task<> Retention::stop() {
    tasks_.cancel();
    co_await tasks_.join();
}

Task<> Retention::keep_sweeping() {
    const Millis pause = std::clamp(options_.kept_for / 10, kPauseMin, kPauseMax);
    while (true) {
        const bool goes_on = co_await sleep_for(pause);
        if (!goes_on) {
            co_return;
        }
        if (options_.is_ours && !options_.is_ours()) {
            continue;
        }
        auto removed = co_await sweep();
        if (!removed && removed.error().code != Code::cancelled) {
            log::warning("what is old could not be removed", {{"error", removed.error().message}});
        }
    }
}

Task<Result<int>> Retention::purge(Time before) {
    int jobs = 0;
    for (bool more = true; more;) {
        auto purged = co_await ledger_.purge(before, kJobsInAStep);
        if (!purged) {
            co_return fail(std::move(purged.error()));
        }
        jobs += purged->jobs;
        const bool stop = co_await is_cancelled();
        more = purged->more && !stop;
    }
    co_return jobs;
}

Task<Result<Retention::Removed>> Retention::sweep() {
    const Time before = clock_.now() - options_.kept_for;
    auto jobs = co_await purge(before);
    const bool was_failing = std::exchange(is_failing_, !jobs);
    if (!jobs) {
        co_return fail(std::move(jobs.error()));
    }
    // What could not be stored for long is stored first: its files have no record yet.
    if (was_failing) {
        co_return Removed{*jobs, 0};
    }
    auto files = co_await assets_.sweep();
    if (!files) {
        co_return fail(std::move(files.error()));
    }
    const int left = co_await pool_.run([folders = options_.engine_folders, before] {
        int removed = 0;
        for (const auto& folder : folders) {
            removed += remove_old_engine_files(folder, before);
        }
        return removed;
    });
    const Removed removed{*jobs, *files + left};
    if (removed.jobs > 0 || removed.files > 0) {
        log::info("removed what is old", {{"jobs", removed.jobs}, {"files", removed.files}});
        if (options_.tell) {
            options_.tell(removed);
        }
    }
    co_return removed;
}

jobs::OutputsKept outputs_kept_in(assets::Store& assets) {
    return [&assets](std::string tenant, std::vector<jobs::Output> outputs) {
        return are_kept(assets, std::move(tenant), std::move(outputs));
    };
}

}  // namespace comfyd::app
