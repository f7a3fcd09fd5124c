// The handlers of the server's routes. Every one answers its call. All on the server's thread;
// `core` outlives them.
#pragma once

#include "standalone/core.hpp"
#include "standalone/table.hpp"

namespace comfyd::standalone {

void add_routes(Table& table);

// Prompts and the queue
Task<> get_prompt(Call& call, Core& core);
Task<> post_prompt(Call& call, Core& core);
Task<> get_queue(Call& call, Core& core);
Task<> post_queue(Call& call, Core& core);
Task<> post_interrupt(Call& call, Core& core);
Task<> post_free(Call& call, Core& core);
Task<> serve_socket(Call& call, Core& core);

// History and jobs
Task<> get_history(Call& call, Core& core);
Task<> get_history_of(Call& call, Core& core);
Task<> post_history(Call& call, Core& core);
Task<> get_jobs(Call& call, Core& core);
Task<> get_job(Call& call, Core& core);
Task<> cancel_job(Call& call, Core& core);
Task<> cancel_jobs(Call& call, Core& core);

// Files
Task<> get_view(Call& call, Core& core);
Task<> upload_image(Call& call, Core& core);
Task<> upload_mask(Call& call, Core& core);
Task<> get_folder_files(Call& call, Core& core);

// What the server is and has
Task<> get_object_info(Call& call, Core& core);
Task<> get_object_info_of(Call& call, Core& core);
Task<> get_system_stats(Call& call, Core& core);
Task<> get_features(Call& call, Core& core);
Task<> get_models(Call& call, Core& core);
Task<> get_models_in(Call& call, Core& core);
Task<> get_model_folders(Call& call, Core& core);
Task<> get_extensions(Call& call, Core& core);
Task<> get_logs(Call& call, Core& core);
Task<> get_raw_logs(Call& call, Core& core);
Task<> subscribe_logs(Call& call, Core& core);
Task<> get_folder_paths(Call& call, Core& core);
// For what this server never has any of.
Task<> get_empty_object(Call& call, Core& core);
Task<> get_empty_list(Call& call, Core& core);
Task<> get_nothing(Call& call, Core& core);

// What a user stores
Task<> get_users(Call& call, Core& core);
Task<> post_users(Call& call, Core& core);
Task<> get_settings(Call& call, Core& core);
Task<> get_setting(Call& call, Core& core);
Task<> post_settings(Call& call, Core& core);
Task<> post_setting(Call& call, Core& core);
Task<> list_userdata(Call& call, Core& core);
Task<> list_userdata_v2(Call& call, Core& core);
Task<> get_userdata(Call& call, Core& core);
Task<> post_userdata(Call& call, Core& core);
Task<> delete_userdata(Call& call, Core& core);
Task<> move_userdata(Call& call, Core& core);

// What is on no route: the editor's files, or 404.
Task<> get_static(Call& call, Core& core);

// For handlers.

// The body as JSON, as Python reads it; null when it is empty. nullopt: answered already.
Task<std::optional<json::value>> read_json(Call& call, Core& core);
// The same, and it must be an object.
Task<std::optional<json::object>> read_object(Call& call, Core& core);
// The same for the bytes.
Task<std::optional<std::string>> read_bytes(Call& call, Core& core);
net::Response encode_error(const Error& error);
bool is_true(const json::object& in, std::string_view key);

}  // namespace comfyd::standalone
