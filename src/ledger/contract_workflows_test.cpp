// What named workflows rely on, for every storage.
#include <gmock/gmock.h>

#include "ledger/test_support.hpp"

namespace comfyd::ledger::test {
namespace {

using jobs::WorkflowName;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

class WorkflowContract : public Contract {
protected:
    static jobs::WorkflowSave content(WorkflowName of, const std::string& text) {
        jobs::WorkflowSave save;
        save.of = std::move(of);
        save.version.workflow = "{\"text\": \"" + text + " \xC3\xA9\"}";
        save.version.prompt = "prompt of " + text;
        save.version.parameters = "{\"p\": 1}";
        save.version.description = "about " + text;
        save.version.content_hash = "hash of " + text;
        save.version.node_count = 3;
        return save;
    }
    jobs::WorkflowSaved save(WorkflowName of, const std::string& text) {
        return await_value(workflows().save_workflow(content(std::move(of), text)));
    }
    jobs::NamedWorkflow get_workflow(const WorkflowName& of) {
        auto found = await_value(workflows().find_workflow(of));
        EXPECT_TRUE(found);
        return found.value_or(jobs::NamedWorkflow());
    }
    std::vector<std::string> names(const std::string& tenant) {
        std::vector<std::string> all;
        for (const auto& workflow :
             await_value(workflows().list_workflows(tenant, "", 100)).workflows) {
            all.push_back(workflow.name);
        }
        return all;
    }

