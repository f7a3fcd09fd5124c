// The model files of a ComfyUI: their names and sizes, soon what their heads tell, and, by and by,
// their hashes. Hashing reads every byte, so it is done only while ComfyUI has nothing to do, one
// file at a time, and what is known is kept on disk.
//
// One executor: call it only there; the disk is read on the pool.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/pool.hpp"
#include "base/task.hpp"

namespace comfyd::agent {

struct ModelFile {
    std::string folder;  // "checkpoints"
    std::string name;    // in it, as ComfyUI names it: "sub/name.safetensors"
    std::uint64_t size = 0;
    std::int64_t modified_ns = 0;
    std::string sha256{};  // empty: not known yet
    // Of a safetensors file what its head tells: dtype, kind and family. Empty: not read yet, or
    // nothing of it is known.
    json::object head{};

    friend bool operator==(const ModelFile&, const ModelFile&) = default;
};

// Below `root`, whose folders are kinds of models; by name. At most `files_max`. Blocks.
std::vector<ModelFile> list_models(const std::filesystem::path& root, std::size_t files_max);
struct ModelFilesOptions {
    std::filesystem::path root;   // ComfyUI's folder models
    std::filesystem::path cache;  // the file that keeps hashes
    std::size_t files_max = 5'000;
    Millis look{30'000};
};

class ModelFiles {
public:
    // `is_idle`: whether the disk may be read now; asked on this executor.
    ModelFiles(Pool& pool, ModelFilesOptions options, std::function<bool()> is_idle);

    void start(TaskGroup& group);
    // A file is there now, and its hash is known without reading it; empty: it is not. It is in the
    // list when this returns.
    Task<> note(std::string folder, std::string name, std::string sha256);
    // How often the list has changed.
    std::uint64_t revision() const { return revision_; }
    // {"revision","files":[{"folder","name","size","sha256","dtype","kind","family"}]}; null: not
    // hashed yet; without the last three: not known.
    json::object to_json() const;

private:
    Task<> run();
    Task<> look();
    Task<> read_heads();
    Task<> hash_next();
    Task<> watch_for_work(std::shared_ptr<std::atomic<bool>> stopped);
    void read_cache();
    Task<> keep_cache();

    Pool& pool_;
    ModelFilesOptions options_;
    std::function<bool()> is_idle_;
    std::vector<ModelFile> files_;
    // By what a content is known by without reading it: its path, size and time.
    std::map<std::string, std::string> hashes_;
    std::map<std::string, json::object> heads_;  // likewise
    std::uint64_t revision_ = 0;
};

}  // namespace comfyd::agent
