#include "app/commands/ledger_command.hpp"

#include <cstdint>
#include <cstdio>
#include <string_view>

#include "app/commands/cli.hpp"
#include "base/time.hpp"
#include "ledger/copy.hpp"

namespace comfyd::app {
namespace {

constexpr std::string_view kSqlite = "sqlite:";

int complain(const std::string& message, int code) {
    std::fprintf(stderr, "comfyd: %s\n", message.c_str());
    return code;
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
    if (!flags.to.starts_with("postgres://") && !flags.to.starts_with("postgresql://")) {
        return complain("--to begins with postgres://", kExitUsage);
    }
    SystemClock clock;
    Progress progress;
    const auto copied = ledger::copy_ledger(
        flags.from.substr(kSqlite.size()),
        flags.to,
        clock,
        [&progress](std::string_view table, std::uint64_t rows) { progress.tell(table, rows); }
    );
    progress.end();
    if (!copied) {
        const bool is_usage =
            copied.error().code == Code::conflict || copied.error().code == Code::config_invalid;
        return complain(copied.error().message, is_usage ? kExitUsage : kExitUnavailable);
    }
    std::printf("copied; start comfyd with --ledger and the new URL\n");
    return kExitOk;
}

}  // namespace comfyd::app
