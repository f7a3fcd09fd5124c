#include "app/commands/run_command.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "api/dialects/named/named.hpp"
#include "api/submission.hpp"
#include "app/commands/cli.hpp"
#include "app/commands/convert_command.hpp"
#include "app/commands/progress_display.hpp"
#include "app/commands/run_table.hpp"
#include "app/commands/server_address.hpp"
#include "base/json.hpp"
#include "comfy/members.hpp"
#include "net/client.hpp"
#include "net/io_threads.hpp"
#include "workflow/parameters/parameters.hpp"
#include "workflow/rules/check.hpp"

namespace comfyd::app {
namespace {

// Splits a stream of SSE bytes into (event, data).
class SseReader {
public:
    template <class Visit>
    void feed(std::string_view piece, Visit visit) {
        buffer_ += piece;
        for (std::size_t end = buffer_.find("\n\n"); end != std::string::npos;
             end = buffer_.find("\n\n")) {
            std::string event = "message";
            std::string data;
            std::string_view frame = std::string_view(buffer_).substr(0, end);
            while (!frame.empty()) {
                const std::string_view line = frame.substr(0, frame.find('\n'));
                if (line.starts_with("event: ")) {
                    event = line.substr(7);
                } else if (line.starts_with("data: ")) {
                    data += line.substr(6);
                }
                frame.remove_prefix(std::min(frame.size(), line.size() + 1));
            }
            visit(event, data);
            buffer_.erase(0, end + 2);
        }
    }

private:
    std::string buffer_;
};

class Runner {
public:
    Runner(Executor executor, RunOptions options)
        : options_(std::move(options)), client_(executor, net::ClientOptions{}) {}

    Task<int> run() {
        auto submitted = co_await submit();
        if (!submitted) {
            co_return refuse(submitted.error());
        }
        const std::string id = std::move(*submitted);
        std::fprintf(stderr, "job %s\n", id.c_str());
        auto finished = co_await follow(id);
        display_.end();
        if (!finished) {
            co_return refuse(finished.error());
        }
        const std::string status = comfy::text_of(*finished, "status");
        if (status == "succeeded") {
            auto code = co_await fetch_outputs(*finished);
            co_return code;
        }
        if (const json::value* error = json::find(*finished, "error");
            error != nullptr && error->is_object()) {
            std::fprintf(
                stderr,
                "job %s %s: %s\n",
                id.c_str(),
                status.c_str(),
                comfy::text_of(error->get_object(), "message").c_str()
            );
        } else {
            std::fprintf(stderr, "job %s %s\n", id.c_str(), status.c_str());
        }
        co_return status == "failed" ? kExitFailed : kExitStopped;
    }

private:
    static int refuse(const Error& error) {
        std::fprintf(stderr, "comfyd: %s\n", error.message.c_str());
        const bool unreachable = error.code == Code::connection_failed ||
                                 error.code == Code::request_timeout ||
                                 error.code == Code::storage_unavailable;
        return unreachable ? kExitUnavailable : kExitUsage;
    }

    // The job's id.
    Task<Result<std::string>> submit() {
        const auto choice = api::named::parse_reference(options_.file);
        if (choice && !std::filesystem::exists(options_.file)) {
            auto id = co_await submit_named(*choice);
            co_return id;
        }
        auto workflow = co_await load_workflow();
        if (!workflow) {
            co_return fail(std::move(workflow.error()));
        }
        json::object body{{"workflow", std::move(*workflow)}, {"priority", options_.priority}};
        add_machine(body);
        auto submitted = co_await call("POST", "/api/v2/jobs", json::serialize(body));
        if (!submitted) {
            co_return fail(std::move(submitted.error()));
        }
        co_return comfy::text_of(*submitted, "id");
    }

    void add_machine(json::object& body) const {
        const MachineWish machine{
            .pool = options_.pool,
            .gpu = options_.gpu,
            .region = options_.region,
            .memory_gb = options_.gpu_memory_gb
        };
        for (auto& member : api::machine_members(machine)) {
            body[member.key()] = std::move(member.value());
        }
    }

