// How Python shows and converts JSON values. ComfyUI's validation is Python's int(), float(),
// bool() and str(), and its error texts are Python's; clients read both.
#pragma once

#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "base/json.hpp"

namespace comfyd::workflow {

std::string python_repr(const json::value& of);
std::string python_str(const json::value& of);
std::string_view python_type(const json::value& of);
bool python_bool(const json::value& of);
// ==, where true is 1 and 1 is 1.0.
bool python_equal(const json::value& left, const json::value& right);

// Python's integers have no limit.
struct PythonInt {
    json::value value;  // null: beyond 64 bits
    bool negative = false;
    std::string text;  // all digits, with the sign
};
// -1, 0 or 1, exact between integers and floats; 0 for NaN. `right` is a number.
int python_compare(const PythonInt& left, const json::value& right);
int python_compare(double left, const json::value& right);
// The error is the exception's text.
tl::expected<PythonInt, std::string> python_int(const json::value& of);
tl::expected<double, std::string> python_float(const json::value& of);

}  // namespace comfyd::workflow
