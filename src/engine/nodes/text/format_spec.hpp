// Python's format(): how one value is written under a specification such as ">8", "05d" or ",.2f".
#pragma once

#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "base/json.hpp"

namespace comfyd::engine::nodes {

struct FormatProblem {
    std::string exception_type = "ValueError";
    std::string text;
};

tl::expected<std::string, FormatProblem> python_format(
    const json::value& value, std::string_view spec
);

}  // namespace comfyd::engine::nodes
