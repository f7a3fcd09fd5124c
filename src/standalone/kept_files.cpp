#include "standalone/kept_files.hpp"

#include <utility>

#include "comfy/members.hpp"

namespace comfyd::standalone {
namespace {

constexpr std::size_t kKeptFilesMax = 4'096;

void note_files(
    const json::value& list, const engine::Folders& folders, std::vector<std::string>& files
) {
    const json::array* items = list.if_array();
    for (std::size_t i = 0; items != nullptr && i < items->size(); ++i) {
        const json::object* item = (*items)[i].if_object();
        const std::string name = item == nullptr ? "" : comfy::text_of(*item, "filename");
        const std::string type = item == nullptr ? "" : comfy::text_of(*item, "type");
        if (!name.empty() && (type == "output" || type == "temp")) {
            const auto& folder = type == "temp" ? folders.temp : folders.output;
            files.push_back(folder / comfy::text_of(*item, "subfolder") / name);
        }
    }
}

}  // namespace

void KeptFiles::add(std::string path) {
    const auto [entry, is_new] = known_.insert(std::move(path));
    if (is_new) {
        by_age_.push_back(*entry);
    }
}

std::vector<std::string> KeptFiles::take_excess() {
    std::vector<std::string> excess;
    while (by_age_.size() > kKeptFilesMax) {
        known_.erase(by_age_.front());
        excess.push_back(std::move(by_age_.front()));
        by_age_.pop_front();
    }
    return excess;
}

std::vector<std::string> files_in(const json::object& outputs, const engine::Folders& folders) {
    std::vector<std::string> files;
    for (const auto& [node, ui] : outputs) {
        if (const json::object* lists = ui.if_object()) {
            for (const auto& [kind, list] : *lists) {
                note_files(list, folders, files);
            }
        }
    }
    return files;
}

}  // namespace comfyd::standalone
