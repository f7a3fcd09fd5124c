// The port of who may call as which instance, and the book of those whose workers this process
// leads: such as the configuration names, and machines from their order to their end. Any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/mutex.hpp"

namespace comfyd::agent {

class Tokens {
public:
    virtual ~Tokens() = default;
    // Whether this is the token of that instance, now. Takes the same time whatever differs.
    virtual bool knows(std::string_view instance, std::string_view token) const = 0;
    // Nothing is known of it here, but another process of several may lead it.
    virtual bool may_be_elsewhere(std::string_view instance) const = 0;
};

class TokenBook final : public Tokens {
public:
    using Entries = std::map<std::string, std::string, std::less<>>;  // by instance

    explicit TokenBook(Entries tokens = {}, bool is_one_of_several = false)
        : tokens_(std::move(tokens)), is_one_of_several_(is_one_of_several) {}

    bool knows(std::string_view instance, std::string_view token) const override;
    bool may_be_elsewhere(std::string_view instance) const override;
    // An instance has one: a new one takes the place of the old.
    void set(const std::string& instance, std::string token);
    // It dies with its instance: who still calls with it is cut off at the next report.
    void remove(const std::string& instance);

private:
    mutable Mutex mutex_;
    Entries tokens_ COMFYD_GUARDED_BY(mutex_);
    const bool is_one_of_several_;
};

}  // namespace comfyd::agent
