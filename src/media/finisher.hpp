// Finishes the outputs of a job (jobs/finishing.hpp): says what each is, and has the variants made
// that its client or the operator asked for. Pictures of which nothing is wanted are only looked at
// by their headers, here; everything else is done by helper processes. Any executor.
#pragma once

#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "assets/store.hpp"
#include "base/pool.hpp"
#include "jobs/finishing.hpp"
#include "jobs/output_wishes.hpp"
#include "media/helpers.hpp"

namespace comfyd::media {

class Finisher {
public:
    // `thumbnails`: made for every job, beside those that its client asks for. All outlive it.
    Finisher(assets::Store& store, Pool& pool, Helpers& helpers, std::vector<int> thumbnails)
        : store_(store), pool_(pool), helpers_(helpers), thumbnails_(std::move(thumbnails)) {}

    Task<Result<std::vector<jobs::Output>>> finish(
        jobs::Job job, std::vector<jobs::Output> outputs, std::stop_token stop
    );

private:
    struct Run;
    struct Look {
        Facts facts;
        bool is_all = false;  // there is nothing more to be known of it without decoding it
    };

    Task<> finish_some(Run& run);
    Task<Result<>> finish_one(const Run& run, jobs::Output& output);
    Task<Look> look_at(Source source, std::string name, std::string content_type);
    Task<> keep(const jobs::Job& job, Variant variant, jobs::Output& output);

    assets::Store& store_;
    Pool& pool_;
    Helpers& helpers_;
    const std::vector<int> thumbnails_;
};

}  // namespace comfyd::media
