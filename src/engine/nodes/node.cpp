#include "engine/nodes/node.hpp"

#include <utility>

namespace comfyd::engine {

tl::unexpected<Error> node_error(std::string_view exception_type, std::string message) {
    json::object details;
    details["exception_type"] = exception_type;
    return fail(Code::node_execution_error, std::move(message), std::move(details));
}

NodeFailure::NodeFailure(std::string_view exception_type, std::string message)
    : error_(node_error(exception_type, std::move(message)).value()) {}

}  // namespace comfyd::engine
