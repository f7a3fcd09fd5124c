// Brings outputs to the stores that they are meant for, for as long as the server runs
// (assets/uploader.hpp).
//
// Owned by the application; lives on one executor, which is not the core's.
#pragma once

#include <functional>

#include "assets/store.hpp"
#include "base/task.hpp"

namespace comfyd::app {

class Uploads {
public:
    struct Options {
        bool has_stores = false;  // beside the server's own: then it looks often
        // Whether a round is due here; empty: always. Of nodes that share all of it, one does it.
        std::function<bool()> is_ours{};
    };
    // `assets` outlives it.
    Uploads(Executor executor, assets::Store& assets, Options options);

    // Until stop(). On the executor.
    void start();
    Task<> stop();

private:
    Task<> keep_uploading();

    assets::Store& assets_;
    Options options_;
    TaskGroup tasks_;
};

}  // namespace comfyd::app
