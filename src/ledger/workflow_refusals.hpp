// Why a change of a named workflow is refused, in the same words by every storage. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/error.hpp"

namespace comfyd::ledger {

inline Error no_workflow(const std::string& name) {
    return Error(Code::not_found, "there is no workflow named '" + name + "'");
}

inline Error no_version(const std::string& name, int version) {
    return Error(
        Code::not_found, "the workflow '" + name + "' has no version " + std::to_string(version)
    );
}

inline Error no_label(const std::string& name, const std::string& label) {
    return Error(Code::not_found, "the workflow '" + name + "' has no label '" + label + "'");
}

inline Error too_many_workflows(std::int64_t count) {
    return Error(
        Code::conflict,
        "there are " + std::to_string(count) +
            " named workflows, which is as many as there can be: delete one first"
    );
}

inline Error too_many_versions(const std::string& name, int count) {
    return Error(
        Code::conflict,
        "the workflow '" + name + "' has " + std::to_string(count) +
            " versions, which is as many as there can be: delete some that are not used"
    );
}

inline Error too_many_labels(const std::string& name, std::size_t count) {
    return Error(
        Code::conflict,
        "the workflow '" + name + "' has " + std::to_string(count) +
            " labels, which is as many as there can be: delete one first"
    );
}

inline Error label_points_to(const std::string& label, int version) {
    return Error(
        Code::conflict,
        "the label '" + label + "' points to version " + std::to_string(version) +
            ": move or delete the label first"
    );
}

inline Error only_version(const std::string& name, int version) {
    return Error(
        Code::conflict,
        "version " + std::to_string(version) + " is the only one of '" + name +
            "': delete the workflow instead"
    );
}

inline Result<> check_tag(
    const std::string& name, const std::string& current, const std::optional<std::string>& expected
) {
    if (!expected || *expected == current) {
        return {};
    }
    return fail(
        Code::conflict,
        expected->empty() ? "there is a workflow named '" + name + "' already"
        : current.empty()
            ? "the workflow '" + name + "' is not there any more"
            : "the workflow '" + name + "' was changed meanwhile: read it and change it again",
        {{"current_tag", current}}
    );
}

}  // namespace comfyd::ledger
