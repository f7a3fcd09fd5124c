// A service's contract, read from a file of tests/data/providers: its routes, and which requests
// and answers are of the right shape. Pure.
//
// Shapes are a small part of JSON Schema: type, required, properties, items, enum, minimum,
// minLength, maxLength, pattern, maxItems, maxProperties. Members that are not named are refused,
// unless a shape is "open"; "values" is the shape of all members of an object that is a map; {"$":
// "pod"} stands for a shape of the file's table.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"

namespace comfyd::support {

struct ContractRoute {
    std::string name;
    std::string method;
    std::string path;  // "/pods/{id}"
    int status = 200;
    json::object about;
};

class Contract {
public:
    // Throws std::runtime_error when the file cannot be read.
    explicit Contract(const std::string& file);

    struct Match {
        const ContractRoute* route = nullptr;
        std::string id{};  // that stands in the path
    };
    // Nullopt: there is no such path, or it does not take this method.
    std::optional<Match> find(std::string_view method, std::string_view path) const;

    // What is wrong, each in a few words; empty: nothing.
    std::vector<std::string> check_query(const ContractRoute& route, std::string_view query) const;
    std::vector<std::string> check_body(const ContractRoute& route, std::string_view body) const;
    std::vector<std::string> check_answer(const ContractRoute& route, std::string_view body) const;

private:
    void check(
        const json::value& value,
        const json::object& shape,
        const std::string& where,
        std::vector<std::string>& wrong
    ) const;
    const json::object& shape_of(const json::value& named) const;

    json::object file_;
    std::vector<ContractRoute> routes_;
};

}  // namespace comfyd::support
