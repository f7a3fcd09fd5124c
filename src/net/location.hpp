// What the Location header of a redirect means. Pure.
#pragma once

#include <string_view>

#include "net/http.hpp"

namespace comfyd::net {

// `reference` may be relative to `base`, the URL that was asked for. Code::invalid_argument as for
// Url::parse().
Result<Url> resolve_location(const Url& base, std::string_view reference);

// The same for those who follow it: http and https only (Code::upstream_error), and never from
// https to http (Code::address_refused).
Result<Url> follow_redirect(const Url& from, std::string_view location);

}  // namespace comfyd::net
