// Brings the outputs of a job to the bucket that its request named (RunPod's "s3Config"), when they
// are finished and before the end of the job is stored: its answer holds their addresses there.
// They are kept in our store all the same. A bucket that cannot be reached, or refuses, costs a job
// some time and nothing else: each output says why it is not there.
//
// Has a thread of its own: such buckets may be slow, or mean harm.
#pragma once

#include <cstddef>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "assets/s3/given_bucket.hpp"
#include "assets/store.hpp"
#include "base/json.hpp"
#include "base/pool.hpp"
#include "base/sealing.hpp"
#include "base/time.hpp"
#include "jobs/job.hpp"
#include "net/io_threads.hpp"

namespace comfyd::media {

// The member of a job's dialect_data that says so: a GivenBucket, its keys sealed.
inline constexpr std::string_view kExportMember = "export";

struct ExportOptions {
    bool allows_private = false;  // addresses, and http
    std::string ca_file{};
    Millis time_max = std::chrono::minutes(10);  // for all files of one job
    // At a time, so that slow buckets take no more than a bounded share of the memory.
    std::size_t jobs_max = 16;
    std::size_t jobs_per_tenant_max = 4;
};

class Exporter {
public:
    // All outlive it.
    Exporter(
        assets::Store& store,
        const Sealing& sealing,
        Clock& clock,
        Pool& pool,
        ExportOptions options
    );
    ~Exporter();  // REQUIRES: nobody waits for it any more

    // The outputs of a job with what became of them there (jobs::Output::exported), or as they
    // were, where the job names no bucket. Code::cancelled alone: `stop` came. Any executor.
    Task<Result<std::vector<jobs::Output>>> bring(
        jobs::Job job, std::vector<jobs::Output> outputs, std::stop_token stop
    );

private:
    struct File {
        std::size_t output = 0;
        std::string name;  // in the bucket
        assets::Source source;
        json::object outcome;
    };
    struct Run;

    Task<> find_files(Run& run);
    Task<bool> bring_all(Run& run);
    Task<bool> wait_for_turn(Run& run);
    Task<> bring_files(Run& run);
    Task<> bring_some(Run& run);
    Task<Result<json::object>> bring_one(Run& run, const File& file);
    bool may_begin(const std::string& tenant) const;

    assets::Store& store_;
    const Sealing& sealing_;
    Clock& clock_;
    Pool& pool_;
    const ExportOptions options_;
    net::IoThread thread_;
    // On the thread.
    std::map<std::string, std::size_t> running_;  // by tenant
    std::size_t running_count_ = 0;
    Signal ended_;
};

}  // namespace comfyd::media
