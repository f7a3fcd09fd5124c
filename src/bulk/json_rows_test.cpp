#include "bulk/json_rows.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace comfyd::bulk {
namespace {

using testing::HasSubstr;

template <class Reader>
std::string read_in(std::string_view file, std::size_t piece) {
    Reader reader;
    Rows rows;
    for (std::size_t at = 0; at < file.size(); at += piece) {
        if (auto fed = reader.feed(file.substr(at, piece), rows); !fed) {
            return "! " + fed.error().message;
        }
    }
    if (auto finished = reader.finish(rows); !finished) {
        return "! " + finished.error().message;
    }
    std::string all;
    for (const Row& row : rows) {
        EXPECT_FALSE(row.is_text);
        all += std::to_string(row.record) + "/" + std::to_string(row.line) + " " +
               json::serialize(row.values) + "\n";
    }
    return all;
}
template <class Reader>
std::string read(std::string_view file) {
    const std::string whole = read_in<Reader>(file, file.size() + 1);
    for (const std::size_t piece : {1U, 2U, 5U, 13U}) {
        EXPECT_EQ(read_in<Reader>(file, piece), whole) << "in pieces of " << piece;
    }
    return whole;
}

TEST(JsonLines, EachLineIsARow) {
    EXPECT_EQ(
        read<JsonLinesReader>("{\"a\":1}\r\n\n  \n{\"b\":\"x\\ny\"}"),
        "1/1 {\"a\":1}\n2/4 {\"b\":\"x\\ny\"}\n"
    );
    EXPECT_EQ(read<JsonLinesReader>("\xEF\xBB\xBF{\"a\":1}\n"), "1/1 {\"a\":1}\n");
    EXPECT_EQ(read<JsonLinesReader>(""), "");
}

TEST(JsonLines, ErrorsSayWhere) {
    EXPECT_THAT(read<JsonLinesReader>("{}\n\n{]\n"), HasSubstr("record 2 (line 3): "));
    EXPECT_THAT(read<JsonLinesReader>("{}\n[1]\n"), HasSubstr("record 2 (line 2): it is no obj"));
    EXPECT_THAT(read<JsonLinesReader>(std::string("\xFF\xFE{\0}\0", 6)), HasSubstr("UTF-16"));
    JsonLinesReader reader;
    Rows rows;
    EXPECT_FALSE(reader.feed(std::string(kRowBytesMax + 1, ' '), rows));
}

TEST(JsonArray, EachElementIsARow) {
    EXPECT_EQ(
        read<JsonArrayReader>(" [\n{\"a\": [1, {\"b\": \"]},\\\"{\"}]} ,\n\n{\"c\":\"\\\\\"}\n]\n"),
        "1/2 {\"a\":[1,{\"b\":\"]},\\\"{\"}]}\n2/4 {\"c\":\"\\\\\"}\n"
    );
    EXPECT_EQ(read<JsonArrayReader>("[]"), "");
    EXPECT_EQ(read<JsonArrayReader>("\xEF\xBB\xBF[{}]"), "1/1 {}\n");
}

TEST(JsonArray, ErrorsSayWhere) {
    EXPECT_THAT(read<JsonArrayReader>("{\"a\":1}"), HasSubstr("it must begin with '['"));
    EXPECT_THAT(read<JsonArrayReader>("[{},\n,{}]"), HasSubstr("an element is missing here"));
    EXPECT_THAT(read<JsonArrayReader>("[{}, ]"), HasSubstr("an element is missing here"));
    EXPECT_THAT(read<JsonArrayReader>("[{}\n,{\"a\":}]"), HasSubstr("record 2 (line 2): "));
    EXPECT_THAT(read<JsonArrayReader>("[1]"), HasSubstr("record 1 (line 1): it is no object"));
    EXPECT_THAT(read<JsonArrayReader>("[{}] x"), HasSubstr("something follows the array"));
    EXPECT_THAT(read<JsonArrayReader>("[{},{}"), HasSubstr("cut off"));
    EXPECT_THAT(read<JsonArrayReader>(""), HasSubstr("cut off"));
    EXPECT_THAT(read<JsonArrayReader>(std::string("\xFF\xFE[\0", 4)), HasSubstr("UTF-16"));
}

TEST(RowFormat, IsToldByNameOrType) {
    EXPECT_EQ(guess_row_format("a.CSV", ""), RowFormat::csv);
    EXPECT_EQ(guess_row_format("a.tsv", ""), RowFormat::csv);
    EXPECT_EQ(guess_row_format("a.jsonl", "text/plain"), RowFormat::jsonl);
    EXPECT_EQ(guess_row_format("a.json", ""), RowFormat::json);
    EXPECT_EQ(guess_row_format("blob", "text/csv; charset=utf-8"), RowFormat::csv);
    EXPECT_EQ(guess_row_format("blob", "application/x-ndjson"), RowFormat::jsonl);
    EXPECT_EQ(guess_row_format("blob", "application/octet-stream"), std::nullopt);
}

TEST(Utf8, OnlyWhatIsOne) {
    for (const char* good : {"", "abc", "\xC3\xA9", "\xE7\x8C\xAB", "\xF0\x9F\x8E\xA8", "\x7F"}) {
        EXPECT_TRUE(is_utf8(good)) << good;
    }
    for (const char* bad :
         {"\xC3",
          "\xE9",
          "\xC0\xAF",
          "\xE0\x80\x80",
          "\xED\xA0\x80",
          "\xF4\x90\x80\x80",
          "\xFF",
          "\xF0\x9F\x8E"}) {
        EXPECT_FALSE(is_utf8(bad)) << bad;
    }
}

}  // namespace
}  // namespace comfyd::bulk
