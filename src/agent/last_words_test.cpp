#include "agent/last_words.hpp"

#include <gtest/gtest.h>

namespace comfyd::agent {
namespace {

std::string said(std::string_view bytes) {
    LastWords words;
    words.hear(bytes);
    return words.said();
}

TEST(LastWords, AreTheExceptionOfATraceback) {
    EXPECT_EQ(
        said("Checkpoint files will always be loaded safely.\n"
             "Traceback (most recent call last):\n"
             "  File \"main.py\", line 6, in <module>\n    import av\n"
             "ImportError: libx.so: cannot open shared object file\n\n"),
        "ImportError: libx.so: cannot open shared object file"
    );
    EXPECT_EQ(said("torch.OutOfMemoryError: CUDA\r\nbye\r\n"), "torch.OutOfMemoryError: CUDA");
    EXPECT_EQ(said("KeyError"), "KeyError");
}

// One that ComfyUI logs as it starts, of a node that it does without, is not why it ends later.
TEST(LastWords, AreNoExceptionThatWasSurvived) {
    std::string log = "ModuleNotFoundError: No module named 'x'\n";
    for (int i = 0; i < 9; ++i) {
        log += "got prompt " + std::to_string(i) + "\n";
    }
    EXPECT_EQ(said(log), "got prompt 6 / got prompt 7 / got prompt 8");
}

TEST(LastWords, AreTheLastLinesOtherwise) {
    EXPECT_EQ(said(""), "");
    EXPECT_EQ(said("\n \n\t\n*****\n"), "") << "nothing that can be read";
    EXPECT_EQ(said("one"), "one");
    EXPECT_EQ(said("one\ntwo\n\n***\nthree\nfour"), "two / three / four");
    EXPECT_EQ(said("this is no Error: at all"), "this is no Error: at all");
}

TEST(LastWords, HaveNoSecretsNotEvenHalfOfOne) {
    LastWords words({"hf_a_token_that_is_long_enough", "short"});
    words.hear("no access with hf_a_token_that_is_long_enough, in short\n" + std::string(180, 'x'));
    words.hear(" hf_a_token_that_is_long_enough");
    const std::string said = words.said();
    EXPECT_EQ(said, "no access with ***, in short / " + std::string(180, 'x') + " ***");
}

TEST(LastWords, AreShortAndFitToBeShown) {
    const std::string line(1'000, 'x');
    EXPECT_EQ(said(line), std::string(200, 'x') + "...");
    EXPECT_EQ(said("\x1b[31m[ERROR]\x1b[0m red\xff\x01"), "[ERROR] red??");
    EXPECT_EQ(said("half \x1b[3"), "half ");
}

TEST(LastWords, AreThoseOfAllItSaidHoweverItCame) {
    LastWords words;
    for (int i = 0; i < 100'000; ++i) {
        words.hear("line " + std::to_string(i) + "\n");
    }
    EXPECT_EQ(words.said(), "line 99997 / line 99998 / line 99999");
    for (const char c : std::string("ValueError: no")) {
        words.hear({&c, 1});
    }
    EXPECT_EQ(words.said(), "ValueError: no");
    words.hear("\n" + std::string(100'000, 'y'));
    EXPECT_EQ(words.said(), std::string(200, 'y') + "...") << "of what is far back nothing is kept";
    words.forget();
    EXPECT_EQ(words.said(), "");
}

}  // namespace
}  // namespace comfyd::agent
