#include "support/double/files.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace comfyd::support {
namespace {

std::pair<std::string, std::string> split_path(std::string_view path) {
    const auto slash = path.rfind('/');
    if (slash == std::string_view::npos) {
        return {"", std::string(path)};
    }
    return {std::string(path.substr(0, slash)), std::string(path.substr(slash + 1))};
}

}  // namespace

FileRef Files::add_numbered(
    std::string_view prefix, std::string_view type, std::string_view extension, std::string data
) {
    const unsigned number = ++counters_[std::string(type) + ":" + std::string(prefix)];
    std::array<char, 16> digits{};
    std::snprintf(digits.data(), digits.size(), "_%05u_", number);
    auto [subfolder, base] = split_path(prefix);
    FileRef file{
        base + digits.data() + std::string(extension), std::move(subfolder), std::string(type)
    };
    files_[file] = std::move(data);
    made_.push_back(file);
    if (made_.size() > outputs_max_) {
        files_.erase(made_.front());
        made_.pop_front();
    }
    return file;
}

FileRef Files::upload(FileRef wanted, std::string data, bool overwrite) {
    const auto dot = wanted.name.rfind('.');
    const std::string stem = wanted.name.substr(0, dot);
    const std::string extension = dot == std::string::npos ? "" : wanted.name.substr(dot);
    for (int i = 1; !overwrite; ++i) {
        const auto found = files_.find(wanted);
        if (found == files_.end() || found->second == data) {
            break;
        }
        wanted.name = stem + " (" + std::to_string(i) + ")" + extension;
    }
    files_[wanted] = std::move(data);
    return wanted;
}

const std::string* Files::find(const FileRef& file) const {
    const auto found = files_.find(file);
    return found == files_.end() ? nullptr : &found->second;
}

const std::string* Files::find_annotated(std::string_view text) const {
    std::string type = "input";
    for (const char* name : {"input", "output", "temp"}) {
        const std::string suffix = "[" + std::string(name) + "]";
        if (text.ends_with(suffix)) {
            type = name;
            // ComfyUI does not look at what stands between the name and the annotation.
            text.remove_suffix(std::min(text.size(), suffix.size() + 1));
            break;
        }
    }
    auto [subfolder, name] = split_path(text);
    return find({std::move(name), std::move(subfolder), std::move(type)});
}

std::vector<std::string> Files::input_names() const {
    std::vector<std::string> names;
    for (const auto& [file, data] : files_) {
        if (file.type == "input" && file.subfolder.empty()) {
            names.push_back(file.name);
        }
    }
    return names;
}

void Files::clear_temp() {
    std::erase_if(files_, [](const auto& entry) { return entry.first.type == "temp"; });
}

}  // namespace comfyd::support
