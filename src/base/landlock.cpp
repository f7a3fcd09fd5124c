#include "base/landlock.hpp"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace comfyd {
namespace {

constexpr std::uint64_t kRead = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t kRun = LANDLOCK_ACCESS_FS_EXECUTE;
constexpr std::uint64_t kFirstRights = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;
// Later kernels' words, which older headers do not have. What is done with devices (version 5) is
// not asked about: who may open one may use it, and CUDA does nothing else.
constexpr std::uint64_t kMoveBetweenFolders = 1ULL << 13;  // version 2
constexpr std::uint64_t kTruncate = 1ULL << 14;            // version 3
// Signals and unnamed sockets of processes outside.
constexpr int kScopesSince = 6;
constexpr std::uint64_t kOwnProcessesOnly = 3;
struct Ruleset {
    std::uint64_t files;
    std::uint64_t network;
    std::uint64_t scopes;
};
constexpr std::uint64_t kOfFiles =
    LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | kRun | kTruncate;

}  // namespace

int landlock_version() {
    const long version =
        ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return static_cast<int>(std::max(version, 0L));
}

LandlockRules::LandlockRules() {
    const int version = landlock_version();
    known_ =
        kFirstRights | (version >= 2 ? kMoveBetweenFolders : 0) | (version >= 3 ? kTruncate : 0);
    const Ruleset handled{known_, 0, version >= kScopesSince ? kOwnProcessesOnly : 0};
    // Older kernels know the first member alone.
    const std::size_t bytes = version >= kScopesSince ? sizeof handled : sizeof handled.files;
    rules_ = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &handled, bytes, 0));
    error_ = rules_ < 0 ? errno : 0;
}

LandlockRules::~LandlockRules() {
    if (rules_ >= 0) {
        ::close(rules_);
    }
}

std::uint64_t LandlockRules::rights_of(Right right) const {
    switch (right) {
        case Right::read:
            return kRead;
        case Right::read_and_run:
            return kRead | kRun;
        case Right::write:
            return known_ & ~kRun;
        case Right::write_and_run:
            return known_;
        case Right::device:
            return known_ & kOfFiles & ~kRun;
    }
    return 0;
}

void LandlockRules::allow(const std::filesystem::path& path, Right right) {
    if (error_ != 0) {
        return;
    }
    const int place = ::open(path.c_str(), O_PATH | O_CLOEXEC);
    struct stat about{};
    if (place < 0 || ::fstat(place, &about) != 0) {
        error_ = errno == ENOENT ? 0 : errno;
        return;
    }
    landlock_path_beneath_attr below{};
    below.allowed_access = S_ISDIR(about.st_mode) ? rights_of(right) : rights_of(right) & kOfFiles;
    below.parent_fd = place;
    const long added =
        ::syscall(SYS_landlock_add_rule, rules_, LANDLOCK_RULE_PATH_BENEATH, &below, 0);
    error_ = added == 0 ? 0 : errno;
    ::close(place);
}

int LandlockRules::enforce() {
    if (error_ == 0 && ::syscall(SYS_landlock_restrict_self, rules_, 0) != 0) {
        error_ = errno;
    }
    return error_;
}

}  // namespace comfyd
