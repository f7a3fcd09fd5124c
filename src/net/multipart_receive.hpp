// The multipart/form-data body of a request, handed on piece by piece. On the connection's thread.
#pragma once

#include <cstdint>

#include "net/multipart_stream.hpp"
#include "net/server.hpp"

namespace comfyd::net {

// Code::payload_too_large in the words of ComfyUI when the body has more than `bytes_max`; else
// what the stream or the sink refuses, or the client is gone.
Task<Result<>> receive_multipart(Exchange& exchange, PartSink& sink, std::uint64_t bytes_max);

}  // namespace comfyd::net
