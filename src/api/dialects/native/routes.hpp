// The handlers of the native routes. Every one answers its call. All run on the connection's
// thread; `context` outlives them.
#pragma once

#include "api/dialects/native/context.hpp"

namespace comfyd::api::native {

json::object server_features(const Services& services);

// Prompts, queue, interrupts
Task<> post_prompt(Call& call, Context& context);
Task<> get_prompt(Call& call, Context& context);
Task<> get_queue(Call& call, Context& context);
Task<> post_queue(Call& call, Context& context);
Task<> post_interrupt(Call& call, Context& context);
Task<> post_free(Call& call, Context& context);
Task<> serve_socket(Call& call, Context& context);

// History and jobs
Task<> get_history(Call& call, Context& context);
Task<> get_history_of(Call& call, Context& context);
Task<> post_history(Call& call, Context& context);
Task<> get_jobs(Call& call, Context& context);
Task<> get_job(Call& call, Context& context);
Task<> cancel_job(Call& call, Context& context);
Task<> cancel_jobs(Call& call, Context& context);

// Files
Task<> get_view(Call& call, Context& context);
Task<> upload_image(Call& call, Context& context);
Task<> upload_mask(Call& call, Context& context);
Task<> get_file_names(Call& call, Context& context);

// What the fleet has
Task<> get_object_info(Call& call, Context& context);
Task<> get_object_info_of(Call& call, Context& context);
Task<> get_system_stats(Call& call, Context& context);
Task<> get_models(Call& call, Context& context);
Task<> get_models_in(Call& call, Context& context);
Task<> get_model_folders(Call& call, Context& context);
Task<> get_model_files(Call& call, Context& context);
Task<> get_features(Call& call, Context& context);
Task<> get_logs(Call& call, Context& context);
Task<> get_raw_logs(Call& call, Context& context);
Task<> subscribe_logs(Call& call, Context& context);
Task<> get_folder_paths(Call& call, Context& context);
// What there is none of here.
Task<> get_empty_list(Call& call, Context& context);
Task<> get_empty_object(Call& call, Context& context);
Task<> get_node_replacements(Call& call, Context& context);
Task<> get_nothing(Call& call, Context& context);

// What a user stores
Task<> get_users(Call& call, Context& context);
Task<> refuse_user(Call& call, Context& context);
Task<> get_settings(Call& call, Context& context);
Task<> get_setting(Call& call, Context& context);
Task<> post_settings(Call& call, Context& context);
Task<> post_setting(Call& call, Context& context);
Task<> list_userdata(Call& call, Context& context);
Task<> list_userdata_v2(Call& call, Context& context);
Task<> get_userdata(Call& call, Context& context);
Task<> post_userdata(Call& call, Context& context);
Task<> delete_userdata(Call& call, Context& context);
Task<> move_userdata(Call& call, Context& context);

// The editor's files
Task<> get_frontend(Call& call, Context& context);

}  // namespace comfyd::api::native
