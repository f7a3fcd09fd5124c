// What a program said before it ended: the exception that a Python ended with, else its last lines.
// Its log may be gone with its machine before anybody looks, so the reason of its end must say it.
// One thread.
#pragma once

#include <string>
#include <string_view>

namespace comfyd::agent {

class LastWords {
public:
    void hear(std::string_view bytes);
    void forget() { heard_.clear(); }
    // One short line of ASCII; empty: it said nothing.
    std::string said() const;

private:
    std::string heard_;  // the end of it
};

}  // namespace comfyd::agent
