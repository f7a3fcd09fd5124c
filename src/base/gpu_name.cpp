#include "base/gpu_name.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <vector>

#include "base/text.hpp"

namespace comfyd {
namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool is_word_character(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z');
}

bool is_maker(std::string_view word) {
    constexpr std::array<std::string_view, 5> kWords = {"nvidia", "amd", "geforce", "tesla", "gpu"};
    return std::ranges::find(kWords, word) != kWords.end();
}

// How much memory it has and how it is built in: not which GPU it is.
bool is_beside_the_point(std::string_view word) {
    constexpr std::array<std::string_view, 7> kWords = {
        "pcie", "sxm", "sxm2", "sxm4", "sxm5", "hbm2e", "hbm3"
    };
    const std::string_view digits = word.substr(0, word.find_first_not_of("0123456789"));
    const std::string_view rest = word.substr(digits.size());
    const bool is_amount = !digits.empty() && (rest == "gb" || rest == "g" || rest == "x");
    return is_amount || std::ranges::find(kWords, word) != kWords.end();
}

struct Words {
    std::string kind;  // written together: "RTX 4090" is "RTX4090"
    std::vector<std::string> beside;
};

Words words_of(std::string_view name) {
    Words words;
    std::string word;
    for (const char c : lower(name) + " ") {
        if (is_word_character(c)) {
            word += c;
        } else if (!word.empty()) {
            if (is_beside_the_point(word)) {
                words.beside.push_back(word);
            } else if (!is_maker(word)) {
                words.kind += word;
            }
            word.clear();
        }
    }
    return words;
}

struct Usual {
    std::string_view kind;
    int gigabytes;
};

// The most that cards of a kind are sold with.
constexpr Usual kUsual[] = {
    {"A2", 16},
    {"A10", 24},
    {"A10G", 24},
    {"A16", 16},
    {"A30", 24},
    {"A40", 48},
    {"A100", 80},
    {"B200", 192},
    {"B300", 288},
    {"GH200", 144},
    {"H20", 96},
    {"H100", 80},
    {"H100 NVL", 94},
    {"H200", 141},
    {"H200 NVL", 141},
    {"L4", 24},
    {"L40", 48},
    {"L40S", 48},
    {"P100", 16},
    {"T4", 16},
    {"V100", 32},
    {"RTX 3060", 12},
    {"RTX 3070", 8},
    {"RTX 3080", 12},
    {"RTX 3080 Ti", 12},
    {"RTX 3090", 24},
    {"RTX 3090 Ti", 24},
    {"RTX 4060 Ti", 16},
    {"RTX 4070", 12},
    {"RTX 4070 Ti", 12},
    {"RTX 4070 Ti SUPER", 16},
    {"RTX 4080", 16},
    {"RTX 4080 SUPER", 16},
    {"RTX 4090", 24},
    {"RTX 4090 D", 24},
    {"RTX 5070 Ti", 16},
    {"RTX 5080", 16},
    {"RTX 5090", 32},
    {"RTX A4000", 16},
    {"RTX A4500", 20},
    {"RTX A5000", 24},
    {"RTX A6000", 48},
    {"RTX 4000 Ada", 20},
    {"RTX 5000 Ada", 32},
    {"RTX 6000 Ada", 48},
    {"RTX PRO 6000", 96},
    {"MI300X", 192},
};

// What the name itself says; 0: nothing.
int told_gigabytes(const std::vector<std::string>& beside) {
    int gigabytes = 0;
    for (const std::string& word : beside) {
        const auto read = std::from_chars(word.data(), word.data() + word.size(), gigabytes);
        const std::string_view unit(read.ptr, word.data() + word.size());
        if (read.ec == std::errc() && (unit == "gb" || unit == "g")) {
            return gigabytes;
        }
    }
    return 0;
}

}  // namespace

bool is_gpu(std::string_view wished, std::string_view name) {
    const std::string kind = words_of(wished).kind;
    return !kind.empty() ? kind == words_of(name).kind : lower(wished) == lower(name);
}

bool is_exact_gpu(std::string_view wished, std::string_view name) {
    const auto has = words_of(name).beside;
    return is_gpu(wished, name) &&
           std::ranges::all_of(words_of(wished).beside, [&has](const std::string& word) {
               return std::ranges::find(has, word) != has.end();
           });
}

int usual_gpu_memory_gb(std::string_view kind) {
    if (const int told = told_gigabytes(words_of(kind).beside); told > 0) {
        return told;
    }
    const auto* found = std::ranges::find_if(kUsual, [kind](const Usual& usual) {
        return is_gpu(usual.kind, kind) || is_gpu(std::string(usual.kind) + " Generation", kind);
    });
    return found == std::end(kUsual) ? 0 : found->gigabytes;
}

std::uint64_t least_gpu_memory(double gigabytes) {
    constexpr double kGigabyte = 1024.0 * 1024 * 1024;
    constexpr double kLeft = 0.9;
    return static_cast<std::uint64_t>(gigabytes * kGigabyte * kLeft);
}

}  // namespace comfyd
