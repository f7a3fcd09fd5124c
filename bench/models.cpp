// bench-models [BYTES [ROUNDS]]: bytes per second of a model's way from a server to the cache, with
// its hash, its look at the head and its sync, and of `curl` to a file beside it. Both fetch from
// one server of this process, in turns. What `curl` does not do is told apart: the sync, and the
// hash of the same bytes in memory.
#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/crypto.hpp"
#include "base/wait_for.hpp"
#include "models/library.hpp"
#include "net/descriptor.hpp"
#include "net/io_threads.hpp"
#include "net/server.hpp"
#include "support/model_server.hpp"
#include "support/temp_dir.hpp"

namespace {

using namespace comfyd;
using Ticks = std::chrono::steady_clock;

Task<> serve_file(net::Exchange& exchange, std::string path, std::uint64_t bytes) {
    net::Response response;
    response.headers.set("ETag", "\"" + exchange.request().path + "\"");
    auto sent = co_await exchange.send_file(std::move(response), {path, 0, bytes});
    static_cast<void>(sent);
}

double since(Ticks::time_point begun) {
    return std::chrono::duration<double>(Ticks::now() - begun).count();
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

double curl(const std::string& url, const std::string& file) {
    const auto begun = Ticks::now();
    const std::string command = "curl -s -o '" + file + "' '" + url + "'";
    if (std::system(command.c_str()) != 0) {
        std::fprintf(stderr, "curl failed\n");
        std::exit(1);
    }
    return since(begun);
}

double sync_time(const std::string& file) {
    const net::Descriptor opened(::open(file.c_str(), O_RDWR | O_CLOEXEC));
    const auto begun = Ticks::now();
    ::fsync(opened.number());
    return since(begun);
}

double hash_time(const std::string& bytes) {
    const auto begun = Ticks::now();
    const Digest digest = sha256(bytes);
    return digest[0] == 0 && digest[1] == 0 && digest[2] == 0 ? 0 : since(begun);
}

}  // namespace

int main(int argc, char** argv) {
    const std::uint64_t bytes = argc > 1 ? std::stoull(argv[1]) : 1'000'000'000;
    const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
    const support::TempDir folder;
    const std::string content = support::safetensors_file(bytes);
    const std::string file = folder.write("model", content);
    const std::string expected = to_hex(sha256(content));

    net::IoThread server_thread("server");
    net::Server server({&server_thread.context()}, {}, [&](net::Exchange& exchange) {
        return serve_file(exchange, file, content.size());
    });
    server_thread.start();
    const auto at = server.listen({"127.0.0.1", 0});
    net::IoThread thread("agent");
    thread.start();
    Pool pool(2);

    std::vector<double> ours;
    std::vector<double> theirs;
    std::vector<double> synced;
    for (int round = 0; round < rounds; ++round) {
        const std::string url = at->url() + "/" + std::to_string(round);
        const std::string plain = folder / "plain";
        theirs.push_back(curl(url, plain));
        synced.push_back(sync_time(plain));
        std::filesystem::remove(plain);

        models::LibraryOptions options;
        options.contents.folder = folder / "cache";
        options.contents.models = folder / "models";
        options.contents.owner = folder.path();
        options.web.trusted = {at->to_string()};
        models::Library library(thread.executor(), pool, options);
        const auto opened = library.open();
        const auto begun = Ticks::now();
        const auto placed = wait_for(
            thread.executor(), library.place({"checkpoints", "a.safetensors", url}, nullptr)
        );
        ours.push_back(since(begun));
        wait_for(thread.executor(), library.end());
        if (!opened || !placed || placed->sha256 != expected) {
            std::fprintf(stderr, "%s\n", placed ? "wrong" : placed.error().message.c_str());
            return 1;
        }
        std::filesystem::remove_all(folder / "cache");
        std::filesystem::remove_all(folder / "models");
        const double megabytes = static_cast<double>(bytes) / 1e6;
        std::printf(
            "curl %6.0f MB/s, and its sync %5.2f s   model %6.0f MB/s with its sync\n",
            megabytes / theirs.back(),
            synced.back(),
            megabytes / ours.back()
        );
        std::fflush(stdout);
    }
    const double hash = hash_time(content);
    std::printf(
        "median: curl %.2f s + sync %.2f s, model %.2f s: %.0f %% of curl, %.0f %% of curl and its "
        "sync; the hash alone takes %.2f s\n",
        median(theirs),
        median(synced),
        median(ours),
        100 * median(theirs) / median(ours),
        100 * (median(theirs) + median(synced)) / median(ours),
        hash
    );
    server.stop(Millis(0));
    thread.stop();
    server_thread.stop();
    return 0;
}
