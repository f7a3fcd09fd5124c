// For work on the pool that returns a Result: what it throws (no memory, above all) must not end
// the thread.
#pragma once

#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#include "base/error.hpp"

namespace comfyd::assets {

template <class Work>
auto guarded(Work work) {
    return [work = std::move(work)]() mutable -> std::invoke_result_t<Work> {
        try {
            return work();
        } catch (const std::exception& exception) {
            return fail(
                Code::internal, std::string("a file operation failed: ") + exception.what()
            );
        }
    };
}

}  // namespace comfyd::assets
