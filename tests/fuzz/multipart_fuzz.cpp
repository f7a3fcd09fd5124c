// Uploads: the same body in one piece and byte by byte must give the same parts.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "net/multipart_stream.hpp"

namespace {

using namespace comfyd;

class Recorder final : public net::PartSink {
public:
    Result<> begin_part(net::PartHead head) override {
        seen += "<" + head.name + "|" + head.filename.value_or("") + "|" + head.content_type + ">";
        return {};
    }
    Result<> part_data(std::string_view piece) override {
        seen += piece;
        return {};
    }
    Result<> end_part() override {
        seen += "</>";
        return {};
    }
    std::string seen{};
};

std::string read(std::string_view body, std::size_t piece) {
    Recorder recorder;
    auto stream = net::MultipartStream::make("multipart/form-data; boundary=b", recorder);
    if (!stream) {
        std::abort();
    }
    for (std::size_t at = 0; at < body.size(); at += piece) {
        if (!stream->feed(body.substr(at, piece))) {
            return "refused";
        }
    }
    return stream->finish() ? recorder.seen : "cut off";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view body(reinterpret_cast<const char*>(data), size);
    if (read(body, size + 1) != read(body, 1)) {
        std::abort();
    }
    return 0;
}
