// A large content on its way into a bucket, part by part. Some parts are under way at a time, each
// as long as the others but the last, which all services take. Nobody sees anything of it before it
// is complete. What is cut off by a crash or an outage is gone on with at the next try, where it
// was noted (UploadNote); what fails otherwise is taken back, and the rest is left to
// abort_uploads().
#pragma once

#include <cstdint>
#include <string>

#include "assets/s3/requests.hpp"

namespace comfyd::assets::s3 {

inline constexpr std::uint64_t kPartBytes = 8ULL * 1024 * 1024;
inline constexpr std::uint64_t kPartsMax = 10'000;

// Of all parts but the last, in whole MiB.
std::uint64_t part_bytes_for(std::uint64_t size, std::uint64_t part_bytes_min = kPartBytes);

// From where the parts come.
struct UploadPlan {
    std::string key;
    net::Headers headers{};  // of the object that is made
    std::uint64_t size_bytes = 0;
    std::uint64_t part_bytes = kPartBytes;
    // Either bytes of ours, or those of an object that is there ("/bucket/key", encoded).
    Source source{};
    std::string copy_source{};
};

// On the requests' executor, which they outlive. As Requests::send().
Task<Result<>> upload(Requests& requests, UploadPlan plan);

// Those of blobs, or of all, below `prefix` that were begun before `before`.
Task<Result<int>> abort_uploads(
    Requests& requests, std::string prefix, bool of_any_name, Time before
);

}  // namespace comfyd::assets::s3
