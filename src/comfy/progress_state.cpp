#include "comfy/progress_state.hpp"

#include <string>
#include <utility>

#include <boost/json/basic_parser_impl.hpp>

namespace comfyd::comfy {
namespace {

using boost::json::string_view;
using ErrorCode = boost::system::error_code;

// What of a member is needed, by where it stands.
enum class Member { other, type, data, prompt_id, nodes, value, max, state, display, parent, real };

// What the value or key being read belongs to, from the outside in.
enum class At { outside, root, data, nodes, node };

struct Place {
    At at;
    std::string_view key;
    Member member;
};
constexpr Place kPlaces[]{
    {At::root, "type", Member::type},
    {At::root, "data", Member::data},
    {At::data, "prompt_id", Member::prompt_id},
    {At::data, "nodes", Member::nodes},
    {At::node, "value", Member::value},
    {At::node, "max", Member::max},
    {At::node, "state", Member::state},
    {At::node, "display_node_id", Member::display},
    {At::node, "parent_node_id", Member::parent},
    {At::node, "real_node_id", Member::real},
};

Member member_of(At at, std::string_view key) {
    for (const Place& place : kPlaces) {
        if (place.at == at && place.key == key) {
            return place.member;
        }
    }
    return Member::other;
}

// Hears what the parser finds, in the order of the text, and gives up at what it does not expect.
class Reader {
public:
    static constexpr std::size_t max_object_size = std::size_t(-1);
    static constexpr std::size_t max_array_size = std::size_t(-1);
    static constexpr std::size_t max_key_size = std::size_t(-1);
    static constexpr std::size_t max_string_size = std::size_t(-1);

    bool on_document_begin(ErrorCode&) { return true; }
    bool on_document_end(ErrorCode&) { return true; }

    bool on_object_begin(ErrorCode& error) {
        if (ignored_ > 0) {
            ++ignored_;
            return true;
        }
        switch (at_) {
            case At::outside:
                at_ = At::root;
                return true;
            case At::root:
                if (member_ == Member::data && !has_data_) {
                    has_data_ = true;
                    at_ = At::data;
                    return true;
                }
                return ignore_unless_expected(error);
            case At::data:
                if (member_ == Member::nodes && !has_nodes_) {
                    has_nodes_ = true;
                    at_ = At::nodes;
                    return true;
                }
                return ignore_unless_expected(error);
            case At::nodes:
                state_.nodes.emplace_back().node_id = node_id_;
                at_ = At::node;
                return true;
            case At::node:
                return ignore_unless_expected(error);
        }
        return give_up(error);
    }
    bool on_object_end(std::size_t, ErrorCode&) {
        if (ignored_ > 0) {
            --ignored_;
        } else {
            at_ = static_cast<At>(static_cast<int>(at_) - 1);
        }
        return true;
    }
    bool on_array_begin(ErrorCode& error) {
        if (ignored_ > 0) {
            ++ignored_;
            return true;
        }
        return ignore_unless_expected(error);
    }
    bool on_array_end(std::size_t, ErrorCode&) {
        --ignored_;
        return true;
    }

