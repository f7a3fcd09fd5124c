#include "app/commands/batches_command.hpp"

#include <cstdio>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "app/commands/cli.hpp"
#include "app/commands/server_client.hpp"
#include "comfy/members.hpp"
#include "net/io_threads.hpp"

namespace comfyd::app {
namespace {

std::string count_text(const json::object& batch, std::string_view name) {
    const json::value* counts = json::find(batch, "request_counts");
    const json::value* count =
        counts != nullptr && counts->is_object() ? json::find(counts->get_object(), name) : nullptr;
    return count != nullptr ? json::serialize(*count) : "0";
}

void print_batch(const json::object& batch) {
    const std::string name = comfy::text_of(batch, "name");
    std::printf(
        "%s  %-10s  %s of %s completed, %s failed, %s running  %s%s%s\n",
        comfy::text_of(batch, "id").c_str(),
        comfy::text_of(batch, "status").c_str(),
        count_text(batch, "completed").c_str(),
        count_text(batch, "total").c_str(),
        count_text(batch, "failed").c_str(),
        count_text(batch, "running").c_str(),
        comfy::text_of(batch, "created_at").c_str(),
        name.empty() ? "" : "  ",
        name.c_str()
    );
}

template <class Visit>
void each_object(const json::object& from, std::string_view list, Visit visit) {
    const json::value* found = json::find(from, list);
    if (found == nullptr || !found->is_array()) {
        return;
    }
    for (const json::value& entry : found->get_array()) {
        if (const json::object* one = entry.if_object()) {
            visit(*one);
        }
    }
}

void print_failure(const json::object& item) {
    const json::value* index = json::find(item, "index");
    const json::value* error = json::find(item, "error");
    std::printf(
        "  item %s %s: %s\n",
        index != nullptr ? json::serialize(*index).c_str() : "?",
        comfy::text_of(item, "custom_id").c_str(),
        error != nullptr && error->is_object()
            ? comfy::text_of(error->get_object(), "message").c_str()
            : "it is not known why"
    );
}

class Batches {
public:
    Batches(Executor executor, BatchesFlags flags)
        : flags_(std::move(flags)), server_(executor, flags_.url, flags_.key) {}

    Task<int> run() {
        const std::string path = "/v2/batches/" + net::percent_encode(flags_.id);
        if (flags_.action == "zip") {
            auto code = co_await save_zip(path);
            co_return code;
        }
        const bool is_question = flags_.action == "list" || flags_.action == "show";
        auto answer = co_await server_.call(
            is_question ? "GET" : "POST",
            flags_.action == "list" ? "/v2/batches"
            : is_question           ? path
                                    : path + "/" + flags_.action
        );
        if (!answer) {
            co_return complain(answer.error());
        }
        if (flags_.json) {
            std::printf("%s\n", json::serialize(*answer).c_str());
            co_return kExitOk;
        }
        if (flags_.action == "list") {
            each_object(*answer, "batches", print_batch);
            co_return kExitOk;
        }
        print_batch(*answer);
        if (flags_.action == "show") {
            auto failed = co_await server_.call("GET", path + "/items?status=failed&limit=20");
            if (failed) {
                each_object(*failed, "items", print_failure);
            }
        }
        co_return kExitOk;
    }

private:
    Task<int> save_zip(std::string path) {
        const std::string file =
            flags_.output.empty() ? "batch-" + flags_.id + ".zip" : flags_.output;
        auto batch = co_await server_.call("GET", path);
        if (!batch) {
            co_return complain(batch.error());
        }
        const std::string status = comfy::text_of(*batch, "status");
        if (status != "completed" && status != "cancelled") {
            co_return complain(Error(
                Code::conflict, "the batch is " + status + ": its archive is there at its end"
            ));
        }
        auto saved = co_await server_.save(path + "/zip", file);
        if (!saved) {
            co_return complain(saved.error());
        }
        std::printf("%s\n", file.c_str());
        co_return kExitOk;
    }

    BatchesFlags flags_;
    ServerClient server_;
};

}  // namespace

int run_batches(BatchesFlags flags) {
    net::IoThread thread("batches");
    Batches batches(thread.executor(), std::move(flags));
    thread.start();
    const int code =
        boost::asio::co_spawn(thread.executor(), batches.run(), boost::asio::use_future).get();
    thread.stop();
    return code;
}

}  // namespace comfyd::app
