#include "app/commands/server_address.hpp"

#include <cstdlib>

namespace comfyd::app {
namespace {

void from_environment(std::string& option, const char* name, const char* otherwise) {
    const char* value = std::getenv(name);
    if (option.empty()) {
        option = value != nullptr ? value : otherwise;
    }
}

}  // namespace

void complete_address(std::string& url, std::string& key) {
    from_environment(url, "COMFYD_URL", "http://127.0.0.1:8080");
    from_environment(key, "COMFYD_KEY", "");
    while (url.ends_with('/')) {
        url.pop_back();
    }
}

}  // namespace comfyd::app
