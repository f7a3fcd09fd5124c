// What stands behind ComfyUI's public surface: whoever implements this is a ComfyUI server
// (routes.hpp). One backend is what one caller may see and do.
//
// Belongs to the connection's thread; what is awaited comes back there. Failures are told to the
// client with the status of their code.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/pool.hpp"
#include "base/task.hpp"
#include "comfy/replies.hpp"
#include "comfy/user_store.hpp"

namespace comfyd::comfy::server {

struct Limits {
    std::uint64_t json_bytes_max = 0;      // of a body that is no file
    std::uint64_t upload_bytes_max = 0;    // of the body of an upload
    std::uint64_t document_bytes_max = 0;  // of a file that the user stores
};

// A document in JSON that is the same for all who ask, or for this caller only.
struct Document {
    std::string text;
    std::string etag;  // without quotes; empty: it has none
};

struct Device {
    std::string name;
    std::string type;  // "cpu", "cuda"
    std::optional<std::size_t> index{};
    std::uint64_t memory_total = 0;
    std::uint64_t memory_free = 0;
    std::uint64_t torch_memory_total = 0;
    std::uint64_t torch_memory_free = 0;
};

struct System {
    std::string version{kProtocolVersion};  // of ComfyUI
    std::vector<std::string> arguments{};   // of the program
    std::vector<Device> devices{};
};

class Backend {
public:
    virtual ~Backend() = default;

    virtual Pool& disk() = 0;
    virtual Limits limits() const = 0;

    // What it is and has

    // GET /object_info: all node classes; of one, or an empty object.
    virtual Task<Document> node_classes() = 0;
    virtual Task<Document> node_class(std::string name) = 0;
    // What an input of a node class offers to choose from; empty where there is none such.
    virtual json::array choices(std::string_view class_type, std::string_view input) const = 0;
    virtual json::object node_replacements() const = 0;
    virtual Task<System> system() = 0;
    // The folder of the editor's files; empty: there are none.
    virtual std::filesystem::path editor() const = 0;
    // The latest lines of the log: {"t", "m"}.
    virtual json::array log_lines() const = 0;
    virtual void follow_log(const std::string& client_id, bool wanted) = 0;

    // What the caller stores
    virtual UserStore& user() = 0;
};

}  // namespace comfyd::comfy::server