    // A workflow that the server has stored.
    Task<Result<std::string>> submit_named(api::named::Choice choice) {
        std::string query;
        if (choice.version) {
            query = "?version=" + std::to_string(*choice.version);
        } else if (!choice.label.empty()) {
            query = "?label=" + choice.label;
        }
        const std::string path = "/v2/workflows/" + choice.name;
        auto schema = co_await call("GET", path + "/schema" + query, "");
        if (!schema) {
            Error error = std::move(schema.error());
            if (error.code == Code::invalid_argument) {
                error.message = "there is no file '" + options_.file + "'; " + error.message;
            }
            co_return fail(std::move(error));
        }
        auto values = named_values(*schema);
        if (!values) {
            co_return fail(std::move(values.error()));
        }
        json::object body{{"params", std::move(*values)}, {"priority", options_.priority}};
        add_machine(body);
        auto submitted = co_await call("POST", path + "/run" + query, json::serialize(body));
        if (!submitted) {
            co_return fail(std::move(submitted.error()));
        }
        if (const json::value* chosen = json::find(*submitted, "chosen_parameters")) {
            std::fprintf(stderr, "%s\n", json::serialize(*chosen).c_str());
        }
        co_return comfy::text_of(*submitted, "execution_id");
    }

    // A text stays one though it reads as a number.
    Result<json::object> named_values(const json::object& schema) const {
        json::object values;
        for (const std::string& parameter : options_.parameters) {
            const auto equals = parameter.find('=');
            if (equals == std::string::npos) {
                return wrong_parameter(parameter);
            }
            const std::string name = parameter.substr(0, equals);
            const std::string text = parameter.substr(equals + 1);
            const json::value* properties = json::find(schema, "properties");
            const json::value* about = properties != nullptr && properties->is_object()
                                           ? json::find(properties->get_object(), name)
                                           : nullptr;
            const bool is_text = about != nullptr && about->is_object() &&
                                 comfy::text_of(about->get_object(), "type") == "string";
            auto parsed = json::parse(text);
            values[name] = parsed && !is_text ? std::move(*parsed) : json::value(text);
        }
        return values;
    }

    static tl::unexpected<Error> wrong_parameter(const std::string& parameter) {
        return fail(Code::invalid_argument, "--param needs NAME=VALUE, not '" + parameter + "'");
    }

    // The server's own submit takes the API format alone.
    Task<Result<json::object>> load_workflow() {
        auto workflow = load_workflow_file(options_.file);
        if (!workflow) {
            co_return fail(std::move(workflow.error()));
        }
        if (workflow::is_ui_format(*workflow)) {
            auto classes = co_await call("GET", "/object_info", "");
            if (!classes) {
                co_return fail(std::move(classes.error()));
            }
            workflow = to_api_format(std::move(*workflow), std::move(*classes));
        }
        if (workflow) {
            workflow = with_parameters(std::move(*workflow));
        }
        co_return workflow;
    }

    Result<json::object> with_parameters(json::object workflow) const {
        for (const std::string& parameter : options_.parameters) {
            const auto equals = parameter.find('=');
            if (equals == std::string::npos) {
                return wrong_parameter(parameter);
            }
            auto bound = workflow::bind_parameter(
                workflow, parameter.substr(0, equals), parameter.substr(equals + 1)
            );
            if (!bound) {
                return fail(std::move(bound.error()));
            }
            for (const auto& chosen : bound->chosen()) {
                const std::string name(chosen.key());
                std::fprintf(
                    stderr, "%s %s\n", name.c_str(), json::serialize(chosen.value()).c_str()
                );
            }
        }
        return workflow;
    }

    net::ClientRequest request(std::string method, std::string target) const {
        net::ClientRequest request;
        request.method = std::move(method);
        request.url = target.starts_with("http") ? target : options_.url + target;
        if (!options_.key.empty()) {
            request.headers.set("Authorization", "Bearer " + options_.key);
        }
        return request;
    }

    Task<Result<json::object>> call(std::string method, std::string target, std::string body) {
        auto sent = request(std::move(method), std::move(target));
        if (!body.empty()) {
            sent.headers.set("Content-Type", "application/json");
            sent.body = std::move(body);
        }
        auto response = co_await client_.send(std::move(sent));
        if (!response) {
            Error error = std::move(response.error());
            if (error.code == Code::connection_failed) {
                error.message += ". Is the server running? Start it with `comfyd serve`";
            }
            co_return fail(std::move(error));
        }
        auto parsed = json::parse_object(response->body);
        if (response->status >= 400) {
            co_return fail(describe(response->status, parsed));
        }
        co_return parsed;
    }

