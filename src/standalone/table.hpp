// Which handler a request goes to: ComfyUI's routes, most of them with and without the prefix /api.
// Filled before serving.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "base/task.hpp"
#include "net/server.hpp"

namespace comfyd::standalone {

struct Core;

// A request on its way through a route.
struct Call {
    net::Exchange& exchange;
    const net::Request& request;
    std::vector<std::string> parameters{};  // of the path, decoded
    std::vector<std::pair<std::string, std::string>> query{};

    bool has_query(std::string_view name) const;
    std::string_view query_value(std::string_view name) const;  // empty when absent
};

using Function = Task<> (*)(Call&, Core&);
enum class Where { both, plain, api };

class Table {
public:
    // "/history/{id}": a part in braces takes one segment, in which an encoded slash is no
    // separator. Literal ones are to be added before those that would take them.
    void add(net::Method method, std::string_view pattern, Function function, Where where);

    struct Match {
        Function function = nullptr;
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

// The client may be gone: then it needs no answer.
Task<> answer(Call& call, net::Response response);

}  // namespace comfyd::standalone
