// Parts of a workflow as a text that is the same for the same parts only, for maps that are asked
// with every submission. Quicker to make than JSON, and for nobody to read.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/json.hpp"

namespace comfyd::workflow {

class ContentKey {
public:
    ContentKey() { text_.reserve(kUsualBytes); }

    void add_text(std::string_view text) {
        add_bytes(text.size());
        text_ += text;
    }
    void add_value(const json::value& value);
    // Of what follows, so that it is known where it ends.
    void add_size(std::size_t size) { add_bytes(size); }
    // Of something whose value does not matter.
    void add_mark(char mark) { text_ += mark; }

    std::string& text() { return text_; }

private:
    template <class Number>
    void add_bytes(Number number) {
        text_.append(reinterpret_cast<const char*>(&number), sizeof number);
    }

    static constexpr std::size_t kUsualBytes = 2 * 1024;

    std::string text_;
};

}  // namespace comfyd::workflow
