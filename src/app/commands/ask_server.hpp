// One question of a command to a running server. What goes wrong is told to the user here.
#pragma once

#include <optional>
#include <string>

#include "base/json.hpp"

namespace comfyd::app {

struct Question {
    std::string url;  // empty: COMFYD_URL, or this machine
    std::string key;  // empty: COMFYD_KEY
    std::string path;
    std::string method = "GET";
    std::string body{};  // JSON, but for what the next two say
    std::string type = "application/json";
    std::string range{};    // Content-Range; empty: it is all
    bool may_miss = false;  // that there is nothing is an answer, of which nothing is told
};

struct Asked {
    std::optional<json::object> answer;
    std::string text;  // as it came
    int exit_code = 0;
};

Asked ask_server(Question question);

}  // namespace comfyd::app
