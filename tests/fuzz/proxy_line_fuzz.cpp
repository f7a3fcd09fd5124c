// What a proxy says before its client: nothing crashes, a line is no longer than what came, and
// what is read of the whole is not read of a part.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "net/proxy_line.hpp"

namespace {

void require(bool condition) {
    if (!condition) {
        std::abort();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto parsed = comfyd::net::parse_proxy_line(text);
    if (!parsed || !*parsed) {
        return 0;
    }
    const std::size_t bytes = (*parsed)->bytes;
    require(bytes > 0 && bytes <= text.size() && bytes <= comfyd::net::kProxyLineBytesMax);
    const auto alone = comfyd::net::parse_proxy_line(text.substr(0, bytes));
    require(alone && *alone && (*alone)->client == (*parsed)->client);
    const auto part = comfyd::net::parse_proxy_line(text.substr(0, bytes - 1));
    require(part && !*part);
    return 0;
}
