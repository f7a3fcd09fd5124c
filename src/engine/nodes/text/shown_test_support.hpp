// For tests of nodes whose results can be seen as text: runs one node, or a chain, through the
// engine and shows what came out, or the exception.
#pragma once

#include <string>
#include <utility>

#include "engine/test_support.hpp"

namespace comfyd::engine::testing {

inline json::object node_of(const std::string& class_type, json::object inputs) {
    return {{"class_type", class_type}, {"inputs", std::move(inputs)}};
}

inline json::array link_to(const std::string& node, int slot = 0) {
    return {node, slot};
}

// What PreviewAny shows of `from`'s output; "Type: text" where the run failed.
inline std::string shown(json::object prompt, const std::string& from, int slot = 0) {
    TestFolders folders;
    Core core(make_registry(), folders.options());
    Recorder recorder;
    prompt["show"] = node_of("PreviewAny", {{"source", link_to(from, slot)}});
    const auto result = core.run(std::move(prompt), {}, recorder, {});
    if (!result) {
        const json::object& details = result.error().details;
        if (!details.contains("exception_type")) {
            return result.error().message;
        }
        std::string text(details.at("exception_message").as_string());
        while (text.ends_with('\n')) {
            text.pop_back();
        }
        return std::string(details.at("exception_type").as_string()) + ": " + text;
    }
    return std::string(result->outputs.at("show").at("text").as_array()[0].as_string());
}

// The same for one node.
inline std::string shown_node(const std::string& class_type, json::object inputs, int slot = 0) {
    return shown({{"1", node_of(class_type, std::move(inputs))}}, "1", slot);
}

}  // namespace comfyd::engine::testing
