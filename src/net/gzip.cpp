#include "net/gzip.hpp"

#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "base/text.hpp"
#include "net/http.hpp"

namespace comfyd::net {
namespace {

// "gzip;q=0", "gzip; q=0.000": a weight without any digit but 0.
bool is_weight_zero(std::string_view parameters) {
    const auto equals = parameters.find('=');
    if (equals == std::string_view::npos) {
        return false;
    }
    const auto weight = trim(parameters.substr(equals + 1));
    return !weight.empty() && weight.find_first_not_of("0.") == std::string_view::npos;
}

// deflateInit allocates 256 KB; a thread does that once.
class Compressor {
public:
    Compressor() {
        constexpr int kLevel = 1;
        constexpr int kWindowBitsGzip = 15 + 16;
        constexpr int kMemoryLevel = 8;
        const int result = deflateInit2(
            &stream_, kLevel, Z_DEFLATED, kWindowBitsGzip, kMemoryLevel, Z_DEFAULT_STRATEGY
        );
        if (result != Z_OK) {
            throw std::runtime_error("zlib could not be initialised");
        }
    }
    ~Compressor() { deflateEnd(&stream_); }
    Compressor(const Compressor&) = delete;
    Compressor& operator=(const Compressor&) = delete;

    std::string run(std::string_view data) {
        deflateReset(&stream_);
        std::string out(deflateBound(&stream_, data.size()), '\0');
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
        stream_.avail_in = static_cast<uInt>(data.size());
        stream_.next_out = reinterpret_cast<Bytef*>(out.data());
        stream_.avail_out = static_cast<uInt>(out.size());
        if (deflate(&stream_, Z_FINISH) != Z_STREAM_END) {
            throw std::runtime_error("zlib could not compress");
        }
        out.resize(stream_.total_out);
        return out;
    }

private:
    z_stream stream_{};
};

}  // namespace

bool accepts_gzip(std::string_view accept_encoding) {
    bool any = false;
    while (!accept_encoding.empty()) {
        const auto end = std::min(accept_encoding.find(','), accept_encoding.size());
        const auto item = accept_encoding.substr(0, end);
        accept_encoding.remove_prefix(std::min(end + 1, accept_encoding.size()));
        const auto semicolon = std::min(item.find(';'), item.size());
        const auto name = trim(item.substr(0, semicolon));
        const bool allowed = !is_weight_zero(item.substr(semicolon));
        if (equal_ignoring_case(name, "gzip")) {
            return allowed;
        }
        if (name == "*") {
            any = allowed;
        }
    }
    return any;
}

bool is_compressible(std::string_view content_type) {
    const auto type = trim(content_type.substr(0, content_type.find(';')));
    if (equal_ignoring_case(type, "text/event-stream")) {
        return false;
    }
    return equal_ignoring_case(type.substr(0, 5), "text/") ||
           equal_ignoring_case(type, "application/json");
}

std::string gzip(std::string_view data) {
    static thread_local Compressor compressor;
    return compressor.run(data);
}

}  // namespace comfyd::net
