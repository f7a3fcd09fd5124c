#include "app/commands/run_table.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "api/dialects/named/named.hpp"
#include "app/commands/cli.hpp"
#include "app/commands/convert_command.hpp"
#include "app/commands/progress_display.hpp"
#include "app/commands/read_file.hpp"
#include "app/commands/server_client.hpp"
#include "base/crypto.hpp"
#include "base/id.hpp"
#include "comfy/members.hpp"
#include "net/io_threads.hpp"

namespace comfyd::app {
namespace {

namespace fs = std::filesystem;

constexpr Millis kLook{500};
constexpr int kLooksAway = 240;  // while the server is away: two minutes
constexpr const char* kNote = ".comfyd-batch.json";

int count_of(const json::object& batch, std::string_view name) {
    const json::value* counts = json::find(batch, "request_counts");
    const json::value* count =
        counts != nullptr && counts->is_object() ? json::find(counts->get_object(), name) : nullptr;
    return count != nullptr && count->is_int64() ? static_cast<int>(count->get_int64()) : 0;
}

class TableRunner {
public:
    TableRunner(Executor executor, RunOptions options)
        : options_(std::move(options)),
          folder_(options_.directory),
          server_(executor, options_.url, options_.key) {}

    Task<int> run() {
        auto batch = co_await begin();
        if (!batch) {
            co_return complain(batch.error());
        }
        const std::string id = comfy::text_of(*batch, "id");
        std::fprintf(stderr, "batch %s, %d items\n", id.c_str(), count_of(*batch, "total"));
        auto ended = co_await follow(id);
        display_.end();
        if (!ended) {
            std::fprintf(stderr, "comfyd: run the same command again to go on\n");
            co_return complain(ended.error());
        }
        auto fetched = co_await fetch_outputs(id);
        if (fetched) {
            fetched = co_await tell_failures(id);
        }
        if (!fetched) {
            co_return complain(fetched.error());
        }
        std::error_code ignored;
        fs::remove(folder_ / kNote, ignored);
        if (comfy::text_of(*ended, "status") != "completed") {
            std::fprintf(stderr, "batch %s was cancelled\n", id.c_str());
            co_return kExitStopped;
        }
        co_return count_of(*ended, "failed") + count_of(*ended, "cancelled") > 0 ? kExitFailed
                                                                                 : kExitOk;
    }

private:
    Task<Result<json::object>> begin() {
        auto table = read_given_file(options_.table);
        if (!table) {
            co_return fail(std::move(table.error()));
        }
        auto members = make_members();
        if (!members) {
            co_return fail(std::move(members.error()));
        }
        auto key = take_key(to_hex(sha256(json::serialize(*members) + *table)));
        if (!key) {
            co_return fail(std::move(key.error()));
        }
        std::vector<net::FormPart> parts;
        for (const auto& member : *members) {
            parts.push_back({member.key(), std::nullopt, "", json::serialize(member.value())});
        }
        parts.push_back(
            {"file", fs::path(options_.table).filename().string(), "", std::move(*table)}
        );
        auto batch = co_await server_.post_form("/v2/batches", std::move(parts), std::move(*key));
        if (!batch && !is_away(batch.error())) {
            std::error_code ignored;
            fs::remove(folder_ / kNote, ignored);  // it was refused: nothing to go on with
        }
        co_return batch;
    }

    Result<json::object> make_members() const {
        json::object members;
        const auto choice = api::named::parse_reference(options_.file);
        if (choice && !fs::exists(options_.file)) {
            members["workflow"] = options_.file;
        } else {
            auto workflow = load_workflow_file(options_.file);
            if (!workflow) {
                return workflow;
            }
            members["workflow"] = std::move(*workflow);
        }
        json::object params;
        for (const std::string& parameter : options_.parameters) {
            const auto equals = parameter.find('=');
            if (equals == std::string::npos) {
                return fail(
                    Code::invalid_argument, "--param needs NAME=VALUE, not '" + parameter + "'"
                );
            }
            const std::string text = parameter.substr(equals + 1);
            auto parsed = json::parse(text);
            params[parameter.substr(0, equals)] = parsed ? std::move(*parsed) : json::value(text);
        }
        members["params"] = std::move(params);
        members["priority"] = options_.priority;
        if (!options_.pool.empty()) {
            members["pool"] = options_.pool;
        }
        return members;
    }

    // By which the server knows this run again. A note of another run is overwritten.
    Result<std::string> take_key(const std::string& of) const {
        std::error_code error;
        fs::create_directories(folder_, error);
        if (auto text = read_given_file((folder_ / kNote).string())) {
            const auto note = json::parse_object(*text);
            if (note && comfy::text_of(*note, "of") == of) {
                return comfy::text_of(*note, "key");
            }
        }
        std::string key = "comfyd-run-" + Uuid::make(SystemClock().now()).to_string();
        std::ofstream note(folder_ / kNote, std::ios::trunc);
        note << json::serialize(json::object{{"key", key}, {"of", of}}) << "\n";
        note.close();
        if (!note) {
            return fail(
                Code::storage_unavailable, "cannot write in the folder '" + folder_.string() + "'"
            );
        }
        return key;
    }

