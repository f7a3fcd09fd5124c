// What the gateway itself reads of a stranger's file, and what a helper takes out of one.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "media/headers.hpp"
#include "media/metadata.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace comfyd::media;
    const std::string_view file(reinterpret_cast<const char*>(data), size);
    const Facts facts = read_headers(file, "a.png", "image/png");
    // What is stored comes back.
    if (Facts::from_json(facts.to_json()).to_json() != facts.to_json()) {
        std::abort();
    }
    webp_exif(file);
    animated_png_texts(file);
    const auto stripped = strip_metadata(file);
    // What was taken out once is not there any more, and the picture is.
    if (stripped && (strip_metadata(*stripped) != stripped ||
                     read_headers(*stripped, "", "").format != facts.format)) {
        std::abort();
    }
    return 0;
}
