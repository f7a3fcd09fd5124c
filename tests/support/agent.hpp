// A running agent of a test: the real `comfyd worker`, with a ComfyUI folder whose main.py is the
// double. It ends with this object, and ComfyUI with it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/http.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace comfyd::support {

inline constexpr const char* kAgentToken = "token-of-a-worker-0123456789";

struct AgentOptions {
    std::vector<std::string> arguments{};  // of `comfyd worker`, before those of ComfyUI
    std::map<std::string, std::string> environment{};  // beside the token
    std::string double_arguments{};                    // words of the double
    std::string token = kAgentToken;                   // empty: none
    bool has_comfyui = true;                           // false: COMFYUI_SERVER_ADDRESS
    bool has_port = true;                 // false: it listens on a unix socket, where nobody looks
    std::string address = "127.0.0.1:0";  // of that port
    std::vector<std::string> runner{};    // words before the program, such as those of ip-netns(8)
};

class AgentProcess {
public:
    explicit AgentProcess(AgentOptions options = {}) : options_(std::move(options)) {
        folder_.write(
            "ComfyUI/main.py",
            "import json, os, sys\n"
            "words = sys.argv[1:]\n"
            "json.dump({'words': words, 'environment': dict(os.environ)}, open('" +
                folder_.path().string() +
                "/worker/started.json', 'w'))\n"
                "print('the double starts', flush=True)\n"
                "port = words[words.index('--port') + 1]\n"
                "os.execv('" COMFY_DOUBLE
                "', ['comfy-double', '--listen', '127.0.0.1:' + port, '--models', '" +
                comfyui() + "/models'] + '" + options_.double_arguments + "'.split())\n"
        );
        start();
    }

    void start() {
        std::vector<std::string> arguments = options_.runner;
        const std::string socket = "unix:" + (folder_ / "agent.sock");
        arguments.insert(
            arguments.end(),
            {COMFYD_BINARY,
             "worker",
             "--listen",
             options_.has_port ? options_.address : socket,
             "--folder",
             folder()}
        );
        if (options_.has_comfyui) {
            arguments.insert(arguments.end(), {"--comfyui", comfyui()});
        }
        arguments.insert(arguments.end(), options_.arguments.begin(), options_.arguments.end());
        auto environment = options_.environment;
        environment["COMFYD_WORKER_TOKEN"] = options_.token;
        process_ = std::make_unique<Process>(ProcessOptions{
            .arguments = arguments,
            .environment = environment,
            .stderr_file = folder_ / "log",
        });
        const auto url = process_->wait_for_line("listening on ");
        if (!url) {
            throw std::runtime_error("the agent did not start: " + log());
        }
        url_ = *url;
        http_ = std::make_unique<Http>(options_.has_port ? url_ : "http://localhost");
        if (!options_.token.empty()) {
            http_->set_header("Authorization", "Bearer " + options_.token);
        }
    }

    const std::string& url() const { return url_; }
    std::string folder() const { return folder_ / "worker"; }
    std::string comfyui() const { return folder_ / "ComfyUI"; }
    std::string log() const { return read_file(folder_ / "log"); }
    Http& http() { return *http_; }
    Process& process() { return *process_; }

    json::value status() { return http().get("/worker/v1/status").json(); }
    std::string state() {
        const json::value told = http().get("/worker/v1/status").json_at("/state");
        return told.is_string() ? std::string(told.get_string()) : "";
    }
    pid_t comfyui_pid() {
        const json::value told = http().get("/worker/v1/status").json_at("/comfyui/pid");
        return told.is_int64() ? static_cast<pid_t>(told.get_int64()) : 0;
    }
    bool wait_for(const std::string& wanted, std::chrono::seconds deadline = kDeadline) {
        return wait_until([&] { return state() == wanted; }, deadline);
    }
    // The double itself, past the agent.
    std::string comfyui_url() {
        const json::value started = boost::json::parse(read_file(folder() + "/started.json"));
        const auto& words = started.at("words").get_array();
        for (std::size_t i = 0; i + 1 < words.size(); ++i) {
            if (words[i] == json::value("--port")) {
                return "http://127.0.0.1:" + std::string(words[i + 1].get_string());
            }
        }
        return {};
    }

private:
    TempDir folder_;
    AgentOptions options_;
    std::string url_;
    std::unique_ptr<Process> process_;
    std::unique_ptr<Http> http_;
};

}  // namespace comfyd::support
