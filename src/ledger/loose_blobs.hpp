#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/mutex.hpp"

namespace comfyd::ledger {

// Hashes of records that went with their jobs, for whoever removes the files. Any thread.
class LooseBlobs {
public:
    void add(std::string hash) {
        const Lock lock(mutex_);
        hashes_.push_back(std::move(hash));
    }
    std::vector<std::string> take() {
        const Lock lock(mutex_);
        return std::exchange(hashes_, {});
    }

private:
    Mutex mutex_;
    std::vector<std::string> hashes_ COMFYD_GUARDED_BY(mutex_);
};

}  // namespace comfyd::ledger
