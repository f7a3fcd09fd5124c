#include "app/child_environment.hpp"

#include <cstdlib>

namespace comfyd::app {

std::vector<std::string> child_environment() {
    std::vector<std::string> chosen;
    for (const char* name :
         {"TZ", "ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"}) {
        if (const char* value = std::getenv(name)) {
            chosen.push_back(std::string(name) + "=" + value);
        }
    }
    return chosen;
}

}  // namespace comfyd::app
