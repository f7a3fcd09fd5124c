// What authentication costs a request: by a key among many, and by a token that was seen before.
#include <benchmark/benchmark.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "auth/api_key.hpp"
#include "auth/credentials.hpp"
#include "auth/jwt/test_support.hpp"

namespace comfyd::auth {
namespace {

constexpr int kKeys = 10'000;
const std::string kSecret(32, 's');

class World {
public:
    World() {
        AllIdentities stored;
        for (int i = 0; i < kKeys; ++i) {
            KeyRecord key;
            key.id = make_key_id();
            key.tenant = "tenant-" + std::to_string(i);
            key.name = "app";
            keys.push_back(make_key(key.id));
            key.sha256 = sha256(keys.back());
            stored.records.push_back(key.to_record());
        }
        board.set(std::make_shared<const Directory>(
            std::vector<ApiKey>(), std::vector<Tenant>(), stored, Directory()
        ));
    }

    std::vector<std::string> keys;
    SystemClock clock;
    DirectoryBoard board{std::make_shared<const Directory>()};
    Tokens tokens{{kSecret, {}}, nullptr, clock};
    Credentials credentials{{board, clock, true, &tokens}};
};

World& world() {
    static World made;
    return made;
}

Task<> authenticate(benchmark::State& state, const std::vector<std::string>& headers) {
    std::size_t at = 0;
    for (auto _ : state) {
        auto caller = co_await world().credentials.authenticate(headers[++at % headers.size()]);
        if (!caller) {
            state.SkipWithError("refused");
            co_return;
        }
        benchmark::DoNotOptimize(caller);
    }
}

void run(benchmark::State& state, const std::vector<std::string>& headers) {
    boost::asio::io_context context;
    boost::asio::co_spawn(
        context.get_executor(), authenticate(state, headers), boost::asio::detached
    );
    context.run();
}

void by_key(benchmark::State& state) {
    std::vector<std::string> headers;
    for (const std::string& key : world().keys) {
        headers.push_back("Bearer " + key);
    }
    run(state, headers);
}
BENCHMARK(by_key)->Threads(1)->Threads(2);

void by_token(benchmark::State& state) {
    std::vector<std::string> headers;
    for (int i = 0; i < 1'000; ++i) {
        headers.push_back(
            "Bearer " + jwt::test::hs_token(
                            kSecret,
                            R"({"alg":"HS256"})",
                            R"({"exp":4000000000,"user_id":)" + std::to_string(i) + "}"
                        )
        );
    }
    run(state, headers);
}
BENCHMARK(by_token)->Threads(1)->Threads(2);

}  // namespace
}  // namespace comfyd::auth
