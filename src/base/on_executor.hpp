// COMFYD_ON(executor) at the entry of what belongs to an executor: whoever calls it from a thread
// of another one is wrong, and is told so at once instead of by a rare crash. Checked where tests
// are built.
#pragma once

#include "base/assert.hpp"

namespace comfyd {

// Set by threads that run an executor. A test that has none, and calls what it tests, may.
inline thread_local bool this_thread_runs_an_executor = false;

}  // namespace comfyd

#ifdef COMFYD_CHECK_EXECUTORS
#define COMFYD_ON(executor) \
    COMFYD_ASSERT((executor).running_in_this_thread() || !::comfyd::this_thread_runs_an_executor)
#else
#define COMFYD_ON(executor) static_cast<void>(0)
#endif
