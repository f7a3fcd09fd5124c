// A certificate that signs itself, for servers of tests that speak TLS.
#pragma once

#include <string>

#include "support/temp_dir.hpp"

namespace comfyd::support {

// For "localhost" and 127.0.0.1. Paths of PEM files.
struct Certificate {
    std::string certificate;
    std::string key;
};
Certificate make_certificate(const TempDir& folder);

}  // namespace comfyd::support
