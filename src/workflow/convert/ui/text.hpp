// What the editor does to texts before it sends them: choices in prompts and names in file names.
// Pure; any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "base/time.hpp"

namespace comfyd::workflow::ui {

// Gives the place of one of `count` choices.
using Choose = std::function<std::size_t(std::size_t count)>;

// Without comments, one of the choices of each {a|b}, and without the backslash before braces.
std::string resolve_choices(std::string_view text, const Choose& choose);

// Gives what "%node.widget%" stands for; nullptr: unknown, it stays as it is.
using FindWidget =
    std::function<const json::value*(std::string_view node, std::string_view widget)>;

// `now` is for "%date:…%", in local time; nullopt: that stays as well.
std::string replace_names(std::string_view text, const FindWidget& find, std::optional<Time> now);

// As JavaScript writes it into a text.
std::string script_text(const json::value& value);

}  // namespace comfyd::workflow::ui
