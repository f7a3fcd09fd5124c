#include "agent/tokens.hpp"

#include <algorithm>
#include <utility>

#include "base/crypto.hpp"

namespace comfyd::agent {

NamedTokens::NamedTokens(std::map<std::string, std::string> tokens)
    : tokens_(tokens.begin(), tokens.end()) {}

bool NamedTokens::knows(std::string_view instance, std::string_view token) const {
    const auto found = tokens_.find(instance);
    return found != tokens_.end() && !found->second.empty() &&
           equal_constant_time(found->second, token);
}

bool AllTokens::knows(std::string_view instance, std::string_view token) const {
    return std::ranges::any_of(all_, [&](const Tokens* tokens) {
        return tokens->knows(instance, token);
    });
}

}  // namespace comfyd::agent
