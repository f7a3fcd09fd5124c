// `comfyd assets copy` moves what lies in one store into another; `comfyd assets retention` lists
// what the sweep will remove or move.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace comfyd::app {

struct Config;

struct AssetsCopyFlags {
    std::string from{};
    std::string to{};
};

struct AssetsRetentionFlags {
    std::string url{};
    std::string key{};
    std::string by{};  // RFC 3339; empty: now
    bool dry_run = false;
    bool json = false;
};

void add_assets_copy_flags(CLI::App& command, AssetsCopyFlags& flags);
// Over the ledger and the stores of the configuration. An Exit code, as the next.
int run_assets_copy(const AssetsCopyFlags& flags, const Config& config);
void add_assets_retention_flags(CLI::App& command, AssetsRetentionFlags& flags);
int run_assets_retention(const AssetsRetentionFlags& flags);

}  // namespace comfyd::app
