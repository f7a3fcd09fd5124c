#include "bulk/zip.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

namespace comfyd::bulk {
namespace {

namespace fs = std::filesystem;

class TempFolder {
public:
    TempFolder() {
        auto pattern = (fs::temp_directory_path() / "zip-test-XXXXXX").string();
        path_ = ::mkdtemp(pattern.data());
    }
    ~TempFolder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    const fs::path& path() const { return path_; }

private:
    fs::path path_;
};

struct Files {
    std::vector<ZipEntry> entries;
    std::vector<std::string> contents;

    void add(std::string name, std::string content) {
        entries.push_back({std::move(name), content.size(), crc32(content)});
        contents.push_back(std::move(content));
    }
};

// The bytes from `first` on, in pieces of random length.
std::string bytes_of(
    const ZipLayout& layout,
    const std::vector<std::string>& contents,
    std::uint64_t first,
    std::uint64_t length
) {
    std::mt19937 random(1);
    std::string all;
    while (all.size() < length) {
        const std::uint64_t most = 1 + random() % 5000;
        const auto piece =
            layout.piece_at(first + all.size(), std::min<std::uint64_t>(most, length - all.size()));
        EXPECT_GT(piece.length, 0U);
        all +=
            piece.entry ? contents[*piece.entry].substr(piece.offset, piece.length) : piece.bytes;
    }
    return all;
}

int run(const std::string& command) {
    return std::system((command + " > /dev/null 2>&1").c_str());
}

// Python's own reader and unzip find every file as it was.
void check_with_others(const Files& files, const std::string& bytes) {
    const TempFolder folder;
    const fs::path zip = folder.path() / "a.zip";
    std::ofstream(zip, std::ios::binary) << bytes;
    std::ofstream script(folder.path() / "check.py");
    script << "import sys, zipfile, zlib\n"
              "z = zipfile.ZipFile(sys.argv[1])\n"
              "assert z.testzip() is None\n"
              "for i in z.infolist():\n"
              "    assert i.flag_bits == 0x800 and i.compress_type == 0, i\n"
              "    print(i.filename, i.file_size, '%08x' % zlib.crc32(z.read(i)))\n";
    script.close();
    const fs::path listed = folder.path() / "listed";
    ASSERT_EQ(
        std::system(("PYTHONIOENCODING=utf-8 python3 " + (folder.path() / "check.py").string() +
                     " " + zip.string() + " > " + listed.string())
                        .c_str()),
        0
    );
    std::ostringstream expected;
    for (const ZipEntry& entry : files.entries) {
        char sum[16];
        std::snprintf(sum, sizeof sum, "%08x", entry.crc32);
        expected << entry.name << " " << entry.size_bytes << " " << sum << "\n";
    }
    std::ostringstream found;
    found << std::ifstream(listed).rdbuf();
    EXPECT_EQ(found.str(), expected.str());
    if (run("unzip -v") == 0 && !files.entries.empty()) {
        EXPECT_EQ(run("unzip -tqq " + zip.string()), 0);
    }
}

const Time kThen = from_unix_ms(1'763'430'000'000);

TEST(Zip, OtherProgramsReadIt) {
    Files files;
    files.add("00000.png", std::string(100'000, 'x'));
    files.add("00001-\xE7\x8C\xAB.txt", "");
    files.add("00002--1.bin", std::string("\0\1\2", 3));
    const ZipLayout layout(files.entries, kThen);
    const std::string bytes = bytes_of(layout, files.contents, 0, layout.size_bytes());
    EXPECT_EQ(bytes.find("PK\x06\x06"), std::string::npos);  // no zip64
    check_with_others(files, bytes);
}

TEST(Zip, AnEmptyOneIsOne) {
    const ZipLayout layout({}, kThen);
    EXPECT_EQ(layout.size_bytes(), 22U);
    check_with_others({}, bytes_of(layout, {}, 0, layout.size_bytes()));
}

TEST(Zip, ManyFilesNeedZip64) {
    Files files;
    for (int i = 0; i < 70'000; ++i) {
        files.add(std::to_string(i), std::to_string(i * 7));
    }
    const ZipLayout layout(files.entries, kThen);
    check_with_others(files, bytes_of(layout, files.contents, 0, layout.size_bytes()));
}

TEST(Zip, PartsJoinedAreTheWhole) {
    std::mt19937 random(7);
    Files files;
    for (int i = 0; i < 40; ++i) {
        std::string content(random() % 3000, '\0');
        std::ranges::generate(content, [&] { return static_cast<char>(random()); });
        files.add("file-" + std::to_string(i), std::move(content));
    }
    const ZipLayout layout(files.entries, kThen);
    const std::string whole = bytes_of(layout, files.contents, 0, layout.size_bytes());
    std::string joined;
    while (joined.size() < whole.size()) {
        const std::uint64_t length =
            std::min<std::uint64_t>(1 + random() % 2000, whole.size() - joined.size());
        joined += bytes_of(layout, files.contents, joined.size(), length);
    }
    EXPECT_EQ(joined, whole);
    EXPECT_EQ(ZipLayout(files.entries, kThen).tag(), layout.tag());
    files.entries[3].crc32 ^= 1;
    EXPECT_NE(ZipLayout(files.entries, kThen).tag(), layout.tag());
}

// Only the numbers are looked at: nobody has so large a disk.
TEST(Zip, LargeFilesAreTold) {
    constexpr std::uint64_t kFive = 5ULL << 30;
    const ZipLayout layout({{"a", kFive, 1}, {"b", 10, 2}}, kThen);
    const std::uint64_t first = 30 + 1 + 20;
    const std::uint64_t second = 30 + 1;
    const std::uint64_t directory = 46 + 1 + 20 + 46 + 1 + 12;
    EXPECT_EQ(layout.size_bytes(), first + kFive + second + 10 + directory + 56 + 20 + 22);
    const auto header = layout.piece_at(0, 1000).bytes;
    EXPECT_EQ(header.size(), first);
    EXPECT_EQ(header.substr(18, 8), std::string(8, '\xFF'));
    const auto inside = layout.piece_at(first + kFive - 5, 1000);
    EXPECT_EQ(inside.entry, 0U);
    EXPECT_EQ(inside.offset, kFive - 5);
    EXPECT_EQ(inside.length, 5U);
    EXPECT_EQ(layout.piece_at(first + kFive, 4).bytes, "PK\x03\x04");
}

TEST(Zip, TheChecksumIsThatOfEverybody) {
    EXPECT_EQ(crc32(""), 0U);
    EXPECT_EQ(crc32("123456789"), 0xCBF43926U);
    EXPECT_EQ(crc32("6789", crc32("12345")), 0xCBF43926U);
}

}  // namespace
}  // namespace comfyd::bulk
