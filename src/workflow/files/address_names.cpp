#include "workflow/files/address_names.hpp"

#include <algorithm>

#include "base/crypto.hpp"
#include "workflow/files/choices.hpp"

namespace comfyd::workflow {
namespace {

constexpr std::string_view kStart = "from-";
constexpr std::size_t kDigits = 16;  // of the tenant, and of the address

std::string mark_of(std::string_view text) {
    return to_hex(sha256(text)).substr(0, kDigits);
}

}  // namespace

std::string address_folder(std::string_view tenant, std::string_view address) {
    return std::string(kStart) + mark_of(tenant) + mark_of(address);
}

// With either separator: workers write what their system does.
bool is_address_name(std::string_view name) {
    constexpr std::size_t kFolder = kStart.size() + 2 * kDigits;
    const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
    return name.size() > kFolder && name.starts_with(kStart) &&
           (name[kFolder] == '/' || name[kFolder] == '\\') &&
           std::ranges::all_of(name.substr(kStart.size(), 2 * kDigits), is_digit);
}

bool is_address_name_of(std::string_view name, std::string_view tenant) {
    return is_address_name(name) && name.substr(kStart.size(), kDigits) == mark_of(tenant);
}

std::optional<json::object> without_address_choices(const json::object& info) {
    return without_choices(info, is_address_name);
}

}  // namespace comfyd::workflow
