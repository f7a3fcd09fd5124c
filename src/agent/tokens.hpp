// The port of who may call as which instance. Any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace comfyd::agent {

class Tokens {
public:
    virtual ~Tokens() = default;
    // Whether this is the token of that instance, now. Takes the same time whatever differs.
    virtual bool knows(std::string_view instance, std::string_view token) const = 0;
};

// Of the workers that the configuration names.
class NamedTokens final : public Tokens {
public:
    explicit NamedTokens(std::map<std::string, std::string> tokens);
    bool knows(std::string_view instance, std::string_view token) const override;

private:
    const std::map<std::string, std::string, std::less<>> tokens_;  // by instance
};

}  // namespace comfyd::agent
