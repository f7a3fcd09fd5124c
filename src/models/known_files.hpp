// The model files that workers have told of, each worker's own: two workers may have different
// files under one name. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/mutex.hpp"
#include "models/file_facts.hpp"

namespace comfyd::models {

// By their paths: "loras/ink.safetensors".
using WorkerFiles = std::map<std::string, FileFacts, std::less<>>;

// From the answer of an agent to GET /worker/v1/files.
WorkerFiles read_worker_files(const json::object& told);

class KnownFiles {
public:
    // In place of what it told before.
    void set(const std::string& worker, WorkerFiles files);
    // The worker is gone.
    void forget(const std::string& worker);
    // nullptr: it has told nothing.
    std::shared_ptr<const WorkerFiles> of(const std::string& worker) const;
    // What all agree on who have such a file in one of these folders; nothing where nobody has it.
    FileFacts agreed(std::span<const std::string_view> folders, std::string_view name) const;
    bool empty() const;
    // Rises with each change.
    std::uint64_t changes() const;

private:
    using All = std::map<std::string, std::shared_ptr<const WorkerFiles>>;

    mutable Mutex mutex_;
    All all_ COMFYD_GUARDED_BY(mutex_);
    std::uint64_t changes_ COMFYD_GUARDED_BY(mutex_) = 0;
};

// The first of the folders that has it; nullptr: none.
const FileFacts* find_in(
    const WorkerFiles& files, std::span<const std::string_view> folders, std::string_view name
);
// What both say alike stays.
void keep_agreed(FileFacts& facts, const FileFacts& other);

}  // namespace comfyd::models
