#include "agent/tokens.hpp"

#include <utility>

#include "base/crypto.hpp"

namespace comfyd::agent {

bool TokenBook::knows(std::string_view instance, std::string_view token) const {
    const Lock lock(mutex_);
    const auto found = tokens_.find(instance);
    return found != tokens_.end() && !found->second.empty() &&
           equal_constant_time(found->second, token);
}

bool TokenBook::may_be_elsewhere(std::string_view instance) const {
    const Lock lock(mutex_);
    return is_one_of_several_ && !instance.empty() && !tokens_.contains(instance);
}

void TokenBook::set(const std::string& instance, std::string token) {
    const Lock lock(mutex_);
    tokens_[instance] = std::move(token);
}

void TokenBook::remove(const std::string& instance) {
    const Lock lock(mutex_);
    tokens_.erase(instance);
}

}  // namespace comfyd::agent
