// Thumbnails of a picture by comfyd's helper processes: `bench-media COMFYD FOLDER PROCESSES
// SECONDS`. The picture, 1024 x 1024 with smooth parts and noise, is left in FOLDER/source.png for
// whoever else is measured.
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

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) {
        std::fputs("usage: bench-media COMFYD FOLDER PROCESSES SECONDS\n", stderr);
        return 2;
    }
    const std::filesystem::path picture = std::filesystem::path(argv[2]) / "source.png";
    std::ofstream(picture, std::ios::binary) << make_picture();
    media::HelpersOptions options;
    options.processes_max = static_cast<unsigned>(std::atoi(argv[3]));
    options.command = {
        "comfyd media",
        argv[1],
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
    Run run{helpers, picture, begun + std::chrono::seconds(std::atoi(argv[4]))};
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
