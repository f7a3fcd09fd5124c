#include "base/foreign_text.hpp"

#include <atomic>

namespace comfyd::log {
namespace {

std::atomic<bool>& is_hidden() {
    static std::atomic<bool> hidden{false};
    return hidden;
}

}  // namespace

void hide_foreign_text(bool hides) {
    is_hidden() = hides;
}

std::string foreign(std::string_view text) {
    return is_hidden() ? "[" + std::to_string(text.size()) + " bytes not shown]"
                       : std::string(text);
}

}  // namespace comfyd::log
