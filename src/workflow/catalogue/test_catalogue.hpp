// The classes of a recorded ComfyUI server, for tests.
#pragma once

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "workflow/graph/python_text.hpp"
#include "workflow/rules/prompt_rules.hpp"

namespace comfyd::workflow {

inline std::string read_test_data(const std::string& path) {
    std::ifstream file(std::string(COMFYD_TEST_DATA) + "/" + path, std::ios::binary);
    if (!file) {
        throw std::runtime_error("cannot read the test data " + path);
    }
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline std::string text_of(boost::json::string_view text) {
    return {text.data(), text.size()};
}

// Classes by name, with the own checks that a test gives them.
class TestClasses : public PromptClasses {
public:
    TestClasses() = default;
    explicit TestClasses(std::string_view object_info) { add(object_info); }

    void add(std::string_view object_info) {
        const json::object document = *json::parse_object(object_info);
        for (const auto& entry : document) {
            const std::string name = text_of(entry.key());
            auto definition = NodeDefinition::from_object_info(name, entry.value().as_object());
            if (!definition) {
                throw std::runtime_error(definition.error().message);
            }
            classes_[name] = *definition;
        }
    }

    const NodeDefinition* find(std::string_view class_type) const override {
        const auto found = classes_.find(class_type);
        return found == classes_.end() ? nullptr : found->second.get();
    }
    const OwnCheck* own_check(const NodeDefinition& definition) const override {
        const auto found = checks.find(definition.name());
        return found == checks.end() ? nullptr : &found->second;
    }

    std::map<std::string, OwnCheck> checks;

private:
    std::map<std::string, std::shared_ptr<const NodeDefinition>, std::less<>> classes_;
};

}  // namespace comfyd::workflow
