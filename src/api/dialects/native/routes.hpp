// The handlers of the native routes. Every one answers its call. All run on the connection's
// thread; `context` outlives them.
#pragma once

#include "api/dialects/native/context.hpp"

namespace comfyd::api::native {

Task<> serve_socket(Call& call, Context& context);

}  // namespace comfyd::api::native
