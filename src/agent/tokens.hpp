// The port of who may call as which instance. Any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

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

// Of several who know some each. Filled before anybody asks; what it has outlives it.
class AllTokens final : public Tokens {
public:
    void add(const Tokens& tokens) { all_.push_back(&tokens); }
    bool knows(std::string_view instance, std::string_view token) const override;

private:
    std::vector<const Tokens*> all_;
};

}  // namespace comfyd::agent
