#include "comfy/server/routes.hpp"

#include <string_view>
#include <utility>

namespace comfyd::comfy::server {
namespace {

class Paths {
public:
    // With and without the prefix.
    void both(net::Method method, std::string_view path, Handler handler) {
        plain(method, path, handler);
        api(method, path, handler);
    }
    void plain(net::Method method, std::string_view path, Handler handler) {
        routes_.push_back({method, std::string(path), handler});
    }
    void api(net::Method method, std::string_view path, Handler handler) {
        routes_.push_back({method, "/api" + std::string(path), handler});
    }
    void get(std::string_view path, Handler handler) { both(net::Method::get, path, handler); }
    void post(std::string_view path, Handler handler) { both(net::Method::post, path, handler); }

    std::vector<Route> take() { return std::move(routes_); }

private:
    std::vector<Route> routes_;
};

void add_prompts(Paths& paths) {
    using net::Method;
    paths.get("/ws", serve_socket);
    paths.get("/prompt", get_prompt);
    paths.post("/prompt", post_prompt);
    paths.get("/queue", get_queue);
    paths.post("/queue", post_queue);
    paths.post("/interrupt", post_interrupt);
    paths.post("/free", post_free);
    paths.get("/history", get_history);
    paths.post("/history", post_history);
    paths.get("/history/{prompt_id}", get_history_of);
    paths.api(Method::get, "/jobs", get_jobs);
    paths.api(Method::post, "/jobs/cancel", cancel_jobs);
    paths.api(Method::get, "/jobs/{job_id}", get_job);
    paths.api(Method::post, "/jobs/{job_id}/cancel", cancel_job);
}

void add_files(Paths& paths) {
    paths.get("/view", get_view);
    paths.get("/view_metadata/{folder}", get_nothing);
    paths.post("/upload/image", upload_image);
    paths.post("/upload/mask", upload_mask);
    paths.plain(net::Method::get, "/internal/files/{type}", get_file_names);
}

void add_information(Paths& paths) {
    using net::Method;
    paths.get("/object_info", get_object_info);
    paths.get("/object_info/{class}", get_object_info_of);
    paths.get("/system_stats", get_system_stats);
    paths.get("/features", get_features);
    paths.get("/models", get_models);
    paths.get("/models/{folder}", get_models_in);
    paths.get("/experiment/models", get_model_folders);
    paths.get("/experiment/models/{folder}", get_model_files);
    paths.get("/experiment/models/preview/{folder}/{index}/{file*}", get_nothing);
    paths.get("/embeddings", get_empty_list);
    paths.get("/extensions", get_extensions);
    paths.get("/i18n", get_empty_object);
    paths.get("/global_subgraphs", get_empty_object);
    paths.get("/global_subgraphs/{id}", get_nothing);
    paths.get("/node_replacements", get_node_replacements);
    paths.get("/workflow_templates", get_empty_object);
    paths.plain(Method::get, "/internal/logs", get_logs);
    paths.plain(Method::get, "/internal/logs/raw", get_raw_logs);
    paths.plain(Method::patch, "/internal/logs/subscribe", subscribe_logs);
    paths.plain(Method::get, "/internal/folder_paths", get_folder_paths);
}

void add_users(Paths& paths) {
    paths.get("/users", get_users);
    paths.post("/users", post_users);
    paths.get("/settings", get_settings);
    paths.post("/settings", post_settings);
    paths.get("/settings/{id}", get_setting);
    paths.post("/settings/{id}", post_setting);
    paths.get("/userdata", list_userdata);
    paths.get("/v2/userdata", list_userdata_v2);
    paths.get("/userdata/{file}", get_userdata);
    paths.post("/userdata/{file}", post_userdata);
    paths.both(net::Method::del, "/userdata/{file}", delete_userdata);
    paths.post("/userdata/{file}/move/{dest}", move_userdata);
}

}  // namespace

std::vector<Route> all_routes() {
    Paths paths;
    add_prompts(paths);
    add_files(paths);
    add_information(paths);
    add_users(paths);
    return paths.take();
}

}  // namespace comfyd::comfy::server
