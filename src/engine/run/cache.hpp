// Node results that later prompts may use again, as in ComfyUI's classic mode: what the preceding
// prompt used survives the start of the next one, everything else goes.
//
// Runs may overlap: what any unfinished run needs survives too. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/crypto.hpp"
#include "base/mutex.hpp"
#include "engine/run/invoke.hpp"
#include "engine/values/memory.hpp"

namespace comfyd::engine {

using SharedResult =
    std::shared_ptr<const NodeOutputs>;  // shared by the cache and the runs that read it

class Cache {
public:
    explicit Cache(const Memory& memory) : memory_(memory) {}

    // A run over these keys begins: drops what neither it nor a run under way needs.
    std::uint64_t begin_run(std::vector<Digest> keys);
    void end_run(std::uint64_t run);

    SharedResult find(const Digest& key) const;
    void put(const Digest& key, SharedResult result);
    void clear();
    // Drops results that only the cache holds, oldest first, until `bytes` more fit into the
    // memory.
    void make_room(std::uint64_t bytes);

private:
    struct Entry {
        SharedResult result;
        std::uint64_t age = 0;
    };
    struct KeyHash {
        std::size_t operator()(const Digest& key) const noexcept;
    };

    const Memory& memory_;
    mutable Mutex mutex_;
    std::unordered_map<Digest, Entry, KeyHash> entries_ COMFYD_GUARDED_BY(mutex_);
    std::map<std::uint64_t, std::vector<Digest>> runs_ COMFYD_GUARDED_BY(mutex_
    );  // under way: their keys
    std::uint64_t next_run_ COMFYD_GUARDED_BY(mutex_) = 1;
    std::uint64_t next_age_ COMFYD_GUARDED_BY(mutex_) = 1;
};

}  // namespace comfyd::engine
