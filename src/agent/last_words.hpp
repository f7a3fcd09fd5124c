// What a program said before it ended: the exception that a Python ended with, else its last lines.
// Its log may be gone with its machine before anybody looks, so the reason of its end must say it.
// One thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace comfyd::agent {

class LastWords {
public:
    // `secrets`: what it may say and nobody shall read.
    explicit LastWords(std::vector<std::string> secrets = {}) : secrets_(std::move(secrets)) {}

    void hear(std::string_view bytes);
    void forget() { heard_.clear(); }
    // One short line of ASCII, without secrets; empty: it said nothing.
    std::string said() const;

private:
    const std::vector<std::string> secrets_;
    std::string heard_;  // the end of it
};

}  // namespace comfyd::agent
