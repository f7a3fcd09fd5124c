#include "engine/nodes/text/python_value.hpp"

#include <cmath>
#include <utility>

#include "base/json_escape.hpp"
#include "base/text.hpp"
#include "workflow/graph/python_text.hpp"

namespace comfyd::engine::nodes {
namespace {

void append_json_string(std::string& out, std::string_view text) {
    out += '"';
    for (const char c : text) {
        json::append_escaped(out, static_cast<unsigned char>(c));
    }
    out += '"';
}

class JsonWriter {
public:
    JsonWriter(std::string& out, int indent) : out_(out), indent_(indent) {}

    void write(const json::value& value, int depth) {
        if (value.is_string()) {
            append_json_string(out_, view(value.get_string()));
        } else if (value.is_array()) {
            write_array(value.get_array(), depth);
        } else if (value.is_object()) {
            write_object(value.get_object(), depth);
        } else if (value.is_null()) {
            out_ += "null";
        } else if (value.is_bool()) {
            out_ += value.get_bool() ? "true" : "false";
        } else if (value.is_double() && !std::isfinite(value.get_double())) {
            const double number = value.get_double();
            out_ += std::isnan(number) ? "NaN" : number < 0 ? "-Infinity" : "Infinity";
        } else {
            out_ += workflow::python_repr(value);
        }
    }

private:
    void write_array(const json::array& array, int depth) {
        if (array.empty()) {
            out_ += "[]";
            return;
        }
        out_ += '[';
        bool first = true;
        for (const json::value& item : array) {
            separate(first, depth + 1);
            write(item, depth + 1);
        }
        close(depth, ']');
    }

    void write_object(const json::object& object, int depth) {
        if (object.empty()) {
            out_ += "{}";
            return;
        }
        out_ += '{';
        bool first = true;
        for (const auto& [key, item] : object) {
            separate(first, depth + 1);
            append_json_string(out_, std::string_view(key.data(), key.size()));
            out_ += ": ";
            write(item, depth + 1);
        }
        close(depth, '}');
    }

    void separate(bool& first, int depth) {
        if (!first) {
            out_ += indent_ > 0 ? "," : ", ";
        }
        first = false;
        new_line(depth);
    }

    void close(int depth, char bracket) {
        new_line(depth);
        out_ += bracket;
    }

    void new_line(int depth) {
        if (indent_ > 0) {
            out_ += '\n';
            out_.append(static_cast<std::size_t>(depth * indent_), ' ');
        }
    }

    std::string& out_;
    int indent_;
};

}  // namespace

tl::unexpected<Error> text_too_long() {
    return node_error(
        "MemoryError",
        "The text would be longer than " + std::to_string(kTextBytesMax / (1024 * 1024)) + " MiB."
    );
}

Result<Charge> room_for_text(const Call& call, std::uint64_t bytes) {
    if (bytes > kTextBytesMax) {
        return text_too_long();
    }
    return call.charge(bytes);
}

std::optional<json::value> to_json(const Value& value) {
    struct Visitor {
        std::optional<json::value> operator()(const Image&) const { return std::nullopt; }
        std::optional<json::value> operator()(const Mask&) const { return std::nullopt; }
        std::optional<json::value> operator()(const ImageView&) const { return std::nullopt; }
        std::optional<json::value> operator()(const MaskView&) const { return std::nullopt; }
        std::optional<json::value> operator()(const Blocker&) const { return std::nullopt; }
        std::optional<json::value> operator()(std::int64_t number) const {
            return json::value(number);
        }
        std::optional<json::value> operator()(std::uint64_t number) const {
            return json::value(number);
        }
        std::optional<json::value> operator()(double number) const { return json::value(number); }
        std::optional<json::value> operator()(bool flag) const { return json::value(flag); }
        std::optional<json::value> operator()(const std::string& text) const {
            return json::value(text);
        }
        std::optional<json::value> operator()(None) const { return json::value(nullptr); }
        std::optional<json::value> operator()(const Data& data) const { return data.content(); }
        std::optional<json::value> operator()(const std::shared_ptr<const Object>&) const {
            return std::nullopt;
        }
        std::optional<json::value> operator()(const std::shared_ptr<const List>& list) const {
            json::array items;
            for (const Value& item : list->items) {
                auto converted = to_json(item);
                if (!converted) {
                    return std::nullopt;
                }
                items.push_back(std::move(*converted));
            }
            return json::value(std::move(items));
        }
    };
    return std::visit(Visitor{}, value);
}

Value from_json(const json::value& from) {
    switch (from.kind()) {
        case boost::json::kind::null:
            return None{};
        case boost::json::kind::bool_:
            return from.get_bool();
        case boost::json::kind::int64:
            return from.get_int64();
        case boost::json::kind::uint64:
            return from.get_uint64();
        case boost::json::kind::double_:
            return from.get_double();
        case boost::json::kind::string:
            return std::string(view(from.get_string()));
        default:
            return Data(from);
    }
}

std::string python_str(const Value& value) {
    if (const auto* object = std::get_if<std::shared_ptr<const Object>>(&value)) {
        return (*object)->text();
    }
    const auto converted = to_json(value);
    return converted ? workflow::python_str(*converted) : "<" + std::string(kind_of(value)) + ">";
}

std::string python_repr(const Value& value) {
    const auto converted = to_json(value);
    return converted ? workflow::python_repr(*converted) : "<" + std::string(kind_of(value)) + ">";
}

std::string_view python_type(const Value& value) {
    if (std::holds_alternative<Image>(value) || std::holds_alternative<Mask>(value)) {
        return "Tensor";
    }
    if (std::holds_alternative<std::shared_ptr<const List>>(value)) {
        return "list";
    }
    const auto converted = to_json(value);
    return converted ? workflow::python_type(*converted) : "dict";
}

std::optional<bool> python_bool(const Value& value) {
    const auto of_tensor = [](const ImageShape& shape, const float* data) -> std::optional<bool> {
        if (shape.rows() * shape.row_floats() != 1) {
            return std::nullopt;
        }
        return data[0] != 0.0F;
    };
    if (const auto* image = std::get_if<Image>(&value)) {
        return of_tensor(image->shape(), image->data());
    }
    if (const auto* mask = std::get_if<Mask>(&value)) {
        return of_tensor(mask->shape(), mask->data());
    }
    if (const auto* list = std::get_if<std::shared_ptr<const List>>(&value)) {
        return !(*list)->items.empty();
    }
    const auto converted = to_json(value);
    return converted ? workflow::python_bool(*converted) : true;
}

std::string dump_json(const json::value& value, int indent) {
    std::string out;
    JsonWriter(out, indent).write(value, 0);
    return out;
}

}  // namespace comfyd::engine::nodes
