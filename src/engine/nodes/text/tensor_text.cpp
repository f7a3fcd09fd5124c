#include "engine/nodes/text/tensor_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace comfyd::engine::nodes {
namespace {

// PyTorch's own settings, but for the edge, which PreviewAny of ComfyUI sets for its whole process.
constexpr std::size_t kThreshold = 1000;
constexpr std::size_t kEdge = 6;
constexpr std::size_t kLineWidth = 80;

// The indexes of a dimension that are shown; the gap comes after the first kEdge of them.
std::vector<std::size_t> shown_indexes(std::size_t size, bool summarize) {
    std::vector<std::size_t> indexes;
    for (std::size_t i = 0; i < size; ++i) {
        if (summarize && size > 2 * kEdge && i == kEdge) {
            i = size - kEdge;
        }
        indexes.push_back(i);
    }
    return indexes;
}

// How all numbers of one tensor are written, which the shown ones decide together.
class NumberStyle {
public:
    void look_at(float value) {
        if (!std::isfinite(value) || value == 0.0F) {
            return;
        }
        const double magnitude = std::abs(static_cast<double>(value));
        least_ = std::min(least_, magnitude);
        most_ = std::max(most_, magnitude);
        whole_ = whole_ && value == std::ceil(value);
        seen_.push_back(value);
    }

    void decide() {
        if (seen_.empty()) {
            return;
        }
        scientific_ = most_ / least_ > 1000.0 || most_ > 1e8 || (!whole_ && least_ < 1e-4);
        for (const float value : seen_) {
            width_ = std::max(width_, text(value).size());
        }
    }

    std::string written(float value) const {
        const std::string plain = text(value);
        return std::string(plain.size() < width_ ? width_ - plain.size() : 0, ' ') + plain;
    }
    std::size_t width() const { return width_; }

private:
    std::string text(float value) const {
        if (!std::isfinite(value)) {
            return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
        }
        char buffer[64];
        const auto number = static_cast<double>(value);
        if (scientific_) {
            std::snprintf(buffer, sizeof buffer, "%.4e", number);
        } else if (whole_) {
            std::snprintf(buffer, sizeof buffer, "%.0f.", number);
        } else {
            std::snprintf(buffer, sizeof buffer, "%.4f", number);
        }
        return buffer;
    }

    std::vector<float> seen_;
    double least_ = std::numeric_limits<double>::infinity();
    double most_ = 0.0;
    bool whole_ = true;
    bool scientific_ = false;
    std::size_t width_ = 1;
};

class Writer {
public:
    Writer(const std::vector<std::size_t>& dims, bool summarize)
        : dims_(dims), summarize_(summarize) {}

    void look(const float* data, std::size_t dimension) {
        if (dimension == dims_.size()) {
            style_.look_at(*data);
            return;
        }
        for (const std::size_t i : shown_indexes(dims_[dimension], summarize_)) {
            look(data + i * stride(dimension), dimension + 1);
        }
    }

    void decide() { style_.decide(); }

    std::string write(const float* data, std::size_t dimension, std::size_t indent) const {
        return dimension + 1 == dims_.size() ? write_row(data, dims_.back(), indent)
                                             : write_slices(data, dimension, indent);
    }

private:
    std::size_t stride(std::size_t dimension) const {
        std::size_t size = 1;
        for (std::size_t i = dimension + 1; i < dims_.size(); ++i) {
            size *= dims_[i];
        }
        return size;
    }

    bool has_gap(std::size_t size) const { return summarize_ && size > 2 * kEdge; }

    static std::string join(const std::vector<std::string>& parts, const std::string& with) {
        std::string out;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            out += (i > 0 ? with : "") + parts[i];
        }
        return out;
    }

    std::string write_row(const float* data, std::size_t size, std::size_t indent) const {
        std::vector<std::string> items;
        for (const std::size_t i : shown_indexes(size, summarize_)) {
            items.push_back(style_.written(data[i]));
        }
        if (has_gap(size)) {
            items.insert(items.begin() + kEdge, " ...");
        }
        const std::size_t room = kLineWidth > indent ? kLineWidth - indent : 0;
        const std::size_t per_line = std::max<std::size_t>(1, room / (style_.width() + 2));
        std::vector<std::string> lines;
        for (std::size_t at = 0; at < items.size(); at += per_line) {
            const auto begin = items.begin() + static_cast<std::ptrdiff_t>(at);
            const auto end =
                items.begin() + static_cast<std::ptrdiff_t>(std::min(items.size(), at + per_line));
            lines.push_back(join({begin, end}, ", "));
        }
        return "[" + join(lines, ",\n" + std::string(indent + 1, ' ')) + "]";
    }

    std::string write_slices(const float* data, std::size_t dimension, std::size_t indent) const {
        std::vector<std::string> slices;
        for (const std::size_t i : shown_indexes(dims_[dimension], summarize_)) {
            slices.push_back(write(data + i * stride(dimension), dimension + 1, indent + 1));
        }
        if (has_gap(dims_[dimension])) {
            slices.insert(slices.begin() + kEdge, "...");
        }
        const std::size_t lines = dims_.size() - dimension - 1;
        return "[" + join(slices, "," + std::string(lines, '\n') + std::string(indent + 1, ' ')) +
               "]";
    }

    const std::vector<std::size_t>& dims_;
    bool summarize_;
    NumberStyle style_;
};

}  // namespace

std::string tensor_text(const std::vector<std::size_t>& dims, const float* data) {
    std::size_t count = 1;
    for (const std::size_t size : dims) {
        count *= size;
    }
    if (count == 0) {
        std::string sizes;
        for (const std::size_t size : dims) {
            sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
        }
        return dims.size() == 1 ? "tensor([])" : "tensor([], size=(" + sizes + "))";
    }
    Writer writer(dims, count > kThreshold);
    writer.look(data, 0);
    writer.decide();
    return "tensor(" + writer.write(data, 0, std::string_view("tensor(").size()) + ")";
}

}  // namespace comfyd::engine::nodes
