#include "jobs/webhook_headers.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace comfyd::jobs {

bool is_reserved_webhook_header(std::string_view name) {
    constexpr std::array<std::string_view, 20> kReserved{
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "webhook-id",
        "webhook-signature",
        "webhook-timestamp",
        "x-execution-id",
        "x-signature",
        "x-webhook-event",
        "x-webhook-id",
        "x-webhook-signature",
        "x-webhook-timestamp",
    };
    return std::ranges::binary_search(kReserved, lower(name));
}

bool is_webhook_header(std::string_view name, std::string_view value) {
    constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
    const auto in_name = [&](char c) {
        return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') ||
               kMarks.find(c) != std::string_view::npos;
    };
    const auto in_value = [](unsigned char c) { return c == '\t' || (c >= 0x20 && c != 0x7F); };
    return !name.empty() && name.size() + value.size() <= kWebhookHeaderBytesMax &&
           std::ranges::all_of(name, in_name) && std::ranges::all_of(value, in_value);
}

}  // namespace comfyd::jobs
