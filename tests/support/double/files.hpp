// The input, output and temp folders of a double, in memory. Owned by one double, on its executor.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace comfyd::support {

struct FileRef {
    std::string name;
    std::string subfolder;
    std::string type;  // "input", "output", "temp"
    friend auto operator<=>(const FileRef&, const FileRef&) = default;
};

class Files {
public:
    explicit Files(std::size_t outputs_max) : outputs_max_(outputs_max) {}

    // <prefix>_00001_<extension> with the next free number; a prefix may name a subfolder.
    FileRef add_numbered(
        std::string_view prefix, std::string_view type, std::string_view extension, std::string data
    );
    // By the rules of /upload/image: the same content keeps its name, other content gets "name
    // (1).ext".
    FileRef upload(FileRef wanted, std::string data, bool overwrite);
    const std::string* find(const FileRef& file) const;
    // "sub/name.png", "name.png [output]": as LoadImage takes them.
    const std::string* find_annotated(std::string_view text) const;
    std::vector<std::string> input_names() const;
    void clear_temp();

private:
    std::map<FileRef, std::string> files_;
    std::map<std::string, unsigned> counters_;  // by type and prefix
    std::deque<FileRef> made_;                  // numbered files, oldest first
    std::size_t outputs_max_;
};

}  // namespace comfyd::support
