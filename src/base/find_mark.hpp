// Looking for a mark in a long text. Pure; any thread.
#pragma once

#include <string_view>

namespace comfyd {

// Whether `mark` is in the text. For marks whose last character is rarer than their first, at which
// the library stops: "asset:" in a workflow, say.
inline bool holds_mark(std::string_view text, std::string_view mark) {
    for (auto last = text.find(mark.back(), mark.size() - 1); last != text.npos;
         last = text.find(mark.back(), last + 1)) {
        if (text.substr(last + 1 - mark.size(), mark.size()) == mark) {
            return true;
        }
    }
    return false;
}

}  // namespace comfyd
