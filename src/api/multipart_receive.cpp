#include "api/multipart_receive.hpp"

#include <string_view>
#include <utility>

namespace comfyd::api {
namespace {

constexpr std::size_t kReadBytes = 64 * 1024;

}  // namespace

Task<Result<>> receive_multipart(
    Call& call, PartSink& sink, std::uint64_t bytes_max, std::string too_large
) {
    auto stream = MultipartStream::make(call.request.headers.get("Content-Type"), sink);
    if (!stream) {
        co_return fail(std::move(stream.error()));
    }
    std::string buffer(kReadBytes, '\0');
    std::uint64_t received = 0;
    while (true) {
        const auto count = co_await call.exchange.read_some(buffer.data(), buffer.size());
        if (!count) {
            co_return fail(count.error());
        }
        if (*count == 0) {
            break;
        }
        received += *count;
        if (received > bytes_max) {
            co_return fail(Code::payload_too_large, std::move(too_large));
        }
        auto fed = stream->feed(std::string_view(buffer.data(), *count));
        if (!fed) {
            co_return fed;
        }
    }
    co_return stream->finish();
}

}  // namespace comfyd::api
