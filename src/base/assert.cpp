#include "base/assert.hpp"

#include <cstdio>
#include <cstdlib>

#include "base/log.hpp"

namespace comfyd {

void assertion_failed(const char* expression, const char* file, int line) {
    if (log::flush()) {
        std::fprintf(stderr, "comfyd: assertion failed: %s (%s:%d)\n", expression, file, line);
    }
    std::abort();
}

}  // namespace comfyd
