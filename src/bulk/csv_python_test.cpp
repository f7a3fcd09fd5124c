// What Python's csv module writes is read back as it was, in every way in which it can write.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "bulk/csv.hpp"

namespace comfyd::bulk {
namespace {

namespace fs = std::filesystem;

// For each way a file N.csv, and N.jsonl with what is in it. Fields that are empty and not quoted
// are not given.
constexpr const char* kWriter = R"py(
import csv, itertools, json, random, sys
random.seed(20260)
alphabet = ['a', 'B', ' ', '0', '"', '""', ',', ';', '\t', '\n', '\r\n', '\\', "'", 'é', '猫', '🎨', '=1+1', '#', 'sep=']
plain = ['a', 'B', ' ', '0', '\\', "'", 'é', '猫', '=1+1']
modes = [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC, csv.QUOTE_NONE]
ways = itertools.product(modes, [',', ';', '\t'], ['\n', '\r\n', '\r'], ['', '\ufeff'])
for number, (mode, delimiter, end, mark) in enumerate(ways):
    letters = plain if mode == csv.QUOTE_NONE else alphabet
    if end == '\r':  # then Python leaves a line feed unquoted, though others end lines there
        letters = [letter for letter in letters if letter != '\n']
    columns = random.randint(2, 6)
    names = ['column %d' % i for i in range(columns)]
    with open('%s/%d.csv' % (sys.argv[1], number), 'w', newline='', encoding='utf-8') as out, \
         open('%s/%d.jsonl' % (sys.argv[1], number), 'w', encoding='utf-8') as expected:
        out.write(mark)
        writer = csv.writer(out, delimiter=delimiter, lineterminator=end, quoting=mode)
        writer.writerow(names)
        for _ in range(random.randint(0, 60)):
            row = [''.join(random.choice(letters) for _ in range(random.randint(0, 6))) for _ in names]
            writer.writerow(row)
            keeps_empty = mode in (csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC)
            expected.write(json.dumps({n: f for n, f in zip(names, row) if f or keeps_empty}) + '\n')
print(number + 1)
)py";

std::string content(const fs::path& file) {
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return text.str();
}

TEST(CsvOfPython, IsReadBackAsItWas) {
    auto pattern = (fs::temp_directory_path() / "csv-test-XXXXXX").string();
    const fs::path folder = ::mkdtemp(pattern.data());
    std::ofstream(folder / "write.py") << kWriter;
    const std::string command = "python3 " + (folder / "write.py").string() + " " +
                                folder.string() + " > " + (folder / "count").string();
    ASSERT_EQ(std::system(command.c_str()), 0);
    const int count = std::stoi(content(folder / "count"));
    EXPECT_EQ(count, 72);
    for (int i = 0; i < count; ++i) {
        const std::string file = content(folder / (std::to_string(i) + ".csv"));
        CsvReader reader;
        Rows rows;
        const std::size_t piece = 1 + static_cast<std::size_t>(i) % 9;
        for (std::size_t at = 0; at < file.size(); at += piece) {
            auto fed = reader.feed(std::string_view(file).substr(at, piece), rows);
            ASSERT_TRUE(fed) << i << ": " << fed.error().message;
        }
        ASSERT_TRUE(reader.finish(rows)) << i;
        std::istringstream lines(content(folder / (std::to_string(i) + ".jsonl")));
        std::string line;
        std::size_t at = 0;
        for (; std::getline(lines, line); ++at) {
            ASSERT_LT(at, rows.size()) << i;
            EXPECT_EQ(json::value(rows[at].values), *json::parse(line)) << i;
        }
        EXPECT_EQ(at, rows.size()) << i;
    }
    std::error_code ignored;
    fs::remove_all(folder, ignored);
}

}  // namespace
}  // namespace comfyd::bulk
