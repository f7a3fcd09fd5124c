#include "ledger/storage.hpp"

#include <algorithm>
#include <string>

#include "ledger/postgres_ledger.hpp"
#include "ledger/sqlite_ledger.hpp"

namespace comfyd::ledger {

void Latency::add(std::chrono::steady_clock::duration duration) {
    const double seconds = std::chrono::duration<double>(duration).count();
    const auto bound = std::ranges::lower_bound(kBoundsSeconds, seconds);
    ++counts[static_cast<std::size_t>(bound - kBoundsSeconds.begin())];
    sum_seconds += seconds;
}

Result<std::unique_ptr<Storage>> open_storage(
    std::string_view url, const OpenOptions& options, Clock& clock
) {
    constexpr std::string_view kSqlite = "sqlite:";
    if (url.starts_with("postgres://") || url.starts_with("postgresql://")) {
        PostgresLedger::Options postgres;
        postgres.url = url;
        postgres.secret = options.secret;
        postgres.routing = options.routing;
        auto opened = PostgresLedger::open(std::move(postgres), clock);
        if (!opened) {
            return fail(std::move(opened.error()));
        }
        return std::unique_ptr<Storage>(std::move(*opened));
    }
    if (!url.starts_with(kSqlite)) {
        return fail(
            Code::config_invalid,
            "no ledger can be opened by '" + std::string(url) +
                "': it begins with sqlite: or postgres://"
        );
    }
    SqliteLedger::Options sqlite;
    sqlite.path = url.substr(kSqlite.size());
    sqlite.reads_apart = options.reads_apart;
    sqlite.routing = options.routing;
    auto opened = SqliteLedger::open(std::move(sqlite), clock);
    if (!opened) {
        return fail(std::move(opened.error()));
    }
    return std::unique_ptr<Storage>(std::move(*opened));
}

}  // namespace comfyd::ledger
