// Answers of a store that speaks S3, and texts with its credentials: whatever they say, they are
// read or refused.
#include <cstdint>
#include <string>
#include <string_view>

#include "assets/s3/credentials.hpp"
#include "assets/s3/verdict.hpp"
#include "assets/s3/xml.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace comfyd;
    using namespace comfyd::assets;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    net::ClientResponse answer;
    answer.status = size % 2 == 0 ? 200 : 403;
    answer.headers.set("Date", std::string(text.substr(0, 40)));
    answer.body = text;
    const s3::Verdict verdict = s3::judge(answer, "us-east-1", true);
    static_cast<void>(verdict);
    for (const auto entry : s3::find_elements(text, "Contents", 1'000)) {
        const std::string key = s3::find_text(entry, "Key");
        // What was read can be written so that it is read the same again.
        const std::string again = "<Key>" + s3::escape_xml(key) + "</Key>";
        if (s3::find_text(again, "Key") != key && key.find_first_of(" \t\r\n") == key.npos) {
            __builtin_trap();
        }
    }
    static_cast<void>(s3::read_profile(text, "default"));
    static_cast<void>(s3::read_role_answer(text));
    static_cast<void>(s3::is_container_address(text));
    return 0;
}
