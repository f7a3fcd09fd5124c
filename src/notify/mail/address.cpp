#include "notify/mail/address.hpp"

#include <idn2.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "notify/mail/encoding.hpp"

namespace comfyd::notify::mail {
namespace {

constexpr std::size_t kAddressMax = 254;
constexpr std::size_t kLocalPartMax = 64;
constexpr std::size_t kLabelMax = 63;
constexpr std::string_view kMarks = "!#$%&'*+-/=?^_`{|}~.";  // of a local part

bool is_letter_or_digit(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_of_other_script(char c) {
    return c < 0;
}

// What is not ASCII must be characters, and none that ends a line: there are some beyond ASCII.
bool is_text(std::string_view text) {
    return valid_utf8(text) == text && text.find('\0') == std::string_view::npos &&
           text.find("\xC2\x85") == std::string_view::npos &&
           text.find("\xE2\x80\xA8") == std::string_view::npos &&
           text.find("\xE2\x80\xA9") == std::string_view::npos;
}

bool is_local_part(std::string_view text) {
    return !text.empty() && text.size() <= kLocalPartMax && text.front() != '.' &&
           text.back() != '.' && text.find("..") == std::string_view::npos && is_text(text) &&
           std::ranges::all_of(text, [](char c) {
               return is_letter_or_digit(c) || is_of_other_script(c) ||
                      kMarks.find(c) != std::string_view::npos;
           });
}

bool is_domain(std::string_view text) {
    while (true) {
        const std::string_view label = text.substr(0, text.find('.'));
        const bool is_label =
            !label.empty() && label.size() <= kLabelMax && label.front() != '-' &&
            label.back() != '-' &&
            std::ranges::all_of(label, [](char c) { return is_letter_or_digit(c) || c == '-'; });
        if (!is_label) {
            return false;
        }
        if (label.size() == text.size()) {
            return true;
        }
        text.remove_prefix(label.size() + 1);
    }
}

// By IDNA 2008, as browsers read names. Nullopt: it is no name of a domain.
std::optional<std::string> ascii_domain(std::string_view domain) {
    if (std::ranges::none_of(domain, is_of_other_script)) {
        return is_domain(domain) ? std::optional<std::string>(domain) : std::nullopt;
    }
    char* made = nullptr;
    const std::string text(domain);
    const int outcome =
        is_text(domain)
            ? idn2_to_ascii_8z(text.c_str(), &made, IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL)
            : IDN2_ENCODING_ERROR;
    const std::unique_ptr<char, decltype(&idn2_free)> owned(made, &idn2_free);
    if (outcome != IDN2_OK || !is_domain(made)) {
        return std::nullopt;
    }
    return made;
}

}  // namespace

Result<std::string> address_for_servers(std::string_view address) {
    const std::size_t at = address.rfind('@');
    std::optional<std::string> made;
    if (at != std::string_view::npos && is_local_part(address.substr(0, at))) {
        if (const auto domain = ascii_domain(address.substr(at + 1))) {
            made = std::string(address.substr(0, at + 1)) + *domain;
        }
    }
    if (!made || made->size() > kAddressMax) {
        return fail(
            Code::invalid_argument,
            "'" + valid_utf8(address.substr(0, kAddressMax)) +
                "' is no mail address such as name@example.com"
        );
    }
    return std::move(*made);
}

Result<> check_address(std::string_view address) {
    auto made = address_for_servers(address);
    return made ? Result<>() : fail(std::move(made.error()));
}

bool needs_utf8(std::string_view address) {
    return std::ranges::any_of(address, is_of_other_script);
}

}  // namespace comfyd::notify::mail
