#include <benchmark/benchmark.h>

#include <string>

#include "assets/blake3.hpp"
#include "base/crypto.hpp"

namespace comfyd::assets {
namespace {

void blake3_of(benchmark::State& state) {
    const std::string bytes(static_cast<std::size_t>(state.range(0)), 'x');
    for (auto _ : state) {
        Blake3 hash;
        hash.update(bytes);
        benchmark::DoNotOptimize(hash.digest());
    }
    state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(blake3_of)->Arg(1024)->Arg(64 * 1024)->Arg(4 * 1024 * 1024);

// The yardstick: OpenSSL's SHA-256, which uses the processor's instructions for it where there are
// any.
void sha256_of(benchmark::State& state) {
    const std::string bytes(static_cast<std::size_t>(state.range(0)), 'x');
    for (auto _ : state) {
        benchmark::DoNotOptimize(sha256(bytes));
    }
    state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(sha256_of)->Arg(4 * 1024 * 1024);

}  // namespace
}  // namespace comfyd::assets
