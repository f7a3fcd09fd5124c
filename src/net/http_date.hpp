// Times as headers of HTTP have them.
#pragma once

#include <optional>
#include <string_view>

#include "base/time.hpp"

namespace comfyd::net {

// "Sun, 06 Nov 1994 08:49:37 GMT". Nullopt for anything else.
std::optional<Time> parse_http_date(std::string_view text);

// The Retry-After header: seconds or an HTTP date. Nullopt when it is neither.
std::optional<Millis> parse_retry_after(std::string_view header, Time now);

}  // namespace comfyd::net
