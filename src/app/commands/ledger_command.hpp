// `comfyd ledger copy` moves a ledger from SQLite into PostgreSQL; `comfyd ledger restored` is run
// over one that comes from a back-up.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace comfyd::app {

struct LedgerCopyFlags {
    std::string from{};  // sqlite:PATH
    std::string to{};    // postgres://…
    std::string secret{};
};

struct LedgerRestoredFlags {
    std::string ledger{};  // postgres://…
};

void add_ledger_copy_flags(CLI::App& command, LedgerCopyFlags& flags);
int run_ledger_copy(const LedgerCopyFlags& flags);  // an Exit code
void add_ledger_restored_flags(CLI::App& command, LedgerRestoredFlags& flags);
int run_ledger_restored(const LedgerRestoredFlags& flags);  // an Exit code

}  // namespace comfyd::app
