// COMFYD_ASSERT: a programmer error, never bad input. Stays on in release builds, because going on
// with broken state could lose a job.
#pragma once

namespace comfyd {
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);
}

#define COMFYD_ASSERT(expression)        \
    ((expression) ? static_cast<void>(0) \
                  : ::comfyd::assertion_failed(#expression, __FILE__, __LINE__))
