#include "engine/nodes/call.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <new>
#include <optional>
#include <utility>

#include "base/assert.hpp"
#include "base/mutex.hpp"

namespace comfyd::engine {
namespace {

// Small enough that a stop is noticed within a millisecond or so, large enough to be worth a
// hand-over.
constexpr std::size_t kWorkPerBlock = 128 * 1024;

// What no picture, sound or list can be as large as.
constexpr std::int64_t kSizeMax = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kFar = std::int64_t{1} << 40;

std::string megabytes(std::uint64_t bytes) {
    return std::to_string((bytes + 999'999) / 1'000'000) + " MB";
}

// The pool's threads know nothing of exceptions.
Result<> guarded(const std::function<Result<>(std::size_t)>& body, std::size_t i) {
    try {
        return body(i);
    } catch (const NodeFailure& failure) {
        return fail(failure.error());
    } catch (const std::bad_alloc&) {
        return fail(
            Code::out_of_memory, "The system has no memory left for a node's working space."
        );
    } catch (const std::exception& exception) {
        return fail(Code::internal, std::string("A node failed unexpectedly: ") + exception.what());
    }
}

}  // namespace

WrongKind::WrongKind(std::string_view input, std::string_view wanted, const Value& value)
    : std::invalid_argument(
          "'" + std::string(input) + "' must be of type " + std::string(wanted) + ", but is " +
          std::string(kind_of(value))
      ) {}

Call::Call(const Surroundings& surroundings, const std::string& node_id, NamedValues inputs)
    : surroundings_(surroundings), node_id_(node_id), inputs_(std::move(inputs)) {}

const Value* Call::find(std::string_view name) const {
    const auto found = std::ranges::find(inputs_, name, [](const auto& input) {
        return std::string_view(input.first);
    });
    return found == inputs_.end() ? nullptr : &found->second;
}

const Value& Call::value(std::string_view name) const {
    const Value* found = find(name);
    // The checks of a prompt let pass what ComfyUI's do: an option of a dynamic combo that does not
    // exist has none of its inputs.
    if (found == nullptr) {
        throw std::invalid_argument("the input '" + std::string(name) + "' is missing");
    }
    if (const auto* list = std::get_if<std::shared_ptr<const List>>(found)) {
        return (*list)->items.at(0);
    }
    return *found;
}

const Image& Call::image(std::string_view name) const {
    return std::get<Image>(value(name));
}
const Mask& Call::mask(std::string_view name) const {
    return std::get<Mask>(value(name));
}
ImageView Call::image_view(std::string_view name) const {
    return to_image_view(value(name));
}
MaskView Call::mask_view(std::string_view name) const {
    return to_mask_view(value(name));
}
std::int64_t Call::integer(std::string_view name) const {
    return std::get<std::int64_t>(value(name));
}
std::size_t Call::size(std::string_view name) const {
    const Value& from = value(name);
    const bool large = std::holds_alternative<std::uint64_t>(from);
    const std::int64_t number =
        large ? std::numeric_limits<std::int64_t>::max() : std::get<std::int64_t>(from);
    if (number >= 0 && number <= kSizeMax) {
        return static_cast<std::size_t>(number);
    }
    const std::string input = "'" + std::string(name) + "'";
    if (number < 0) {
        throw NodeFailure(
            "RuntimeError", input + " must not be negative, but is " + std::to_string(number)
        );
    }
    throw NodeFailure("RuntimeError", input + " is more than " + std::to_string(kSizeMax));
}
std::int64_t Call::place(std::string_view name) const {
    const Value& from = value(name);
    return std::holds_alternative<std::uint64_t>(from)
               ? kFar
               : std::clamp(std::get<std::int64_t>(from), -kFar, kFar);
}
std::uint64_t Call::seed(std::string_view name) const {
    const Value& from = value(name);
    const auto* large = std::get_if<std::uint64_t>(&from);
    return large != nullptr ? *large : static_cast<std::uint64_t>(std::get<std::int64_t>(from));
}
double Call::number(std::string_view name) const {
    const Value& from = value(name);
    if (const auto* whole = std::get_if<std::int64_t>(&from)) {
        return static_cast<double>(*whole);
    }
    if (const auto* large = std::get_if<std::uint64_t>(&from)) {
        return static_cast<double>(*large);
    }
    return std::get<double>(from);
}
bool Call::flag(std::string_view name) const {
    return std::get<bool>(value(name));
}
const std::string& Call::text(std::string_view name) const {
    const Value& from = value(name);
    const auto* text = std::get_if<std::string>(&from);
    return text != nullptr ? *text : throw WrongKind(name, "STRING", from);
}
const json::value& Call::data(std::string_view name) const {
    return std::get<Data>(value(name)).content();
}
bool Call::has(std::string_view name) const {
    const Value* found = find(name);
    if (found == nullptr) {
        return false;
    }
    if (const auto* list = std::get_if<std::shared_ptr<const List>>(found)) {
        const std::vector<Value>& items = (*list)->items;
        return !items.empty() && !std::holds_alternative<None>(items.front());
    }
    return !std::holds_alternative<None>(*found);
}

const std::vector<Value>& Call::list(std::string_view name) const {
    static const std::vector<Value> nothing;
    const Value* found = find(name);
    return found == nullptr ? nothing : std::get<std::shared_ptr<const List>>(*found)->items;
}

std::vector<Call::Grown> Call::grown(std::string_view name) const {
    std::vector<Grown> values;
    for (const auto& [input, value] : inputs_) {
        const std::string_view full = input;
        if (full.size() > name.size() && full.starts_with(name) && full[name.size()] == '.') {
            values.push_back({full.substr(name.size() + 1), value});
        }
    }
    return values;
}

Result<std::shared_ptr<FloatBuffer>> Call::allocate(const ImageShape& shape) const {
    std::size_t bytes = sizeof(float);
    bool too_large = false;
    for (const std::size_t side : {shape.batch, shape.height, shape.width, shape.channels}) {
        too_large = too_large ||
                    __builtin_mul_overflow(bytes, std::max<std::size_t>(1, side), &bytes) ||
                    bytes > surroundings_.memory->max();
    }
    if (!too_large) {
        auto buffer = FloatBuffer::try_make(surroundings_.memory, shape.floats());
        if (!buffer) {
            surroundings_.make_room(bytes);
            buffer = FloatBuffer::try_make(surroundings_.memory, shape.floats());
        }
        if (buffer) {
            return buffer;
        }
    }
    return no_room(
        " (" + std::to_string(shape.batch) + " x " + std::to_string(shape.width) + " x " +
        std::to_string(shape.height) + " x " + std::to_string(shape.channels) + ") needs " +
        (too_large ? "too much" : megabytes(bytes))
    );
}

tl::unexpected<Error> Call::no_room(const std::string& needs) const {
    return fail(
        Code::out_of_memory,
        "The result or working space of node " + node_id_ + needs + ", but node results may take " +
            megabytes(surroundings_.memory->max()) + " together, of which " +
            megabytes(surroundings_.memory->used()) +
            " are in use. Use smaller pictures, batches or texts, or raise the engine's memory "
            "limit."
    );
}

Result<Charge> Call::charge(std::uint64_t bytes) const {
    auto charge = Charge::try_make(surroundings_.memory, bytes);
    if (!charge) {
        surroundings_.make_room(bytes);
        charge = Charge::try_make(surroundings_.memory, bytes);
    }
    if (!charge) {
        return no_room(" needs " + megabytes(bytes));
    }
    return std::move(*charge);
}

Result<NewImage> Call::new_image(ImageShape shape) const {
    auto buffer = allocate(shape);
    if (!buffer) {
        return fail(std::move(buffer.error()));
    }
    return NewImage(shape, std::move(*buffer));
}

Result<NewMask> Call::new_mask(std::size_t batch, std::size_t height, std::size_t width) const {
    const ImageShape shape{batch, height, width, 1};
    auto buffer = allocate(shape);
    if (!buffer) {
        return fail(std::move(buffer.error()));
    }
    return NewMask(shape, std::move(*buffer));
}

Result<Scratch> Call::new_scratch(std::size_t bytes) const {
    const std::size_t floats = bytes / sizeof(float) + 1;
    auto buffer = allocate(ImageShape{1, 1, floats, 1});
    if (!buffer) {
        return fail(std::move(buffer.error()));
    }
    return Scratch(std::move(*buffer));
}

Result<Pixels> Call::copy(const View& view) const {
    const ImageShape& shape = view.shape();
    auto buffer = allocate(shape);
    if (!buffer) {
        return fail(std::move(buffer.error()));
    }
    const std::size_t floats = shape.row_floats();
    auto done = for_rows(shape.rows(), floats, [&](std::size_t first, std::size_t last) {
        for (std::size_t row = first; row < last; ++row) {
            view.copy_row(row, (*buffer)->data() + row * floats);
        }
    });
    if (!done) {
        return fail(std::move(done.error()));
    }
    return Pixels(shape, std::move(*buffer));
}

Result<Image> Call::whole(const ImageView& view) const {
    if (auto pixels = view.whole()) {
        return Image(std::move(*pixels));
    }
    auto copied = copy(view);
    if (!copied) {
        return fail(std::move(copied.error()));
    }
    view.keep(*copied);
    return Image(std::move(*copied));
}

Result<Mask> Call::whole(const MaskView& view) const {
    return whole(ImageView(View(view))).map([](Image&& pixels) { return Mask(std::move(pixels)); });
}

Result<> Call::for_rows(
    std::size_t rows,
    std::size_t work_per_row,
    const std::function<void(std::size_t first, std::size_t last)>& body
) const {
    const std::size_t block =
        std::max<std::size_t>(1, kWorkPerBlock / std::max<std::size_t>(1, work_per_row));
    return for_each((rows + block - 1) / block, [&](std::size_t i) -> Result<> {
        body(i * block, std::min(rows, (i + 1) * block));
        return {};
    });
}

Result<> Call::for_each(std::size_t count, const std::function<Result<>(std::size_t)>& body) const {
    Mutex mutex;
    std::size_t failed_at = count;
    std::optional<Error> failure;
    std::atomic<bool> skip = false;
    surroundings_.pool.parallel(count, [&](std::size_t i) {
        if (skip.load(std::memory_order_relaxed) || stopped()) {
            return;
        }
        Result<> result = guarded(body, i);
        if (!result) {
            skip.store(true, std::memory_order_relaxed);
            const Lock lock(mutex);
            if (i < failed_at) {
                failed_at = i;
                failure = std::move(result.error());
            }
        }
    });
    if (failure) {
        return fail(std::move(*failure));
    }
    return check_stopped();
}

Result<> Call::check_stopped() const {
    if (stopped()) {
        return fail(Code::cancelled, "The run was cancelled.");
    }
    return {};
}

void Call::progress(double value, double max) const {
    surroundings_.listener.progress(node_id_, value, max);
}

void Call::preview(ImageFormat format, std::string_view bytes) const {
    surroundings_.listener.preview(node_id_, format, bytes);
}

void Call::show_text(std::string_view text) const {
    surroundings_.listener.text(node_id_, text);
}

}  // namespace comfyd::engine
