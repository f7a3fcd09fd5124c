#include "base/json.hpp"

#include <cmath>
#include <memory>
#include <utility>

#include <boost/json/src.hpp>

namespace comfyd::json {
namespace {

std::string type_name(const value& of) {
    switch (of.kind()) {
        case boost::json::kind::null:
            return "null";
        case boost::json::kind::bool_:
            return "a boolean";
        case boost::json::kind::int64:
        case boost::json::kind::uint64:
            return "an integer";
        case boost::json::kind::double_:
            return "a number";
        case boost::json::kind::string:
            return "a string";
        case boost::json::kind::array:
            return "a list";
        case boost::json::kind::object:
            return "an object";
    }
    return "something else";
}

tl::unexpected<Error> wrong_type(
    std::string_view key, std::string_view expected, const value& got
) {
    return fail(
        Code::invalid_argument,
        "'" + std::string(key) + "' must be " + std::string(expected) + ", but is " +
            type_name(got),
        {{"field", boost::json::string_view(key.data(), key.size())}}
    );
}

}  // namespace

Result<object> parse_object(std::string_view text, storage_ptr storage) {
    auto parsed = parse(text, std::move(storage));
    if (!parsed) {
        return fail(std::move(parsed.error()));
    }
    if (!parsed->is_object()) {
        return fail(Code::invalid_argument, "expected a JSON object, got " + type_name(*parsed));
    }
    return std::move(parsed->get_object());
}

void put(object& into, object from) noexcept {
    std::destroy_at(&into);
    std::construct_at(&into, std::move(from));
}

const value* find(const object& in, std::string_view key) {
    const auto found = in.find(boost::json::string_view(key.data(), key.size()));
    return found == in.end() || found->value().is_null() ? nullptr : &found->value();
}

Result<std::optional<std::string>> find_string(const object& in, std::string_view key) {
    const value* found = find(in, key);
    if (found == nullptr) {
        return std::nullopt;
    }
    if (!found->is_string()) {
        return wrong_type(key, "a string", *found);
    }
    return std::string(found->get_string());
}

Result<std::optional<std::int64_t>> find_int(const object& in, std::string_view key) {
    const value* found = find(in, key);
    if (found == nullptr) {
        return std::nullopt;
    }
    if (found->is_int64()) {
        return found->get_int64();
    }
    if (found->is_uint64() && std::in_range<std::int64_t>(found->get_uint64())) {
        return static_cast<std::int64_t>(found->get_uint64());
    }
    if (found->is_double()) {
        const double number = found->get_double();
        if (std::abs(number) < 9e15 && std::trunc(number) == number) {
            return static_cast<std::int64_t>(number);
        }
    }
    return wrong_type(key, "an integer", *found);
}

Result<std::optional<double>> find_number(const object& in, std::string_view key) {
    const value* found = find(in, key);
    if (found == nullptr) {
        return std::nullopt;
    }
    if (!found->is_number()) {
        return wrong_type(key, "a number", *found);
    }
    return found->to_number<double>();
}

Result<std::optional<bool>> find_bool(const object& in, std::string_view key) {
    const value* found = find(in, key);
    if (found == nullptr) {
        return std::nullopt;
    }
    if (!found->is_bool()) {
        return wrong_type(key, "true or false", *found);
    }
    return found->get_bool();
}

Result<const object*> find_object(const object& in, std::string_view key) {
    const value* found = find(in, key);
    if (found == nullptr) {
        return nullptr;
    }
    if (!found->is_object()) {
        return wrong_type(key, "an object", *found);
    }
    return &found->get_object();
}

Result<const array*> find_array(const object& in, std::string_view key) {
    const value* found = find(in, key);
    if (found == nullptr) {
        return nullptr;
    }
    if (!found->is_array()) {
        return wrong_type(key, "a list", *found);
    }
    return &found->get_array();
}

}  // namespace comfyd::json