    static Error describe(int status, const Result<json::object>& body) {
        std::string message = "the server answered " + std::to_string(status);
        if (body) {
            const json::value* error = json::find(*body, "error");
            if (error != nullptr && error->is_object()) {
                message = comfy::text_of(error->get_object(), "message");
            }
        }
        return Error(status >= 500 ? Code::storage_unavailable : Code::invalid_argument, message);
    }

    // The event stream draws the bar; the job's own state decides. A stream that breaks is opened
    // again.
    Task<Result<json::object>> follow(std::string id) {
        for (;;) {
            SseReader reader;
            auto stream = request("GET", "/api/v2/jobs/" + id + "/events");
            stream.timeout = std::chrono::hours(24 * 7);
            stream.response_bytes_max = 1ULL << 40;
            auto ended = co_await client_.download(
                std::move(stream),
                [this, &reader](std::string_view piece) -> Result<> {
                    reader.feed(piece, [this](const std::string& event, const std::string& data) {
                        on_event(event, data);
                    });
                    return {};
                }
            );
            auto job = co_await call("GET", "/api/v2/jobs/" + id, "");
            if (!job) {
                co_return fail(std::move(job.error()));
            }
            const std::string status = comfy::text_of(*job, "status");
            if (status != "queued" && status != "running" && status != "canceling") {
                co_return job;
            }
            const bool goes_on = co_await sleep_for(Millis(200));
            if (!goes_on) {
                co_return fail(Code::cancelled, "interrupted");
            }
        }
    }

    void on_event(const std::string& event, const std::string& data) {
        const auto parsed = json::parse_object(data);
        if (!parsed) {
            return;
        }
        if (event == "status") {
            status_ = comfy::text_of(*parsed, "status");
            fraction_ = status_ == "succeeded" ? 1 : fraction_;
            display_.show(status_, fraction_, "");
        } else if (event == "progress") {
            const json::value* value = json::find(*parsed, "value");
            fraction_ =
                value != nullptr && value->is_number() ? value->to_number<double>() : fraction_;
            display_.show(status_, fraction_, comfy::text_of(*parsed, "message"));
        }
    }

    Task<Result<std::string>> save(const json::object& output) {
        namespace fs = std::filesystem;
        // Only the last part of a name is used: a server must not choose where we write.
        fs::path name = fs::path(comfy::text_of(output, "name")).filename();
        if (name.empty() || name == "." || name == "..") {
            name = "output";
        }
        std::error_code error;
        fs::create_directories(options_.directory, error);
        fs::path target = fs::path(options_.directory) / name;
        for (int i = 1; fs::exists(target); ++i) {
            target =
                fs::path(options_.directory) /
                (name.stem().string() + " (" + std::to_string(i) + ")" + name.extension().string());
        }
        std::ofstream file(target, std::ios::binary);
        auto download = request("GET", comfy::text_of(output, "url"));
        download.timeout = std::chrono::hours(1);
        download.response_bytes_max = 1ULL << 40;
        auto fetched = co_await client_.download(
            std::move(download),
            [&file](std::string_view piece) -> Result<> {
                file.write(piece.data(), static_cast<std::streamsize>(piece.size()));
                return {};
            }
        );
        if (!fetched) {
            co_return fail(std::move(fetched.error()));
        }
        file.close();
        if (fetched->status != 200 || !file) {
            co_return fail(Code::storage_unavailable, "cannot save '" + target.string() + "'");
        }
        co_return target.string();
    }

    Task<int> fetch_outputs(const json::object& job) {
        const json::value* outputs = json::find(job, "outputs");
        if (outputs == nullptr || !outputs->is_array()) {
            co_return kExitOk;
        }
        for (const json::value& output : outputs->get_array()) {
            auto saved = co_await save(output.get_object());
            if (!saved) {
                co_return refuse(saved.error());
            }
            std::printf("%s\n", saved->c_str());
        }
        co_return kExitOk;
    }

    RunOptions options_;
    net::Client client_;
    ProgressDisplay display_;
    std::string status_ = "queued";
    double fraction_ = 0;
};

}  // namespace

int run_workflow(RunOptions options) {
    if (!options.table.empty()) {
        return run_table(std::move(options));
    }
    complete_address(options.url, options.key);
    net::IoThread thread("run");
    Runner runner(thread.executor(), std::move(options));
    thread.start();
    const int code =
        boost::asio::co_spawn(thread.executor(), runner.run(), boost::asio::use_future).get();
    thread.stop();
    return code;
}

}  // namespace comfyd::app
