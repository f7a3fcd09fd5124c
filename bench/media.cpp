// What outputs cost after they were made. The picture is 1024 x 1024 with smooth parts and noise.
//
//   bench-media thumbnails COMFYD FOLDER PROCESSES SECONDS
//       Three of it by comfyd's helper processes. It is left in FOLDER/source.png for whoever else
//       is measured.
//   bench-media plain FOLDER JOBS
//       What a job pays of which nothing is asked for: its output is typed by its headers, by
//       this process. Without the pipeline it would pay nothing.
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "engine/pictures/png.hpp"
#include "ledger/sqlite_ledger.hpp"
#include "media/finisher.hpp"
#include "media/helpers.hpp"

namespace {

using namespace comfyd;
using Ticks = std::chrono::steady_clock;

constexpr std::size_t kSide = 1024;

std::string make_picture() {
    std::vector<std::uint8_t> pixels;
    std::uint32_t state = 7;
    for (std::size_t y = 0; y < kSide; ++y) {
        for (std::size_t x = 0; x < kSide; ++x) {
            state = state * 1664525 + 1013904223;
            const std::uint32_t noise = x > kSide / 2 ? state >> 28 : 0;
            pixels.push_back(static_cast<std::uint8_t>(x / 5 + noise));
            pixels.push_back(static_cast<std::uint8_t>(y / 5 + noise));
            pixels.push_back(static_cast<std::uint8_t>((x + y) / 10 + noise));
        }
    }
    return *engine::encode_png(engine::PngBytes{pixels.data(), kSide, kSide, 3}, 4, {});
}

struct Run {
    media::Helpers& helpers;
    const std::filesystem::path picture;
    const Ticks::time_point end;
    std::size_t thumbnails = 0;
    std::size_t failed = 0;
};

Task<> make_many(Run& run) {
    jobs::OutputWishes wishes;
    wishes.thumbnails = {1024, 512, 256};
    while (Ticks::now() < run.end) {
        auto answer =
            co_await run.helpers.ask({"source.png", "image/png", wishes}, run.picture, {});
        run.thumbnails += answer ? answer->variants.size() : 0;
        run.failed += answer ? answer->failed.size() : 1;
    }
}

int measure_thumbnails(
    const char* comfyd, const std::filesystem::path& folder, unsigned processes, int seconds_max
) {
    const std::filesystem::path picture = folder / "source.png";
    std::ofstream(picture, std::ios::binary) << make_picture();
    media::HelpersOptions options;
    options.processes_max = processes;
    options.command = {
        "comfyd media",
        comfyd,
        {"media",
         "--supervisor",
         std::to_string(::getpid()),
         "--memory-mb",
         "2048",
         "--time-ms",
         "30000"}
    };
    boost::asio::io_context context;
    media::Helpers helpers(options);
    const auto begun = Ticks::now();
    Run run{helpers, picture, begun + std::chrono::seconds(seconds_max)};
    TaskGroup tasks(context.get_executor());
    for (unsigned i = 0; i < 2 * options.processes_max; ++i) {
        tasks.spawn("make thumbnails", make_many(run));
    }
    context.run();
    const double seconds = std::chrono::duration<double>(Ticks::now() - begun).count();
    std::printf(
        "thumbnails_per_s=%.1f pictures=%zu failed=%zu\n",
        static_cast<double>(run.thumbnails) / seconds,
        run.thumbnails / 3,
        run.failed
    );
    return run.failed == 0 ? 0 : 1;
}

// Of this process, all threads together.
double cpu_seconds() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

Task<> finish_many(media::Finisher& finisher, jobs::Output output, int count, int& typed) {
    for (int i = 0; i < count; ++i) {
        auto finished = co_await finisher.finish(jobs::Job(), {output}, {});
        typed += finished && (*finished)[0].media.contains("width") ? 1 : 0;
    }
}

Task<> add_picture(assets::Store& store, jobs::Output& output) {
    assets::NewAsset asset;
    asset.content_type = "image/png";
    asset.file_path = "source.png";
    asset.job = JobId::make(SystemClock().now());
    auto added = co_await store.add(make_picture(), std::move(asset));
    if (added) {
        output.asset = added->asset.id;
        output.hash = added->asset.hash;
        output.size_bytes = added->asset.size_bytes;
        output.generation = added->asset.generation;
    }
}

int measure_plain(const std::filesystem::path& folder, int count) {
    SystemClock clock;
    boost::asio::io_context context;
    Pool pool(1);
    auto ledger = ledger::SqliteLedger::open({.path = folder / "ledger.db"}, clock);
    assets::Store store({folder / "data"}, **ledger, clock, pool);
    if (!store.open()) {
        return 1;
    }
    media::Helpers helpers({});
    media::Finisher finisher(store, pool, helpers, {});
    jobs::Output output;
    output.name = "source.png";
    output.content_type = "image/png";
    TaskGroup tasks(context.get_executor());
    tasks.spawn("add a picture", add_picture(store, output));
    context.run();
    context.restart();
    int typed = 0;
    const double begun = cpu_seconds();
    tasks.spawn("finish outputs", finish_many(finisher, std::move(output), count, typed));
    context.run();
    std::printf(
        "plain_cpu_us_per_job=%.1f jobs=%d typed=%d\n",
        (cpu_seconds() - begun) * 1e6 / count,
        count,
        typed
    );
    (*ledger)->stop();
    return typed == count ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string what = argc > 1 ? argv[1] : "";
    if (what == "thumbnails" && argc == 6) {
        return measure_thumbnails(
            argv[2], argv[3], static_cast<unsigned>(std::atoi(argv[4])), std::atoi(argv[5])
        );
    }
    if (what == "plain" && argc == 4) {
        return measure_plain(argv[2], std::atoi(argv[3]));
    }
    std::fputs(
        "usage: bench-media thumbnails COMFYD FOLDER PROCESSES SECONDS | plain FOLDER JOBS\n",
        stderr
    );
    return 2;
}
