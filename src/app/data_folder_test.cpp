#include "app/data_folder.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace comfyd::app {
namespace {

namespace fs = std::filesystem;

class DataFolder : public testing::Test {
protected:
    DataFolder() { EXPECT_TRUE(make_data_folder(data_)); }
    ~DataFolder() override { fs::remove_all(data_); }
    void write(const char* name, const char* text) const {
        fs::create_directories((data_ / name).parent_path());
        std::ofstream(data_ / name) << text;
    }

    const fs::path data_ =
        fs::path(testing::TempDir()) / ("comfyd-data-" + std::to_string(::getpid()));
};

TEST_F(DataFolder, ANewOneNeedsNoDatabase) {
    EXPECT_TRUE(check_database(data_, false));
    fs::create_directories(data_ / "assets" / "blobs");
    EXPECT_TRUE(check_database(data_, false));
}

TEST_F(DataFolder, AFileWithItsDatabaseIsFine) {
    write("assets/blobs/ab/cd", "bytes");
    write("comfyd.db", "pages");
    EXPECT_TRUE(check_database(data_, false));
}

TEST_F(DataFolder, AMissingOrEmptyDatabaseBesideFilesIsRefusedUnlessAccepted) {
    write("assets/blobs/ab/cd", "bytes");
    const auto missing = check_database(data_, false);
    ASSERT_FALSE(missing);
    EXPECT_NE(missing.error().message.find("missing"), std::string::npos);
    EXPECT_NE(missing.error().message.find("accept_empty_database"), std::string::npos);
    write("comfyd.db", "");
    const auto empty = check_database(data_, false);
    ASSERT_FALSE(empty);
    EXPECT_NE(empty.error().message.find("empty"), std::string::npos);
    EXPECT_TRUE(check_database(data_, true));
}

TEST_F(DataFolder, TheKeyOfLinksStays) {
    const auto key = load_key(data_ / "links.key");
    ASSERT_TRUE(key);
    EXPECT_EQ(load_key(data_ / "links.key"), *key);
}

TEST(CheckStorage, NodesNeedASecretAndDomainsThatAreSome) {
    Config config;
    EXPECT_TRUE(is_clustered(config) || check_storage(config));
    config.ledger = "postgres://db/comfyd";
    EXPECT_EQ(check_storage(config).error().code, Code::config_invalid);
    config.cluster_secret = "too short";
    EXPECT_EQ(check_storage(config).error().code, Code::config_invalid);
    config.cluster_secret = std::string(32, 'x');
    EXPECT_TRUE(check_storage(config));
    config.cluster_domains = {"a100=eu", "l4=us"};
    EXPECT_TRUE(check_storage(config));
    config.cluster_leads = {"us", "main"};
    EXPECT_TRUE(check_storage(config));
    config.cluster_leads = {"l4"};
    EXPECT_EQ(check_storage(config).error().code, Code::config_invalid) << "a pool, not a domain";
    config.cluster_leads.clear();
    for (const char* wrong : {"a100", "=eu", "a100=", "a100=e u"}) {
        config.cluster_domains = {wrong};
        EXPECT_EQ(check_storage(config).error().code, Code::config_invalid) << wrong;
    }
}

TEST(LoadKey, NodesMakeTheSameOfTheirSecret) {
    Config one;
    one.ledger = "postgres://db/comfyd";
    one.cluster_secret = std::string(32, 'x');
    Config other = one;
    EXPECT_EQ(*load_key(one, "links"), *load_key(other, "links"));
    EXPECT_NE(*load_key(one, "links"), *load_key(one, "workers"));
    other.cluster_secret = std::string(32, 'y');
    EXPECT_NE(*load_key(one, "links"), *load_key(other, "links"));
}

}  // namespace
}  // namespace comfyd::app
