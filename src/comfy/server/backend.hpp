// What stands behind ComfyUI's public surface: whoever implements this is a ComfyUI server
// (routes.hpp). One backend is what one caller may see and do.
//
// Belongs to the connection's thread; what is awaited comes back there. Failures are told to the
// client with the status of their code.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/pool.hpp"
#include "base/task.hpp"
#include "comfy/replies.hpp"
#include "comfy/server/files.hpp"
#include "comfy/server/mailbox.hpp"
#include "comfy/server/prompt_views.hpp"
#include "comfy/user_store.hpp"

namespace comfyd::comfy::server {

struct Limits {
    std::uint64_t prompt_bytes_max = 0;    // of the body of POST /prompt
    std::uint64_t json_bytes_max = 0;      // of another body that is no file
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

struct PromptPost {
    std::string body;
    std::string usage_source;  // what the client says of itself; empty: nothing
};

// Something that lasts as long as this lives.
class Hold {
public:
    Hold() = default;
    virtual ~Hold() = default;
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
};

struct AcceptedPrompt {
    std::string id;
    json::value number;
    json::object node_errors;       // of the part that does not run
    std::unique_ptr<Hold> silence;  // nothing is told of it meanwhile
};

struct PromptRefusal {
    json::object error;  // {type, message, details, extra_info}
    json::object node_errors{};
    int status = 400;
};

// The bytes of a file on their way in. On destruction without being kept they are dropped.
class NewFile {
public:
    NewFile() = default;
    virtual ~NewFile() = default;
    NewFile(const NewFile&) = delete;
    NewFile& operator=(const NewFile&) = delete;

    // Code::payload_too_large, Code::storage_*.
    virtual Result<> append(std::string_view piece) = 0;
};

struct SocketRules {
    net::WebSocketOptions options{};
    MailboxLimits mailbox{};
    Millis patience{15'000};  // after which a silent socket looks whether the server stops
};

// A socket among those who are told.
struct Seat {
    std::size_t unfinished = 0;    // prompts of the caller
    std::string current_node{};    // of the client's run, where it is in the middle of one
    std::unique_ptr<Hold> seat{};  // messages come into the mailbox meanwhile
};

class Backend {
public:
    virtual ~Backend() = default;

    virtual Pool& disk() = 0;  // for that, and for what takes long
    virtual Limits limits() const = 0;

    // Prompts that wait or run

    // A failure is none of the prompt's.
    virtual Task<Result<tl::expected<AcceptedPrompt, PromptRefusal>>> submit(PromptPost post) = 0;
    virtual Task<std::size_t> unfinished() = 0;
    virtual Task<Result<QueueView>> queue() = 0;
    // Takes out what waits: all, or by id.
    virtual Task<Result<>> clear_queue() = 0;
    virtual Task<Result<>> dequeue(std::vector<std::string> ids) = 0;
    // Stops what runs; an empty id: all of it.
    virtual Task<Result<>> interrupt(std::string id) = 0;
    // Stops it whether it waits or runs. False: it does neither.
    virtual Task<Result<bool>> cancel(std::string id) = 0;
    virtual Task<> free_memory(bool models, bool results) = 0;

    // Who is told of them

    virtual SocketRules socket_rules() const = 0;
    // Room for one more socket. Code::too_many_streams.
    virtual Result<std::unique_ptr<Hold>> reserve_socket() = 0;
    // From now on the mailbox gets what the caller and the client of this id are told. The newest
    // mailbox of an id gets the messages of its prompts; when it goes, the one before does.
    virtual Task<Seat> attach(std::string client_id, std::shared_ptr<Mailbox> mailbox) = 0;

    // What became of prompts

    // `max_items` alone: the newest; `offset`: from the oldest.
    virtual Task<Result<HistoryPage>> history(
        std::optional<std::int64_t> max_items, std::optional<std::int64_t> offset
    ) = 0;
    virtual Task<Result<HistoryPage>> history_of(std::string id) = 0;
    virtual Task<Result<>> clear_history() = 0;
    virtual Task<Result<>> forget(std::vector<std::string> ids) = 0;
    virtual Task<Result<JobsPage>> jobs(JobsQuery query) = 0;
    // In whatever state; the newest of an id that was used again.
    virtual Task<Result<std::optional<JobView>>> job(std::string id) = 0;

    // Files

    // Code::not_found. REQUIRES: a name of check_shown().
    virtual Task<Result<ShownFile>> find_file(FileName name) = 0;
    // Newest first; with their subfolders, where they have any.
    virtual Task<std::vector<std::string>> file_names(std::string type) = 0;
    virtual Result<std::unique_ptr<NewFile>> begin_file(std::string content_type) = 0;
    // Gives a new file its name. The same content under a name keeps it, other content gets
    // "name (1).ext", …, unless `overwrite`; the name that was taken. REQUIRES: a name of
    // check_upload().
    virtual Task<Result<FileName>> keep_file(
        std::unique_ptr<NewFile> file, FileName wanted, bool overwrite
    ) = 0;
    // The bytes of a new file that is not to be kept under its name.
    virtual Task<Result<std::string>> take_bytes(std::unique_ptr<NewFile> file, FileName name) = 0;
    // Code::invalid_argument for what is no picture, Code::rate_limited for too many at once.
    virtual Task<Result<std::string>> convert_picture(std::string picture, PictureForm form) = 0;
    // The picture with the alpha of another one, as PNG; likewise.
    virtual Task<Result<std::string>> replace_alpha(std::string picture, std::string mask) = 0;

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
