// `comfyd ledger copy`: moves a ledger from SQLite into PostgreSQL.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace comfyd::app {

struct LedgerCopyFlags {
    std::string from{};  // sqlite:PATH
    std::string to{};    // postgres://…
};

void add_ledger_copy_flags(CLI::App& command, LedgerCopyFlags& flags);
int run_ledger_copy(const LedgerCopyFlags& flags);  // an Exit code

}  // namespace comfyd::app
