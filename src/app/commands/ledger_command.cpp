#include "app/commands/ledger_command.hpp"

#include <cstdint>
#include <cstdio>
#include <string_view>

#include "app/commands/cli.hpp"
#include "app/data_folder.hpp"
#include "base/time.hpp"
#include "ledger/copy.hpp"
#include "ledger/restored.hpp"

namespace comfyd::app {
namespace {

constexpr std::string_view kSqlite = "sqlite:";

int complain(const std::string& message, int code) {
    std::fprintf(stderr, "comfyd: %s\n", message.c_str());
    return code;
}

bool is_postgres(std::string_view url) {
    return url.starts_with("postgres://") || url.starts_with("postgresql://");
}

int exit_code(const Error& error) {
    return error.code == Code::conflict || error.code == Code::config_invalid ? kExitUsage
                                                                              : kExitUnavailable;
}

// A line for each table, which grows until the next begins.
class Progress {
public:
    void tell(std::string_view table, std::uint64_t rows) {
        if (!table_.empty() && table_ != table) {
            std::printf("\n");
        }
        table_ = table;
        std::printf("\r%-18s %12llu", table_.c_str(), static_cast<unsigned long long>(rows));
        std::fflush(stdout);
    }
    void end() const { std::printf("\n"); }

private:
    std::string table_;
};

}  // namespace

int run_ledger_copy(const LedgerCopyFlags& flags) {
    if (!flags.from.starts_with(kSqlite)) {
        return complain("--from begins with sqlite:", kExitUsage);
    }
    if (!is_postgres(flags.to)) {
        return complain("--to begins with postgres://", kExitUsage);
    }
    if (flags.secret.size() < kClusterSecretMin) {
        return complain(
            "--secret has " + std::to_string(kClusterSecretMin) + " characters or more", kExitUsage
        );
    }
    SystemClock clock;
    Progress progress;
    const auto copied = ledger::copy_ledger(
        flags.from.substr(kSqlite.size()),
        flags.to,
        flags.secret,
        clock,
        [&progress](std::string_view table, std::uint64_t rows) { progress.tell(table, rows); }
    );
    progress.end();
    if (!copied) {
        return complain(copied.error().message, exit_code(copied.error()));
    }
    std::printf("copied; start comfyd with --ledger and the new URL\n");
    return kExitOk;
}

int run_ledger_restored(const LedgerRestoredFlags& flags) {
    if (!is_postgres(flags.ledger)) {
        return complain("--ledger begins with postgres://", kExitUsage);
    }
    const auto restored = ledger::declare_restored(flags.ledger);
    if (!restored) {
        return complain(restored.error().message, exit_code(restored.error()));
    }
    std::printf(
        "%llu unfinished jobs, %llu domains: ready; start the nodes\n",
        static_cast<unsigned long long>(restored->unfinished),
        static_cast<unsigned long long>(restored->domains)
    );
    return kExitOk;
}

}  // namespace comfyd::app
