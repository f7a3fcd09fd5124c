// Sound through files and through every way of arranging it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "engine/nodes/audio/codec.hpp"
#include "engine/test_support.hpp"

namespace comfyd::engine::nodes {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class Number>
void append(std::string& bytes, Number number) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// 16-bit WAV of interleaved samples.
std::string wav(const std::vector<std::int16_t>& samples, std::uint16_t channels, int rate) {
    const auto size = static_cast<std::uint32_t>(samples.size() * 2);
    std::string file = "RIFF";
    append(file, size + 36);
    file += "WAVEfmt ";
    append(file, std::uint32_t{16});
    append(file, std::uint16_t{1});
    append(file, channels);
    append(file, static_cast<std::uint32_t>(rate));
    append(file, static_cast<std::uint32_t>(rate * channels * 2));
    append(file, static_cast<std::uint16_t>(channels * 2));
    append(file, std::uint16_t{16});
    file += "data";
    append(file, size);
    for (const std::int16_t sample : samples) {
        append(file, sample);
    }
    return file;
}

class AudioTest : public ::testing::Test {
protected:
    AudioTest() {
        std::vector<std::int16_t> samples;
        for (int i = 0; i < 4800; ++i) {
            const double tone = std::sin(i * 0.05);
            samples.push_back(static_cast<std::int16_t>(tone * 8000));
            samples.push_back(static_cast<std::int16_t>(i));
        }
        folders.add_input("tone.wav", wav(samples, 2, 48000));
    }

    json::object load() const {
        return {{"class_type", "LoadAudio"}, {"inputs", {{"audio", "tone.wav"}}}};
    }
    // The sound that `prompt`'s node "9" has saved.
    DecodedSound run(json::object prompt, const char* saver = "SaveAudio") {
        json::object inputs{{"audio", {"8", 0}}, {"filename_prefix", "out"}};
        if (saver != std::string("SaveAudio")) {
            inputs["quality"] = "128k";
        }
        prompt["9"] = json::object{{"class_type", saver}, {"inputs", std::move(inputs)}};
        Core core(make_registry(), folders.options());
        Recorder recorder;
        const auto result = core.run(std::move(prompt), {}, recorder, {});
        if (!result) {
            ADD_FAILURE() << result.error().message;
            return {};
        }
        const json::value& saved = result->outputs.at("9").at("audio").at(0);
        const std::string name(saved.at("filename").as_string());
        auto sound = decode_sound(slurp(folders.folders().output / name), [](std::uint64_t) {
            return true;
        });
        if (!sound) {
            ADD_FAILURE() << sound.error();
            return {};
        }
        return std::move(*sound);
    }

    TestFolders folders;
};

TEST_F(AudioTest, FlacKeepsEverySample) {
    const auto sound = run({{"8", load()}});
    ASSERT_EQ(sound.channels.size(), 2U);
    ASSERT_EQ(sound.channels[0].size(), 4800U);
    EXPECT_EQ(sound.rate, 48000);
    for (std::size_t i = 0; i < 4800; ++i) {
        EXPECT_EQ(sound.channels[1][i], static_cast<float>(i) / 32768.0F);
    }
}

TEST_F(AudioTest, LossyFormatsKeepTheLengthNearly) {
    for (const char* saver : {"SaveAudioMP3", "SaveAudioOpus"}) {
        const auto sound = run({{"8", load()}}, saver);
        ASSERT_EQ(sound.channels.size(), 2U) << saver;
        EXPECT_NEAR(static_cast<double>(sound.channels[0].size()), 4800, 3000) << saver;
    }
}

TEST_F(AudioTest, TrimKeepsThePart) {
    const auto sound = run({
        {"1", load()},
        {"8",
         {{"class_type", "TrimAudioDuration"},
          {"inputs", {{"audio", {"1", 0}}, {"start_index", -0.05}, {"duration", 0.01}}}}},
    });
    ASSERT_EQ(sound.channels[1].size(), 480U);
    EXPECT_EQ(sound.channels[1][0], 2400.0F / 32768.0F);
}

TEST_F(AudioTest, ChannelsAreSplitAndJoinedTheOtherWayRound) {
    const auto sound = run({
        {"1", load()},
        {"2", {{"class_type", "SplitAudioChannels"}, {"inputs", {{"audio", {"1", 0}}}}}},
        {"8",
         {{"class_type", "JoinAudioChannels"},
          {"inputs", {{"audio_left", {"2", 1}}, {"audio_right", {"2", 0}}}}}},
    });
    ASSERT_EQ(sound.channels.size(), 2U);
    EXPECT_EQ(sound.channels[0][77], 77.0F / 32768.0F);
}

TEST_F(AudioTest, ConcatPutsSilenceBefore) {
    const auto sound = run({
        {"1", load()},
        {"2",
         {{"class_type", "EmptyAudio"},
          {"inputs", {{"duration", 0.01}, {"sample_rate", 24000}, {"channels", 1}}}}},
        {"8",
         {{"class_type", "AudioConcat"},
          {"inputs", {{"audio1", {"1", 0}}, {"audio2", {"2", 0}}, {"direction", "before"}}}}},
    });
    ASSERT_EQ(sound.channels[1].size(), 5280U);
    EXPECT_EQ(sound.channels[1][100], 0.0F);
    EXPECT_EQ(sound.channels[1][480 + 100], 100.0F / 32768.0F);
}

TEST_F(AudioTest, MergeAddsAndVolumeScales) {
    const auto sound = run({
        {"1", load()},
        {"2",
         {{"class_type", "AudioMerge"},
          {"inputs", {{"audio1", {"1", 0}}, {"audio2", {"1", 0}}, {"merge_method", "add"}}}}},
        {"8",
         {{"class_type", "AudioAdjustVolume"}, {"inputs", {{"audio", {"2", 0}}, {"volume", 6}}}}},
    });
    EXPECT_NEAR(sound.channels[1][1000], 2000.0F / 32768.0F * 1.99526F, 1e-4);
}

TEST_F(AudioTest, OtherFilesAreAClearError) {
    folders.add_input("tone.wav", "RIFF....WAVEnonsense");
    Core core(make_registry(), folders.options());
    Recorder recorder;
    const auto result = core.run(
        {{"1", load()}, {"2", {{"class_type", "PreviewAudio"}, {"inputs", {{"audio", {"1", 0}}}}}}},
        {},
        recorder,
        {}
    );
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().message, HasSubstr("tone.wav"));
}

TEST_F(AudioTest, DamagedFilesNeverCrash) {
    const std::string file = slurp(folders.folders().input / "tone.wav");
    unsigned state = 1;
    for (int round = 0; round < 60; ++round) {
        std::string damaged = file.substr(0, 200 + static_cast<std::size_t>(round) * 10);
        for (int i = 0; i < 5; ++i) {
            state = state * 1664525U + 1013904223U;
            damaged[(state >> 8) % 60] = static_cast<char>(state >> 16);
        }
        (void)decode_sound(damaged, [](std::uint64_t) { return true; });
    }
}

}  // namespace
}  // namespace comfyd::engine::nodes
