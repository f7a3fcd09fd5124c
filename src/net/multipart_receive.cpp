#include "net/multipart_receive.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace comfyd::net {
namespace {

constexpr std::size_t kReadBytes = 64 * 1024;

}  // namespace

Task<Result<>> receive_multipart(Exchange& exchange, PartSink& sink, std::uint64_t bytes_max) {
    auto stream = MultipartStream::make(exchange.request().headers.get("Content-Type"), sink);
    if (!stream) {
        co_return fail(std::move(stream.error()));
    }
    std::string buffer(kReadBytes, '\0');
    std::uint64_t received = 0;
    while (true) {
        const auto count = co_await exchange.read_some(buffer.data(), buffer.size());
        if (!count) {
            co_return fail(count.error());
        }
        if (*count == 0) {
            break;
        }
        received += *count;
        if (received > bytes_max) {
            co_return fail(
                Code::payload_too_large,
                "Maximum request body size " + std::to_string(bytes_max) + " exceeded."
            );
        }
        auto fed = stream->feed(std::string_view(buffer.data(), *count));
        if (!fed) {
            co_return fed;
        }
    }
    co_return stream->finish();
}

}  // namespace comfyd::net
