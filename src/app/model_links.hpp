// Where agents have the sources of models from that only this server knows: objects in buckets of
// its stores, by links that are signed here, so that no key leaves it; and files that were
// uploaded, by a ticket. Owned by the application. Any thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "app/config/config.hpp"
#include "assets/blob_store.hpp"
#include "base/pool.hpp"
#include "base/time.hpp"

namespace comfyd::app {

class ModelLinks {
public:
    // `clock` and `pool` outlive it. Code::config_invalid, Code::storage_unavailable.
    static Result<std::unique_ptr<ModelLinks>> make(const Config& config, Clock& clock, Pool& pool);

    // An address that is good for an hour; the path alone of this server's own where it was not
    // told how others reach it. Code::not_found, Code::output_unavailable: it is archived, and was
    // asked for.
    Task<Result<std::string>> link_of(std::string source);
    // Whether a source can be had at all; of objects, that there is such a bucket.
    Result<> check(const std::string& source) const;
    bool is_good_ticket(std::string_view sha256, std::string_view until, std::string_view ticket)
        const;

private:
    ModelLinks(const Config& config, Clock& clock) : origin_(config.public_url), clock_(clock) {}

    std::string origin_;
    Clock& clock_;
    std::string key_{};
    std::map<std::string, std::unique_ptr<assets::BlobStore>, std::less<>> buckets_{};
};

}  // namespace comfyd::app
