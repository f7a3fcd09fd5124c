// Bounding boxes as they come from links and editors.
#pragma once

#include <cstdint>

#include "base/error.hpp"
#include "base/json.hpp"
#include "engine/values/value.hpp"

namespace comfyd::engine::nodes {

// Boxes {x, y, width, height, metadata?} from boxes, lists of them, elements whose "bbox" is in
// thousandths [ymin, xmin, ymax, xmax], or a JSON text of any of these.
Result<json::array> boxes_from(const Value& value, std::int64_t width, std::int64_t height);
// The same with ComfyUI's extra demand for elements: they need a canvas.
Result<json::array> boxes_on_canvas(const Value& value, std::int64_t width, std::int64_t height);

// The number under `key`, or 0.
double number_of(const json::object& box, std::string_view key);
// Python's int() of a number; `otherwise` for anything else.
std::int64_t integer_of(const json::value* value, std::int64_t otherwise);
// Python's round(), to even.
std::int64_t python_round(double value);

}  // namespace comfyd::engine::nodes
