// A large output on its way from the worker through comfyd into a store: how long it takes, and how
// much memory comfyd has had at most, beside what it had before. The S3 service is Ceph's gateway
// over memory, on the same machine.
//
//   bench-results [megabytes]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "net/io_threads.hpp"
#include "support/comfy_double.hpp"
#include "support/comfyd.hpp"
#include "support/radosgw.hpp"

namespace comfyd::bench {
namespace {

using support::Comfyd;
using support::Radosgw;
using Ticks = std::chrono::steady_clock;

constexpr std::chrono::minutes kPatience{20};

double memory_mb(Comfyd& comfyd, const std::string& name) {
    const std::string status =
        support::read_file("/proc/" + std::to_string(comfyd.process().pid()) + "/status");
    return std::stod(status.substr(status.find(name) + name.size())) / 1024;
}

bool is_stored(Comfyd& comfyd, const std::string& id, bool is_elsewhere) {
    const json::value job = comfyd.job(id);
    if (Comfyd::status_of(job) != "succeeded" || !is_elsewhere) {
        return Comfyd::status_of(job) == "succeeded";
    }
    const json::value* storage = job.as_object().if_contains("storage");
    return storage != nullptr && *storage == "stored";
}

// `configuration`: of the stores; empty: the local one.
void measure(const char* name, std::size_t megabytes, const std::string& configuration) {
    net::IoThread thread("double");
    thread.start();
    {
        support::DoubleOptions worker;
        worker.output_bytes = megabytes << 20;
        support::ComfyDouble gpu(thread.context(), worker);
        gpu.start();
        support::TempDir folder;
        support::ComfydOptions options;
        options.arguments = {
            "--config",
            folder.write("comfyd.yaml", configuration),
            "--no-engine",
            "--worker",
            gpu.url(),
            "--log-level",
            "warning",
            "--set",
            "limits.upload_mb=" + std::to_string(megabytes + 64)
        };
        Comfyd comfyd(options);
        const double before = memory_mb(comfyd, "VmRSS:");
        const Ticks::time_point begun = Ticks::now();
        const std::string id = comfyd.submit(support::text_to_image("a large picture"));
        const bool done = support::wait_until(
            [&] { return is_stored(comfyd, id, !configuration.empty()); }, kPatience
        );
        const double seconds = std::chrono::duration<double>(Ticks::now() - begun).count();
        std::printf(
            "results store=%s mb=%zu %s seconds=%.1f mb_per_s=%.0f before_mb=%.1f peak_mb=%.1f\n",
            name,
            megabytes,
            done ? "stored" : "NOT-STORED",
            seconds,
            static_cast<double>(megabytes) / seconds,
            before,
            memory_mb(comfyd, "VmHWM:")
        );
        std::fflush(stdout);
    }
    thread.stop();
}

}  // namespace
}  // namespace comfyd::bench

int main(int argc, char** argv) {
    using comfyd::support::Radosgw;
    const std::size_t megabytes = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1024;
    comfyd::bench::measure("local", megabytes, "");
    Radosgw& service = Radosgw::shared();
    comfyd::bench::measure(
        "s3",
        megabytes,
        "stores:\n  - {name: main, provider: s3, bucket: " + service.make_bucket() +
            ", endpoint: \"" + service.url() + "\", access_key: " + Radosgw::kAccessKey +
            ", secret_key: \"" + Radosgw::kSecretKey + "\"}\nresults: {store: main}\n"
    );
    return 0;
}