    const WorkflowName of_{"acme", "portrait"};
};
INSTANTIATE_TEST_SUITE_P(Ledger, WorkflowContract, testing::ValuesIn(backends()), backend_name);

TEST_P(WorkflowContract, AVersionIsKeptAsItWas) {
    const Time made_at = clock_.now();
    const auto saved = save(of_, "a");
    EXPECT_TRUE(saved.created);
    EXPECT_EQ(saved.version, 1);
    clock_.advance(Millis(5));
    storage_->reopen();
    const auto workflow = get_workflow(of_);
    EXPECT_EQ(workflow.name, "portrait");
    EXPECT_EQ(workflow.tag, saved.workflow.tag);
    EXPECT_FALSE(workflow.tag.empty());
    EXPECT_EQ(workflow.created_at, made_at);
    EXPECT_EQ(workflow.updated_at, made_at);
    EXPECT_EQ(workflow.latest, 1);
    EXPECT_EQ(workflow.version_count, 1);
    EXPECT_EQ(workflow.description, "about a");
    EXPECT_THAT(workflow.labels, IsEmpty());
    const auto version = await_value(workflows().find_workflow_version(of_, 1));
    ASSERT_TRUE(version);
    const auto expected = content(of_, "a").version;
    EXPECT_EQ(version->version, 1);
    EXPECT_EQ(version->created_at, made_at);
    EXPECT_EQ(version->workflow, expected.workflow);
    EXPECT_EQ(version->prompt, expected.prompt);
    EXPECT_EQ(version->parameters, expected.parameters);
    EXPECT_EQ(version->description, expected.description);
    EXPECT_EQ(version->content_hash, expected.content_hash);
    EXPECT_EQ(version->node_count, 3);
}

TEST_P(WorkflowContract, WhatIsNotThereIsNotFound) {
    EXPECT_FALSE(await_value(workflows().find_workflow(of_)));
    EXPECT_FALSE(await_value(workflows().find_workflow_version(of_, 1)));
    EXPECT_THAT(await_value(workflows().list_workflow_versions(of_, {}, 10)).versions, IsEmpty());
    EXPECT_EQ(await_code(workflows().remove_workflow(of_, {})), Code::not_found);
    EXPECT_EQ(await_code(workflows().remove_workflow_version(of_, 1, {})), Code::not_found);
    EXPECT_EQ(await_code(workflows().set_workflow_label(of_, "x", 1, {})), Code::not_found);
    save(of_, "a");
    EXPECT_FALSE(await_value(workflows().find_workflow_version(of_, 2)));
    EXPECT_EQ(await_code(workflows().remove_workflow_version(of_, 2, {})), Code::not_found);
    EXPECT_EQ(await_code(workflows().set_workflow_label(of_, "x", 2, {})), Code::not_found);
    EXPECT_EQ(await_code(workflows().set_workflow_label(of_, "x", {}, {})), Code::not_found);
}

TEST_P(WorkflowContract, TheSameContentMakesNoNewVersion) {
    const auto first = save(of_, "a");
    const auto again = save(of_, "a");
    EXPECT_FALSE(again.created);
    EXPECT_EQ(again.version, 1);
    EXPECT_EQ(again.workflow.tag, first.workflow.tag);
    clock_.advance(Millis(7));
    const auto second = save(of_, "b");
    EXPECT_TRUE(second.created);
    EXPECT_EQ(second.version, 2);
    EXPECT_NE(second.workflow.tag, first.workflow.tag);
    EXPECT_EQ(second.workflow.updated_at, clock_.now());
    // What an older version holds may come back.
    EXPECT_EQ(save(of_, "a").version, 3);
    EXPECT_EQ(get_workflow(of_).version_count, 3);
}

TEST_P(WorkflowContract, TenantsDoNotMeet) {
    save(of_, "a");
    const WorkflowName other{"other", "portrait"};
    EXPECT_FALSE(await_value(workflows().find_workflow(other)));
    EXPECT_EQ(save(other, "z").version, 1);
    await_value(workflows().remove_workflow(other, {}));
    EXPECT_THAT(names("other"), IsEmpty());
    EXPECT_THAT(names("acme"), ElementsAre("portrait"));
    EXPECT_TRUE(await_value(workflows().find_workflow_version(of_, 1)));
}

TEST_P(WorkflowContract, ListsComeInPages) {
    for (const char* name : {"c", "a", "b"}) {
        save({"acme", name}, name);
    }
    auto page = await_value(workflows().list_workflows("acme", "", 2));
    ASSERT_EQ(page.workflows.size(), 2U);
    EXPECT_EQ(page.workflows[0].name, "a");
    EXPECT_EQ(page.workflows[1].description, "about b");
    EXPECT_EQ(page.next_cursor, "b");
    page = await_value(workflows().list_workflows("acme", "b", 2));
    ASSERT_EQ(page.workflows.size(), 1U);
    EXPECT_FALSE(page.next_cursor);

    for (const char* text : {"1", "2", "3"}) {
        save(of_, text);
    }
    auto versions = await_value(workflows().list_workflow_versions(of_, {}, 2));
    ASSERT_EQ(versions.versions.size(), 2U);
    EXPECT_EQ(versions.versions[0].version, 3);
    EXPECT_EQ(versions.versions[0].description, "about 3");
    EXPECT_TRUE(versions.versions[0].workflow.empty());
    ASSERT_EQ(versions.next_cursor, 2);
    versions = await_value(workflows().list_workflow_versions(of_, versions.next_cursor, 2));
    ASSERT_EQ(versions.versions.size(), 1U);
    EXPECT_EQ(versions.versions[0].version, 1);
    EXPECT_FALSE(versions.next_cursor);
}

TEST_P(WorkflowContract, LabelsPointToVersions) {
    save(of_, "a");
    const auto two = save(of_, "b");
    const auto labelled = await_value(workflows().set_workflow_label(of_, "production", 1, {}));
    EXPECT_NE(labelled.tag, two.workflow.tag);
    await_value(workflows().set_workflow_label(of_, "staging", 1, {}));
    await_value(workflows().set_workflow_label(of_, "staging", 2, {}));
    storage_->reopen();
    EXPECT_THAT(get_workflow(of_).labels, ElementsAre(Pair("production", 1), Pair("staging", 2)));
    EXPECT_EQ(await_code(workflows().remove_workflow_version(of_, 2, {})), Code::conflict);
    await_value(workflows().set_workflow_label(of_, "staging", {}, {}));
    EXPECT_THAT(get_workflow(of_).labels, ElementsAre(Pair("production", 1)));
    for (std::size_t i = 1; i < jobs::kWorkflowLabelsMax; ++i) {
        await_value(workflows().set_workflow_label(of_, "l" + std::to_string(i), 1, {}));
    }
    EXPECT_EQ(await_code(workflows().set_workflow_label(of_, "more", 1, {})), Code::conflict);
    await_value(workflows().set_workflow_label(of_, "l1", 2, {}));
}

TEST_P(WorkflowContract, NumbersOfRemovedVersionsAreNotGivenAgain) {
    save(of_, "a");
    EXPECT_EQ(await_code(workflows().remove_workflow_version(of_, 1, {})), Code::conflict);
    save(of_, "b");
    const auto left = await_value(workflows().remove_workflow_version(of_, 2, {}));
    EXPECT_EQ(left.latest, 1);
    EXPECT_EQ(left.version_count, 1);
    EXPECT_EQ(left.description, "about a");
    EXPECT_FALSE(save(of_, "a").created);
    EXPECT_EQ(save(of_, "b").version, 3);
}

TEST_P(WorkflowContract, ARemovedNameLeavesNothing) {
    save(of_, "a");
    await_value(workflows().set_workflow_label(of_, "production", 1, {}));
    await_value(workflows().remove_workflow(of_, {}));
    EXPECT_FALSE(await_value(workflows().find_workflow(of_)));
    EXPECT_FALSE(await_value(workflows().find_workflow_version(of_, 1)));
    const auto again = save(of_, "b");
    EXPECT_EQ(again.version, 1);
    EXPECT_THAT(again.workflow.labels, IsEmpty());
}

TEST_P(WorkflowContract, AnExpectedTagGuardsEveryChange) {
    auto first = content(of_, "a");
    first.expected_tag = "some";
    EXPECT_EQ(await_code(workflows().save_workflow(first)), Code::conflict);
    first.expected_tag = "";
    const std::string old = await_value(workflows().save_workflow(first)).workflow.tag;
    const auto again = await(workflows().save_workflow(first));
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, Code::conflict);
    EXPECT_THAT(again.error().message, HasSubstr("already"));
    auto second = content(of_, "b");
    second.expected_tag = old;
    const std::string tag = await_value(workflows().save_workflow(second)).workflow.tag;
    const auto stale = await(workflows().save_workflow(second));
    ASSERT_FALSE(stale);
    EXPECT_EQ(stale.error().details.at("current_tag").as_string(), tag);
    EXPECT_EQ(await_code(workflows().set_workflow_label(of_, "x", 1, old)), Code::conflict);
    EXPECT_EQ(await_code(workflows().remove_workflow_version(of_, 1, old)), Code::conflict);
    EXPECT_EQ(await_code(workflows().remove_workflow(of_, old)), Code::conflict);
    EXPECT_EQ(get_workflow(of_).tag, tag);
    EXPECT_EQ(await_code(workflows().remove_workflow(of_, tag)), std::nullopt);
}

TEST_P(WorkflowContract, VersionsAreLimited) {
    // At once, so that they share their commits.
    std::size_t made = 0;
    for (std::size_t i = 0; i < jobs::kWorkflowVersionsMax; ++i) {
        boost::asio::co_spawn(
            io_,
            workflows().save_workflow(content(of_, std::to_string(i))),
            [&made](std::exception_ptr, Result<jobs::WorkflowSaved> saved) {
                made += saved && saved->created ? 1 : 0;
            }
        );
    }
    io_.run();
    EXPECT_EQ(made, jobs::kWorkflowVersionsMax);
    const auto refused = await(workflows().save_workflow(content(of_, "more")));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::conflict);
    EXPECT_THAT(refused.error().message, HasSubstr("delete some"));
    await_value(workflows().remove_workflow_version(of_, 1, {}));
    EXPECT_TRUE(save(of_, "more").created);
}

}  // namespace
}  // namespace comfyd::ledger::test
