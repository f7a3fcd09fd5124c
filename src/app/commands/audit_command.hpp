// `comfyd audit`: checks an audit log, or shows what it has. Needs no server.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace comfyd::app {

struct AuditFlags {
    std::string action{};              // verify, show
    std::vector<std::string> files{};  // or folders
    std::string public_key{};
    std::string checkpoints{};
    std::string tenant{};
    std::string named{};  // how its action begins
    std::string since{};
};

void add_audit_flags(CLI::App& command, AuditFlags& flags);
int run_audit(const AuditFlags& flags);  // an Exit code

}  // namespace comfyd::app
