// Where a bucket is asked: by the name of its service, or by a name of its own. Pure.
#pragma once

#include <string>

#include "base/error.hpp"

namespace comfyd::assets::s3 {

// Whether the bucket stands in the path or before the host's name. automatic: before it on AWS,
// unless its name has dots (no certificate is for such hosts); in the path elsewhere, which every
// service understands.
enum class Style { automatic, path, virtual_host };

struct BucketName {
    std::string bucket;
    std::string endpoint{};  // "https://s3.example.com"; empty: AWS's of the region
    std::string region{};    // empty: that of the endpoint's name, or us-east-1
    Style style = Style::automatic;
};

struct Address {
    std::string scheme;
    std::string host;  // as in the header Host
    std::string root;  // "/bucket", or empty

    // Of an object, or of the bucket: not encoded.
    std::string path_of(const std::string& key) const { return root + "/" + key; }
};

// The region to sign for.
std::string region_of(const BucketName& name);
// Code::config_invalid with what is wrong.
Result<Address> address_of(const BucketName& name);
// AWS's own endpoints, whose names follow from the region.
bool is_aws(const BucketName& name);
// Backblaze B2's, where an object that is deleted is only hidden, and stays and costs.
bool is_backblaze(const BucketName& name);

}  // namespace comfyd::assets::s3
