// The handlers of the native routes. Every one answers its call. All run on the connection's
// thread; `context` outlives them.
#pragma once

#include "api/dialects/native/context.hpp"

namespace comfyd::api::native {

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

}  // namespace comfyd::api::native
