// Reads an audit log as somebody who does not trust those who kept it: says where a line was
// changed, removed, inserted or moved, and whether it has every checkpoint that was kept elsewhere.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "audit/line.hpp"
#include "base/error.hpp"

namespace comfyd::audit {

struct Verdict {
    std::vector<std::string> findings{};  // what is wrong, and where; at most as many as are useful
    std::uint64_t findings_count = 0;
    std::vector<std::string> remarks{};  // what a reader should know: lost events, a torn end
    std::uint64_t lines = 0;
    std::uint64_t first_seq = 0;
    std::uint64_t last_seq = 0;
    std::string first_time{};
    std::string last_time{};
    std::uint64_t checkpoints = 0;     // with good signatures
    std::uint64_t sealed_seq = 0;      // up to which a good one says that all is there
    std::set<std::string> keys{};      // that signed them
    std::uint64_t kept_elsewhere = 0;  // checkpoints that were compared
};

struct VerifyOptions {
    std::vector<std::filesystem::path> files{};  // in their order
    std::string public_key{};                    // that must have signed; empty: any
    std::filesystem::path checkpoints{};         // lines that were kept elsewhere; empty: none
};

// Code::not_found: a file cannot be read.
Result<Verdict> verify(const VerifyOptions& options);

}  // namespace comfyd::audit
