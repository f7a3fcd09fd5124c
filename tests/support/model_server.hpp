// A server of files for tests of downloads, which does what real ones do and what they should not:
// each path says how it is served. Every answer ends its connection. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "net/http.hpp"

namespace comfyd::support {

struct ServedFile {
    std::string bytes{};
    std::string etag = "\"v1\"";  // empty: none
    int status = 0;               // 0: 200 and 206
    net::Headers headers{};       // beside the usual ones
    bool takes_ranges = true;     // false: all of it, whatever was asked for
    bool heeds_if_range = true;   // false: a part of it, also of another version
    bool is_chunked = false;
    bool has_length = true;                  // false: it ends where the connection does
    std::int64_t length_lie = 0;             // added to Content-Length
    std::optional<std::size_t> cut_after{};  // closes after so many bytes of a body,
    int cuts = 1'000'000;                    // so often
    // Says nothing more from that byte of the file on.
    std::optional<std::size_t> stall_after{};
};

struct SeenRequest {
    std::string method;
    std::string target;
    net::Headers headers;
};

class ModelServer {
public:
    ModelServer();
    ~ModelServer();
    ModelServer(const ModelServer&) = delete;
    ModelServer& operator=(const ModelServer&) = delete;

    // Those who stall say the rest.
    void release() { released_ = true; }
    // By path, without the query. In place of what was there.
    void serve(const std::string& path, ServedFile file);
    // One request is answered with each, and all that come later with the last: what changes
    // between two requests of one client changes here, however quick the client is.
    void serve_in_turn(const std::string& path, std::deque<ServedFile> files);
    std::string url(std::string_view path = "") const;
    std::string host() const;  // with its port
    // All so far, or those of a path.
    std::vector<SeenRequest> seen(std::string_view path = "") const;

private:
    void accept();
    void answer(int socket);

    int listener_;
    std::uint16_t port_ = 0;
    std::atomic<bool> stopping_{false};
    std::atomic<bool> released_{false};
    mutable std::mutex mutex_;
    std::map<std::string, std::deque<ServedFile>> files_;  // guarded by mutex_; never empty
    std::vector<SeenRequest> seen_;                        // likewise
    std::vector<std::unique_ptr<std::thread>> threads_;    // likewise
    std::thread acceptor_;
};

// A safetensors file of one tensor with so many bytes of data.
std::string safetensors_file(std::size_t data_bytes, const std::string& tensor = "weight");

// One of small tensors with these names and shapes, by which its kind and family are known.
struct Tensor {
    std::string name;
    std::vector<std::size_t> shape;
};
std::string safetensors_file(const std::vector<Tensor>& tensors);
// A checkpoint, and a LoRA, of the family whose text has this width: 768 for sd15, 2048 for sdxl.
std::string checkpoint_file(std::size_t text_width);
std::string lora_file(std::size_t text_width);

}  // namespace comfyd::support
