// LoadAudio, and the classes that save or preview sound.

#include "engine/files.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/nodes/audio/audio.hpp"
#include "engine/nodes/audio/codec.hpp"
#include "engine/nodes/call.hpp"
#include "engine/nodes/files/load.hpp"
#include "engine/nodes/files/save.hpp"
#include "workflow/graph/python_text.hpp"

namespace comfyd::engine::nodes {
namespace {

// How long a sound is, is known when it has been decoded.
struct SpaceForSamples {
    explicit SpaceForSamples(const Call& of) : call(of) {}

    // False: there is a failure.
    bool grow(std::uint64_t bytes) {
        if (auto going = call.check_stopped(); !going) {
            failure = std::move(going.error());
        }
        while (!failure && charged < 2 * bytes) {  // vectors take twice as much when they grow
            auto more = call.charge(kStep);
            if (!more) {
                failure = std::move(more.error());
                break;
            }
            charge.join(std::move(*more));
            charged += kStep;
        }
        return !failure;
    }

    static constexpr std::uint64_t kStep = 16ULL * 1024 * 1024;
    const Call& call;
    Charge charge{};
    std::uint64_t charged = 0;
    std::optional<Error> failure{};
};

Result<NodeResult> execute_load(Call& call) {
    const std::string& name = call.text("audio");
    const auto file = read_named(name, call.folders());
    if (!file) {
        return fail(file.error());
    }
    SpaceForSamples space(call);
    const auto decoded =
        decode_sound(*file, [&](std::uint64_t bytes) { return space.grow(bytes); });
    if (space.failure) {
        return fail(std::move(*space.failure));
    }
    if (!decoded) {
        return node_error("ValueError", "Cannot load '" + name + "': " + decoded.error());
    }
    const std::size_t length = decoded->channels[0].size();
    auto sound = new_sound(call, 1, decoded->channels.size(), length);
    if (!sound) {
        return fail(std::move(sound.error()));
    }
    for (std::size_t c = 0; c < decoded->channels.size(); ++c) {
        std::ranges::copy(decoded->channels[c], sound->row(c));
    }
    return NodeResult{.outputs = {finish(std::move(*sound), decoded->rate)}};
}

std::optional<Refusal> check(const json::value& name, const Folders& folders) {
    return check_file_name(name, "audio", folders);
}

Result<std::string> fingerprint(const json::object& inputs, const Folders& folders) {
    return file_fingerprint(inputs, "audio", folders);
}

SoundFormat format_of(const std::string& name, const std::string& quality) {
    SoundFormat format{.container = name, .encoder = name};
    if (name == "flac") {
        return format;
    }
    format.encoder = name == "mp3" ? "libmp3lame" : "libopus";
    format.best_quality = quality == "V0";
    if (!format.best_quality) {
        format.bit_rate = std::strtoll(quality.c_str(), nullptr, 10) * 1000;
    }
    return format;
}

// Opus knows five rates; the next higher one is taken.
int rate_for(const SoundFormat& format, int rate) {
    constexpr std::array<int, 5> kOpusRates = {8000, 12000, 16000, 24000, 48000};
    if (format.container != "opus") {
        return rate;
    }
    const auto found = std::ranges::lower_bound(kOpusRates, rate);
    return found != kOpusRates.end() ? *found : kOpusRates.back();
}

struct Target {
    const std::filesystem::path& folder;
    std::string type;
    std::string prefix;
};

Result<NodeResult> save(Call& call, const SoundFormat& format, const Target& target) {
    std::shared_ptr<const Sound> sound(
        std::shared_ptr<const Sound>(), &call.object<Sound>("audio")
    );
    if (sound->channels() > 2) {
        return node_error("ValueError", "Only sound with one or two channels can be saved");
    }
    if (const int rate = rate_for(format, sound->rate()); rate != sound->rate()) {
        auto other = resampled(call, *sound, rate);
        if (!other) {
            return fail(std::move(other.error()));
        }
        sound = std::move(*other);
    }
    const auto place = make_save_place(target.folder, target.prefix, 0, 0);
    if (!place) {
        return fail(place.error());
    }
    const auto texts = workflow_texts(call);
    json::array files;
    for (std::size_t i = 0; i < sound->batch(); ++i) {
        const auto file =
            encode_sound(*sound, i, format, texts, [&call] { return call.stopped(); });
        if (auto stopped = call.check_stopped(); !stopped) {
            return fail(std::move(stopped.error()));
        }
        if (!file) {
            return node_error("ValueError", "Cannot save the sound: " + file.error());
        }
        const auto name = save_counted(
            *place,
            place->counter + i,
            i,
            format.container,
            [&file](const FileSink& sink) -> Result<> {
                sink(file->data(), file->size());
                return {};
            }
        );
        if (!name) {
            return fail(name.error());
        }
        files.emplace_back(saved_file(*name, place->subfolder, target.type));
    }
    return NodeResult{
        .outputs = {call.value("audio")}, .ui = json::object{{"audio", std::move(files)}}
    };
}

Result<NodeResult> save_as(Call& call, const std::string& format, const std::string& quality) {
    return save(
        call,
        format_of(format, quality),
        {call.folders().output, "output", call.text("filename_prefix")}
    );
}

Result<NodeResult> execute_flac(Call& call) {
    return save_as(call, "flac", "");
}

Result<NodeResult> execute_mp3(Call& call) {
    return save_as(call, "mp3", call.text("quality"));
}

Result<NodeResult> execute_opus(Call& call) {
    return save_as(call, "opus", call.text("quality"));
}

Result<NodeResult> execute_advanced(Call& call) {
    return save_as(
        call, call.text("format"), call.has("format.quality") ? call.text("format.quality") : ""
    );
}

Result<NodeResult> execute_preview(Call& call) {
    return save(
        call,
        format_of("flac", ""),
        {call.folders().temp, "temp", "ComfyUI_temp_" + random_letters()}
    );
}

}  // namespace

NodeClass load_audio() {
    return {
        .name = "LoadAudio",
        .description = "Reads the sound of a file in the input folder.",
        .execute = &execute_load,
        .files = {{"audio", &list_input_audio}},
        .checked_input = "audio",
        .check_name = "LoadAudio.validate_inputs",
        .check = &check,
        .fingerprint = &fingerprint,
    };
}

NodeClass save_audio() {
    return {
        .name = "SaveAudio",
        .description = "Writes sound as FLAC into the output folder.",
        .execute = &execute_flac,
    };
}

NodeClass save_audio_mp3() {
    return {
        .name = "SaveAudioMP3",
        .description = "Writes sound as MP3 into the output folder.",
        .execute = &execute_mp3,
    };
}

NodeClass save_audio_opus() {
    return {
        .name = "SaveAudioOpus",
        .description = "Writes sound as Opus into the output folder.",
        .execute = &execute_opus,
    };
}

NodeClass save_audio_advanced() {
    return {
        .name = "SaveAudioAdvanced",
        .description = "Writes sound as FLAC, MP3 or Opus into the output folder.",
        .execute = &execute_advanced,
    };
}

NodeClass preview_audio() {
    return {
        .name = "PreviewAudio",
        .description = "Writes sound into the temporary folder, to be heard by the client.",
        .execute = &execute_preview,
    };
}

}  // namespace comfyd::engine::nodes
