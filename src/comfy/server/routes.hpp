// ComfyUI's public surface: its paths, and what answers on each, over any backend. A server takes
// the table, finds the route of a request, and calls its handler, which answers the call.
#pragma once

#include <string>
#include <vector>

#include "comfy/server/backend.hpp"
#include "comfy/server/call.hpp"

namespace comfyd::comfy::server {

using Handler = Task<> (*)(Call&, Backend&);

struct Route {
    net::Method method;
    // "/history/{id}": a part in braces takes one segment, in which an encoded slash is no
    // separator; "{file*}" at the end takes all that is left.
    std::string path;
    Handler handler;
};

// Every path that ComfyUI has, with and without the prefix /api where it has both. Literal segments
// stand before the parameters that would take them.
std::vector<Route> all_routes();

// Prompts and the queue
Task<> get_prompt(Call& call, Backend& backend);
Task<> post_prompt(Call& call, Backend& backend);
Task<> get_queue(Call& call, Backend& backend);
Task<> post_queue(Call& call, Backend& backend);
Task<> post_interrupt(Call& call, Backend& backend);
Task<> post_free(Call& call, Backend& backend);
Task<> serve_socket(Call& call, Backend& backend);

// History and jobs
Task<> get_history(Call& call, Backend& backend);
Task<> get_history_of(Call& call, Backend& backend);
Task<> post_history(Call& call, Backend& backend);
Task<> get_jobs(Call& call, Backend& backend);
Task<> get_job(Call& call, Backend& backend);
Task<> cancel_job(Call& call, Backend& backend);
Task<> cancel_jobs(Call& call, Backend& backend);

// Files
Task<> get_view(Call& call, Backend& backend);
Task<> upload_image(Call& call, Backend& backend);
Task<> upload_mask(Call& call, Backend& backend);
Task<> get_file_names(Call& call, Backend& backend);

// What the server is and has
Task<> get_object_info(Call& call, Backend& backend);
Task<> get_object_info_of(Call& call, Backend& backend);
Task<> get_system_stats(Call& call, Backend& backend);
Task<> get_features(Call& call, Backend& backend);
Task<> get_models(Call& call, Backend& backend);
Task<> get_models_in(Call& call, Backend& backend);
Task<> get_model_folders(Call& call, Backend& backend);
Task<> get_model_files(Call& call, Backend& backend);
Task<> get_folder_paths(Call& call, Backend& backend);
Task<> get_node_replacements(Call& call, Backend& backend);
Task<> get_logs(Call& call, Backend& backend);
Task<> get_raw_logs(Call& call, Backend& backend);
Task<> subscribe_logs(Call& call, Backend& backend);
// For what there is none of, whatever the backend.
Task<> get_empty_object(Call& call, Backend& backend);
Task<> get_empty_list(Call& call, Backend& backend);
Task<> get_nothing(Call& call, Backend& backend);

// The editor: its files (whatever path is no other route's), and its extensions
Task<> get_editor_file(Call& call, Backend& backend);
Task<> get_extensions(Call& call, Backend& backend);

// What a user stores
Task<> get_users(Call& call, Backend& backend);
Task<> post_users(Call& call, Backend& backend);
Task<> get_settings(Call& call, Backend& backend);
Task<> get_setting(Call& call, Backend& backend);
Task<> post_settings(Call& call, Backend& backend);
Task<> post_setting(Call& call, Backend& backend);
Task<> list_userdata(Call& call, Backend& backend);
Task<> list_userdata_v2(Call& call, Backend& backend);
Task<> get_userdata(Call& call, Backend& backend);
Task<> post_userdata(Call& call, Backend& backend);
Task<> delete_userdata(Call& call, Backend& backend);
Task<> move_userdata(Call& call, Backend& backend);

}  // namespace comfyd::comfy::server
