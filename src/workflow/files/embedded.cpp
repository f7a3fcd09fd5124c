#include "workflow/files/embedded.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "workflow/graph/node_links.hpp"
#include "workflow/rules/check.hpp"
#include "workflow/rules/prompt_request.hpp"

namespace comfyd::workflow {
namespace {

constexpr std::string_view kPngSignature = "\x89PNG\r\n\x1a\n";
constexpr int kWrappersMax = 8;  // wrappers inside wrappers
constexpr std::size_t kNamesShown = 6;

// Names of texts and members come from strangers.
std::string printable(std::string_view name) {
    std::string shown(name.substr(0, 40));
    std::ranges::replace_if(shown, [](char c) { return c < 0x20 || c > 0x7e; }, '?');
    return shown;
}

struct Texts {
    std::string prompt;
    std::string workflow;

    int unpacked = 0;  // a file may hold any number of texts that grow beyond all limits
    std::vector<std::string> others;  // names of texts that are no workflow, for people

    bool complete() const { return !prompt.empty() && !workflow.empty(); }
    // Of what is asked for and not there yet; nullptr: nothing that is wanted.
    std::string* find(std::string_view name) {
        std::string* found = name == "prompt" ? &prompt : name == "workflow" ? &workflow : nullptr;
        if (found == nullptr && others.size() < kNamesShown) {
            others.push_back(printable(name));
        }
        return found != nullptr && found->empty() ? found : nullptr;
    }
};

std::uint32_t read_number(std::string_view bytes, std::size_t at, std::size_t size, bool is_big) {
    std::uint32_t number = 0;
    for (std::size_t i = 0; i < size; ++i) {
        const auto byte = static_cast<unsigned char>(bytes[is_big ? at + i : at + size - 1 - i]);
        number = number << 8 | byte;
    }
    return number;
}

std::optional<std::string> inflate_text(std::string_view packed) {
    z_stream stream{};
    if (inflateInit(&stream) != Z_OK) {
        return std::nullopt;
    }
    // zlib does not write to its input, but its type says so.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream.avail_in = static_cast<uInt>(packed.size());
    std::string text;
    std::array<char, 16384> piece{};
    int code = Z_OK;
    while (code == Z_OK && text.size() <= kWorkflowBytesMax) {
        stream.next_out = reinterpret_cast<Bytef*>(piece.data());
        stream.avail_out = static_cast<uInt>(piece.size());
        code = inflate(&stream, Z_NO_FLUSH);
        text.append(piece.data(), piece.size() - stream.avail_out);
    }
    inflateEnd(&stream);
    if (code != Z_STREAM_END || text.size() > kWorkflowBytesMax) {
        return std::nullopt;
    }
    return text;
}

void unpack(std::string_view packed, Texts& texts, std::string& into) {
    constexpr int kUnpackedMax = 8;
    if (++texts.unpacked <= kUnpackedMax) {
        into = inflate_text(packed).value_or("");
    }
}

// keyword 0 text
void read_plain_chunk(std::string_view data, Texts& texts) {
    const std::size_t end = data.find('\0');
    if (end == std::string_view::npos) {
        return;
    }
    if (std::string* into = texts.find(data.substr(0, end))) {
        *into = data.substr(end + 1);
    }
}

// keyword 0 method text
void read_packed_chunk(std::string_view data, Texts& texts) {
    const std::size_t end = data.find('\0');
    if (end == std::string_view::npos || end + 2 > data.size() || data[end + 1] != 0) {
        return;
    }
    if (std::string* into = texts.find(data.substr(0, end))) {
        unpack(data.substr(end + 2), texts, *into);
    }
}

// keyword 0 packed method language 0 translated-keyword 0 text
void read_international_chunk(std::string_view data, Texts& texts) {
    const std::size_t end = data.find('\0');
    if (end == std::string_view::npos || end + 3 > data.size()) {
        return;
    }
    const std::size_t language = data.find('\0', end + 3);
    const std::size_t translated =
        language != std::string_view::npos ? data.find('\0', language + 1) : language;
    std::string* into = texts.find(data.substr(0, end));
    if (translated == std::string_view::npos || into == nullptr) {
        return;
    }
    const std::string_view text = data.substr(translated + 1);
    if (data[end + 1] == 0) {
        *into = text;
    } else {
        unpack(text, texts, *into);
    }
}

Texts read_png(std::string_view bytes) {
    Texts texts;
    std::size_t at = kPngSignature.size();
    while (!texts.complete() && bytes.size() - at >= 12) {
        const std::size_t size = read_number(bytes, at, 4, true);
        const std::string_view type = bytes.substr(at + 4, 4);
        if (size > bytes.size() - at - 12 || type == "IEND") {
            break;
        }
        const std::string_view data = bytes.substr(at + 8, size);
        if (type == "tEXt") {
            read_plain_chunk(data, texts);
        } else if (type == "zTXt") {
            read_packed_chunk(data, texts);
        } else if (type == "iTXt") {
            read_international_chunk(data, texts);
        }
        at += size + 12;
    }
    return texts;
}

// "prompt:{…}" or "workflow:{…}"
void read_exif_text(std::string_view text, Texts& into) {
    const std::size_t colon = text.substr(0, 16).find(':');
    if (colon == std::string_view::npos) {
        return;
    }
    if (std::string* found = into.find(lower(text.substr(0, colon)))) {
        text.remove_prefix(colon + 1);
        *found = text.substr(0, text.find('\0'));
    }
}

// The texts of the first directory of a TIFF block.
void read_exif(std::string_view tiff, Texts& into) {
    if (tiff.starts_with(std::string_view("Exif\0\0", 6))) {
        tiff.remove_prefix(6);
    }
    if (tiff.size() < 8 || (!tiff.starts_with("II") && !tiff.starts_with("MM"))) {
        return;
    }
    const bool is_big = tiff.front() == 'M';
    const std::size_t directory = read_number(tiff, 4, 4, is_big);
    if (directory > tiff.size() - 2) {
        return;
    }
    const std::size_t count = read_number(tiff, directory, 2, is_big);
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t entry = directory + 2 + i * 12;
        if (entry + 12 > tiff.size()) {
            return;
        }
        constexpr std::uint32_t kText = 2;
        const std::size_t size = read_number(tiff, entry + 4, 4, is_big);
        const std::size_t at = size <= 4 ? entry + 8 : read_number(tiff, entry + 8, 4, is_big);
        if (read_number(tiff, entry + 2, 2, is_big) == kText && at <= tiff.size() &&
            size <= tiff.size() - at) {
            read_exif_text(tiff.substr(at, size), into);
        }
    }
}

Texts read_webp(std::string_view bytes) {
    Texts texts;
    std::size_t at = 12;
    while (bytes.size() - at >= 8) {
        const std::size_t size = read_number(bytes, at + 4, 4, false);
        if (size > bytes.size() - at - 8) {
            break;
        }
        if (bytes.substr(at, 4) == "EXIF") {
            read_exif(bytes.substr(at + 8, size), texts);
            break;
        }
        at = std::min(bytes.size(), at + 8 + size + size % 2);
    }
    return texts;
}

bool is_prompt(const json::object& from) {
    return std::ranges::any_of(from, [](const auto& node) {
        const json::object* members = node.value().if_object();
        return members != nullptr && members->contains("class_type");
    });
}

// The workflow inside the wrappers that exports, requests and histories put around it.
const json::object& inside(const json::object& from) {
    const json::object* at = &from;
    for (int i = 0; i < kWrappersMax && !is_ui_format(*at) && !is_prompt(*at); ++i) {
        const json::object* next = nullptr;
        for (const char* wrapper : {"prompt", "output", "workflow", "input"}) {
            const json::value* inner = json::find(*at, wrapper);
            if (next == nullptr && inner != nullptr && inner->is_object()) {
                next = &inner->get_object();
            }
        }
        if (next == nullptr) {
            break;
        }
        at = next;
    }
    return *at;
}

// ComfyUI writes what Python calls JSON: NaN is a number there.
Result<json::value> parse_text(std::string_view text) {
    auto parsed = json::parse(text);
    if (parsed || text.find("NaN") == std::string_view::npos) {
        return parsed;
    }
    auto lenient = read_prompt_body(text);
    if (!lenient) {
        return parsed;
    }
    return std::move(*lenient);
}

std::string listed(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) {
        text += (text.empty() ? "'" : ", '") + name + "'";
    }
    return text;
}

