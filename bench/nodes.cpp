// Times every model-free node of a ComfyUI-compatible server, and a pipeline of ten, over the
// server's own protocol: `bench-nodes URL [CLASS…]`. The time of a node is what a prompt with it
// takes beyond the same prompt without it, from the request to the message that it ended, so that a
// real ComfyUI and `comfyd engine` are measured in the same way. The two prompts take turns, and of
// each the lower quartile counts, so that what else the machine does falls on both or on neither.
// Differences of less than a tenth of a millisecond mean nothing.
#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "support/http.hpp"

namespace {

using namespace comfyd;
using namespace comfyd::support;
using Clock = std::chrono::steady_clock;

constexpr int kSide = 1024;
constexpr int kRepeats = 16;
constexpr double kSmallest = 0.1;  // milliseconds that can be told apart
constexpr const char* kClient = "bench-nodes";

std::string big_endian(std::uint32_t value) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) {
        bytes += static_cast<char>((value >> shift) & 0xFF);
    }
    return bytes;
}

void add_chunk(std::string& png, const std::string& type, const std::string& data) {
    const std::string checked = type + data;
    png += big_endian(static_cast<std::uint32_t>(data.size())) + checked;
    png += big_endian(static_cast<std::uint32_t>(
        crc32(0, reinterpret_cast<const Bytef*>(checked.data()), static_cast<uInt>(checked.size()))
    ));
}

// A picture with smooth parts and noise.
std::string make_picture(unsigned seed) {
    std::string rows;
    unsigned state = seed;
    for (int y = 0; y < kSide; ++y) {
        rows += '\0';
        for (int x = 0; x < kSide; ++x) {
            state = state * 1664525U + 1013904223U;
            rows += static_cast<char>(x / 4);
            rows += static_cast<char>(y / 4);
            rows += static_cast<char>(state >> 24);
        }
    }
    uLongf size = compressBound(static_cast<uLong>(rows.size()));
    std::string packed(size, '\0');
    compress2(
        reinterpret_cast<Bytef*>(packed.data()),
        &size,
        reinterpret_cast<const Bytef*>(rows.data()),
        static_cast<uLong>(rows.size()),
        1
    );
    packed.resize(size);
    std::string png = "\x89PNG\r\n\x1a\n";
    add_chunk(
        png, "IHDR", big_endian(kSide) + big_endian(kSide) + std::string("\x08\x02\0\0\0", 5)
    );
    add_chunk(png, "IDAT", packed);
    add_chunk(png, "IEND", "");
    return png;
}

json::object node(const std::string& class_type, json::object inputs) {
    return {{"class_type", class_type}, {"inputs", std::move(inputs)}};
}

json::array link(const std::string& id, int slot = 0) {
    return {id, slot};
}

// What every prompt begins with; `round` makes it unlike all before, so that nothing is cached.
json::object make_sources(int round) {
    json::object prompt;
    prompt["a"] = node("LoadImage", {{"image", "bench_a.png"}});
    prompt["b"] = node("LoadImage", {{"image", "bench_b.png"}});
    prompt["f"] = node(
        "ImageBlend",
        {{"image1", link("a")},
         {"image2", link("b")},
         {"blend_factor", 0.25 + round * 1e-6},
         {"blend_mode", "normal"}}
    );
    prompt["m"] = node("ImageToMask", {{"image", link("f")}, {"channel", "blue"}});
    return prompt;
}

// A value for an input as /object_info describes it; nullopt: none can be made up.
std::optional<json::value> make_value(const json::array& config, int round) {
    if (config.empty()) {
        return std::nullopt;
    }
    const json::object options =
        config.size() > 1 && config[1].is_object() ? config[1].get_object() : json::object();
    if (config[0].is_array()) {
        const json::array& choices = config[0].get_array();
        return choices.empty() ? std::nullopt : std::optional<json::value>(choices[0]);
    }
    const std::string type(config[0].as_string());
    if (type.find("IMAGE") != type.npos || type == "COMFY_MATCHTYPE_V3" || type == "*") {
        return link("f");
    }
    if (type == "MASK") {
        return link("m");
    }
    if (type == "STRING") {
        return json::value("bench text " + std::to_string(round));
    }
    if (const json::value* value = options.if_contains("default")) {
        return *value;
    }
    if (type == "COMBO") {
        const json::value* choices = options.if_contains("options");
        return choices != nullptr && choices->is_array() && !choices->get_array().empty()
                   ? std::optional<json::value>(choices->get_array()[0])
                   : std::nullopt;
    }
    if (type == "INT" || type == "FLOAT") {
        return json::value(type == "INT" ? json::value(1) : json::value(1.0));
    }
    if (type == "BOOLEAN") {
        return json::value(true);
    }
    return std::nullopt;
}