    // Until it has ended. A server that is away for a while is waited for.
    Task<Result<json::object>> follow(std::string id) {
        int away = 0;
        while (true) {
            auto batch = co_await server_.call("GET", "/v2/batches/" + id);
            if (!batch && (!is_away(batch.error()) || ++away > kLooksAway)) {
                co_return batch;
            }
            if (batch) {
                away = 0;
                const std::string status = comfy::text_of(*batch, "status");
                show(*batch, status);
                if (status == "completed" || status == "cancelled") {
                    co_return batch;
                }
            }
            const bool goes_on = co_await sleep_for(kLook);
            if (!goes_on) {
                co_return fail(Code::cancelled, "interrupted");
            }
        }
    }

    void show(const json::object& batch, const std::string& status) {
        const int failed = count_of(batch, "failed");
        const int done = count_of(batch, "completed") + failed + count_of(batch, "cancelled");
        const int total = count_of(batch, "total");
        std::string message = std::to_string(done) + " of " + std::to_string(total);
        if (failed > 0) {
            message += ", " + std::to_string(failed) + " failed";
        }
        display_.show(status, total > 0 ? static_cast<double>(done) / total : 0, message);
    }

    // Items in this state, a page at a time.
    template <class Visit>
    Task<Result<>> each_item(std::string id, std::string status, Visit visit) {
        std::string cursor;
        do {
            std::string target = "/v2/batches/" + id + "/items?limit=1000&status=" + status;
            target += cursor.empty() ? "" : "&cursor=" + cursor;
            auto page = co_await server_.call("GET", std::move(target));
            if (!page) {
                co_return fail(std::move(page.error()));
            }
            const json::value* items = json::find(*page, "items");
            if (items == nullptr || !items->is_array()) {
                break;
            }
            for (const json::value& item : items->get_array()) {
                auto visited = co_await visit(item.as_object());
                if (!visited) {
                    co_return visited;
                }
            }
            cursor = comfy::text_of(*page, "next_cursor");
        } while (!cursor.empty());
        co_return Result<>();
    }

    Task<Result<>> fetch_outputs(std::string id) {
        return each_item(std::move(id), "completed", [this](const json::object& item) {
            return fetch_item(item);
        });
    }

    Task<Result<>> fetch_item(const json::object& item) {
        const json::value* outputs = json::find(item, "outputs");
        if (outputs == nullptr || !outputs->is_array()) {
            co_return Result<>();
        }
        for (const json::value& entry : outputs->get_array()) {
            const json::object& output = entry.as_object();
            // Only the last part of a name is used: a server must not choose where we write.
            const fs::path name = fs::path(comfy::text_of(output, "path")).filename();
            const fs::path file = folder_ / (name.empty() || name == ".." ? "output" : name);
            if (!is_there(file, output)) {
                auto saved = co_await server_.save(
                    "/api/v2/assets/" + comfy::text_of(output, "asset_id") + "/content", file
                );
                if (!saved) {
                    co_return saved;
                }
            }
            std::printf("%s\n", file.c_str());
        }
        co_return Result<>();
    }

    // Fetched before.
    static bool is_there(const fs::path& file, const json::object& output) {
        std::error_code error;
        const auto size = fs::file_size(file, error);
        const json::value* expected = json::find(output, "size_bytes");
        return !error && expected != nullptr && expected->is_number() &&
               size == expected->to_number<std::uint64_t>();
    }

    Task<Result<>> tell_failures(std::string id) {
        return each_item(std::move(id), "failed", [](const json::object& item) {
            return tell_failure(item);
        });
    }

    static Task<Result<>> tell_failure(const json::object& item) {
        const json::value* index = json::find(item, "index");
        const json::value* error = json::find(item, "error");
        const std::string name = comfy::text_of(item, "custom_id");
        std::fprintf(
            stderr,
            "item %s%s failed: %s\n",
            index != nullptr ? json::serialize(*index).c_str() : "?",
            name.empty() ? "" : (" (" + name + ")").c_str(),
            error != nullptr && error->is_object()
                ? comfy::text_of(error->get_object(), "message").c_str()
                : "it is not known why"
        );
        co_return Result<>();
    }

    RunOptions options_;
    fs::path folder_;
    ServerClient server_;
    ProgressDisplay display_;
};

}  // namespace

int run_table(RunOptions options) {
    net::IoThread thread("run");
    TableRunner runner(thread.executor(), std::move(options));
    thread.start();
    const int code =
        boost::asio::co_spawn(thread.executor(), runner.run(), boost::asio::use_future).get();
    thread.stop();
    return code;
}

}  // namespace comfyd::app