Error no_workflow_in(std::string_view kind, const Texts& texts) {
    std::string message = "the " + std::string(kind) + " picture holds no workflow: ";
    if (texts.others.empty()) {
        message +=
            "it has no texts at all; it was not saved by ComfyUI, or something removed its "
            "metadata";
    } else {
        message += "of texts it has " + listed(texts.others) +
                   ", but neither 'prompt' nor 'workflow', which ComfyUI writes";
    }
    return Error(Code::invalid_argument, std::move(message));
}

// The kinds of files that people send most often in the place of one that holds a workflow.
std::string_view known_kind(std::string_view bytes) {
    struct Kind {
        std::string_view name;
        std::string_view begin;
        std::size_t at;
    };
    static constexpr std::array<Kind, 7> kKinds{{
        {"JPEG picture", "\xff\xd8\xff", 0},
        {"GIF picture", "GIF8", 0},
        {"AVIF picture", "ftypavif", 4},
        {"MP4 video", "ftyp", 4},
        {"WebM or Matroska video", "\x1a\x45\xdf\xa3", 0},
        {"ZIP archive", "PK\x03\x04", 0},
        {"PDF document", "%PDF", 0},
    }};
    for (const Kind& kind : kKinds) {
        if (bytes.size() > kind.at && bytes.substr(kind.at).starts_with(kind.begin)) {
            return kind.name;
        }
    }
    return {};
}

