// The register of models, for every storage that keeps it.
#include <gmock/gmock.h>

#include "ledger/test_support.hpp"
#include "models/register_book.hpp"

namespace comfyd::ledger::test {
namespace {

using models::ModelRecord;
using testing::IsEmpty;
using testing::SizeIs;

class ModelsContract : public Contract {
protected:
    static ModelRecord record(std::string path, std::uint64_t revision = 1) {
        return {std::move(path), revision, {{"of", revision}}};
    }
};
INSTANTIATE_TEST_SUITE_P(Ledger, ModelsContract, testing::ValuesIn(backends()), backend_name);

TEST_P(ModelsContract, AreKeptAndCounted) {
    EXPECT_EQ(await_value(models().model_changes()), 0U);
    EXPECT_THAT(await_value(models().all_models()).records, IsEmpty());
    await_value(models().save_model(record("loras/\xC3\xA9 'quoted'.safetensors")));
    await_value(models().save_model(record("checkpoints/a.safetensors")));
    await_value(models().save_model(record("checkpoints/a.safetensors", 2)));
    storage_->reopen();
    auto all = await_value(models().all_models());
    std::ranges::sort(all.records, {}, &ModelRecord::path);
    EXPECT_EQ(all.changes, 3U);
    ASSERT_THAT(all.records, SizeIs(2));
    EXPECT_EQ(all.records[0].path, "checkpoints/a.safetensors");
    EXPECT_EQ(all.records[0].revision, 2U);
    EXPECT_EQ(all.records[0].about, (json::object{{"of", 2}}));
    EXPECT_EQ(all.records[1].path, "loras/\xC3\xA9 'quoted'.safetensors");
}

TEST_P(ModelsContract, WhoeverIsSlowerIsRefused) {
    await_value(models().save_model(record("vae/a.safetensors")));
    for (const std::uint64_t revision : {1U, 3U, 9U}) {
        ModelRecord other = record("vae/a.safetensors", revision);
        other.about = {{"of", "another"}};
        EXPECT_EQ(await_code(models().save_model(other)), Code::conflict) << revision;
    }
    EXPECT_EQ(await_code(models().save_model(record("vae/new.safetensors", 2))), Code::conflict);
    EXPECT_EQ(await_value(models().model_changes()), 1U);
}

TEST_P(ModelsContract, ABookKnowsWhatAnotherHasChanged) {
    models::RegisterBook one(io_.get_executor(), {}, models());
    models::RegisterBook other(io_.get_executor(), {}, models());
    models::RegisteredModel model;
    model.folder = "loras";
    model.name = "ink.safetensors";
    model.last = 1;
    model.versions = {
        {.sources = {"https://example.com/ink"}, .bytes = 7, .created_at = clock_.now()}
    };
    await_value(one.save(model));
    EXPECT_TRUE(other.now()->empty());
    await_value(other.refresh());
    const models::RegisteredModel* found = other.now()->find("loras/ink.safetensors");
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->versions, model.versions);
    EXPECT_EQ(found->revision, 1U);
    model.versions[0].bytes = 8;
    EXPECT_EQ(await_code(other.save(model)), Code::conflict) << "it is of before the first";
    models::RegisteredModel next = *found;
    next.current = 1;
    await_value(other.save(next));
    EXPECT_EQ(await_code(one.remove(*one.now()->find("loras/ink.safetensors"))), Code::conflict);
    await_value(one.refresh());
    await_value(one.remove(*one.now()->find("loras/ink.safetensors")));
    EXPECT_TRUE(one.now()->empty());
    EXPECT_EQ(other.now()->models().size(), 1U);
    await_value(other.refresh());
    EXPECT_TRUE(other.now()->empty());
}

// A worker may still have the file of version 1.
TEST_P(ModelsContract, NoNumberOfAModelIsUsedTwice) {
    const auto add = [this] {
        models::RegisterBook book(io_.get_executor(), {}, models());
        await_value(book.refresh());
        models::RegisteredModel model = book.now()->begin("loras", "ink.safetensors");
        model.current = ++model.last;
        model.versions = {{.number = model.last, .sources = {"https://example.com/ink"}}};
        await_value(book.save(std::move(model)));
        return book.now()->find("loras/ink.safetensors")->versions.front().number;
    };
    for (const int number : {1, 2, 3}) {
        EXPECT_EQ(add(), number);
        models::RegisterBook book(io_.get_executor(), {}, models());
        await_value(book.refresh());
        await_value(book.remove(*book.now()->find("loras/ink.safetensors")));
        EXPECT_TRUE(book.now()->empty());
        EXPECT_EQ(book.now()->resolve({}, "ink.safetensors"), std::nullopt);
        storage_->reopen();
    }
}

}  // namespace
}  // namespace comfyd::ledger::test