bool fill(const json::object& required, const std::string& prefix, int round, json::object& into);

bool fill_one(const std::string& name, const json::array& config, int round, json::object& into) {
    const std::string type =
        !config.empty() && config[0].is_string() ? std::string(config[0].as_string()) : "";
    if (type == "COMFY_AUTOGROW_V3") {
        const json::object& shape = config[1].at("template").as_object();
        const json::object& inner = shape.at("input").at("required").as_object();
        const auto value = make_value(inner.begin()->value().as_array(), round);
        if (!value) {
            return false;
        }
        const json::value* names = shape.if_contains("names");
        const std::string first = names != nullptr
                                      ? std::string(names->as_array()[0].as_string())
                                      : std::string(shape.at("prefix").as_string()) + "0";
        into[name + "." + first] = *value;
        return true;
    }
    if (type == "COMFY_DYNAMICCOMBO_V3") {
        const json::object& choice = config[1].at("options").as_array().at(0).as_object();
        into[name] = choice.at("key");
        return fill(choice.at("inputs").at("required").as_object(), name + ".", round, into);
    }
    const auto value = make_value(config, round);
    if (value) {
        into[name] = *value;
    }
    return value.has_value();
}

bool fill(const json::object& required, const std::string& prefix, int round, json::object& into) {
    for (const auto& entry : required) {
        if (!entry.value().is_array() ||
            !fill_one(prefix + std::string(entry.key()), entry.value().get_array(), round, into)) {
            return false;
        }
    }
    return true;
}

// Looks at the result of node x without cost: no picture is encoded.
void add_sink(json::object& prompt, const json::object& info) {
    if (info.at("output_node").as_bool()) {
        return;
    }
    const json::array& outputs = info.at("output").as_array();
    const std::string type =
        !outputs.empty() && outputs[0].is_string() ? std::string(outputs[0].as_string()) : "";
    std::string last = "x";
    if (type == "MASK") {
        prompt["y"] = node("MaskToImage", {{"mask", link("x")}});
        last = "y";
    }
    if (type == "IMAGE" || type == "MASK") {
        prompt["z"] = node("GetImageSize", {{"image", link(last)}});
        last = "z";
    }
    prompt["p"] = node("PreviewAny", {{"source", link(last)}});
}

class Server {
public:
    explicit Server(const std::string& url) : http_(url) {
        for (const unsigned seed : {1U, 2U}) {
            const std::string name = seed == 1 ? "bench_a.png" : "bench_b.png";
            http_.upload(
                "/upload/image",
                {{.name = "image",
                  .filename = name,
                  .content_type = "image/png",
                  .data = make_picture(seed)},
                 {.name = "overwrite", .filename = {}, .content_type = {}, .data = "true"}}
            );
        }
        socket_ = http_.ws("/ws?clientId=" + std::string(kClient));
        socket_->send(R"({"type":"feature_flags","data":{"supports_preview_metadata":true}})");
    }

    json::object classes() { return http_.get("/object_info").json().as_object(); }

    // In milliseconds. nullopt: the server refused or failed it.
    std::optional<double> run(json::object prompt) {
        const auto start = Clock::now();
        const Reply reply = http_.post_json(
            "/prompt", json::object{{"prompt", std::move(prompt)}, {"client_id", kClient}}
        );
        if (!reply.ok()) {
            return std::nullopt;
        }
        const json::value id = reply.json_at("/prompt_id");
        bool failed = false;
        while (const auto message = socket_->next(std::chrono::seconds(120))) {
            if (message->binary || message->data.find("\"exec") == std::string::npos) {
                continue;
            }
            const auto parsed = json::parse_object(message->data);
            const json::object& data = parsed->at("data").as_object();
            const json::value* of = data.if_contains("prompt_id");
            if (of == nullptr || *of != id) {
                continue;
            }
            failed = failed || parsed->at("type") == "execution_error";
            const json::value* at = data.if_contains("node");
            if (parsed->at("type") == "executing" && at != nullptr && at->is_null()) {
                const auto time = std::chrono::duration<double, std::milli>(Clock::now() - start);
                return failed ? std::nullopt : std::optional(time.count());
            }
        }
        return std::nullopt;
    }

private:
    Http http_;
    std::unique_ptr<WsStream> socket_;
};

