#include "notify/deliveries.hpp"

#include <array>
#include <charconv>

namespace comfyd::notify {
namespace {

constexpr std::array<std::string_view, 3> kStates{"pending", "delivered", "dead"};

}  // namespace

std::string_view to_string(DeliveryState state) {
    return kStates.at(static_cast<std::size_t>(state));
}

std::optional<DeliveryState> parse_delivery_state(std::string_view text) {
    for (std::size_t i = 0; i < kStates.size(); ++i) {
        if (kStates[i] == text) {
            return static_cast<DeliveryState>(i);
        }
    }
    return std::nullopt;
}

std::string DeliveryKey::to_string() const {
    std::string text = job.to_string() + "_" + std::to_string(sequence);
    return endpoint.empty() ? text : text + "_" + endpoint;
}

std::optional<DeliveryKey> DeliveryKey::parse(std::string_view text) {
    const std::size_t first = text.find('_');
    if (first == std::string_view::npos) {
        return std::nullopt;
    }
    const auto job = JobId::parse(text.substr(0, first));
    const std::string_view rest = text.substr(first + 1);
    const std::string_view number = rest.substr(0, rest.find('_'));
    DeliveryKey key;
    const char* const end = number.data() + number.size();
    const auto read = std::from_chars(number.data(), end, key.sequence);
    if (!job || number.empty() || read.ec != std::errc() || read.ptr != end) {
        return std::nullopt;
    }
    key.job = *job;
    if (number.size() < rest.size()) {
        key.endpoint = rest.substr(number.size() + 1);
        if (key.endpoint.empty()) {
            return std::nullopt;
        }
    }
    return key;
}

}  // namespace comfyd::notify
