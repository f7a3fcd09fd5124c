// For the tests of api: named workflows in memory, and node classes to run them with.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "jobs/workflow_store.hpp"
#include "workflow/catalogue/catalogue.hpp"

namespace comfyd::api::test {

class MemoryWorkflows final : public jobs::WorkflowStore {
public:
    Task<Result<jobs::WorkflowSaved>> save_workflow(jobs::WorkflowSave save) override {
        const std::scoped_lock lock(mutex_);
        const Key key(save.of.tenant, save.of.name);
        auto found = workflows_.find(key);
        const std::string tag = found == workflows_.end() ? "" : found->second.head.tag;
        if (save.expected_tag && *save.expected_tag != tag) {
            co_return stale(tag);
        }
        if (found != workflows_.end() &&
            found->second.versions.rbegin()->second.content_hash == save.version.content_hash) {
            co_return jobs::WorkflowSaved{found->second.head, found->second.head.latest, false};
        }
        Stored& stored = workflows_[key];
        save.version.version = ++stored.last_version;
        stored.versions[stored.last_version] = save.version;
        stored.head.name = save.of.name;
        touch(stored);
        co_return jobs::WorkflowSaved{stored.head, stored.last_version, true};
    }
    Task<Result<std::optional<jobs::NamedWorkflow>>> find_workflow(jobs::WorkflowName of) override {
        const std::scoped_lock lock(mutex_);
        const auto found = workflows_.find(Key(of.tenant, of.name));
        co_return found == workflows_.end() ? std::nullopt : std::optional(found->second.head);
    }
    Task<Result<std::optional<jobs::WorkflowVersion>>> find_workflow_version(
        jobs::WorkflowName of, int version
    ) override {
        const std::scoped_lock lock(mutex_);
        const auto found = workflows_.find(Key(of.tenant, of.name));
        if (found == workflows_.end() || !found->second.versions.contains(version)) {
            co_return std::nullopt;
        }
        co_return found->second.versions.at(version);
    }
    Task<Result<jobs::WorkflowPage>> list_workflows(
        std::string tenant, std::string after, int limit
    ) override {
        const std::scoped_lock lock(mutex_);
        jobs::WorkflowPage page;
        for (auto at = workflows_.upper_bound(Key(tenant, after));
             at != workflows_.end() && at->first.first == tenant;
             ++at) {
            if (page.workflows.size() == static_cast<std::size_t>(limit)) {
                page.next_cursor = page.workflows.back().name;
                break;
            }
            page.workflows.push_back(at->second.head);
        }
        co_return page;
    }
    Task<Result<jobs::WorkflowVersionPage>> list_workflow_versions(
        jobs::WorkflowName of, std::optional<int> before, int limit
    ) override {
        const std::scoped_lock lock(mutex_);
        jobs::WorkflowVersionPage page;
        const auto found = workflows_.find(Key(of.tenant, of.name));
        if (found == workflows_.end()) {
            co_return page;
        }
        const auto& versions = found->second.versions;
        for (auto at = versions.rbegin(); at != versions.rend(); ++at) {
            if (before && at->first >= *before) {
                continue;
            }
            if (page.versions.size() == static_cast<std::size_t>(limit)) {
                page.next_cursor = page.versions.back().version;
                break;
            }
            page.versions.push_back(at->second);
        }
        co_return page;
    }
    Task<Result<jobs::NamedWorkflow>> set_workflow_label(
        jobs::WorkflowName of,
        std::string label,
        std::optional<int> version,
        std::optional<std::string> expected_tag
    ) override {
        const std::scoped_lock lock(mutex_);
        auto stored = get(of, expected_tag);
        if (!stored) {
            co_return fail(std::move(stored.error()));
        }
        if (version ? !(*stored)->versions.contains(*version)
                    : (*stored)->head.labels.erase(label) == 0) {
            co_return fail(Code::not_found, "no such version or label");
        }
        if (version) {
            (*stored)->head.labels[label] = *version;
        }
        touch(**stored);
        co_return (*stored)->head;
    }
    Task<Result<jobs::NamedWorkflow>> remove_workflow_version(
        jobs::WorkflowName of, int version, std::optional<std::string> expected_tag
    ) override {
        const std::scoped_lock lock(mutex_);
        auto stored = get(of, expected_tag);
        if (!stored) {
            co_return fail(std::move(stored.error()));
        }
        if ((*stored)->versions.erase(version) == 0) {
            co_return fail(Code::not_found, "no such version");
        }
        touch(**stored);
        co_return (*stored)->head;
    }
    Task<Result<>> remove_workflow(jobs::WorkflowName of, std::optional<std::string> expected_tag)
        override {
        const std::scoped_lock lock(mutex_);
        auto stored = get(of, expected_tag);
        if (!stored) {
            co_return fail(std::move(stored.error()));
        }
        workflows_.erase(Key(of.tenant, of.name));
        co_return Result<>();
    }

private:
    using Key = std::pair<std::string, std::string>;
    struct Stored {
        jobs::NamedWorkflow head;
        std::map<int, jobs::WorkflowVersion> versions;
        int last_version = 0;
    };

    static tl::unexpected<Error> stale(const std::string& tag) {
        return fail(Code::conflict, "changed meanwhile", {{"current_tag", tag}});
    }
    Result<Stored*> get(
        const jobs::WorkflowName& of, const std::optional<std::string>& expected_tag
    ) {
        const auto found = workflows_.find(Key(of.tenant, of.name));
        if (found == workflows_.end()) {
            return fail(Code::not_found, "no such workflow");
        }
        if (expected_tag && *expected_tag != found->second.head.tag) {
            return stale(found->second.head.tag);
        }
        return &found->second;
    }
    void touch(Stored& stored) {
        stored.head.tag = "tag" + std::to_string(++tags_);
        stored.head.version_count = static_cast<int>(stored.versions.size());
        stored.head.latest = stored.versions.rbegin()->first;
        stored.head.description = stored.versions.rbegin()->second.description;
    }

    std::mutex mutex_;
    std::map<Key, Stored> workflows_;
    int tags_ = 0;
};

// Of a fleet with one worker, whose answer to GET /object_info this is.
inline std::shared_ptr<const workflow::Catalogue> catalogue_of(std::string_view object_info) {
    const auto classes = workflow::NodeClasses::from_object_info(*json::parse(object_info));
    return std::make_shared<const workflow::Catalogue>(
        std::vector<workflow::Catalogue::Entry>{{"worker", *classes}}
    );
}

}  // namespace comfyd::api::test
