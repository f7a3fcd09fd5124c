// Landlock, by its system calls: the C library has no functions for it.
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "base/confinement.hpp"

namespace comfyd {
namespace {

// Programs find the libraries, the fonts, the time zone and the number of cores there.
constexpr std::array kReadable{"/usr", "/lib", "/lib64", "/etc", "/proc", "/sys", "/dev"};
// Programs throw things away there.
constexpr const char* kNowhere = "/dev/null";

constexpr std::uint64_t kRead = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t kFirstRights = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;
// Later kernels' words, which older headers do not have.
constexpr std::uint64_t kMoveBetweenFolders = 1ULL << 13;  // version 2
constexpr std::uint64_t kTruncate = 1ULL << 14;            // version 3
constexpr std::uint64_t kOfFiles =
    LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate;

std::uint64_t known_rights(long version) {
    return kFirstRights | (version >= 2 ? kMoveBetweenFolders : 0) | (version >= 3 ? kTruncate : 0);
}

int allow(int rules, const char* path, std::uint64_t rights) {
    const int place = ::open(path, O_PATH | O_CLOEXEC);
    if (place < 0) {
        return errno;
    }
    landlock_path_beneath_attr below{};
    below.allowed_access = rights;
    below.parent_fd = place;
    const long added =
        ::syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &below, 0);
    const int error = added == 0 ? 0 : errno;
    ::close(place);
    return error;
}

int fill(
    int rules,
    std::uint64_t rights,
    const std::vector<std::filesystem::path>& folders,
    bool reads_system
) {
    for (const char* path : kReadable) {
        const int error = reads_system ? allow(rules, path, rights & kRead) : 0;
        if (error != 0 && error != ENOENT) {
            return error;
        }
    }
    if (const int error = allow(rules, kNowhere, rights & kOfFiles); error != 0) {
        return error;
    }
    for (const auto& folder : folders) {
        const auto within = rights & ~std::uint64_t{LANDLOCK_ACCESS_FS_EXECUTE};
        if (const int error = allow(rules, folder.c_str(), within); error != 0) {
            return error;
        }
    }
    return ::syscall(SYS_landlock_restrict_self, rules, 0) == 0 ? 0 : errno;
}

}  // namespace

int restrict_files(const std::vector<std::filesystem::path>& folders, bool reads_system) {
    const long version =
        ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 0) {
        return errno;
    }
    const std::uint64_t rights = known_rights(version);
    landlock_ruleset_attr handled{};
    handled.handled_access_fs = rights;
    const int rules =
        static_cast<int>(::syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0));
    if (rules < 0) {
        return errno;
    }
    const int error = fill(rules, rights, folders, reads_system);
    ::close(rules);
    return error;
}

}  // namespace comfyd
