// Texts that hold secrets, as the database has them: sealed with what all nodes know, or, where
// there is no such secret, as they are.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/sealing.hpp"

namespace comfyd::ledger::postgres {

class SecretTexts {
public:
    explicit SecretTexts(const std::string& secret)
        : sealing_(secret.empty() ? std::nullopt : std::optional<Sealing>(secret)) {}

    // `label` says what it belongs to, and must be told again to read it.
    std::string write(std::string_view text, std::string_view label) const {
        return sealing_ ? kSealed + sealing_->seal(text, label) : std::string(text);
    }
    // nullopt: it was sealed with another secret or for something else, or is damaged.
    std::optional<std::string> read(std::string_view stored, std::string_view label) const {
        if (!stored.starts_with(kSealed)) {
            return std::string(stored);
        }
        return sealing_ ? sealing_->open(stored.substr(1), label) : std::nullopt;
    }

private:
    static constexpr char kSealed = '\1';  // begins no JSON

    const std::optional<Sealing> sealing_;
};

}  // namespace comfyd::ledger::postgres
