#include "net/open_files.hpp"

#include <sys/resource.h>

#include <algorithm>

namespace comfyd::net {
namespace {

// Some systems allow a billion, for which nobody has a use.
constexpr rlim_t kOpenFilesMax = 1U << 20;
constexpr std::size_t kReserveMin = 192;  // the ledger, threads, outputs that are being stored
constexpr std::size_t kFilesPerWorker = 8;
constexpr std::size_t kConnectionsMin = 16;

}  // namespace

std::size_t raise_open_files_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return 1024;
    }
    const rlim_t wanted = std::max(limit.rlim_cur, std::min(limit.rlim_max, kOpenFilesMax));
    const rlimit raised{wanted, limit.rlim_max};
    return ::setrlimit(RLIMIT_NOFILE, &raised) == 0 ? wanted : limit.rlim_cur;
}

// A quarter is left for the files that requests read and write.
std::size_t connections_within(std::size_t open_files, std::size_t workers) {
    const std::size_t reserve = std::max(kReserveMin, open_files / 4) + workers * kFilesPerWorker;
    return std::max(kConnectionsMin, open_files - std::min(reserve, open_files));
}

}  // namespace comfyd::net
