#include "assets/s3/address.hpp"

#include <algorithm>
#include <vector>

#include "net/http.hpp"

namespace comfyd::assets::s3 {
namespace {

constexpr std::string_view kAws = ".amazonaws.com";
constexpr std::string_view kBackblaze = ".backblazeb2.com";

std::string host_of(const BucketName& name) {
    const auto url = net::Url::parse(name.endpoint);
    return url ? url->host : std::string();
}

std::vector<std::string> labels_of(std::string_view host) {
    std::vector<std::string> labels;
    while (!host.empty()) {
        const auto end = std::min(host.find('.'), host.size());
        labels.emplace_back(host.substr(0, end));
        host.remove_prefix(std::min(end + 1, host.size()));
    }
    return labels;
}

bool is_bucket_name(std::string_view name) {
    return name.size() >= 3 && name.size() <= 63 && std::ranges::all_of(name, [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '.' || c == '_';
           });
}

bool stands_before_host(const BucketName& name) {
    switch (name.style) {
        case Style::path:
            return false;
        case Style::virtual_host:
            return true;
        case Style::automatic:
            break;
    }
    return is_aws(name) && name.bucket.find('.') == std::string::npos;
}

}  // namespace

bool is_aws(const BucketName& name) {
    return name.endpoint.empty() || host_of(name).ends_with(kAws);
}

bool is_backblaze(const BucketName& name) {
    return host_of(name).ends_with(kBackblaze);
}

std::string region_of(const BucketName& name) {
    if (!name.region.empty()) {
        return name.region;
    }
    const std::string host = host_of(name);
    if (host.ends_with(".r2.cloudflarestorage.com") || host == "storage.googleapis.com") {
        return "auto";
    }
    // "s3.us-west-004.backblazeb2.com", "s3.eu-central-1.amazonaws.com"
    const auto labels = labels_of(host);
    const bool names_region = (host.ends_with(kAws) || host.ends_with(kBackblaze)) &&
                              labels.size() == 4 && labels[0] == "s3";
    return names_region ? labels[1] : "us-east-1";
}

Result<Address> address_of(const BucketName& name) {
    if (!is_bucket_name(name.bucket)) {
        return fail(
            Code::config_invalid,
            "bucket: '" + name.bucket +
                "' is no name of a bucket: 3 to 63 letters, digits, dots, dashes and underscores"
        );
    }
    const std::string endpoint =
        name.endpoint.empty() ? "https://s3." + region_of(name) + std::string(kAws) : name.endpoint;
    const auto url = net::Url::parse(endpoint);
    if (!url || (url->scheme != "https" && url->scheme != "http") || url->target != "/") {
        return fail(
            Code::config_invalid,
            "endpoint: '" + endpoint + "' is not of the form https://host or http://host:port"
        );
    }
    if (stands_before_host(name)) {
        return Address{url->scheme, name.bucket + "." + url->host_header(), ""};
    }
    return Address{url->scheme, url->host_header(), "/" + name.bucket};
}

}  // namespace comfyd::assets::s3
