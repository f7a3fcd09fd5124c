// All that is done to one file: it is looked at, and the forms of it are made that were asked for.
// What runs in a helper process (media/serve.hpp): the file may break whoever decodes it. Pure; any
// thread.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "jobs/output_wishes.hpp"
#include "media/facts.hpp"

namespace comfyd::media {

// Of a picture that is decoded, in pixels: as many as need half a gigabyte.
inline constexpr std::size_t kPixelsMax = 100'000'000;
// Of all variants of a file together.
inline constexpr std::size_t kVariantsBytesMax = 512U << 20;

struct Order {
    std::string name;
    std::string content_type;
    jobs::OutputWishes wishes{};

    json::object to_json() const;
    static Result<Order> from_json(const json::object& from);
};

struct Variant {
    std::string kind;  // "converted", "stripped", "poster", "thumbnail"
    int size = 0;      // of a thumbnail, as it was asked for
    Facts facts{};
    std::string bytes{};
};

struct FailedVariant {
    std::string kind;  // also "inspection", "placeholder"
    int size = 0;      // as above
    std::string reason{};
};

struct Answer {
    Facts facts;
    std::vector<Variant> variants{};
    std::vector<FailedVariant> failed{};
    bool is_last = false;  // the helper has done enough and ends with it
};

// Which of the wishes are about a file like this. Without any, no helper is needed for it.
jobs::OutputWishes wishes_for(const Facts& facts, jobs::OutputWishes wishes);

// `stopped`: there is no time left; what is not done by then has failed.
Answer make(const Order& order, std::string_view file, const std::function<bool()>& stopped);

// "image/webp" of "webp".
std::string content_type_of(std::string_view format);

}  // namespace comfyd::media
