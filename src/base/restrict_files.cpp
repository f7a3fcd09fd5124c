#include "base/confinement.hpp"
#include "base/landlock.hpp"
#include "base/system_paths.hpp"

namespace comfyd {

int restrict_files(const std::vector<std::filesystem::path>& folders, bool reads_system) {
    using enum LandlockRules::Right;
    LandlockRules rules;
    if (reads_system) {
        for (const char* path : kSystemFolders) {
            rules.allow(path, read);
        }
        for (const char* path : kSystemSettings) {
            rules.allow(path, read);
        }
        for (const char* path : kSystemSources) {
            rules.allow(path, read);
        }
        // The number of cores and the like; into other processes Landlock itself lets nobody look.
        rules.allow("/proc", read);
    }
    rules.allow(kNowhere, device);
    for (const auto& folder : folders) {
        rules.allow(folder, write);
    }
    return rules.enforce();
}

}  // namespace comfyd
