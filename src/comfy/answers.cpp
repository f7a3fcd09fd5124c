#include "comfy/client.hpp"
#include "comfy/members.hpp"

namespace comfyd::comfy {
namespace {

// "cuda:1 NVIDIA L40S : cudaMallocAsync" is an NVIDIA L40S, whichever it is of its machine.
std::string device_name(std::string_view text) {
    if (const auto space = text.find(' ');
        space != text.npos && text.substr(0, space).find(':') != text.npos) {
        text.remove_prefix(space + 1);
    }
    return std::string(text.substr(0, text.find(" : ")));
}

constexpr int kDescribedErrorsMax = 5;

std::uint64_t bytes_of(const json::object& in, std::string_view key) {
    const auto value = integer_of(in, key);
    return value > 0 ? static_cast<std::uint64_t>(value) : 0;
}

// An item of the queue is [number, prompt_id, prompt, extra_data, outputs].
Result<std::vector<std::string>> prompt_ids(const json::object& queue, std::string_view key) {
    const json::array* items = array_of(queue, key);
    if (items == nullptr) {
        return fail(Code::protocol_error, "GET /queue: no list '" + std::string(key) + "'");
    }
    std::vector<std::string> ids;
    ids.reserve(items->size());
    for (const json::value& item : *items) {
        const json::array* fields = item.if_array();
        if (fields != nullptr && fields->size() > 1 && (*fields)[1].is_string()) {
            ids.emplace_back((*fields)[1].get_string().data(), (*fields)[1].get_string().size());
        }
    }
    return ids;
}

bool holds(const std::vector<std::string>& ids, std::string_view id) {
    for (const std::string& candidate : ids) {
        if (candidate == id) {
            return true;
        }
    }
    return false;
}

std::string describe_node_error(
    std::string_view node_id, const json::object& node, const json::object& error
) {
    std::string text = "node " + std::string(node_id);
    if (const std::string type = text_of(node, "class_type"); !type.empty()) {
        text += " (" + type + ")";
    }
    const json::object* extra = object_of(error, "extra_info");
    if (const std::string input = extra == nullptr ? "" : text_of(*extra, "input_name");
        !input.empty()) {
        text += ", input '" + input + "'";
    }
    text += ": " + text_of(error, "message");
    if (const std::string details = text_of(error, "details"); !details.empty()) {
        text += " (" + details + ")";
    }
    return text;
}

}  // namespace

bool Queue::is_running(std::string_view prompt_id) const {
    return holds(running, prompt_id);
}
bool Queue::is_pending(std::string_view prompt_id) const {
    return holds(pending, prompt_id);
}

bool is_refused(const Error& error) {
    // The system's own words for ECONNREFUSED, in the C locale that the program runs in.
    return error.code == Code::connection_failed &&
           error.message.find("refused") != std::string::npos;
}

Result<SystemStats> read_system_stats(const json::value& document) {
    const json::object* root = document.if_object();
    const json::object* system = root == nullptr ? nullptr : object_of(*root, "system");
    if (system == nullptr) {
        return fail(
            Code::protocol_error, "GET /system_stats: no 'system'; is this a ComfyUI server?"
        );
    }
    SystemStats stats;
    stats.version = text_of(*system, "comfyui_version");
    stats.ram_total = bytes_of(*system, "ram_total");
    stats.ram_free = bytes_of(*system, "ram_free");
    const json::array* devices = array_of(*root, "devices");
    if (devices != nullptr && !devices->empty() && devices->front().is_object()) {
        const json::object& device = devices->front().get_object();
        stats.device = device_name(text_of(device, "name"));
        stats.vram_total = bytes_of(device, "vram_total");
        stats.vram_free = bytes_of(device, "vram_free");
        stats.torch_vram_total = bytes_of(device, "torch_vram_total");
        stats.torch_vram_free = bytes_of(device, "torch_vram_free");
    }
    return stats;
}

Result<Queue> read_queue(const json::value& document) {
    const json::object* root = document.if_object();
    if (root == nullptr) {
        return fail(Code::protocol_error, "GET /queue: no object");
    }
    auto running = prompt_ids(*root, "queue_running");
    if (!running) {
        return fail(std::move(running.error()));
    }
    auto pending = prompt_ids(*root, "queue_pending");
    if (!pending) {
        return fail(std::move(pending.error()));
    }
    return Queue{std::move(*running), std::move(*pending)};
}

HistoryEntry read_history_entry(const json::object& entry) {
    HistoryEntry read;
    if (const json::object* outputs = object_of(entry, "outputs")) {
        read.outputs = *outputs;
    }
    const json::object* status = object_of(entry, "status");
    if (status == nullptr) {
        read.success = true;  // very old servers keep none for prompts that ended well
        return read;
    }
    read.success = text_of(*status, "status_str") == "success";
    const json::array* messages = array_of(*status, "messages");
    if (messages == nullptr) {
        return read;
    }
    std::int64_t started_at = 0;
    for (const json::value& message : *messages) {
        const json::array* pair = message.if_array();
        if (pair == nullptr || pair->size() < 2 || !(*pair)[0].is_string() ||
            !(*pair)[1].is_object()) {
            continue;
        }
        const auto& event = (*pair)[0].get_string();
        const std::int64_t at = integer_of((*pair)[1].get_object(), "timestamp");
        if (event == "execution_start") {
            started_at = at;
        } else if (started_at > 0 && at >= started_at) {
            read.run_time = Millis(at - started_at);
        }
        if (event == "execution_interrupted") {
            read.interrupted = true;
        } else if (event == "execution_error") {
            auto error = ExecutionError::from_json((*pair)[1].get_object());
            if (error.ends_prompt()) {
                read.error = std::move(error);
            }
        }
    }
    // A prompt that grows a cycle while it runs is said to be a success, with its error beside it.
    read.success = read.success && !read.error && !read.interrupted;
    return read;
}

std::string describe_rejection(const json::object& answer) {
    std::string text;
    int count = 0;
    if (const json::object* nodes = object_of(answer, "node_errors")) {
        for (const auto& [id, entry] : *nodes) {
            const json::object* node = entry.if_object();
            const json::array* errors = node == nullptr ? nullptr : array_of(*node, "errors");
            if (errors == nullptr) {
                continue;
            }
            for (const json::value& error : *errors) {
                if (!error.is_object() || ++count > kDescribedErrorsMax) {
                    continue;
                }
                text += text.empty() ? "" : "; ";
                text += describe_node_error(
                    std::string_view(id.data(), id.size()), *node, error.get_object()
                );
            }
        }
    }
    if (count > kDescribedErrorsMax) {
        text += "; and " + std::to_string(count - kDescribedErrorsMax) + " more";
    }
    if (!text.empty()) {
        return text;
    }
    const json::object* error = object_of(answer, "error");
    if (error == nullptr) {
        return "the worker gave no reason";
    }
    text = text_of(*error, "message");
    if (const std::string details = text_of(*error, "details"); !details.empty()) {
        text += (text.empty() ? "" : " ") + details;
    }
    return text.empty() ? "the worker gave no reason" : text;
}

Error rejection(std::string_view who, json::object answer) {
    std::string message = std::string(who) + " refused the workflow: " + describe_rejection(answer);
    const json::object* error = object_of(answer, "error");
    json::object blame;
    if (const json::object* nodes = object_of(answer, "node_errors");
        nodes != nullptr && !nodes->empty() && nodes->begin()->value().is_object()) {
        const json::object& node = nodes->begin()->value().get_object();
        blame["node_id"] = nodes->begin()->key();
        blame["node_type"] = text_of(node, "class_type");
        const json::array* errors = array_of(node, "errors");
        if (errors != nullptr && !errors->empty() && errors->front().is_object()) {
            error = &errors->front().get_object();
        }
    }
    if (error != nullptr) {
        const std::string details = text_of(*error, "details");
        blame["exception_type"] = text_of(*error, "type");
        blame["exception_message"] =
            text_of(*error, "message") + (details.empty() ? "" : ": " + details);
    }
    for (auto& member : blame) {
        answer[member.key()] = std::move(member.value());
    }
    return {Code::worker_rejected, std::move(message), std::move(answer)};
}

}  // namespace comfyd::comfy
