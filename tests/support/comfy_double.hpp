// A stand-in for a ComfyUI server: the same HTTP routes, WebSocket messages, orders and traps,
// without any model. Execution takes as long as the options say, output files are small and depend
// on the whole prompt only, and faults can be switched on at any time.
//
// One double owns all of its state on one executor. Its io_context is run by the caller and
// outlives it; all members here may be called from any other thread while that context runs, and
// from no handler of it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "base/json.hpp"
#include "base/task.hpp"
#include "support/double/faults.hpp"

namespace comfyd::support {

struct DoubleOptions {
    std::string host = "127.0.0.1";
    std::uint16_t port = 0;
    std::string version = "0.33.0";  // "0.3.45" brings back the behaviours of that time
    Millis delay{0};                 // of a whole prompt, spread over its nodes and steps
    Millis message_pause{0};         // before each message to a client
    Millis load{0};                  // further time for a checkpoint other than the last one
    bool cache = false;              // answer a prompt that was just run from the result cache
    bool previews = false;         // a preview frame per sampler step, also without preview_method
    bool exit_on_crash = false;    // crash_mid_job ends the process with status 9
    std::size_t output_bytes = 0;  // pictures are padded to about this size
    std::size_t files_max = 100'000;    // the oldest outputs go first
    std::vector<std::string> models{};  // further names for the lists of checkpoints and LoRAs
    std::string models_folder{};        // whose files stand in those lists, too; empty: none
    // object_info of further classes. "_own_check" among the members of one makes it check inputs
    // itself: {"inputs", "all_inputs", "link_types"} as the node pack tells them, and "refuses", a
    // value that no such input may have.
    std::string nodes_json{};
    std::string replacements_json{};  // answer of GET /node_replacements
    // Has the node pack comfyd. What pictures show then depends on nothing but what made
    // them, sample by sample, so a merged run shows what the jobs alone would; see dummy.hpp.
    bool batch_pack = false;
    // Has that pack's fence alone: it keeps out nodes of a cluster that lead no more.
    bool fence = false;
    bool agent = false;                        // tells its state as an agent in front of it does
    std::string gpu = "Test Device";           // the name of its GPU; "cpu": it has none
    std::int64_t vram_total = 25'274'793'984;  // in bytes
    std::int64_t ram_total = 25'274'793'984;   // likewise, main memory
    // GPU memory that it tells of, in bytes: of its own process, and of others on the same GPU. 0
    // and 0: it tells of the GPU alone.
    std::int64_t vram_own = 0;
    std::int64_t vram_others = 0;
    std::string journal{};  // file that gets a line per start and end of an execution, and by whom
    Faults faults{};
};

// How often prompts ran, counted when their execution starts. Survives crash().
struct Executions {
    std::uint64_t total = 0;
    std::map<std::string, std::uint64_t> by_prompt_id{};
    std::uint64_t frees = 0;  // requests to /free
    std::uint64_t loads = 0;  // of checkpoints, where DoubleOptions::load is set
    std::map<std::string, std::uint64_t> by_content{};  // key: SHA-256 of the canonical graph
    // While a prompt ran, requests by path, without /api.
    std::map<std::string, std::uint64_t> asked_meanwhile{};
};

class ComfyDouble {
public:
    ComfyDouble(boost::asio::io_context& context, DoubleOptions options);
    ~ComfyDouble();  // stop()
    ComfyDouble(const ComfyDouble&) = delete;
    ComfyDouble& operator=(const ComfyDouble&) = delete;

    // Listens and returns the port; throws std::runtime_error when that fails. After stop() or
    // crash() it starts again on the same port, as a restarted process: input and output files are
    // there, queue, history and temporary files are not.
    std::uint16_t start();
    void stop();
    // Closes listener and sockets at once and forgets queue and history.
    void crash();

    std::uint16_t port() const;
    std::string url() const;  // "http://127.0.0.1:PORT"
    bool running() const;

    void set_faults(Faults faults);
    Executions executions() const;
    std::size_t queue_remaining() const;
    std::size_t sockets_open() const;
    // What was posted to /prompt and accepted, oldest first; at most the last 10,000.
    std::vector<json::object> accepted_prompts() const;
    void add_input(std::string name, std::string data);  // "sub/name.png" in a subfolder

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace comfyd::support
