// The work of a helper process, from its confinement to its end: `comfyd media`. One thread.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/confinement.hpp"

namespace comfyd::media {

struct ServeOptions {
    int parent = 0;  // its pid
    std::uint64_t memory_bytes_max = 0;
    std::chrono::milliseconds time_max{0};  // of one file; after that the parent ends this process
    int files_max = 0;                      // then it ends, and another one takes its place
};

// What is taken from such a process before it sees the first file.
Confinement confinement_of(const ServeOptions& options);

// Takes files from the socket that is its standard input and answers there, until the parent goes.
// The status to end with.
int serve(const ServeOptions& options);

}  // namespace comfyd::media
