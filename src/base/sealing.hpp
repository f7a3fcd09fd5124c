// Texts that only those can read who have the secret: AES-256-GCM under a key made of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/crypto.hpp"

namespace comfyd {

class Sealing {
public:
    // Of any length; the same secret opens what it sealed.
    explicit Sealing(std::string_view secret);

    // What it belongs to (`label`) is not in it, but must be told again to open it: what was sealed
    // for one thing cannot be passed off as another's.
    std::string seal(std::string_view text, std::string_view label) const;
    // nullopt: it was sealed with another secret or for something else, or is damaged.
    std::optional<std::string> open(std::string_view sealed, std::string_view label) const;

private:
    Digest key_;
};

}  // namespace comfyd
