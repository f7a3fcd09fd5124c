// SaveLatent and LoadLatent: safetensors files with one tensor.
#include "engine/files.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include "engine/nodes/call.hpp"
#include "engine/nodes/files/load.hpp"
#include "engine/nodes/files/save.hpp"
#include "engine/nodes/latent/latent.hpp"

namespace comfyd::engine::nodes {
namespace {

constexpr std::size_t kHeaderBytesMax = 100'000'000;  // the format's own limit
constexpr std::size_t kDimensionsMax = 8;

static_assert(std::endian::native == std::endian::little);

std::string header_of(const Call& call, const Tensor& samples) {
    json::object metadata;
    for (const auto& [name, text] : workflow_texts(call)) {
        metadata[name] = text;
    }
    json::array shape;
    for (const std::size_t size : samples.dims()) {
        shape.emplace_back(size);
    }
    const json::object header{
        {"__metadata__", std::move(metadata)},
        {"latent_format_version_0",
         {{"dtype", "F32"}, {"shape", json::array{0}}, {"data_offsets", json::array{0, 0}}}},
        {"latent_tensor",
         {{"dtype", "F32"},
          {"shape", std::move(shape)},
          {"data_offsets", json::array{0, samples.count() * sizeof(float)}}}},
    };
    std::string text = json::serialize(header);
    text.append((8 - text.size() % 8) % 8, ' ');
    return text;
}

Result<NodeResult> execute_save(Call& call) {
    const Tensor& samples = call.object<Latent>("samples").samples;
    const auto place = make_save_place(call.folders().output, call.text("filename_prefix"), 0, 0);
    if (!place) {
        return fail(place.error());
    }
    const std::string header = header_of(call, samples);
    auto name =
        save_counted(*place, place->counter, 0, "latent", [&](const FileSink& sink) -> Result<> {
            const std::uint64_t size = header.size();
            if (sink(&size, sizeof size) && sink(header.data(), header.size())) {
                sink(samples.data(), samples.count() * sizeof(float));
            }
            return {};
        });
    if (!name) {
        return fail(std::move(name.error()));
    }
    return NodeResult{
        .outputs = {call.value("samples")},
        .ui = json::object{{"latents", json::array{saved_file(*name, place->subfolder, "output")}}}
    };
}

tl::unexpected<Error> bad_file(const std::string& why) {
    return node_error(
        "safetensors_rust.SafetensorError", "Error while deserializing header: " + why
    );
}

struct Stored {
    Dims dims;
    std::string_view dtype;
    std::string_view bytes;
    bool scaled = false;  // from before ComfyUI wrote a version
};

Result<Stored> find_tensor(const json::object& header, std::string_view data) {
    const json::value* entry = header.if_contains("latent_tensor");
    if (entry == nullptr) {
        return node_error("KeyError", "'latent_tensor'");
    }
    const json::object* facts = entry->if_object();
    const json::value* dtype = facts != nullptr ? facts->if_contains("dtype") : nullptr;
    const json::value* shape = facts != nullptr ? facts->if_contains("shape") : nullptr;
    const json::value* offsets = facts != nullptr ? facts->if_contains("data_offsets") : nullptr;
    if (dtype == nullptr || !dtype->is_string() || shape == nullptr || !shape->is_array() ||
        shape->get_array().size() > kDimensionsMax || offsets == nullptr || !offsets->is_array() ||
        offsets->get_array().size() != 2) {
        return bad_file("the tensor is not described");
    }
    Stored stored;
    stored.dtype = dtype->get_string();
    stored.scaled = !header.contains("latent_format_version_0");
    const auto number = [](const json::value& from) -> std::size_t {
        const std::int64_t* value = from.if_int64();
        return value != nullptr && *value >= 0 ? static_cast<std::size_t>(*value) : SIZE_MAX;
    };
    for (const json::value& size : shape->get_array()) {
        stored.dims.push_back(number(size));
    }
    const std::size_t begin = number(offsets->get_array()[0]);
    const std::size_t end = number(offsets->get_array()[1]);
    if (begin > end || end > data.size() || stored.dims.size() < 3) {
        return bad_file("InvalidOffset");
    }
    stored.bytes = data.substr(begin, end - begin);
    return stored;
}

float half_to_float(std::uint16_t bits) {
    const int exponent = bits >> 10 & 0x1F;
    const auto fraction = static_cast<float>(bits & 0x3FF);
    const float magnitude = exponent == 0    ? std::ldexp(fraction, -24)
                            : exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
                                             : std::ldexp(fraction + 1024.0F, exponent - 25);
    return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

// REQUIRES: one of the types of read_stored().
float value_at(const Stored& stored, std::size_t index) {
    if (stored.dtype == "F32") {
        float value = 0;
        std::memcpy(&value, stored.bytes.data() + index * 4, 4);
        return value;
    }
    if (stored.dtype == "F64") {
        double value = 0;
        std::memcpy(&value, stored.bytes.data() + index * 8, 8);
        return static_cast<float>(value);
    }
    std::uint16_t bits = 0;
    std::memcpy(&bits, stored.bytes.data() + index * 2, 2);
    return stored.dtype == "F16" ? half_to_float(bits)
                                 : std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

Result<Stored> read_stored(std::string_view file) {
    std::uint64_t size = 0;
    if (file.size() < sizeof size) {
        return bad_file("HeaderTooSmall");
    }
    std::memcpy(&size, file.data(), sizeof size);
    if (size > kHeaderBytesMax) {
        return bad_file("HeaderTooLarge");
    }
    if (size > file.size() - sizeof size) {
        return bad_file("InvalidHeaderLength");
    }
    const auto header = json::parse_object(file.substr(sizeof size, size));
    if (!header) {
        return bad_file("InvalidHeaderDeserialization");
    }
    auto stored = find_tensor(*header, file.substr(sizeof size + size));
    if (!stored) {
        return stored;
    }
    // The name of the type lives in the header.
    for (const std::string_view known : {"F32", "F64", "F16", "BF16"}) {
        if (stored->dtype == known) {
            stored->dtype = known;
            const std::size_t bytes = known == "F32" ? 4 : known == "F64" ? 8 : 2;
            const std::size_t count = count_of(stored->dims);
            if (count > stored->bytes.size() || count * bytes != stored->bytes.size()) {
                return bad_file("TensorInvalidInfo");
            }
            return stored;
        }
    }
    return bad_file("the type of the tensor is not known");
}

Result<NodeResult> execute_load(Call& call) {
    const auto file = read_named(call.text("latent"), call.folders());
    if (!file) {
        return fail(file.error());
    }
    const auto stored = read_stored(*file);
    if (!stored) {
        return fail(stored.error());
    }
    const float factor = stored->scaled ? static_cast<float>(1.0 / 0.18215) : 1.0F;
    auto samples = make_tensor(call, stored->dims, [&](float* into) {
        for (std::size_t i = 0; i < count_of(stored->dims); ++i) {
            into[i] = value_at(*stored, i) * factor;
        }
    });
    if (!samples) {
        return fail(std::move(samples.error()));
    }
    return NodeResult{.outputs = {as_value(Latent(std::move(*samples)))}};
}

std::vector<std::string> list_latents(const Folders& folders) {
    std::vector<std::string> names;
    std::error_code error;
    for (std::filesystem::directory_iterator entry(folders.input, error), end;
         !error && entry != end;
         entry.increment(error)) {
        std::error_code unknown;
        std::string name = entry->path().filename().string();
        if (name.ends_with(".latent") && entry->is_regular_file(unknown)) {
            names.push_back(std::move(name));
        }
    }
    std::ranges::sort(names);
    return names;
}

std::optional<Refusal> check_latent(const json::value& name, const Folders& folders) {
    return check_file_name(name, "latent", folders);
}

Result<std::string> fingerprint(const json::object& inputs, const Folders& folders) {
    return file_fingerprint(inputs, "latent", folders);
}

}  // namespace

NodeClass save_latent() {
    return {
        .name = "SaveLatent",
        .description = "Saves a latent into the output folder.",
        .execute = &execute_save
    };
}

NodeClass load_latent() {
    return {
        .name = "LoadLatent",
        .description = "Loads a latent from the input folder.",
        .execute = &execute_load,
        .files = {{"latent", &list_latents}},
        .checked_input = "latent",
        .check_name = "LoadLatent.VALIDATE_INPUTS",
        .check = &check_latent,
        .fingerprint = &fingerprint
    };
}

}  // namespace comfyd::engine::nodes
