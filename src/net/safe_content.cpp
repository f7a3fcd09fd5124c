#include "net/safe_content.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "base/text.hpp"

namespace comfyd::net {

bool is_active_type(std::string_view content_type) {
    constexpr std::array<std::string_view, 9> kActive{
        "text/html",
        "text/xml",
        "text/xsl",
        "application/xml",
        "text/javascript",
        "application/javascript",
        "application/ecmascript",
        "application/x-javascript",
        "application/x-shockwave-flash",
    };
    const std::string type = lower(trim(content_type.substr(0, content_type.find(';'))));
    // Of several parts each may be of any type.
    return type.starts_with("multipart/") || type.ends_with("+xml") ||
           type.ends_with("ecmascript") ||
           std::find(kActive.begin(), kActive.end(), type) != kActive.end();
}

}  // namespace comfyd::net
