// A way to another executor and back that many take together: waking a thread for each would cost
// more than what they do there.
//
// Who comes while others wait on this side crosses with them; all that goes back to one executor
// goes in one post, too. Otherwise as work_on() (base/hop.hpp). It outlives the target's context.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/mutex.hpp"
#include "base/task.hpp"

namespace comfyd {

class Ferry {
public:
    explicit Ferry(Executor target);
    ~Ferry();
    Ferry(const Ferry&) = delete;
    Ferry& operator=(const Ferry&) = delete;

    // Does `work` on the target and continues the caller on its own executor. The work is not
    // interrupted by cancellation. Any thread.
    Task<> cross(std::function<void()> work);

    struct Passenger;

private:
    void board(std::unique_ptr<Passenger> passenger);
    void carry();

    Executor target_;
    Mutex mutex_;
    std::vector<std::unique_ptr<Passenger>> waiting_ COMFYD_GUARDED_BY(mutex_);
};

}  // namespace comfyd
