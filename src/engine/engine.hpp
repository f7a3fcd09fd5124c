// Executes ComfyUI workflows of model-free nodes natively on the CPU.
//
// The engine speaks ComfyUI's own terms (API-format prompts, ui dictionaries, the execution
// messages), so that both the embedded worker and a stand-alone ComfyUI-compatible server sit
// directly on it. It knows nothing of jobs or queues. Any number of threads may call it; run()
// blocks its caller for the length of the prompt.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"

namespace comfyd::engine {

class Registry;

// ComfyUI's three folders. File names in prompts and in ui dictionaries are relative to them.
struct Folders {
    std::filesystem::path input;
    std::filesystem::path output;
    std::filesystem::path temp;
};

struct EngineOptions {
    Folders folders;
    unsigned threads = 0;                                        // 0: one per core
    std::uint64_t memory_bytes_max = 4ULL * 1024 * 1024 * 1024;  // of node results alive at once
    std::function<void(Registry&)> add_classes{};                // beside the engine's own
};

enum class ImageFormat { jpeg = 1, png = 2 };  // as in ComfyUI's binary messages

// What happens during a run, in ComfyUI's order: also where nodes run at the same time, each is
// told of as if it had run after the other. Called on the threads of the run, never at the same
// time.
class Listener {
public:
    virtual ~Listener() = default;
    virtual void cached(const std::vector<std::string>& node_ids) { (void)node_ids; }
    virtual void executing(const std::string& node_id) { (void)node_id; }
    virtual void progress(const std::string& node_id, double value, double max) {
        (void)node_id, (void)value, (void)max;
    }
    // A picture file for the client's eyes only.
    virtual void preview(const std::string& node_id, ImageFormat format, std::string_view bytes) {
        (void)node_id, (void)format, (void)bytes;
    }
    // A line of text shown at the node.
    virtual void text(const std::string& node_id, std::string_view text) {
        (void)node_id, (void)text;
    }
    // A node that was executing() does not run, because of what it was given; the run goes on.
    virtual void blocked(const std::string& node_id, const std::string& message) {
        (void)node_id, (void)message;
    }
    // The run has one more node, which belongs to another one; both may be told of later.
    virtual void added(const std::string& node_id, const std::string& parent_id) {
        (void)node_id, (void)parent_id;
    }
    // A node that was executing() has its result.
    virtual void finished(const std::string& node_id) { (void)node_id; }
    // `ui`: as ComfyUI's "executed" message, for example
    // {"images":[{"filename","subfolder","type"}]}; empty: null there. Comes before finished(), or
    // alone for a node whose result was there already.
    virtual void executed(const std::string& node_id, const json::object& ui) {
        (void)node_id, (void)ui;
    }
};

struct RunResult {
    json::object outputs;  // node id -> ui, as in ComfyUI's history
};

// A prompt that ComfyUI would refuse, in ComfyUI's own answer: {"error": {type, message, details,
// extra_info}, "node_errors": {...}}. With outputs_to_execute non-empty some outputs are valid and
// only those run.
struct Validation {
    bool ok = false;
    json::object error;
    json::object node_errors;
    std::vector<std::string> outputs_to_execute;
};

class Engine {
public:
    explicit Engine(EngineOptions options);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    // class -> info, in the form of ComfyUI's GET /object_info; file combos list the folders'
    // content now.
    json::object object_info() const;
    bool has_class(std::string_view class_type) const;

    // Coerces literals in place, as ComfyUI does ("64" -> 64). `targets`: ComfyUI's
    // partial_execution_targets; nullptr: all output nodes.
    Validation validate(json::object& prompt, const std::vector<std::string>* targets = nullptr)
        const;

    // Validates the prompt and runs its valid outputs; or, where `outputs` are given, runs those.
    // REQUIRES then: validate() named them and left the prompt as it is now. `extra_data` as in
    // ComfyUI's POST /prompt; its
    // extra_pnginfo goes into pictures. Code::node_execution_error with details {node_id,
    // node_type, exception_type, exception_message, traceback[]}, Code::out_of_memory,
    // Code::cancelled when `stop` was requested, Code::invalid_workflow when validate() refuses the
    // prompt, Code::storage_full / storage_unavailable.
    Result<RunResult> run(
        json::object prompt,
        json::object extra_data,
        Listener& listener,
        std::stop_token stop,
        std::vector<std::string> outputs = {}
    );
    // Forgets all cached results (ComfyUI's POST /free with free_memory).
    void free_memory();

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace comfyd::engine