Error no_nodes_in(const json::object& from) {
    std::vector<std::string> members;
    for (const auto& member : from) {
        if (members.size() == kNamesShown) {
            members.emplace_back("…");
            break;
        }
        members.push_back(printable(member.key()));
    }
    return Error(
        Code::invalid_argument,
        members.empty() ? std::string("the file holds an empty JSON object and no workflow")
                        : "the file holds JSON with the members " + listed(members) +
                              ", but no workflow: no node with a 'class_type', and no list 'nodes'"
    );
}

Result<json::object> read_json(std::string_view text) {
    if (text.size() > kWorkflowBytesMax) {
        return fail(
            Code::payload_too_large,
            "the workflow has more than " + std::to_string(kWorkflowBytesMax) + " bytes"
        );
    }
    if (text.starts_with("\xef\xbb\xbf")) {
        text.remove_prefix(3);
    }
    auto parsed = parse_text(text);
    if (!parsed) {
        return fail(std::move(parsed.error()));
    }
    if (!parsed->is_object()) {
        return fail(Code::invalid_argument, "the file holds JSON, but not an object of nodes");
    }
    auto workflow = merge_links(inside(parsed->get_object()));
    if (workflow && !is_ui_format(*workflow) && !is_prompt(*workflow)) {
        return fail(no_nodes_in(*workflow));
    }
    return workflow;
}

// "the text 'prompt' of the PNG picture: …"
Result<json::object> read_text(
    std::string_view name, std::string_view kind, const std::string& text
) {
    auto workflow = read_json(text);
    if (!workflow) {
        workflow.error().message = "the text '" + std::string(name) + "' of the " +
                                   std::string(kind) + " picture: " + workflow.error().message;
    }
    return workflow;
}

}  // namespace

Result<json::object> read_workflow_file(std::string_view bytes) {
    const bool is_png = bytes.starts_with(kPngSignature);
    const bool is_webp =
        bytes.size() >= 12 && bytes.starts_with("RIFF") && bytes.substr(8, 4) == "WEBP";
    if (!is_png && !is_webp) {
        if (const std::string_view kind = known_kind(bytes); !kind.empty()) {
            return fail(
                Code::invalid_argument,
                "the file is a " + std::string(kind) +
                    "; a workflow is found in PNG and WebP pictures that ComfyUI saved, and in JSON"
            );
        }
        return read_json(bytes);
    }
    const Texts texts = is_png ? read_png(bytes) : read_webp(bytes);
    const std::string_view kind = is_png ? "PNG" : "WebP";
    if (texts.prompt.empty() && texts.workflow.empty()) {
        return fail(no_workflow_in(kind, texts));
    }
    if (!texts.prompt.empty()) {
        auto prompt = read_text("prompt", kind, texts.prompt);
        if (prompt || texts.workflow.empty()) {
            return prompt;
        }
    }
    return read_text("workflow", kind, texts.workflow);
}

}  // namespace comfyd::workflow
