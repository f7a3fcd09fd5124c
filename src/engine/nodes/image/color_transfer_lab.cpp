#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "engine/nodes/image/color_transfer.hpp"
#include "engine/nodes/kernel.hpp"
#include "engine/pixels/lab.hpp"
#include "engine/pixels/torch_math.hpp"

namespace comfyd::engine::nodes {
namespace {

constexpr float kLeast = 1e-6F;
using Vector = std::array<double, 3>;
using Matrix = std::array<Vector, 3>;

// The CIELAB planes of one picture.
struct Lab {
    std::size_t count = 0;
    Scratch memory;

    float* plane(std::size_t c) { return reinterpret_cast<float*>(memory.data()) + c * count; }
};

Result<Lab> make_lab(const Call& call, const ImageShape& shape) {
    const std::size_t count = shape.height * shape.width;
    auto memory = call.new_scratch(3 * count * sizeof(float));
    if (!memory) {
        return fail(std::move(memory.error()));
    }
    return Lab{count, std::move(*memory)};
}

Result<> fill_lab(const Call& call, const Image& image, std::size_t picture, Lab& lab) {
    const ImageShape& shape = image.shape();
    const float* pixels = image.picture(picture);
    return call
        .for_rows(shape.height, shape.row_floats() * 16, [&](std::size_t first, std::size_t last) {
            const std::size_t at = first * shape.width;
            const std::size_t count = (last - first) * shape.width;
            std::vector<float> rgb(3 * count);
            std::vector<float> out(3 * count);
            to_planes(pixels + at * shape.channels, count, shape.channels, count, rgb.data());
            rgb_to_lab(rgb.data(), count, count, kornia_lab(), out.data());
            for (std::size_t c = 0; c < 3; ++c) {
                std::copy_n(out.data() + c * count, count, lab.plane(c) + at);
            }
        });
}

// Mean, and standard deviations on the diagonal or covariances.
struct Stats {
    std::array<float, 3> mean{};
    Matrix spread{};
};

std::array<float, 3> means(Lab& lab) {
    std::array<float, 3> out{};
    for (std::size_t c = 0; c < 3; ++c) {
        out[c] = torch_sum(lab.plane(c), lab.count) / static_cast<float>(lab.count);
    }
    return out;
}

// Mean products of the distances from `mean`.
Matrix products(Lab& lab, const std::array<float, 3>& mean, bool covariance) {
    Matrix out{};
    for (std::size_t a = 0; a < 3; ++a) {
        for (std::size_t b = covariance ? 0 : a; b <= a; ++b) {
            double sum = 0;
            const float* x = lab.plane(a);
            const float* y = lab.plane(b);
            for (std::size_t i = 0; i < lab.count; ++i) {
                sum += static_cast<double>(x[i] - mean[a]) * static_cast<double>(y[i] - mean[b]);
            }
            out[a][b] = out[b][a] = sum / static_cast<double>(lab.count);
        }
    }
    return out;
}

void to_deviations(Matrix& spread) {
    for (std::size_t c = 0; c < 3; ++c) {
        spread[c][c] = std::max(static_cast<float>(std::sqrt(spread[c][c])), kLeast);
    }
}

// Of `count` pictures from `first` on, as if they were one.
Result<Stats> pooled(
    const Call& call, const Image& image, std::size_t first, std::size_t count, bool covariance
) {
    auto lab = make_lab(call, image.shape());
    if (!lab) {
        return fail(std::move(lab.error()));
    }
    Stats stats;
    for (int pass = 0; pass < 2; ++pass) {
        for (std::size_t i = first; i < first + count; ++i) {
            // A single picture is still there from the first pass.
            if (pass == 0 || count > 1) {
                if (auto done = fill_lab(call, image, i, *lab); !done) {
                    return fail(std::move(done.error()));
                }
            }
            const auto mean = pass == 0 ? means(*lab) : std::array<float, 3>{};
            const Matrix part = pass == 1 ? products(*lab, stats.mean, covariance) : Matrix{};
            for (std::size_t a = 0; a < 3; ++a) {
                stats.mean[a] += mean[a];
                for (std::size_t b = 0; b < 3; ++b) {
                    stats.spread[a][b] += part[a][b] / static_cast<double>(count);
                }
            }
        }
        for (float& value : stats.mean) {
            value = pass == 0 ? value / static_cast<float>(count) : value;
        }
    }
    if (!covariance) {
        to_deviations(stats.spread);
    }
    return stats;
}

Matrix times(const Matrix& a, const Matrix& b) {
    Matrix out{};
    for (std::size_t i = 0; i < 3; ++i) {
        for (std::size_t j = 0; j < 3; ++j) {
            for (std::size_t k = 0; k < 3; ++k) {
                out[i][j] += a[i][k] * b[k][j];
            }
        }
    }
    return out;
}

Matrix transposed(const Matrix& m) {
    return {{{m[0][0], m[1][0], m[2][0]}, {m[0][1], m[1][1], m[2][1]}, {m[0][2], m[1][2], m[2][2]}}
    };
}

struct Eigen {
    Vector values{};
    Matrix vectors{};  // in columns
};

// Jacobi's rotations, until nothing is left beside the diagonal.
Eigen eigen(Matrix m) {
    Matrix v = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
    constexpr int kSweepsMax = 50;
    for (int sweep = 0; sweep < kSweepsMax; ++sweep) {
        for (std::size_t p = 0; p < 2; ++p) {
            for (std::size_t q = p + 1; q < 3; ++q) {
                if (m[p][q] == 0) {
                    continue;
                }
                const double theta = (m[q][q] - m[p][p]) / (2 * m[p][q]);
                const double t =
                    (theta >= 0 ? 1 : -1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
                const double c = 1 / std::sqrt(t * t + 1);
                const double s = t * c;
                Matrix turn = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
                turn[p][p] = turn[q][q] = c;
                turn[p][q] = s;
                turn[q][p] = -s;
                m = times(transposed(turn), times(m, turn));
                m[p][q] = m[q][p] = 0;
                v = times(v, turn);
            }
        }
    }
    return {{m[0][0], m[1][1], m[2][2]}, v};
}

Matrix columns_times(Matrix m, const Vector& factors) {
    for (auto& row : m) {
        for (std::size_t c = 0; c < 3; ++c) {
            row[c] *= factors[c];
        }
    }
    return m;
}

// The linear map of least change that turns one covariance into the other (Monge-Kantorovich).
Matrix least_change(const Matrix& source, const Matrix& reference) {
    const Eigen own = eigen(source);
    Vector roots{};
    Vector inverse{};
    for (std::size_t i = 0; i < 3; ++i) {
        roots[i] = std::max(std::sqrt(std::max(own.values[i], 0.0)), double{kLeast});
        inverse[i] = 1.0 / roots[i];
    }
    const Matrix scaled = columns_times(own.vectors, roots);
    const Eigen middle = eigen(times(transposed(scaled), times(reference, scaled)));
    Vector middle_roots{};
    for (std::size_t i = 0; i < 3; ++i) {
        middle_roots[i] = std::sqrt(std::max(middle.values[i], 0.0));
    }
    const Matrix half =
        times(columns_times(middle.vectors, middle_roots), transposed(middle.vectors));
    const Matrix back = columns_times(own.vectors, inverse);
    return times(back, times(half, transposed(back)));
}

// corrected = matrix * (colour - from) + to
struct Change {
    Matrix3 matrix{};
    std::array<float, 3> from{};
    std::array<float, 3> to{};
};

Change change(const Stats& source, const Stats& reference, bool covariance) {
    Change out;
    out.from = source.mean;
    out.to = reference.mean;
    const Matrix map = covariance ? least_change(source.spread, reference.spread) : Matrix{};
    for (std::size_t a = 0; a < 3; ++a) {
        for (std::size_t b = 0; b < 3; ++b) {
            out.matrix[a][b] = static_cast<float>(map[a][b]);
        }
        if (!covariance) {
            out.matrix[a][a] = static_cast<float>(reference.spread[a][a]) /
                               static_cast<float>(source.spread[a][a]);
        }
    }
    return out;
}

// For all frames alike ComfyUI does not subtract the mean first but adds one offset.
Change without_mean(Change change) {
    COMFYD_NO_CONTRACTION
    for (std::size_t a = 0; a < 3; ++a) {
        float moved = 0;
        for (std::size_t b = 0; b < 3; ++b) {
            moved = std::fma(change.matrix[a][b], change.from[b], moved);
        }
        change.to[a] = change.to[a] - moved;
    }
    change.from = {};
    return change;
}

COMFYD_KERNEL void apply(
    const float* lab, std::size_t plane, std::size_t count, const Change& given, float* out
) {
    COMFYD_NO_CONTRACTION
    const Change change = given;
    const bool diagonal =
        change.matrix[0][1] == 0 && change.matrix[0][2] == 0 && change.matrix[1][2] == 0;
    for (std::size_t c = 0; c < 3; ++c) {
        const auto& row = change.matrix[c];
        for (std::size_t i = 0; i < count; ++i) {
            float value = 0;
            if (diagonal) {
                value = (lab[c * plane + i] - change.from[c]) * row[c];
            } else {
                const float a = lab[i] - change.from[0];
                const float b = lab[plane + i] - change.from[1];
                const float d = lab[2 * plane + i] - change.from[2];
                value = std::fma(row[2], d, std::fma(row[1], b, row[0] * a));
            }
            out[c * count + i] = value + change.to[c];
        }
    }
}

Result<> repaint(
    const Call& call,
    Lab& lab,
    const ImageShape& shape,
    const Change& change,
    float strength,
    float* into
) {
    return call
        .for_rows(shape.height, shape.row_floats() * 16, [&](std::size_t first, std::size_t last) {
            const std::size_t at = first * shape.width;
            const std::size_t count = (last - first) * shape.width;
            std::vector<float> changed(3 * count);
            std::vector<float> rgb(3 * count);
            apply(lab.plane(0) + at, lab.count, count, change, changed.data());
            if (strength != 1.0F) {
                for (std::size_t c = 0; c < 3; ++c) {
                    const float* original = lab.plane(c) + at;
                    for (std::size_t i = 0; i < count; ++i) {
                        float& value = changed[c * count + i];
                        value = lerp(original[i], value, strength);
                    }
                }
            }
            lab_to_rgb(changed.data(), count, count, kornia_lab(), rgb.data());
            from_planes(rgb.data(), count, count, 3, into + at * 3);
        });
}

Result<> expect_rgb(const Image& image) {
    const ImageShape& shape = image.shape();
    if (shape.channels == 3) {
        return {};
    }
    return node_error(
        "ValueError",
        "Input size must have a shape of (*, 3, H, W). Got torch.Size([1, " +
            std::to_string(shape.channels) + ", " + std::to_string(shape.height) + ", " +
            std::to_string(shape.width) + "])"
    );
}

}  // namespace

Result<Image> transfer_by_lab(const Call& call, const Transfer& transfer, bool covariance) {
    const Image& target = transfer.target;
    const Image& reference = transfer.reference;
    const ImageShape shape = target.shape();
    for (const Image* image : {&reference, &target}) {
        if (auto rgb = expect_rgb(*image); !rgb) {
            return fail(std::move(rgb.error()));
        }
    }
    const std::size_t references = reference.shape().batch;
    const bool alike = transfer.baseline != Baseline::per_frame;
    auto wanted = pooled(call, reference, 0, alike ? references : 1, covariance);
    if (!wanted) {
        return fail(std::move(wanted.error()));
    }
    Change shared;
    if (alike) {
        const bool one = transfer.baseline == Baseline::target_frame;
        const auto own =
            pooled(call, target, one ? transfer.frame : 0, one ? 1 : shape.batch, covariance);
        if (!own) {
            return fail(own.error());
        }
        shared = without_mean(change(*own, *wanted, covariance));
    }
    auto out = call.new_image(shape);
    auto lab = make_lab(call, shape);
    if (!out || !lab) {
        return fail(out ? lab.error() : out.error());
    }
    for (std::size_t i = 0; i < shape.batch; ++i) {
        auto done = fill_lab(call, target, i, *lab);
        if (done && !alike) {
            if (i > 0 && i < references) {
                wanted = pooled(call, reference, i, 1, covariance);
                if (!wanted) {
                    return fail(std::move(wanted.error()));
                }
            }
            Stats own{means(*lab), {}};
            own.spread = products(*lab, own.mean, covariance);
            if (!covariance) {
                to_deviations(own.spread);
            }
            shared = change(own, *wanted, covariance);
        }
        if (done) {
            done = repaint(
                call,
                *lab,
                shape,
                shared,
                static_cast<float>(transfer.strength),
                out->row(i * shape.height)
            );
        }
        if (!done) {
            return fail(std::move(done.error()));
        }
        call.progress(static_cast<int>(i) + 1, static_cast<int>(shape.batch));
    }
    return std::move(*out).finish();
}

}  // namespace comfyd::engine::nodes
