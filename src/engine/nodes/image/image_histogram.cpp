#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/nodes/call.hpp"
#include "engine/nodes/image/image.hpp"
#include "engine/nodes/kernel.hpp"
#include "engine/pixels.hpp"
#include "workflow/graph/python_text.hpp"

namespace comfyd::engine::nodes {
namespace {

using Histogram = std::array<std::int64_t, 256>;

Value as_value(const Histogram& histogram) {
    return Data(json::array(histogram.begin(), histogram.end()));
}

void luminance(const float* rgb, std::size_t pixels, std::size_t channels, float* out) {
    COMFYD_NO_CONTRACTION
    for (std::size_t i = 0; i < pixels; ++i, rgb += channels) {
        out[i] = 0.2126F * rgb[0] + 0.7152F * rgb[1] + 0.0722F * rgb[2];
    }
}

// Only the first picture of a batch counts.
Result<NodeResult> count(Call& call) {
    const Image& image = call.image("image");
    const ImageShape& shape = image.shape();
    if (shape.channels < 3) {
        return node_error(
            "IndexError",
            "index " + std::to_string(shape.channels) + " is out of bounds for axis 2 with size " +
                std::to_string(shape.channels)
        );
    }
    std::array<Histogram, 3> colors{};
    Histogram light{};
    std::vector<std::uint8_t> bytes(shape.row_floats());
    std::vector<float> gray(shape.width);
    for (std::size_t y = 0; y < shape.height; ++y) {
        if (auto going = call.check_stopped(); !going) {
            return fail(std::move(going.error()));
        }
        to_bytes(image.row(y), bytes.size(), bytes.data());
        for (std::size_t x = 0; x < shape.width; ++x) {
            for (std::size_t c = 0; c < 3; ++c) {
                ++colors[c][bytes[x * shape.channels + c]];
            }
        }
        luminance(image.row(y), shape.width, shape.channels, gray.data());
        to_bytes(gray.data(), gray.size(), bytes.data());
        for (std::size_t x = 0; x < shape.width; ++x) {
            ++light[bytes[x]];
        }
    }
    Histogram all{};
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i] = (colors[0][i] + colors[1][i] + colors[2][i]) / 3;
    }
    return NodeResult{
        .outputs =
            {as_value(all),
             as_value(light),
             as_value(colors[0]),
             as_value(colors[1]),
             as_value(colors[2])}
    };
}

class Curve : public Object {
public:
    Curve(bool linear, std::vector<std::pair<double, double>> points)
        : linear_(linear), points_(std::move(points)) {}

    std::string_view type() const override { return "CURVE"; }
    std::uint64_t bytes() const override { return points_.size() * sizeof points_[0]; }
    std::string text() const override {
        std::string out = linear_ ? "LinearCurve(points=[" : "MonotoneCubicCurve(points=[";
        const char* separator = "";
        for (const auto& [x, y] : points_) {
            out += separator;
            out += "(" + workflow::python_repr(x) + ", " + workflow::python_repr(y) + ")";
            separator = ", ";
        }
        return out + "])";
    }

private:
    bool linear_;
    std::vector<std::pair<double, double>> points_;
};

Result<Value> curve_of(const json::value& raw) {
    const auto* object = raw.if_object();
    const auto* points = object != nullptr ? object->if_contains("points") : &raw;
    if (points == nullptr) {
        return node_error("KeyError", "'points'");
    }
    if (!points->is_array()) {
        return node_error("TypeError", "A curve's points are a list of [x, y]");
    }
    struct Point {
        double x;
        std::size_t number;
        double y;
    };
    std::vector<Point> sorted;  // by x, equal ones in their order
    for (const json::value& point : points->as_array()) {
        const auto* pair = point.if_array();
        if (pair == nullptr || pair->size() != 2 || !(*pair)[0].is_number() ||
            !(*pair)[1].is_number()) {
            return node_error("ValueError", "Each point of a curve is a pair of numbers");
        }
        const auto x = (*pair)[0].to_number<double>();
        if (std::isnan(x)) {
            return node_error("ValueError", "Each point of a curve is a pair of numbers");
        }
        sorted.push_back({x, sorted.size(), (*pair)[1].to_number<double>()});
    }
    std::ranges::sort(sorted, {}, [](const Point& point) {
        return std::pair(point.x, point.number);
    });
    std::vector<std::pair<double, double>> pairs;
    for (const Point& point : sorted) {
        pairs.emplace_back(point.x, point.y);
    }
    const auto* kind = object != nullptr ? object->if_contains("interpolation") : nullptr;
    const bool linear = kind != nullptr && kind->is_string() && kind->as_string() == "linear";
    return std::shared_ptr<const Object>(std::make_shared<Curve>(linear, std::move(pairs)));
}

Result<NodeResult> edit(Call& call) {
    const Value& given = call.value("curve");
    NodeResult result;
    if (std::holds_alternative<Data>(given)) {
        auto curve = curve_of(call.data("curve"));
        if (!curve) {
            return fail(std::move(curve.error()));
        }
        result.outputs.push_back(std::move(*curve));
    } else {
        result.outputs.push_back(given);
    }
    if (call.has("histogram")) {
        result.ui = json::object{{"histogram", call.data("histogram")}};
    }
    return result;
}

}  // namespace

NodeClass image_histogram() {
    return {
        .name = "ImageHistogram",
        .description = "How often each of 256 levels occurs in the first picture.",
        .execute = &count,
    };
}

NodeClass curve_editor() {
    return {
        .name = "CurveEditor",
        .description = "A curve through points that are drawn over a histogram.",
        .execute = &edit,
    };
}

}  // namespace comfyd::engine::nodes
