// The refusal of a member or a parameter that is not as it must be.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"

namespace comfyd::api {

inline tl::unexpected<Error> wrong(std::string_view field, std::string message) {
    return fail(
        Code::invalid_argument,
        std::move(message),
        {{"field", boost::json::string_view(field.data(), field.size())}}
    );
}

}  // namespace comfyd::api
