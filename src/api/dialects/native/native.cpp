#include "api/dialects/native/native.hpp"

#include <memory>
#include <utility>

#include <boost/asio/post.hpp>

#include "api/dialects/native/openapi.hpp"
#include "api/dialects/native/routes.hpp"
#include "api/dialects/prompt_sync/prompt_sync.hpp"

namespace comfyd::api {
namespace {

using namespace native;
using Function = Task<> (*)(Call&, Context&);

enum class Where { both, plain, api };

class Table {
public:
    Table(Router& router, std::shared_ptr<Context> context)
        : router_(router), context_(std::move(context)) {}

    void add(net::Method method, const std::string& path, Function function, Where where) {
        if (where != Where::api) {
            add_one(method, path, function);
        }
        if (where != Where::plain) {
            add_one(method, "/api" + path, function);
        }
    }
    void get(const std::string& path, Function function, Where where = Where::both) {
        add(net::Method::get, path, function, where);
    }
    void post(const std::string& path, Function function, Where where = Where::both) {
        add(net::Method::post, path, function, where);
    }

private:
    void add_one(net::Method method, std::string pattern, Function function) {
        Route route;
        route.method = method;
        route.pattern = std::move(pattern);
        route.handler = [context = context_, function](Call& call) {
            return function(call, *context);
        };
        route.encode_error = encode_native_error;
        route.operation = document_route(method, route.pattern);
        route.access = function == post_free ? Access::operators : Access::key;
        route.is_stream = function == serve_socket;
        route.token_in_query = function == serve_socket || function == get_view;
        route.streams_body = function == upload_image || function == upload_mask;
        route.options_status = 200;
        router_.add(std::move(route));
    }

    Router& router_;
    std::shared_ptr<Context> context_;  // shared by the handlers of all routes
};

void add_prompts(Table& table) {
    table.get("/ws", serve_socket);
    table.get("/prompt", get_prompt);
    table.post("/prompt", post_prompt);
    table.get("/queue", get_queue);
    table.post("/queue", post_queue);
    table.post("/interrupt", post_interrupt);
    table.post("/free", post_free);
    table.get("/history", get_history);
    table.get("/history/{prompt_id}", get_history_of);
    table.post("/history", post_history);
    table.get("/jobs", get_jobs, Where::api);
    table.get("/jobs/{job_id}", get_job, Where::api);
    table.post("/jobs/{job_id}/cancel", cancel_job, Where::api);
    table.post("/jobs/cancel", cancel_jobs, Where::api);
}

void add_files(Table& table) {
    table.get("/view", get_view);
    table.get("/view_metadata/{folder}", get_nothing);
    table.post("/upload/image", upload_image);
    table.post("/upload/mask", upload_mask);
    table.get("/internal/files/{type}", get_file_names, Where::plain);
}

void add_information(Table& table) {
    table.get("/object_info", get_object_info);
    table.get("/object_info/{class}", get_object_info_of);
    table.get("/system_stats", get_system_stats);
    table.get("/features", get_features);
    table.get("/models", get_models);
    table.get("/models/{folder}", get_models_in);
    table.get("/experiment/models", get_model_folders);
    table.get("/experiment/models/{folder}", get_model_files);
    table.get("/experiment/models/preview/{folder}/{index}/{file*}", get_nothing);
    table.get("/embeddings", get_empty_list);
    table.get("/extensions", get_empty_list);
    table.get("/i18n", get_empty_object);
    table.get("/global_subgraphs", get_empty_object);
    table.get("/global_subgraphs/{id}", get_nothing);
    table.get("/node_replacements", get_node_replacements);
    table.get("/workflow_templates", get_empty_object);
    table.get("/internal/logs", get_logs, Where::plain);
    table.get("/internal/logs/raw", get_raw_logs, Where::plain);
    table.add(net::Method::patch, "/internal/logs/subscribe", subscribe_logs, Where::plain);
    table.get("/internal/folder_paths", get_folder_paths, Where::plain);
}

void add_users(Table& table) {
    table.get("/users", get_users);
    table.post("/users", refuse_user);
    table.get("/settings", get_settings);
    table.post("/settings", post_settings);
    table.get("/settings/{id}", get_setting);
    table.post("/settings/{id}", post_setting);
    table.get("/userdata", list_userdata);
    table.get("/v2/userdata", list_userdata_v2);
    table.get("/userdata/{file}", get_userdata);
    table.post("/userdata/{file}", post_userdata);
    table.add(net::Method::del, "/userdata/{file}", delete_userdata, Where::both);
    table.post("/userdata/{file}/move/{dest}", move_userdata);
}

}  // namespace

std::shared_ptr<Board> add_native(Router& router, const Services& services, NativeParts parts) {
    const auto context = std::make_shared<Context>(services, std::move(parts));
    const auto& board = context->board;
    boost::asio::post(board->executor(), [board] { board->start(); });
    Table table(router, context);
    add_prompts(table);
    add_files(table);
    add_information(table);
    add_users(table);
    add_prompt_sync(router, context);
    if (!context->parts.frontend.empty()) {
        table.get("/", get_frontend, Where::plain);
        table.get("/{path*}", get_frontend, Where::plain);
    }
    return board;
}

}  // namespace comfyd::api
