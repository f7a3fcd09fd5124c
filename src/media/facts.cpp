#include "media/facts.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace comfyd::media {
namespace {

constexpr std::array<std::pair<Kind, std::string_view>, 7> kKinds{{
    {Kind::image, "image"},
    {Kind::animated_image, "animated_image"},
    {Kind::video, "video"},
    {Kind::audio, "audio"},
    {Kind::text, "text"},
    {Kind::model_3d, "3d"},
    {Kind::other, "other"},
}};

template <class T>
void put(json::object& into, const char* name, const std::optional<T>& value) {
    if (value) {
        into[name] = *value;
    }
}
void put(json::object& into, const char* name, const std::string& value) {
    if (!value.empty()) {
        into[name] = value;
    }
}

template <class T>
void take(const json::object& from, const char* name, std::optional<T>& into) {
    const json::value* found = json::find(from, name);
    if (found == nullptr || !found->is_number()) {
        return;
    }
    const double number = found->to_number<double>();
    constexpr auto kMost = static_cast<long double>(std::numeric_limits<T>::max());
    if (std::isfinite(number) && number >= 0 && number <= kMost) {
        into = static_cast<T>(number);
    }
}
void take(const json::object& from, const char* name, std::optional<bool>& into) {
    const json::value* found = json::find(from, name);
    if (found != nullptr && found->is_bool()) {
        into = found->get_bool();
    }
}
void take(const json::object& from, const char* name, std::string& into) {
    const json::value* found = json::find(from, name);
    if (found != nullptr && found->is_string()) {
        into = found->get_string();
    }
}

// `with(name, member)` for each that is not the kind.
template <class F, class With>
void each_member(F& facts, const With& with) {
    with("format", facts.format);
    with("width", facts.width);
    with("height", facts.height);
    with("bit_depth", facts.bit_depth);
    with("has_alpha", facts.has_alpha);
    with("frames", facts.frames);
    with("duration_seconds", facts.duration_s);
    with("fps", facts.fps);
    with("codec", facts.codec);
    with("audio_codec", facts.audio_codec);
    with("sample_rate", facts.sample_rate);
    with("channels", facts.channels);
    with("has_workflow", facts.has_workflow);
    with("blurhash", facts.blurhash);
    with("dominant_color", facts.dominant_color);
}

}  // namespace

std::string_view to_string(Kind kind) {
    for (const auto& [known, name] : kKinds) {
        if (known == kind) {
            return name;
        }
    }
    return "other";
}

json::object Facts::to_json() const {
    json::object made{{"kind", to_string(kind)}};
    each_member(*this, [&made](const char* name, const auto& value) { put(made, name, value); });
    return made;
}

Facts Facts::from_json(const json::object& from) {
    Facts facts;
    std::string kind;
    take(from, "kind", kind);
    for (const auto& [known, name] : kKinds) {
        if (name == kind) {
            facts.kind = known;
        }
    }
    each_member(facts, [&from](const char* name, auto& value) { take(from, name, value); });
    return facts;
}

}  // namespace comfyd::media