double lower_quartile(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 4];
}

int next_round() {
    static int round = 0;
    return ++round;
}

// The prompt with node x of that class in the middle.
std::optional<json::object> make_prompt(const std::string& name, const json::object& info) {
    const int round = next_round();
    json::object prompt = make_sources(round);
    json::object inputs;
    const json::value* required = info.at("input").as_object().if_contains("required");
    if (required == nullptr || !fill(required->as_object(), "", round, inputs)) {
        return std::nullopt;
    }
    prompt["x"] = node(name, std::move(inputs));
    add_sink(prompt, info);
    return prompt;
}

// The same without x: what is left looks at the picture that x took, or at one from the cache.
json::object make_rest(bool takes_picture) {
    json::object prompt = make_sources(next_round());
    prompt["z"] = node("GetImageSize", {{"image", link(takes_picture ? "f" : "a")}});
    prompt["p"] = node("PreviewAny", {{"source", link("z")}});
    return prompt;
}

bool takes_picture(const json::object& prompt) {
    const json::object& inputs = prompt.at("x").at("inputs").as_object();
    return std::ranges::any_of(inputs, [](const auto& input) {
        return input.value() == link("f") || input.value() == link("m");
    });
}

// In milliseconds. nullopt: the server cannot run the class, or not with made-up inputs.
std::optional<double> time_node(Server& server, const std::string& name, const json::object& info) {
    std::vector<double> with;
    std::vector<double> without;
    for (int i = 0; i < kRepeats; ++i) {
        auto prompt = make_prompt(name, info);
        if (!prompt) {
            return std::nullopt;
        }
        const auto rest = server.run(make_rest(takes_picture(*prompt)));
        const auto whole = server.run(std::move(*prompt));
        if (!rest || !whole) {
            return std::nullopt;
        }
        without.push_back(*rest);
        with.push_back(*whole);
    }
    return std::max(lower_quartile(with) - lower_quartile(without), kSmallest);
}

json::object make_pipeline(int round) {
    json::object prompt = make_sources(round);
    prompt["1"] = node(
        "ImageScale",
        {{"image", link("f")},
         {"upscale_method", "lanczos"},
         {"width", 1280},
         {"height", 1280},
         {"crop", "disabled"}}
    );
    prompt["2"] = node("ImageBlur", {{"image", link("1")}, {"blur_radius", 3}, {"sigma", 1.0}});
    prompt["3"] = node(
        "ImageSharpen",
        {{"image", link("2")}, {"sharpen_radius", 1}, {"sigma", 1.0}, {"alpha", 0.5}}
    );
    prompt["4"] = node(
        "ImageCrop",
        {{"image", link("3")}, {"width", 1024}, {"height", 1024}, {"x", 128}, {"y", 128}}
    );
    prompt["5"] = node("ImageInvert", {{"image", link("4")}});
    prompt["6"] = node(
        "ImageCompositeMasked",
        {{"destination", link("5")},
         {"source", link("a")},
         {"mask", link("m")},
         {"x", 0},
         {"y", 0},
         {"resize_source", false}}
    );
    prompt["7"] = node("SaveImage", {{"images", link("6")}, {"filename_prefix", "bench/pipeline"}});
    return prompt;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: bench-nodes URL [CLASS…]\n");
        return 2;
    }
    Server server(argv[1]);
    const std::vector<std::string> wanted(argv + 2, argv + argc);
    server.run(make_rest(true));  // whatever is done only once is done now
    for (const auto& [name, info] : server.classes()) {
        const bool is_core = info.at("python_module").as_string().starts_with("comfy_extras.") ||
                             info.at("python_module") == "nodes";
        if (wanted.empty() ? !is_core : std::ranges::find(wanted, name) == wanted.end()) {
            continue;
        }
        if (const auto time = time_node(server, std::string(name), info.as_object())) {
            std::printf("node %s %.3f\n", std::string(name).c_str(), *time);
            std::fflush(stdout);
        }
    }
    if (wanted.empty()) {
        std::vector<double> times;
        for (int i = 0; i < kRepeats; ++i) {
            if (const auto time = server.run(make_pipeline(next_round()))) {
                times.push_back(*time);
            }
        }
        if (!times.empty()) {
            std::printf("pipeline ten-nodes %.3f\n", lower_quartile(times));
        }
    }
    return 0;
}
