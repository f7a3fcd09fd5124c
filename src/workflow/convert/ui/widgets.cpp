#include "workflow/convert/ui/widgets.hpp"

#include <algorithm>
#include <utility>

#include "workflow/convert/ui/reading.hpp"

namespace comfyd::workflow::ui {
namespace {

constexpr std::size_t kWidgetsMax = 10'000;
constexpr std::size_t kNestingMax = 16;

// Hands out saved values one after the other.
class SavedValues {
public:
    SavedValues(const json::value* saved, const std::vector<InputSpec>& specs) {
        if (saved == nullptr) {
            return;
        }
        array_ = saved->if_array();
        object_ = saved->if_object();
        if (array_ != nullptr) {
            skip_forced(specs);
        }
    }

    // False: there is no more, the default stays.
    bool next(std::optional<json::value>& into) {
        const std::size_t at = next_++;
        if (object_ != nullptr) {
            const json::value* found = object_->if_contains(std::to_string(at));
            into = found != nullptr ? std::optional<json::value>(*found) : std::nullopt;
            return true;
        }
        const std::size_t place = kept_.empty() ? at : (at < kept_.size() ? kept_[at] : kEnd);
        if (array_ == nullptr || place >= array_->size()) {
            return false;
        }
        into = (*array_)[place];
        return true;
    }

private:
    static constexpr std::size_t kEnd = static_cast<std::size_t>(-1);

    // Old editors also saved a value for inputs that only take links.
    void skip_forced(const std::vector<InputSpec>& specs) {
        std::vector<std::size_t> kept;
        std::size_t place = 0;
        bool any_forced = false;
        for (const InputSpec& spec : specs) {
            if (spec.widget.empty() && !spec.force_input) {
                continue;
            }
            const std::size_t places = spec.asks_for_control() ? 2 : 1;
            for (std::size_t i = 0; i < places; ++i, ++place) {
                if (!spec.force_input) {
                    kept.push_back(place);
                }
            }
            any_forced = any_forced || spec.force_input;
        }
        if (any_forced && place == array_->size()) {
            kept_ = std::move(kept);
            if (kept_.empty()) {
                array_ = nullptr;
            }
        }
    }

    const json::array* array_ = nullptr;
    const json::object* object_ = nullptr;
    std::vector<std::size_t> kept_;  // places in the array; empty: all
    std::size_t next_ = 0;
};

class Builder {
public:
    Builder(
        const std::string& class_type, const std::vector<InputSpec>& specs, const json::value* saved
    )
        : class_type_(class_type), saved_(saved, specs) {}

    void add_all(const std::vector<InputSpec>& specs, std::size_t depth = 0) {
        for (const InputSpec& spec : specs) {
            if (spec.widget.empty()) {
                layout_.sockets.push_back({spec.name, spec.type, SocketSpec::kNoWidget, spec.grows}
                );
            }
        }
        for (const InputSpec& spec : specs) {
            if (!spec.widget.empty() && layout_.widgets.size() < kWidgetsMax) {
                add(spec, depth);
            }
        }
    }

    NodeLayout take() { return std::move(layout_); }

private:
    void add(const InputSpec& spec, std::size_t depth) {
        Widget widget{spec.name, spec.widget, spec.options, default_value(spec), true};
        if (spec.widget != "IMAGECOMPARE" && saved_.next(widget.value)) {
            settle(spec, widget);
        }
        const std::optional<json::value> choice =
            spec.is_dynamic_combo() ? widget.value : std::nullopt;
        if (!spec.socketless) {
            layout_.sockets.push_back({spec.name, spec.type, layout_.widgets.size(), false});
        }
        layout_.widgets.push_back(std::move(widget));
        if (spec.has_control()) {
            add_unsent("control_after_generate");
            if (spec.widget == "COMBO") {
                add_unsent("control_filter_list");
            }
        }
        if (spec.widget == "BOUNDING_BOX") {
            for (const char* part : {"x", "y", "width", "height"}) {
                add_unsent(part);
            }
        }
        if (choice && depth < kNestingMax) {
            add_all(specs_of_choice(spec, *choice), depth + 1);
        }
    }

    void settle(const InputSpec& spec, Widget& widget) const {
        if (spec.is_combo() && (!widget.value || widget.value->is_null())) {
            if (auto first = first_choice(spec)) {
                widget.value = std::move(first);
            }
        }
        if (spec.widget == "PREVIEW_3D") {
            widget.value = "";
        }
        const bool samples = class_type_ == "KSampler" || class_type_ == "KSamplerAdvanced";
        constexpr std::string_view kOldPrefix = "sample_";
        if (samples && spec.name == "sampler_name" && widget.value && widget.value->is_string() &&
            view(widget.value->get_string()).starts_with(kOldPrefix)) {
            widget.value->get_string().erase(0, kOldPrefix.size());
        }
    }

    void add_unsent(std::string name) {
        Widget widget;
        widget.name = std::move(name);
        widget.sent = false;
        saved_.next(widget.value);
        layout_.widgets.push_back(std::move(widget));
    }

    const std::string& class_type_;
    SavedValues saved_;
    NodeLayout layout_;
};

// The editor keeps the choices of this class in further widgets: choice, index, option1, option2, …
NodeLayout lay_out_custom_combo(const json::value* saved) {
    NodeLayout layout;
    const json::array none;
    const json::array& values = saved != nullptr && saved->is_array() ? saved->get_array() : none;
    std::vector<json::value> options(
        values.size() > 2 ? values.begin() + 2 : values.end(), values.end()
    );
    while (!options.empty() && options.back() == "") {
        options.pop_back();
    }
    std::optional<json::value> choice;
    if (!values.empty() && !values.front().is_null()) {
        choice = values.front();
    } else if (!options.empty()) {
        choice = options.front();
    }
    const auto place = choice ? std::ranges::find(options, *choice) : options.end();
    const std::int64_t index = place == options.end() ? -1 : place - options.begin();
    options.emplace_back("");
    layout.sockets.push_back({"choice", "COMBO", 0, false});
    layout.sockets.push_back({"index", "INT", 1, false});
    layout.widgets.push_back({"choice", "COMBO", nullptr, choice, true});
    layout.widgets.push_back({"index", "INT", nullptr, json::value(index), true});
    for (std::size_t i = 0; i < options.size() && i < kWidgetsMax; ++i) {
        const std::string name = "option" + std::to_string(i + 1);
        layout.sockets.push_back({name, "STRING", layout.widgets.size(), false});
        layout.widgets.push_back({name, "STRING", nullptr, std::move(options[i]), true});
    }
    return layout;
}

}  // namespace

bool Widget::has_option(std::string_view key) const {
    const json::value* found = options != nullptr ? json::find(*options, key) : nullptr;
    return found != nullptr && found->is_bool() && found->get_bool();
}

std::optional<double> Widget::number(std::string_view key) const {
    const json::value* found = options != nullptr ? json::find(*options, key) : nullptr;
    return found != nullptr && found->is_number()
               ? std::optional<double>(found->to_number<double>())
               : std::nullopt;
}

NodeLayout lay_out(
    const std::string& class_type, const std::vector<InputSpec>& specs, const json::value* saved
) {
    if (class_type == "CustomCombo") {
        return lay_out_custom_combo(saved);
    }
    Builder builder(class_type, specs, saved);
    builder.add_all(specs);
    return builder.take();
}

}  // namespace comfyd::workflow::ui
