#include "auth/api_key.hpp"

#include <gtest/gtest.h>

#include <regex>
#include <set>

namespace comfyd::auth {
namespace {

TEST(ApiKey, IsOfTheFormThatScannersLookFor) {
    const std::regex form("\\bck_live_[0-9A-Za-z]{46}\\b");
    std::set<std::string> made;
    for (int i = 0; i < 200; ++i) {
        const std::string id = make_key_id();
        EXPECT_TRUE(is_key_id(id)) << id;
        const std::string key = make_key(id);
        EXPECT_TRUE(std::regex_match(key, form)) << key;
        EXPECT_EQ(id_of_key(key), id);
        made.insert(key);
    }
    EXPECT_EQ(made.size(), 200U);
}

TEST(ApiKey, SlipsAreSeen) {
    const std::string key = make_key("Abcd1234");
    std::string swapped = key;
    for (std::size_t i = 20; i + 1 < key.size(); ++i) {
        if (key[i] != key[i + 1]) {
            std::swap(swapped[i], swapped[i + 1]);
            break;
        }
    }
    for (const std::string& wrong :
         {swapped,
          key + "x",
          key.substr(1),
          key.substr(0, key.size() - 1) + "!",
          "CK_LIVE_" + key.substr(8),
          std::string(),
          std::string("ck_live_")}) {
        EXPECT_EQ(id_of_key(wrong), std::nullopt) << wrong;
    }
    EXPECT_FALSE(is_key_id("Abcd123"));
    EXPECT_FALSE(is_key_id("Abcd123-"));
}

}  // namespace
}  // namespace comfyd::auth
