// The members of a map in the configuration file, taken one by one by whoever knows them: what
// nobody took is not known, and the first complaint is the one that is told. For a file that reads.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace comfyd::app {

class Members {
public:
    // `whose`: how complaints begin.
    Members(const YAML::Node& map, std::string whose) : map_(map), whose_(std::move(whose)) {}

    std::string text(const std::string& name, std::string otherwise = "");
    std::string needed(const std::string& name);
    // A list of texts, or one.
    std::vector<std::string> texts(const std::string& name);
    // As text, or as a file that holds it under the same name with _file.
    std::string secret(const std::string& name);
    std::string needed_secret(const std::string& name);
    std::int64_t number(
        const std::string& name, std::int64_t otherwise, std::int64_t min, std::int64_t max
    );
    YAML::Node node(const std::string& name) { return take(name); }
    // The same where it may hold a secret.
    YAML::Node hidden(const std::string& name);

    void complain(const std::string& what);
    // After all were taken. Code::config_invalid.
    Result<> done();

    // What was taken, secrets masked.
    std::vector<std::pair<std::string, std::string>> shown{};

private:
    YAML::Node take(const std::string& name);
    std::string scalar(const std::string& name, const YAML::Node& node);

    const YAML::Node map_;
    const std::string whose_;
    std::set<std::string> taken_;
    std::string complaint_;
};

}  // namespace comfyd::app
