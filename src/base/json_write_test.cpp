#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include "base/json.hpp"

namespace comfyd::json {
namespace {

using Random = std::mt19937_64;

// Doubles of every size: any bits, whole numbers, decimals of few digits, and the ends of what is
// written without an exponent.
double any_double(Random& random) {
    switch (random() % 5) {
        case 0: {
            const double number = std::bit_cast<double>(random());
            return std::isfinite(number) ? number : 0.5;
        }
        case 1:
            return static_cast<double>(static_cast<std::int64_t>(random() >> random() % 64));
        case 2:
            return static_cast<double>(random() % 2'000'000) / 1000.0 - 1000.0;
        case 3:
            return std::pow(10.0, static_cast<double>(random() % 40) - 20.0);
        default:
            return std::nextafter(random() % 2 == 0 ? 1e16 : 1e-4, random() % 2 == 0 ? 0.0 : 1e17);
    }
}

void append_utf8(std::string& out, std::uint32_t point) {
    if (point < 0x80) {
        out += static_cast<char>(point);
        return;
    }
    const int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
    constexpr unsigned kLead[] = {0, 0xC0, 0xE0, 0xF0};
    out += static_cast<char>(kLead[more] | point >> 6 * more);
    for (int i = more - 1; i >= 0; --i) {
        out += static_cast<char>(0x80 | (point >> 6 * i & 0x3F));
    }
}

std::string any_text(Random& random) {
    constexpr std::uint32_t kEnds[] = {0x80, 0x100, 0x800, 0x10000, 0x110000};
    std::string text;
    for (std::size_t left = random() % 20; left > 0; --left) {
        const auto point = static_cast<std::uint32_t>(random() % kEnds[random() % 5]);
        append_utf8(text, point >= 0xD800 && point < 0xE000 ? 0x20 : point);
    }
    return text;
}

value any_value(Random& random, int depth) {
    switch (random() % (depth > 0 ? 8 : 6)) {
        case 0:
            return nullptr;
        case 1:
            return random() % 2 == 0;
        case 2:
            return random();
        case 3:
            return static_cast<std::int64_t>(random());
        case 4:
            return any_double(random);
        case 5:
            return value(any_text(random));
        case 6: {
            array items;
            for (std::size_t left = random() % 5; left > 0; --left) {
                items.push_back(any_value(random, depth - 1));
            }
            return items;
        }
        default: {
            object members;
            for (std::size_t left = random() % 5; left > 0; --left) {
                members[any_text(random)] = any_value(random, depth - 1);
            }
            return members;
        }
    }
}

// What Python says to a file of lines, by a script that gets its path; empty when nothing is wrong.
std::string ask_python(const std::string& script, const std::string& lines) {
    const auto folder = std::filesystem::temp_directory_path();
    const auto file = folder / ("comfyd-json-" + std::to_string(getpid()));
    std::ofstream(file, std::ios::binary) << lines;
    const std::string command = "python3 -c '" + script + "' " + file.string() + " 2>&1";
    std::string said;
    FILE* const pipe = popen(command.c_str(), "r");
    char buffer[4096];
    while (const std::size_t read = std::fread(buffer, 1, sizeof buffer, pipe)) {
        said.append(buffer, read);
    }
    EXPECT_EQ(pclose(pipe), 0) << said;
    std::filesystem::remove(file);
    return said;
}

TEST(JsonWrite, NumbersAreWrittenAsPeopleDo) {
    const array numbers{1.508, 0.0, 10.0, -0.0, 0.5, 1e-5, 1e15, 1e16, 1e300, 100, -7, 1.0 / 3};
    EXPECT_EQ(
        json::serialize(numbers),
        "[1.508,0.0,10.0,-0.0,0.5,1e-05,1000000000000000.0,1e+16,1e+300,100,-7,0.3333333333333333]"
    );
}

TEST(JsonWrite, WhatIsReadBackIsTheSame) {
    Random random(7);
    for (int i = 0; i < 20'000; ++i) {
        const value document = any_value(random, 3);
        for (const std::string& text :
             {json::serialize(document),
              json::serialize_python(document),
              json::serialize_canonical(document)}) {
            const auto read = parse(text);
            ASSERT_TRUE(read) << text;
            ASSERT_EQ(*read, document) << text;
        }
    }
}

TEST(JsonWrite, NumbersThatJsonHasNot) {
    const double infinity = std::numeric_limits<double>::infinity();
    const object numbers{{"a", infinity}, {"b", -infinity}, {"c", std::nan("")}};
    EXPECT_EQ(json::serialize(numbers), R"({"a":1e999,"b":-1e999,"c":null})");
    EXPECT_EQ(json::serialize_ascii(numbers), R"({"a":null,"b":null,"c":null})");
    EXPECT_EQ(json::serialize_python(numbers), R"({"a": Infinity, "b": -Infinity, "c": NaN})");
    EXPECT_EQ(parse("[1e999]")->at(0), value(infinity));
}

// Eight plain bytes are taken at a time; wherever another one stands, it is seen.
TEST(JsonWrite, WhatMustBeEscapedIsSeenAnywhere) {
    const auto inside = [](std::string text) { return text.substr(1, text.size() - 2); };
    for (int byte = 0; byte < 256; ++byte) {
        const std::string one(1, static_cast<char>(byte));
        const value alone(one);
        for (std::size_t size = 0; size < 20; ++size) {
            for (std::size_t at = 0; at <= size; ++at) {
                const std::string before(at, '~');
                const std::string after(size - at, ' ');
                const object whole{{"", before + one + after}};
                const object expected{{"", one}};
                const auto strip = [](std::string text) { return text.substr(5, text.size() - 7); };
                ASSERT_EQ(
                    inside(json::quoted(before + one + after)),
                    before + inside(json::quoted(one)) + after
                ) << byte;
                ASSERT_EQ(
                    strip(serialize_ascii(whole)), before + strip(serialize_ascii(expected)) + after
                ) << byte;
            }
        }
    }
}

TEST(JsonWrite, TextsThatAreNoUtf8AreAsciiAllTheSame) {
    const object texts{{"text", "a\xff\xc3(\xed\xa0\x80\xf0\x9f\x98\x80\xe2\x82"}};
    EXPECT_EQ(
        json::serialize_ascii(texts),
        R"({"text":"a\ufffd\ufffd(\ufffd\ufffd\ufffd\ud83d\ude00\ufffd\ufffd"})"
    );
}

TEST(JsonWrite, PythonWritesTheSameBytes) {
    Random random(11);
    std::string lines;
    for (int i = 0; i < 20'000; ++i) {
        lines += json::serialize_ascii({{"value", any_value(random, 4)}}) + "\n";
    }
    const char* const script =
        "import json, sys\n"
        "for line in open(sys.argv[1]):\n"
        "    line = line[:-1]\n"
        "    again = json.dumps(json.loads(line), separators=(\",\", \":\"))\n"
        "    if again != line: print(line, again)\n";
    EXPECT_EQ(ask_python(script, lines), "");
}

TEST(JsonWrite, PythonReadsTheSameDoubles) {
    Random random(13);
    std::string lines;
    for (int i = 0; i < 50'000; ++i) {
        const double number = any_double(random);
        char exact[64];
        std::snprintf(exact, sizeof exact, "%a", number);
        lines += exact + (" " + json::serialize(value(number))) + "\n";
    }
    const char* const script =
        "import json, sys\n"
        "for line in open(sys.argv[1]):\n"
        "    exact, text = line.split()\n"
        "    if json.dumps(float.fromhex(exact)) != text: print(line)\n";
    EXPECT_EQ(ask_python(script, lines), "");
}

}  // namespace
}  // namespace comfyd::json