    bool on_key_part(string_view part, std::size_t, ErrorCode&) {
        text_.append(part.data(), part.size());
        return true;
    }
    bool on_key(string_view part, std::size_t, ErrorCode&) {
        if (text_.empty()) {
            take_key({part.data(), part.size()});
            return true;
        }
        text_.append(part.data(), part.size());
        take_key(text_);
        text_.clear();
        return true;
    }
    bool on_string_part(string_view part, std::size_t, ErrorCode&) {
        text_.append(part.data(), part.size());
        return true;
    }
    bool on_string(string_view part, std::size_t, ErrorCode& error) {
        if (text_.empty()) {
            return take_text({part.data(), part.size()}, error);
        }
        text_.append(part.data(), part.size());
        const bool goes_on = take_text(text_, error);
        text_.clear();
        return goes_on;
    }
    bool on_number_part(string_view, ErrorCode&) { return true; }
    bool on_int64(std::int64_t number, string_view, ErrorCode& error) {
        return take_number(static_cast<double>(number), error);
    }
    bool on_uint64(std::uint64_t number, string_view, ErrorCode& error) {
        return take_number(static_cast<double>(number), error);
    }
    bool on_double(double number, string_view, ErrorCode& error) {
        return take_number(number, error);
    }
    bool on_bool(bool, ErrorCode& error) {
        return ignored_ > 0 || !is_expected() || give_up(error);
    }
    bool on_null(ErrorCode& error) {
        if (ignored_ == 0 && id_of_node() != nullptr) {
            id_of_node()->clear();  // of one that has no parent, for example
            return true;
        }
        return ignored_ > 0 || !is_expected() || give_up(error);
    }
    bool on_comment_part(string_view, ErrorCode&) { return true; }
    bool on_comment(string_view, ErrorCode&) { return true; }

    std::optional<ProgressState> take() {
        if (!is_state_ || !has_prompt_ || !has_nodes_) {
            return std::nullopt;
        }
        return std::move(state_);
    }

private:
    static bool give_up(ErrorCode& error) {
        error = boost::json::error::not_object;
        return false;
    }
    // Of what must be of one type, and is not.
    bool is_expected() const {
        return at_ == At::outside || (at_ != At::nodes && member_ != Member::other);
    }
    bool ignore_unless_expected(ErrorCode& error) {
        ignored_ = 1;
        return !is_expected() || give_up(error);
    }

    void take_key(std::string_view key) {
        if (ignored_ > 0) {
            return;
        }
        if (at_ == At::nodes) {
            node_id_ = key;
        } else {
            member_ = member_of(at_, key);
        }
    }
    std::string* id_of_node() {
        switch (member_) {
            case Member::display:
                return &state_.nodes.back().display_node_id;
            case Member::parent:
                return &state_.nodes.back().parent_node_id;
            case Member::real:
                return &state_.nodes.back().real_node_id;
            default:
                return nullptr;
        }
    }
    bool take_text(std::string_view text, ErrorCode& error) {
        if (ignored_ > 0 || !is_expected()) {
            return true;
        }
        if (std::string* const id = id_of_node()) {
            *id = text;
            return true;
        }
        switch (member_) {
            case Member::type:
                is_state_ = text == "progress_state";
                return is_state_ || give_up(error);
            case Member::prompt_id:
                has_prompt_ = true;
                state_.prompt_id = text;
                return true;
            case Member::state:
                state_.nodes.back().finished = text == "finished";
                return true;
            default:
                return give_up(error);
        }
    }
    bool take_number(double number, ErrorCode& error) {
        if (ignored_ > 0 || !is_expected()) {
            return true;
        }
        switch (member_) {
            case Member::value:
                state_.nodes.back().value = number;
                return true;
            case Member::max:
                state_.nodes.back().max = number;
                return true;
            default:
                return give_up(error);
        }
    }

    At at_ = At::outside;
    int ignored_ = 0;  // how deep we are in something that nobody needs
    Member member_ = Member::other;
    std::string node_id_;
    std::string text_;  // of a key or a string that comes in parts
    ProgressState state_;
    bool is_state_ = false;
    bool has_data_ = false;
    bool has_prompt_ = false;
    bool has_nodes_ = false;
};

}  // namespace

std::optional<ProgressState> read_progress_state(std::string_view frame) {
    boost::json::parse_options options;
    options.max_depth = json::kDepthMax;
    boost::json::basic_parser<Reader> parser(options);
    ErrorCode error;
    const std::size_t read = parser.write_some(false, frame.data(), frame.size(), error);
    const bool is_whole =
        !error && frame.find_first_not_of(" \t\r\n", read) == std::string_view::npos;
    return is_whole ? parser.handler().take() : std::nullopt;
}

}  // namespace comfyd::comfy
