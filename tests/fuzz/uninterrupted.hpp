// The fuzzer's own alarms interrupt calls.
#pragma once

#include <cerrno>

namespace comfyd {

template <class Call>
auto again(Call call) {
    auto result = call();
    while (result == -1 && errno == EINTR) {
        result = call();
    }
    return result;
}

}  // namespace comfyd
