// Ed25519: whoever has the public key can check a checkpoint, and cannot make one. Any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace comfyd::audit {

class Signer {
public:
    // `seed`: 32 secret bytes. Code::internal.
    static Result<Signer> make(std::string seed);

    const std::string& public_key() const { return public_key_; }  // in hex
    Result<std::string> sign(std::string_view text) const;         // in hex

private:
    Signer(std::string seed, std::string public_key)
        : seed_(std::move(seed)), public_key_(std::move(public_key)) {}

    std::string seed_;
    std::string public_key_;
};

// Both in hex.
bool is_signed_by(std::string_view public_key, std::string_view text, std::string_view signature);

}  // namespace comfyd::audit
