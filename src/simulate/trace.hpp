// What is to be simulated: which jobs came when, and how long each really takes. Plain values, and
// their form as a file of JSON lines:
//   {"kind":"comfyd trace","version":1}
//   {"profile":"p1","seconds":2.5,"images":1,"shape":"…","requirement":"…","models":[{"name":"…",
//    "bytes":6000000000}],"work_units":100,"heuristic_seconds":5,"vram_bytes":9000000000,
//    "can_be_merged":true,"kept_part":0.1}
//   {"at_ms":250,"profile":"p1","tenant":"a","priority":5,"batch":false,"factor":1.03,"content":7}
// Of a job only the time and the profile are needed, of a profile only the seconds: those of a run
// on the GPU type with speed 1, with all models loaded. `factor`: how much longer this job takes.
// Jobs with the same `content` do the same; `kept_part`: of a run, what a worker saves whose latest
// one was of the same profile.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "scheduler/profile.hpp"

namespace comfyd::simulate {

struct TraceProfile {
    scheduler::ProfilePtr profile;
    double seconds = 1;
    double images = 1;  // that one run makes
    // Of a run: nodes that are the same in every job of it (loaders, encoders of the usual texts),
    // whose results the worker still has when its latest run was one of these, too.
    double kept_part = 0;
};

struct TraceJob {
    std::int64_t at_ms = 0;
    std::uint32_t profile = 0;
    std::uint32_t tenant = 0;
    float factor = 1;  // of the profile's seconds
    std::uint8_t priority = 5;
    bool batch = false;
    std::uint64_t content = 0;  // the same: they do the same; 0: like no other
};

struct Trace {
    std::vector<TraceProfile> profiles;
    std::vector<std::string> tenants;
    std::vector<TraceJob> jobs;  // by time
};

// By time. Jobs that are in order already stay as they are.
void sort_jobs(std::vector<TraceJob>& jobs);

inline constexpr std::size_t kTraceJobsMax = 20'000'000;

// Code::invalid_argument with the number of the line.
Result<Trace> read_trace(std::istream& from);
void write_trace(const Trace& trace, std::ostream& into);

}  // namespace comfyd::simulate
