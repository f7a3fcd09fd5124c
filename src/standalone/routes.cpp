#include "standalone/routes.hpp"

#include <utility>

#include "comfy/replies.hpp"

namespace comfyd::standalone {
namespace {

void add_prompt_routes(Table& table) {
    using net::Method;
    table.add(Method::get, "/ws", serve_socket, Where::both);
    table.add(Method::get, "/prompt", get_prompt, Where::both);
    table.add(Method::post, "/prompt", post_prompt, Where::both);
    table.add(Method::get, "/queue", get_queue, Where::both);
    table.add(Method::post, "/queue", post_queue, Where::both);
    table.add(Method::post, "/interrupt", post_interrupt, Where::both);
    table.add(Method::post, "/free", post_free, Where::both);
    table.add(Method::get, "/history", get_history, Where::both);
    table.add(Method::post, "/history", post_history, Where::both);
    table.add(Method::get, "/history/{id}", get_history_of, Where::both);
    table.add(Method::get, "/jobs", get_jobs, Where::api);
    table.add(Method::post, "/jobs/cancel", cancel_jobs, Where::api);
    table.add(Method::get, "/jobs/{id}", get_job, Where::api);
    table.add(Method::post, "/jobs/{id}/cancel", cancel_job, Where::api);
}

void add_file_routes(Table& table) {
    using net::Method;
    table.add(Method::get, "/view", get_view, Where::both);
    table.add(Method::post, "/upload/image", upload_image, Where::both);
    table.add(Method::post, "/upload/mask", upload_mask, Where::both);
    table.add(Method::get, "/view_metadata/{folder}", get_nothing, Where::both);
    table.add(Method::get, "/internal/files/{type}", get_folder_files, Where::plain);
}

void add_information_routes(Table& table) {
    using net::Method;
    table.add(Method::get, "/object_info", get_object_info, Where::both);
    table.add(Method::get, "/object_info/{class}", get_object_info_of, Where::both);
    table.add(Method::get, "/system_stats", get_system_stats, Where::both);
    table.add(Method::get, "/features", get_features, Where::both);
    table.add(Method::get, "/models", get_models, Where::both);
    table.add(Method::get, "/models/{folder}", get_models_in, Where::both);
    table.add(Method::get, "/experiment/models", get_model_folders, Where::both);
    table.add(Method::get, "/experiment/models/{folder}", get_models_in, Where::both);
    table.add(
        Method::get, "/experiment/models/preview/{folder}/{index}/{file}", get_nothing, Where::both
    );
    table.add(Method::get, "/embeddings", get_empty_list, Where::both);
    table.add(Method::get, "/extensions", get_extensions, Where::both);
    table.add(Method::get, "/i18n", get_empty_object, Where::both);
    table.add(Method::get, "/global_subgraphs", get_empty_object, Where::both);
    table.add(Method::get, "/global_subgraphs/{id}", get_nothing, Where::both);
    table.add(Method::get, "/node_replacements", get_empty_object, Where::both);
    table.add(Method::get, "/workflow_templates", get_empty_object, Where::both);
    table.add(Method::get, "/internal/logs", get_logs, Where::plain);
    table.add(Method::get, "/internal/logs/raw", get_raw_logs, Where::plain);
    table.add(Method::patch, "/internal/logs/subscribe", subscribe_logs, Where::plain);
    table.add(Method::get, "/internal/folder_paths", get_folder_paths, Where::plain);
}

void add_user_routes(Table& table) {
    using net::Method;
    table.add(Method::get, "/users", get_users, Where::both);
    table.add(Method::post, "/users", post_users, Where::both);
    table.add(Method::get, "/settings", get_settings, Where::both);
    table.add(Method::post, "/settings", post_settings, Where::both);
    table.add(Method::get, "/settings/{id}", get_setting, Where::both);
    table.add(Method::post, "/settings/{id}", post_setting, Where::both);
    table.add(Method::get, "/userdata", list_userdata, Where::both);
    table.add(Method::get, "/v2/userdata", list_userdata_v2, Where::both);
    table.add(Method::get, "/userdata/{file}", get_userdata, Where::both);
    table.add(Method::post, "/userdata/{file}", post_userdata, Where::both);
    table.add(Method::del, "/userdata/{file}", delete_userdata, Where::both);
    table.add(Method::post, "/userdata/{file}/move/{dest}", move_userdata, Where::both);
}

}  // namespace

void add_routes(Table& table) {
    add_prompt_routes(table);
    add_file_routes(table);
    add_information_routes(table);
    add_user_routes(table);
}

Task<std::optional<std::string>> read_bytes(Call& call, Core& core) {
    auto body = co_await call.exchange.read_body(core.options.body_bytes_max);
    if (body) {
        co_return std::move(*body);
    }
    if (body.error().code == Code::payload_too_large) {
        const std::string limit = std::to_string(core.options.body_bytes_max);
        co_await answer(
            call, comfy::text_reply(413, "Maximum request body size " + limit + " exceeded.")
        );
    } else if (body.error().code != Code::connection_failed) {
        co_await answer(call, encode_error(body.error()));
    }
    co_return std::nullopt;
}

Task<std::optional<json::value>> read_json(Call& call, Core& core) {
    auto bytes = co_await read_bytes(call, core);
    if (!bytes) {
        co_return std::nullopt;
    }
    if (bytes->empty()) {
        co_return json::value();
    }
    auto parsed = comfy::parse_python(*bytes);
    if (!parsed) {
        co_await answer(call, encode_error(parsed.error()));
        co_return std::nullopt;
    }
    co_return std::move(*parsed);
}

Task<std::optional<json::object>> read_object(Call& call, Core& core) {
    auto body = co_await read_json(call, core);
    if (!body) {
        co_return std::nullopt;
    }
    if (!body->is_object()) {
        co_await answer(call, comfy::error_reply(400, "the body must be an object"));
        co_return std::nullopt;
    }
    co_return std::move(body->get_object());
}

net::Response encode_error(const Error& error) {
    return comfy::error_reply(info(error.code).http_status, error.message);
}

bool is_true(const json::object& in, std::string_view key) {
    const json::value* value = json::find(in, key);
    return value != nullptr && *value == json::value(true);
}

}  // namespace comfyd::standalone
