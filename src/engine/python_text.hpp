// How Python shows and converts JSON values. ComfyUI's validation is Python's int(), float(),
// bool() and str(), and its error texts are Python's; clients read both.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tl/expected.hpp>

#include "base/json.hpp"

namespace comfyd::engine {

std::string python_repr(const json::value& of);
std::string python_str(const json::value& of);
std::string_view python_type(const json::value& of);
bool python_bool(const json::value& of);

struct PythonInt {
    std::optional<std::int64_t> value;  // nullopt: does not fit
    bool negative = false;
    std::string text;  // all digits
};
// The error is the exception's text.
tl::expected<PythonInt, std::string> python_int(const json::value& of);
tl::expected<double, std::string> python_float(const json::value& of);

}  // namespace comfyd::engine
