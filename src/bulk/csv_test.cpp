#include "bulk/csv.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.hpp"

namespace comfyd::bulk {
namespace {

using testing::HasSubstr;

// The rows as one text, or what is wrong. The same whatever the pieces are.
std::string read_in(std::string_view file, std::size_t piece) {
    CsvReader reader;
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
        EXPECT_TRUE(row.is_text);
        all += std::to_string(row.record) + "/" + std::to_string(row.line) + " " +
               json::serialize(row.values) + "\n";
    }
    return all;
}
std::string read(std::string_view file) {
    const std::string whole = read_in(file, file.size() + 1);
    for (const std::size_t piece : {1U, 2U, 3U, 7U, 16U}) {
        EXPECT_EQ(read_in(file, piece), whole) << "in pieces of " << piece;
    }
    return whole;
}

TEST(Csv, RecordsHaveTheNamesOfTheHeader) {
    EXPECT_EQ(
        read("prompt,seed\na cat,1\n\"a, dog\",2\n"),
        "1/2 {\"prompt\":\"a cat\",\"seed\":\"1\"}\n2/3 {\"prompt\":\"a, dog\",\"seed\":\"2\"}\n"
    );
}

TEST(Csv, LinesEndInAnyWay) {
    const std::string expected = "1/2 {\"a\":\"1\",\"b\":\"2\"}\n2/3 {\"a\":\"3\",\"b\":\"4\"}\n";
    EXPECT_EQ(read("a,b\n1,2\n3,4"), expected);
    EXPECT_EQ(read("a,b\r\n1,2\r\n3,4\r\n"), expected);
    EXPECT_EQ(read("a,b\r1,2\r3,4\r"), expected);
}

TEST(Csv, TheSeparatorIsTheHeadersOwnOrTheDeclaredOne) {
    EXPECT_EQ(read("a;b\n1,5;2\n"), "1/2 {\"a\":\"1,5\",\"b\":\"2\"}\n");
    EXPECT_EQ(read("a\tb\n1\t2\n"), "1/2 {\"a\":\"1\",\"b\":\"2\"}\n");
    EXPECT_EQ(read("\"a,x\";b\n1;2\n"), "1/2 {\"a,x\":\"1\",\"b\":\"2\"}\n");
    EXPECT_EQ(read("sep=;\r\na,b;c\r\n1;2\r\n"), "1/3 {\"a,b\":\"1\",\"c\":\"2\"}\n");
    EXPECT_EQ(read("\"sep=,\"\na,b\n1,2\n"), "1/3 {\"a\":\"1\",\"b\":\"2\"}\n");
    EXPECT_EQ(read("SEP=\t\na\tb\n1\t2\n"), "1/3 {\"a\":\"1\",\"b\":\"2\"}\n");
    EXPECT_THAT(read("sep=|\na|b\n"), HasSubstr("must name a comma"));
    EXPECT_EQ(read("prompt\na cat; a dog\n"), "1/2 {\"prompt\":\"a cat; a dog\"}\n");
}

TEST(Csv, QuotesAreDoubledAndMayHoldLines) {
    EXPECT_EQ(
        read("a,b\n\"say \"\"hi\"\"\",\"two\r\nlines\"\nx,y\n"),
        "1/2 {\"a\":\"say \\\"hi\\\"\",\"b\":\"two\\r\\nlines\"}\n2/4 {\"a\":\"x\",\"b\":\"y\"}\n"
    );
    EXPECT_EQ(read("a\n\"back\\slash\"\n"), "1/2 {\"a\":\"back\\\\slash\"}\n");
    EXPECT_EQ(read("a\nsix\" nails\n"), "1/2 {\"a\":\"six\\\" nails\"}\n");
}

TEST(Csv, AnEmptyFieldIsNotGivenButAnEmptyTextIs) {
    EXPECT_EQ(read("a,b\n,\"\"\n"), "1/2 {\"b\":\"\"}\n");
    EXPECT_EQ(read("a,b\n1,\n"), "1/2 {\"a\":\"1\"}\n");
}

TEST(Csv, EmptyLinesCountForNothing) {
    EXPECT_EQ(read("\n\na\n\n1\n\n\n2\n\n"), "1/5 {\"a\":\"1\"}\n2/8 {\"a\":\"2\"}\n");
}

TEST(Csv, AMarkIsNoPartOfTheFirstName) {
    EXPECT_EQ(
        read("\xEF\xBB\xBF"
             "a\n1\n"),
        "1/2 {\"a\":\"1\"}\n"
    );
    EXPECT_EQ(
        read("\xEF\xBB\xBF"
             "sep=;\na;b\n1;2\n"),
        "1/3 {\"a\":\"1\",\"b\":\"2\"}\n"
    );
    EXPECT_EQ(read("a\n\xC3\xA9\xE7\x8C\xAB\n"), "1/2 {\"a\":\"\xC3\xA9\xE7\x8C\xAB\"}\n");
}

TEST(Csv, OtherEncodingsAreRefusedByName) {
    EXPECT_THAT(
        read(std::string(
            "\xFF\xFE"
            "a\0\n\0",
            6
        )),
        HasSubstr("UTF-16")
    );
    EXPECT_THAT(read(std::string("\xFE\xFF\0a\0\n", 6)), HasSubstr("UTF-16"));
    EXPECT_THAT(read(std::string("a\0,\0b\0", 6)), HasSubstr("UTF-16"));
    EXPECT_THAT(read("a\ncaf\xE9\n"), HasSubstr("record 1 (line 2): it is not in UTF-8"));
}

TEST(Csv, ErrorsSayWhere) {
    EXPECT_THAT(read("a,b\n1,2\n3\n"), HasSubstr("record 2 (line 3): it has 1 fields, but the"));
    EXPECT_THAT(read("a,b\n\"x\ny\",2\n3,4,5\n"), HasSubstr("record 2 (line 4): it has 3 fields"));
    EXPECT_THAT(read("a,a\n1,2\n"), HasSubstr("the header (line 1): two columns are named 'a'"));
    EXPECT_THAT(read("a,\n1,2\n"), HasSubstr("the header (line 1): column 2 has no name"));
    EXPECT_THAT(read("a\n\"x\" y\n"), HasSubstr("goes on behind its closing quote"));
    EXPECT_THAT(read("a\n1\n\"x\n2\n3\n"), HasSubstr("record 2 (line 3): a quote in field 1 is"));
    EXPECT_THAT(read(""), HasSubstr("the file is empty"));
    EXPECT_THAT(read("\n\n"), HasSubstr("the file is empty"));
    EXPECT_EQ(read("a,b\n"), "");
}

TEST(Csv, WhatHasNoEndIsRefusedInTime) {
    CsvReader reader;
    Rows rows;
    const std::string megabyte(1 << 20, 'x');
    ASSERT_TRUE(reader.feed("a\n\"", rows));
    Result<> fed;
    int pieces = 0;
    while (fed && pieces < 20) {
        fed = reader.feed(megabyte, rows);
        ++pieces;
    }
    ASSERT_FALSE(fed);
    EXPECT_EQ(pieces, 8);
    EXPECT_THAT(fed.error().message, HasSubstr("a quote may not have been closed"));
    EXPECT_EQ(fed.error().details.at("line"), 2);
    const std::string many(2 * CsvReader::kColumnsMax, ',');
    EXPECT_THAT(read(many + "\n"), HasSubstr("more than 1000 fields"));
}

}  // namespace
}  // namespace comfyd::bulk
