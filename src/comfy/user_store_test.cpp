#include "comfy/user_store.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

namespace comfyd::comfy {
namespace {

namespace fs = std::filesystem;

class UserStoreTest : public testing::Test {
protected:
    UserStoreTest() {
        std::string name = (fs::temp_directory_path() / "comfyd-users-XXXXXX").string();
        folder_ = ::mkdtemp(name.data());
    }
    ~UserStoreTest() override {
        std::error_code ignored;
        fs::remove_all(folder_, ignored);
    }

    fs::path folder_;
};

TEST_F(UserStoreTest, SettingsAreMerged) {
    UserStore store(folder_ / "user");
    EXPECT_EQ(store.settings(), json::object());
    ASSERT_TRUE(store.change_settings({{"a", 1}, {"b", 2}}));
    ASSERT_TRUE(store.change_settings({{"b", nullptr}}));
    EXPECT_EQ(UserStore(folder_ / "user").settings(), (json::object{{"a", 1}, {"b", nullptr}}));
}

TEST_F(UserStoreTest, ChangesAtTheSameTimeAreNotLost) {
    UserStore store(folder_);
    std::vector<std::thread> writers;
    for (int i = 0; i < 4; ++i) {
        writers.emplace_back([&store, i] {
            for (int k = 0; k < 5; ++k) {
                json::object change;
                change[std::to_string(i * 10 + k)] = true;
                EXPECT_TRUE(store.change_settings(change));
            }
        });
    }
    for (std::thread& writer : writers) {
        writer.join();
    }
    EXPECT_EQ(store.settings()->size(), 20U);
}

TEST_F(UserStoreTest, DamagedSettingsAreAsNoneAndArePutAside) {
    std::ofstream(folder_ / "comfy.settings.json") << "{damaged";
    UserStore store(folder_);
    EXPECT_EQ(store.settings(), json::object());
    EXPECT_TRUE(fs::exists(folder_ / "comfy.settings.json"));
    ASSERT_TRUE(store.change_settings({{"a", 1}}));
    EXPECT_EQ(store.settings(), (json::object{{"a", 1}}));
    EXPECT_EQ(fs::file_size(folder_ / "comfy.settings.json.damaged"), 8U);
}

TEST_F(UserStoreTest, AUserHasAShareOfTheDisk) {
    UserStore store(folder_, {.files_max = 2, .bytes_max = 10});
    ASSERT_TRUE(store.write("a", "12345", true));
    EXPECT_EQ(store.write("b", "123456", true).error().code, Code::storage_full);
    ASSERT_TRUE(store.write("b", "1", true));
    EXPECT_EQ(store.write("c", "1", true).error().code, Code::storage_full);
}

TEST_F(UserStoreTest, EntriesAreAllThatIsBelowAndFoldersComeFirst) {
    UserStore store(folder_);
    ASSERT_TRUE(store.write("w/b/c.json", "{}", true));
    ASSERT_TRUE(store.write("w/A.json", "{}", true));
    ASSERT_TRUE(store.write("w/.index.json", "{}", true));
    const auto entries = store.entries("w");
    ASSERT_TRUE(entries);
    json::array paths;
    for (const json::value& entry : *entries) {
        paths.push_back(entry.at("path"));
    }
    EXPECT_EQ(paths, (json::array{"w/b", "w/.index.json", "w/A.json", "w/b/c.json"}));
    EXPECT_EQ(entries->at(0).at("type"), "directory");
    EXPECT_FALSE(entries->at(1).as_object().contains("created"));
    EXPECT_EQ(store.entries("w/A.json").error().code, Code::invalid_argument);
    EXPECT_EQ(store.entries("x").error().code, Code::not_found);
    EXPECT_EQ(UserStore(folder_ / "nobody").entries("")->size(), 0U);
    EXPECT_FALSE(UserStore(folder_ / "nobody").exists());
}

TEST_F(UserStoreTest, NamesThatLeadOutAreRefused) {
    UserStore store(folder_ / "user");
    for (const std::string& name : std::vector<std::string>{
             "", "..", "../x", "/x", "a/../../x", "a\\b", std::string(2'000, 'a')
         }) {
        EXPECT_EQ(store.write(name, "x", true).error().code, Code::forbidden) << name;
        EXPECT_EQ(store.find(name).error().code, Code::forbidden) << name;
        EXPECT_EQ(store.list(name, true).error().code, Code::forbidden) << name;
        EXPECT_EQ(store.remove(name).error().code, Code::forbidden) << name;
    }
    ASSERT_TRUE(store.write("a.json", "x", true));
    EXPECT_EQ(store.move("a.json", "../b.json", true).error().code, Code::forbidden);
    EXPECT_TRUE(store.find("a.json"));
    EXPECT_TRUE(store.find("x/../a.json")) << "stays inside";
}

TEST_F(UserStoreTest, HiddenFilesAreNotListedButCanBeRead) {
    UserStore store(folder_);
    ASSERT_TRUE(store.write("workflows/.index.json", "{}", true));
    ASSERT_TRUE(store.write("workflows/b.json", "{}", true));
    ASSERT_TRUE(store.write("workflows/sub/a.json", "{}", true));
    const auto files = store.list("workflows", true);
    ASSERT_TRUE(files);
    EXPECT_EQ(to_json(*files, false, false), (json::array{"b.json", "sub/a.json"}));
    EXPECT_TRUE(store.find("workflows/.index.json"));
    EXPECT_EQ(store.list("other", false).error().code, Code::not_found);
    EXPECT_EQ(store.entries("")->size(), 5U);
}

TEST_F(UserStoreTest, ReplacesOnlyWhenAsked) {
    UserStore store(folder_);
    ASSERT_TRUE(store.write("a", "1", false));
    EXPECT_EQ(store.write("a", "2", false).error().code, Code::conflict);
    EXPECT_EQ(store.write("a", "22", true)->size, 2U);
    ASSERT_TRUE(store.write("d/b", "3", true));
    EXPECT_EQ(store.write("d", "4", true).error().code, Code::conflict) << "a folder";
    EXPECT_EQ(store.move("a", "d/b", false).error().code, Code::conflict);
    EXPECT_EQ(store.move("a", "d/b", true)->path, "d/b");
    EXPECT_EQ(store.remove("a").error().code, Code::not_found);
    EXPECT_TRUE(store.remove("d/b"));
}

}  // namespace
}  // namespace comfyd::comfy
