// The handlers of the server's routes. Every one answers its call. All on the server's thread;
// `core` outlives them.
#pragma once

#include "comfy/server/routes.hpp"
#include "standalone/core.hpp"
#include "standalone/table.hpp"

namespace comfyd::standalone {

void add_routes(Table& table, Core& core, comfy::server::Backend& backend);

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

// For handlers.

// The body as JSON, as Python reads it; null when it is empty. nullopt: answered already.
Task<std::optional<json::value>> read_json(Call& call, Core& core);
// The same, and it must be an object.
Task<std::optional<json::object>> read_object(Call& call, Core& core);
// The same for the bytes.
Task<std::optional<std::string>> read_bytes(Call& call, Core& core);
using comfy::server::encode_error;
using comfy::server::is_true;

}  // namespace comfyd::standalone
