#include "workflow/graph/content_key.hpp"

namespace comfyd::workflow {

void ContentKey::add_value(const json::value& value) {
    text_ += static_cast<char>('0' + static_cast<int>(value.kind()));
    switch (value.kind()) {
        case boost::json::kind::string:
            add_text(value.get_string());
            break;
        case boost::json::kind::int64:
            add_bytes(value.get_int64());
            break;
        case boost::json::kind::uint64:
            add_bytes(value.get_uint64());
            break;
        case boost::json::kind::double_:
            add_bytes(value.get_double());
            break;
        case boost::json::kind::array:
            add_bytes(value.get_array().size());
            for (const json::value& item : value.get_array()) {
                add_value(item);
            }
            break;
        default:
            add_text(json::serialize(value));
    }
}

}  // namespace comfyd::workflow
