// What Docker tells while it pulls an image, and how images are named. Internal to the provider
// `docker`. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace comfyd::fleet {

struct ImageName {
    std::string repository;  // "registry.example.com:5000/comfyui"
    std::string tag;         // or a digest; never empty, as that would mean all of them

    std::string registry() const;  // "docker.io" where the name has none
};
// "comfyui", "registry:5000/comfyui:1", "comfyui@sha256:…". Code::invalid_argument.
Result<ImageName> parse_image(std::string_view text);

// The X-Registry-Auth header.
std::string registry_login(
    const ImageName& image, std::string_view user, std::string_view password
);

// Lines of JSON, in pieces of any size.
class PullProgress {
public:
    // A failure that Docker tells in a line: Code::invalid_argument where there is no such image or
    // nobody may have it, Code::upstream_error otherwise.
    Result<> take(std::string_view piece);
    // 0 … 100, and never less than before. All is counted twice: brought here, and unpacked.
    int percent() const { return percent_; }

private:
    struct Layer {
        std::uint64_t bytes = 0;  // 0: not told yet
        double brought = 0;       // 0 … 1
        double unpacked = 0;
    };

    Result<> take_line(std::string_view line);
    void count();

    std::string unfinished_;
    std::map<std::string, Layer> layers_;
    int percent_ = 0;
};

}  // namespace comfyd::fleet
