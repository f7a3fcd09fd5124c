// The headers that a client may add to its webhooks: one rule, for the request that names them and
// for the message that carries them. Pure; any thread.
#pragma once

#include <cstddef>
#include <string_view>

namespace comfyd::jobs {

inline constexpr std::size_t kWebhookHeadersMax = 20;
inline constexpr std::size_t kWebhookHeaderBytesMax = 4096;  // name and value together

// It frames the message or proves where it comes from: a client's own may not replace it.
bool is_reserved_webhook_header(std::string_view name);

// A name and a value that HTTP can carry, and that end no header before its end.
bool is_webhook_header(std::string_view name, std::string_view value);

}  // namespace comfyd::jobs
