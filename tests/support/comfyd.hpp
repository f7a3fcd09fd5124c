// A running comfyd of a test: the real binary on a free port with data of its own. Can be killed
// and started again on the same data.
#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "support/http.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"
#include "support/wait.hpp"

namespace comfyd::support {

struct ComfydOptions {
    std::vector<std::string> arguments{};  // after `serve --listen … --data …`
    std::map<std::string, std::string> environment{};
    std::string listen = "127.0.0.1:0";
    std::string data{};      // empty: a temporary folder
    int open_files_max = 0;  // that it may have; 0: as many as the test
    std::string ca_file{};   // whom its clients trust
};

class Comfyd {
public:
    explicit Comfyd(ComfydOptions options = {}) : options_(std::move(options)) {
        if (options_.data.empty()) {
            options_.data = folder_ / "data";
        }
        start();
    }

    void start() {
        std::vector<std::string> arguments{
            COMFYD_BINARY,
            "serve",
            "--listen",
            options_.listen,
            "--data",
            options_.data,
            "--set",
            "webhooks.allow_private_addresses=true",
            "--set",
            "webhooks.first_retry_ms=50",
            "--set",
            "shutdown_grace_s=0",
        };
        arguments.insert(arguments.end(), options_.arguments.begin(), options_.arguments.end());
        if (options_.open_files_max != 0) {
            const std::string limit = "ulimit -n " + std::to_string(options_.open_files_max);
            arguments.insert(
                arguments.begin(), {"/bin/sh", "-c", limit + "; exec \"$@\"", "comfyd"}
            );
        }
        // The port of one that was killed may be another's for a moment: that of a connection.
        std::optional<std::string> url;
        wait_until([&] {
            const std::size_t logged = log().size();
            process_ = std::make_unique<Process>(ProcessOptions{
                .arguments = arguments,
                .environment = options_.environment,
                .stderr_file = folder_ / "log"
            });
            url = process_->wait_for_line("listening on ");
            return url || log().find("uses this port", logged) == std::string::npos;
        });
        if (!url) {
            throw std::runtime_error("comfyd did not start: " + log());
        }
        url_ = *url;
        // A restart keeps the port, so that clients find it again.
        options_.listen = url_.substr(url_.find("://") + 3);
        http_ = std::make_unique<Http>(url_, options_.ca_file);
    }

    void kill() {
        process_->kill(SIGKILL);
        process_->wait();
    }
    int stop() { return process_->stop(); }
    void restart() {
        kill();
        start();
    }

    const std::string& url() const { return url_; }
    const std::string& data() const { return options_.data; }
    Http& http() { return *http_; }
    Process& process() { return *process_; }
    std::string log() const { return read_file(folder_ / "log"); }

    // Submits by the primary dialect; the id.
    std::string submit(
        const json::object& workflow, json::object more = {}, net::Headers headers = {}
    ) {
        more["workflow"] = workflow;
        const Reply reply = http().post_json("/api/v2/jobs", more, std::move(headers));
        if (reply.status != 201) {
            throw std::runtime_error(
                "submit answered " + std::to_string(reply.status) + ": " + reply.body
            );
        }
        return std::string(reply.json_at("/id").as_string());
    }

    json::value job(const std::string& id) { return http().get("/api/v2/jobs/" + id).json(); }

    // The job, once it is in a terminal state (or at the deadline).
    json::value wait_finished(const std::string& id, std::chrono::seconds deadline = kDeadline) {
        json::value last;
        wait_until(
            [&] {
                last = job(id);
                const std::string status = status_of(last);
                return status == "succeeded" || status == "failed" || status == "canceled" ||
                       status == "expired";
            },
            deadline
        );
        return last;
    }
    bool wait_status(const std::string& id, const std::string& wanted) {
        return wait_until([&] { return status_of(job(id)) == wanted; });
    }

    static std::string status_of(const json::value& job) {
        const auto* object = job.if_object();
        const auto* status = object != nullptr ? object->if_contains("status") : nullptr;
        return status != nullptr && status->is_string() ? std::string(status->get_string())
                                                        : std::string();
    }

private:
    TempDir folder_;
    ComfydOptions options_;
    std::string url_;
    std::unique_ptr<Process> process_;
    std::unique_ptr<Http> http_;
};

// The usual text-to-image graph; `text` makes it different from others, `fault` is obeyed by the
// double.
inline json::object text_to_image(const std::string& text, const std::string& fault = {}) {
    json::object graph = *json::parse_object(R"({
        "3": {"class_type": "KSampler", "inputs": {"cfg": 8, "denoise": 1, "latent_image": ["5", 0], "model": ["4", 0],
              "negative": ["7", 0], "positive": ["6", 0], "sampler_name": "euler", "scheduler": "normal", "seed": 1,
              "steps": 4}},
        "4": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "sd15.safetensors"}},
        "5": {"class_type": "EmptyLatentImage", "inputs": {"batch_size": 1, "height": 512, "width": 512}},
        "6": {"class_type": "CLIPTextEncode", "inputs": {"clip": ["4", 1], "text": ""}},
        "7": {"class_type": "CLIPTextEncode", "inputs": {"clip": ["4", 1], "text": "watermark"}},
        "8": {"class_type": "VAEDecode", "inputs": {"samples": ["3", 0], "vae": ["4", 2]}},
        "9": {"class_type": "SaveImage", "inputs": {"filename_prefix": "ComfyUI", "images": ["8", 0]}}})"
    );
    graph["6"].as_object()["inputs"].as_object()["text"] = text;
    if (!fault.empty()) {
        graph["3"].as_object()["inputs"].as_object()["_fault"] = fault;
    }
    return graph;
}

// Needs no model: runs on the embedded engine.
inline json::object small_picture(int color = 0) {
    json::object graph = *json::parse_object(R"({
        "1": {"class_type": "EmptyImage", "inputs": {"width": 16, "height": 16, "batch_size": 1, "color": 0}},
        "2": {"class_type": "ImageInvert", "inputs": {"image": ["1", 0]}},
        "3": {"class_type": "SaveImage", "inputs": {"filename_prefix": "small", "images": ["2", 0]}}})"
    );
    graph["1"].as_object()["inputs"].as_object()["color"] = color;
    return graph;
}

}  // namespace comfyd::support
