// Brings a model's file to a server, in parts, going on where an earlier try ended. What goes wrong
// is told to the user here.
#pragma once

#include <string>

namespace comfyd::app {

struct UploadedModel {
    std::string sha256{};  // empty: it was not brought there
    int exit_code = 0;
};

// `url` and `key` as in Question.
UploadedModel upload_model(const std::string& url, const std::string& key, const std::string& file);

}  // namespace comfyd::app
