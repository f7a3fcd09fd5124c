// Parsing of what a small request brought here from elsewhere: large texts on threads of their own,
// so that the connections of the same io thread go on meanwhile. (Large requests are on other
// threads altogether: large_requests.hpp.)
#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include "api/services.hpp"

namespace comfyd::api {

inline constexpr std::size_t kLargeTextBytes = 256 * 1024;  // some milliseconds

// `parse` takes the text and keeps nothing of it. On the connection's executor.
template <class Parse>
Task<std::invoke_result_t<Parse, const std::string&>> parse_apart(
    const Services& services, std::string text, Parse parse
) {
    if (text.size() <= kLargeTextBytes) {
        co_return parse(text);
    }
    auto parsed =
        co_await services.parsing->run([text = std::move(text), parse] { return parse(text); });
    co_return parsed;
}

}  // namespace comfyd::api
