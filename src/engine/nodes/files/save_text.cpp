#include <algorithm>
#include <array>
#include <string_view>

#include "engine/files.hpp"
#include "engine/nodes/call.hpp"
#include "engine/nodes/files/files.hpp"
#include "engine/nodes/files/save.hpp"
#include "engine/nodes/text/python_value.hpp"

namespace comfyd::engine::nodes {
namespace {

constexpr std::array<std::string_view, 4> kFormats = {"txt", "csv", "md", "json"};

Result<NodeResult> compute(Call& call) {
    const std::string& text = call.text("text");
    const std::string& format = call.text("format");
    if (std::ranges::find(kFormats, format) == kFormats.end()) {
        return node_error(
            "ValueError", "A text is saved as txt, csv, md or json, not as '" + format + "'"
        );
    }
    std::string content = text;
    if (format == "json") {
        const auto space = call.charge(text.size() * kJsonBytesPerByte);
        if (!space) {
            return fail(space.error());
        }
        // A text that is no JSON is written as it is.
        if (const auto document = json::parse(text)) {
            content = dump_json(*document, 2);
        }
    }
    auto place = make_save_place(call.folders().output, call.text("filename_prefix"), 1, 1);
    if (!place) {
        return fail(std::move(place.error()));
    }
    place->tail = "";
    auto name = save_counted(
        *place,
        place->counter,
        0,
        format,
        [&content](const FileSink& sink) -> Result<> {
            sink(content.data(), content.size());
            return {};
        }
    );
    if (!name) {
        return fail(std::move(name.error()));
    }
    return NodeResult{
        .outputs = {text},
        .ui =
            json::object{
                {"text", json::array{text}},
                {"files", json::array{saved_file(*name, place->subfolder, "output")}}
            }
    };
}

}  // namespace

NodeClass save_text() {
    return {
        .name = "SaveText",
        .description = "Writes a text into the output folder; JSON is indented.",
        .execute = &compute,
    };
}

}  // namespace comfyd::engine::nodes
