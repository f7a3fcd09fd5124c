// The results in the ui dictionaries of a finished prompt. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assets/store.hpp"
#include "comfy/client.hpp"
#include "jobs/job.hpp"

namespace comfyd::fleet {

// One result: a file of the worker, or content that is at hand already.
struct UiItem {
    std::string node_id;
    comfy::FileName file;                // for content: the name that it gets
    std::optional<std::string> content;  // set: nothing is to be fetched
};

inline constexpr std::size_t kOutputsMax = 10'000;

// `outputs`: node id -> ui. Every object with a "filename" in any list, and the strings of lists
// called "text"; in the order of the document, at most kOutputsMax.
std::vector<UiItem> list_results(const json::object& outputs);

// As clients see it: outside of the tenant's own folder.
comfy::FileName shown_name(const comfy::FileName& file);

// The type that the worker said, unless that says nothing: then by the name's extension.
std::string content_type_for(std::string_view said, std::string_view filename);
// image, video, audio, text, latent, file.
std::string_view output_type(std::string_view content_type, std::string_view filename);

jobs::Output make_output(const UiItem& item, const assets::Asset& asset);

int count_images(const std::vector<jobs::Output>& outputs);

}  // namespace comfyd::fleet
