// The node classes of one worker, as what judges and changes prompts asks for them. Any thread.
#pragma once

#include <memory>
#include <utility>

#include "workflow/catalogue/catalogue.hpp"

namespace comfyd::fleet {

class WorkerClasses final : public workflow::PromptClasses {
public:
    explicit WorkerClasses(std::shared_ptr<const workflow::NodeClasses> classes)
        : classes_(std::move(classes)) {}
    const workflow::NodeDefinition* find(std::string_view class_type) const override {
        return classes_ ? classes_->find(class_type) : nullptr;
    }

private:
    std::shared_ptr<const workflow::NodeClasses> classes_;
};

}  // namespace comfyd::fleet
