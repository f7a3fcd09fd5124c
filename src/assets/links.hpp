// Download links that work without credentials for a limited time.
#pragma once

#include <string>
#include <string_view>

#include "base/id.hpp"
#include "base/time.hpp"

namespace comfyd::assets {

class LinkSigner {
public:
    explicit LinkSigner(std::string key, Millis lifetime = std::chrono::hours(24));

    struct Link {
        std::string target;  // "/api/v2/assets/<id>/content?expires=<unix s>&signature=<hex>"
        Time expires_at;
    };
    Link sign(const AssetId& id, Time now) const;
    Millis lifetime() const { return lifetime_; }
    bool verify(const AssetId& id, std::string_view expires, std::string_view signature, Time now)
        const;

private:
    std::string key_;
    Millis lifetime_;
};

}  // namespace comfyd::assets
