// Which handler a request goes to. Filled before serving.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "comfy/server/call.hpp"

namespace comfyd::standalone {

using comfy::server::answer;
using comfy::server::Call;
using Function = std::function<Task<>(Call&)>;

class Table {
public:
    // Patterns as in comfy/server/routes.hpp.
    void add(net::Method method, std::string_view pattern, Function function);

    struct Match {
        const Function* function = nullptr;
        std::vector<std::string> parameters{};
        std::string allow{};  // methods of this path, where there is no function for this one
    };
    Match match(net::Method method, std::string_view path) const;

private:
    struct Route {
        net::Method method;
        std::vector<std::string> segments;
        Function function;
    };
    std::vector<Route> routes_;
};

// A page of another site speaks through the browser of somebody who may use this server.
bool is_foreign(const net::Request& request);

}  // namespace comfyd::standalone
