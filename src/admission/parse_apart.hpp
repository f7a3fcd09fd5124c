// Parsing of what a small request brought here from elsewhere: large texts on threads of their own,
// so that the connections of the same io thread go on meanwhile. (Large requests are on other
// threads altogether: large_requests.hpp.)
#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include "admission/desk.hpp"

namespace comfyd::admission {

inline constexpr std::size_t kLargeTextBytes = 256 * 1024;  // some milliseconds

// `parse` takes the text and keeps nothing of it. On the connection's executor.
template <class Parse>
Task<std::invoke_result_t<Parse, const std::string&>> parse_apart(
    const Desk& desk, std::string text, Parse parse
) {
    if (text.size() <= kLargeTextBytes) {
        co_return parse(text);
    }
    auto parsed =
        co_await desk.parsing->run([text = std::move(text), parse] { return parse(text); });
    co_return parsed;
}

}  // namespace comfyd::admission
