// The multipart/form-data body of a request, handed on piece by piece. On the connection's thread.
#pragma once

#include <cstdint>
#include <string>

#include "api/multipart_stream.hpp"
#include "api/router.hpp"

namespace comfyd::api {

// Code::payload_too_large with the text `too_large` when the body has more than `bytes_max`; else
// what the stream or the sink refuses, or the client is gone.
Task<Result<>> receive_multipart(
    Call& call, PartSink& sink, std::uint64_t bytes_max, std::string too_large
);

}  // namespace comfyd::api
