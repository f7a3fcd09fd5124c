// What makes two requests with the same idempotency key the same. Pure; any thread.
#pragma once

#include <string>

#include "admission/submission.hpp"

namespace comfyd::admission {

// `given`: the workflow as it was sent, or what stands for it. No credentials count.
std::string request_hash(const Submission& submission, json::object given);

}  // namespace comfyd::admission
