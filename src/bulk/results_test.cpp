#include "bulk/results.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace comfyd::bulk {
namespace {

std::string path_of(std::string custom_id, std::string output, std::size_t outputs = 1) {
    jobs::BulkItem item;
    item.index = 7;
    item.custom_id = std::move(custom_id);
    for (std::size_t i = 0; i < outputs; ++i) {
        jobs::BulkOutput made;
        made.name = output;
        item.outputs.push_back(std::move(made));
    }
    return output_path(item, outputs - 1);
}

TEST(Results, FilesAreNamedAfterTheirItem) {
    EXPECT_EQ(path_of("cat", "made_00001_.png"), "00007-cat.png");
    EXPECT_EQ(path_of("", "made_00001_.png"), "00007.png");
    EXPECT_EQ(path_of("cat", "made.tar.gz", 3), "00007-cat--3.gz");
    EXPECT_EQ(path_of("Katze süß 猫", "a.webp"), "00007-Katze_süß_猫.webp");
}

TEST(Results, NoNameLeadsOutOfTheFolderOrIsTakenForAnother) {
    const std::pair<const char*, const char*> names[] = {
        {"../../etc/passwd", "00007-_._.._etc_passwd.png"},
        {"..", "00007-_.png"},
        {"/etc/passwd", "00007-_etc_passwd.png"},
        {"C:\\Windows\\x", "00007-C__Windows_x.png"},
        {"CON", "00007-CON.png"},
        {"a\nb\tc", "00007-a_b_c.png"},
        {"a\u0085b\u2028c", "00007-a_b_c.png"},
        {"photo\u202Egnp.exe", "00007-photo_gnp.exe.png"},
        {"\u2066a\u2069\u200B\uFEFF", "00007-_a___.png"},
        {"=1+1", "00007-_1_1.png"},
        {"dots...", "00007-dots.png"},
    };
    for (const auto& [id, path] : names) {
        EXPECT_EQ(path_of(id, "x.png"), path) << id;
    }
    EXPECT_EQ(path_of("a", "x.p/n"), "00007-a");
    EXPECT_EQ(path_of("a", "x.averylongextension"), "00007-a");
    EXPECT_LE(path_of(std::string(10'000, 'n'), "x.png").size(), 80U);
    EXPECT_EQ(path_of(std::string("a\0b", 3), "x.png"), "00007-a_b.png");
}

}  // namespace
}  // namespace comfyd::bulk
