// Routes of a double that only tell something, and its files.
#include <algorithm>
#include <utility>

#include "base/crypto.hpp"
#include "base/id.hpp"
#include "support/double/routes.hpp"

namespace comfyd::support {

using net::Response;

namespace {

// The parameters of a query; a name that is not there is empty.
class Query {
public:
    explicit Query(const net::Request& request) : pairs_(net::parse_query(request.query)) {}
    std::string get(std::string_view name) const {
        const auto found = std::find_if(pairs_.begin(), pairs_.end(), [name](const auto& pair) {
            return pair.first == name;
        });
        return found == pairs_.end() ? std::string() : found->second;
    }

private:
    std::vector<std::pair<std::string, std::string>> pairs_;
};

bool is_folder(std::string_view type) {
    return type == "input" || type == "output" || type == "temp";
}

bool escapes(std::string_view path) {
    return path.starts_with('/') || path.find("..") != std::string_view::npos;
}

json::object describe(const HistoryEntry& entry, bool details) {
    json::object job{{"id", entry.prompt->id}};
    const auto end = entry.messages.empty() ? json::value("") : entry.messages.back().at(0);
    job["status"] = entry.success                                 ? "completed"
                    : end == json::value("execution_interrupted") ? "cancelled"
                                                                  : "failed";
    job["priority"] = entry.prompt->number;
    if (const auto* created = json::find(entry.prompt->extra_data, "create_time")) {
        job["create_time"] = *created;
    }
    if (!entry.messages.empty()) {
        job["execution_start_time"] = entry.messages.front().at(1).at("timestamp");
        job["execution_end_time"] = entry.messages.back().at(1).at("timestamp");
    }
    if (end == json::value("execution_error")) {
        job["execution_error"] = entry.messages.back().at(1);
    }
    job["outputs_count"] = entry.outputs.size();
    if (details) {
        job["outputs"] = entry.outputs;
        job["workflow"] =
            json::object{{"prompt", entry.prompt->graph}, {"extra_data", entry.prompt->extra_data}};
    }
    return job;
}

json::object describe(const Prompt& prompt, const char* status) {
    json::object job{{"id", prompt.id}, {"status", status}, {"priority", prompt.number}};
    if (const auto* created = json::find(prompt.extra_data, "create_time")) {
        job["create_time"] = *created;
    }
    job["outputs_count"] = 0;
    return job;
}

bool cancel(Core& core, const std::string& id) {
    if (core.interrupt_running(id)) {
        return true;
    }
    const bool erased = core.queue.erase_pending(id);
    if (erased) {
        core.send_status();
    }
    return erased;
}

}  // namespace

json::object Routes::features() const {
    json::object flags{{"supports_preview_metadata", true}};
    if (core_.behaviour.cancel_route) {
        flags["supports_model_type_tags"] = true;
    }
    flags["max_upload_size"] = 104857600;
    flags["extension"] = json::object{{"manager", json::object{{"supports_v4", true}}}};
    if (core_.behaviour.cancel_route) {
        flags["node_replacements"] = true;
        flags["assets"] = false;
    }
    return flags;
}

Response Routes::get_features(Call&) {
    return json_answer(features());
}

Response Routes::get_system_stats(Call&) {
    constexpr std::int64_t kInUse = 3'811'573'760;
    constexpr std::int64_t kKept = 1'000'000'000;  // by torch, for what comes next
    const std::int64_t own = core_.options.vram_own;
    const std::int64_t others = core_.options.vram_others;
    const bool tells_own = own + others > 0;
    const json::object system{
        {"os", "linux"},
        {"ram_total", core_.options.ram_total},
        {"ram_free", std::max(core_.options.ram_total - kInUse, core_.options.ram_total / 2)},
        {"comfyui_version", core_.options.version},
        {"required_frontend_version", "1.49.6"},
        {"installed_templates_version", nullptr},
        {"required_templates_version", "0.11.44"},
        {"python_version", "3.14.10 (main) [GCC 16.2.0]"},
        {"pytorch_version", "2.14.1"},
        {"embedded_python", false},
        {"argv", json::array{"main.py"}},
    };
    const std::int64_t total = core_.options.vram_total;
    const bool is_cpu = core_.options.gpu == "cpu";
    const json::object device{
        {"name", is_cpu ? "cpu" : "cuda:0 " + core_.options.gpu + " : cudaMallocAsync"},
        {"type", is_cpu ? "cpu" : "cuda"},
        {"index", 0},
        {"vram_total", total},
        {"vram_free", tells_own ? total - own - others : std::max(total - kInUse, total / 2)},
        {"torch_vram_total", tells_own ? own + kKept : 0},
        {"torch_vram_free", tells_own ? kKept : 0},
    };
    return json_answer(json::object{{"system", system}, {"devices", json::array{device}}});
}

Response Routes::get_object_info(Call&) {
    core_.look_at_models();
    return json_answer(core_.catalogue.with_inputs(core_.files.input_names()));
}

Response Routes::get_object_info_entry(Call& call) {
    core_.look_at_models();
    json::object answer;
    if (core_.catalogue.find(call.rest)) {
        answer[call.rest] = core_.catalogue.with_inputs(core_.files.input_names()).at(call.rest);
    }
    return json_answer(answer);
}

Response Routes::get_models(Call& call) {
    const bool loras = call.rest == "loras";
    if (!loras && call.rest != "checkpoints") {
        return empty_answer(404);
    }
    const auto* node_class = core_.catalogue.find(loras ? "LoraLoader" : "CheckpointLoaderSimple");
    return json_answer(find_input(*node_class, loras ? "lora_name" : "ckpt_name")->at(0));
}

Response Routes::get_empty_list(Call&) {
    return json_answer(json::array{});
}

Response Routes::post_upload(Call& call) {
    const auto parts =
        net::parse_multipart(call.exchange.request().headers.get("Content-Type"), call.body);
    if (!parts) {
        return empty_answer(400);
    }
    FileRef file{"", "", "input"};
    const net::FormPart* image = nullptr;
    bool overwrite = false;
    for (const auto& part : *parts) {
        if (part.name == "image") {
            image = &part;
        } else if (part.name == "type") {
            file.type = part.data;
        } else if (part.name == "subfolder") {
            file.subfolder = part.data;
        } else if (part.name == "overwrite") {
            overwrite = part.data == "true" || part.data == "1";
        }
    }
    if (image && !image->filename) {
        return trouble();
    }
    if (!is_folder(file.type)) {
        return trouble();
    }
    if (!image || image->filename->empty() || escapes(*image->filename) ||
        escapes(file.subfolder)) {
        return empty_answer(400);
    }
    file.name = *image->filename;
    const auto stored = core_.files.upload(std::move(file), image->data, overwrite);
    return json_answer(
        json::object{{"name", stored.name}, {"subfolder", stored.subfolder}, {"type", stored.type}}
    );
}

Response Routes::get_view(Call& call) {
    const auto& request = call.exchange.request();
    const Query query(request);
    FileRef file{query.get("filename"), query.get("subfolder"), query.get("type")};
    if (file.type.empty()) {
        file.type = "output";
    }
    if (request.query.find("filename=") == std::string::npos) {
        return empty_answer(404);
    }
    if (file.name.empty() || escapes(file.name) || !is_folder(file.type)) {
        return empty_answer(400);
    }
    if (escapes(file.subfolder)) {
        return empty_answer(403);
    }
    if (core_.faults.missing_output > 0) {
        --core_.faults.missing_output;
        return empty_answer(404);
    }
    const std::string* data = core_.files.find(file);
    if (!data) {
        return empty_answer(404);
    }
    Response response;
    response.headers.set("Content-Type", std::string(net::content_type_of(file.name)));
    response.headers.set("Content-Disposition", "filename=\"" + file.name + "\"");
    response.headers.set("Accept-Ranges", "bytes");
    response.headers.set("Etag", "\"" + to_hex(sha256(*data)).substr(0, 16) + "\"");
    response.headers.set("X-Content-Type-Options", "nosniff");
    const auto range = net::parse_range(request.headers.get("Range"), data->size());
    if (!range) {
        return empty_answer(416);
    }
    if (*range) {
        const auto first = (*range)->first;
        const auto length = (*range)->length;
        response.status = 206;
        response.headers.set(
            "Content-Range",
            "bytes " + std::to_string(first) + "-" + std::to_string(first + length - 1) + "/" +
                std::to_string(data->size())
        );
        response.body = data->substr(first, length);
    } else {
        response.body = *data;
    }
    return response;
}

Response Routes::get_jobs(Call& call) {
    if (!core_.behaviour.jobs_route) {
        return empty_answer(404);
    }
    const std::string wanted = Query(call.exchange.request()).get("status");
    json::array jobs;
    const auto add = [&jobs, &wanted](json::object job) {
        const std::string status(job.at("status").get_string());
        if (wanted.empty() || wanted.find(status) != std::string::npos) {
            jobs.push_back(std::move(job));
        }
    };
    for (const auto& prompt : core_.queue.pending()) {
        add(describe(*prompt, "pending"));
    }
    if (core_.queue.running()) {
        add(describe(*core_.queue.running(), "in_progress"));
    }
    for (const auto* entry : core_.history.all()) {
        add(describe(*entry, false));
    }
    const auto total = jobs.size();
    return json_answer(json::object{
        {"jobs", std::move(jobs)},
        {"pagination",
         json::object{{"offset", 0}, {"limit", nullptr}, {"total", total}, {"has_more", false}}},
    });
}

Response Routes::get_job(Call& call) {
    if (!core_.behaviour.jobs_route) {
        return empty_answer(404);
    }
    for (const auto& prompt : core_.queue.pending()) {
        if (prompt->id == call.rest) {
            return json_answer(describe(*prompt, "pending"));
        }
    }
    if (core_.queue.running() && core_.queue.running()->id == call.rest) {
        return json_answer(describe(*core_.queue.running(), "in_progress"));
    }
    if (const auto* entry = core_.history.find(call.rest)) {
        return json_answer(describe(*entry, true));
    }
    return json_answer(json::object{{"error", "Job not found"}}, 404);
}

Response Routes::post_cancel_job(Call& call) {
    constexpr std::string_view kSuffix = "/cancel";
    if (!core_.behaviour.cancel_route || !call.rest.ends_with(kSuffix)) {
        return empty_answer(404);
    }
    call.rest.resize(call.rest.size() - kSuffix.size());
    return json_answer(json::object{{"cancelled", cancel(core_, call.rest)}});
}

Response Routes::post_cancel_jobs(Call& call) {
    if (!core_.behaviour.cancel_route) {
        return empty_answer(404);
    }
    const auto request = json::parse_object(call.body);
    const auto* ids = request ? json::find(*request, "job_ids") : nullptr;
    if (!ids || !ids->is_array()) {
        return json_answer(json::object{{"error", "job_ids must be a list"}}, 400);
    }
    json::array invalid;
    for (const auto& id : ids->get_array()) {
        if (!id.is_string() || !Uuid::parse(id.get_string())) {
            invalid.push_back(id);
        }
    }
    if (!invalid.empty()) {
        return json_answer(
            json::object{{"error", "job_ids must be UUIDs"}, {"invalid_ids", invalid}}, 400
        );
    }
    bool any = false;
    for (const auto& id : ids->get_array()) {
        any = cancel(core_, std::string(id.get_string())) || any;
    }
    return json_answer(json::object{{"cancelled", any}});
}

Response Routes::get_executions(Call&) {
    json::object prompts;
    for (const auto& [id, count] : core_.executions.by_prompt_id) {
        prompts[id] = count;
    }
    json::object contents;
    for (const auto& [content, count] : core_.executions.by_content) {
        contents[content] = count;
    }
    return json_answer(json::object{
        {"total", core_.executions.total},
        {"loads", core_.executions.loads},
        {"frees", core_.executions.frees},
        {"prompts", std::move(prompts)},
        {"contents", std::move(contents)}
    });
}

Response Routes::get_agent_status(Call&) {
    return core_.options.agent
               ? json_answer(json::object{
                     {"models", json::object()}, {"wants_rest", core_.faults.wants_rest}
                 })
               : empty_answer(404);
}

Response Routes::get_faults(Call&) {
    return json_answer(core_.faults.to_json());
}

Response Routes::post_faults(Call& call) {
    const auto request = json::parse_object(call.body);
    auto updated = request ? core_.faults.update(*request) : Result<>(fail(request.error()));
    if (!updated) {
        return json_answer(json::object{{"error", updated.error().message}}, 400);
    }
    core_.wake.notify();
    return json_answer(core_.faults.to_json());
}

}  // namespace comfyd::support
