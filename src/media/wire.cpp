#include "media/wire.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

namespace comfyd::media {
namespace {

constexpr int kLookMs = 50;
constexpr std::size_t kLengthBytes = 4;

std::string length_of(std::size_t size) {
    const auto length = static_cast<std::uint32_t>(size);
    std::string bytes(kLengthBytes, '\0');
    std::memcpy(bytes.data(), &length, kLengthBytes);
    return bytes;
}

tl::unexpected<Error> gone() {
    return fail(Code::worker_lost, "the process that reads it has ended");
}

// Waits until the socket can be written to or read from.
Result<> wait_for(int socket, short events, const GoesOn& goes_on) {
    for (;;) {
        if (auto may = goes_on(); !may) {
            return may;
        }
        pollfd watched{socket, events, 0};
        const int ready = ::poll(&watched, 1, kLookMs);
        if (ready > 0) {
            return {};
        }
        if (ready < 0 && errno != EINTR) {
            return gone();
        }
    }
}

Result<> receive(int socket, char* into, std::size_t size, const GoesOn& goes_on) {
    while (size > 0) {
        if (auto ready = wait_for(socket, POLLIN, goes_on); !ready) {
            return ready;
        }
        const ssize_t count = ::recv(socket, into, size, MSG_DONTWAIT);
        if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) {
            return gone();
        }
        if (count > 0) {
            into += count;
            size -= static_cast<std::size_t>(count);
        }
    }
    return {};
}

// The whole of it goes with the first byte's message.
ssize_t send_with_file(int socket, std::string_view bytes, int file) {
    iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(head), &file, sizeof file);
    return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// Nothing that is not there any more keeps a helper waiting: its parent closes the socket.
Result<> for_ever() {
    return {};
}

std::optional<Descriptor> file_of(msghdr& message) {
    const cmsghdr* head = CMSG_FIRSTHDR(&message);
    if (head == nullptr || head->cmsg_type != SCM_RIGHTS ||
        head->cmsg_len != CMSG_LEN(sizeof(int))) {
        return std::nullopt;
    }
    int number = -1;
    std::memcpy(&number, CMSG_DATA(head), sizeof number);
    return Descriptor(number);
}

json::object head_of(const Answer& answer) {
    json::array variants;
    for (const Variant& variant : answer.variants) {
        variants.push_back(
            {{"kind", variant.kind},
             {"size", variant.size},
             {"facts", variant.facts.to_json()},
             {"bytes", variant.bytes.size()}}
        );
    }
    json::array failed;
    for (const FailedVariant& variant : answer.failed) {
        failed.push_back(
            {{"kind", variant.kind}, {"size", variant.size}, {"reason", variant.reason}}
        );
    }
    return {
        {"facts", answer.facts.to_json()},
        {"variants", std::move(variants)},
        {"failed", std::move(failed)},
        {"is_last", answer.is_last},
    };
}

// What a helper says is a stranger's word: it has read his file. Nullopt: it makes no sense.
struct Head {
    Answer answer;
    std::vector<std::size_t> sizes;
};
std::optional<Head> read_head(const std::string& text) {
    const auto parsed = json::parse_object(text);
    if (!parsed) {
        return std::nullopt;
    }
    const auto object_of = [](const json::object& from, const char* name) {
        const auto found = json::find_object(from, name);
        return found && *found != nullptr ? **found : json::object();
    };
    const auto array_of = [](const json::object& from, const char* name) {
        const json::value* found = json::find(from, name);
        return found != nullptr && found->is_array() ? found->get_array() : json::array();
    };
    const auto text_of = [](const json::object& from, const char* name) {
        const auto found = json::find_string(from, name);
        return found ? found->value_or("") : std::string();
    };
    const auto number_of = [](const json::object& from, const char* name) {
        const auto found = json::find_int(from, name);
        return found ? found->value_or(0) : 0;
    };
    Head head;
    head.answer.facts = Facts::from_json(object_of(*parsed, "facts"));
    const json::value* last = json::find(*parsed, "is_last");
    head.answer.is_last = last != nullptr && last->is_bool() && last->get_bool();
    std::size_t total = 0;
    for (const json::value& one : array_of(*parsed, "variants")) {
        if (!one.is_object()) {
            return std::nullopt;
        }
        const json::object& said = one.get_object();
        const auto bytes = number_of(said, "bytes");
        if (bytes < 0 || static_cast<std::size_t>(bytes) > kVariantsBytesMax - total) {
            return std::nullopt;
        }
        total += static_cast<std::size_t>(bytes);
        head.sizes.push_back(static_cast<std::size_t>(bytes));
        head.answer.variants.push_back(
            {text_of(said, "kind"),
             static_cast<int>(number_of(said, "size")),
             Facts::from_json(object_of(said, "facts")),
             {}}
        );
    }
    for (const json::value& one : array_of(*parsed, "failed")) {
        if (one.is_object()) {
            const json::object& said = one.get_object();
            head.answer.failed.push_back(
                {text_of(said, "kind"),
                 static_cast<int>(number_of(said, "size")),
                 text_of(said, "reason")}
            );
        }
    }
    return head;
}

bool send_all(int socket, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t count = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (count < 0 && errno != EINTR) {
            return false;
        }
        bytes.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    }
    return true;
}

}  // namespace

Result<> send_order(int socket, const std::string& order, int file, const GoesOn& goes_on) {
    const std::string frame = length_of(order.size()) + order;
    std::string_view left(frame);
    while (!left.empty()) {
        if (auto ready = wait_for(socket, POLLOUT, goes_on); !ready) {
            return ready;
        }
        const bool is_first = left.size() == frame.size();
        const ssize_t count =
            is_first ? send_with_file(socket, left, file)
                     : ::send(socket, left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0 && errno != EAGAIN && errno != EINTR) {
            return gone();
        }
        left.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    }
    return {};
}

Result<Answer> receive_answer(int socket, const GoesOn& goes_on) {
    std::uint32_t length = 0;
    if (auto read = receive(socket, reinterpret_cast<char*>(&length), kLengthBytes, goes_on);
        !read) {
        return fail(std::move(read.error()));
    }
    if (length > kHeadBytesMax) {
        return fail(Code::worker_lost, "the process that reads it says what cannot be");
    }
    std::string text(length, '\0');
    if (auto read = receive(socket, text.data(), text.size(), goes_on); !read) {
        return fail(std::move(read.error()));
    }
    auto head = read_head(text);
    if (!head) {
        return fail(Code::worker_lost, "the process that reads it says what cannot be");
    }
    for (std::size_t i = 0; i < head->sizes.size(); ++i) {
        std::string& bytes = head->answer.variants[i].bytes;
        bytes.resize(head->sizes[i]);
        if (auto read = receive(socket, bytes.data(), bytes.size(), goes_on); !read) {
            return fail(std::move(read.error()));
        }
    }
    return std::move(head->answer);
}

std::optional<Received> receive_order(int socket) {
    std::uint32_t length = 0;
    iovec part{&length, kLengthBytes};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    ssize_t count = 0;
    do {
        count = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL);
    } while (count < 0 && errno == EINTR);
    auto file = count == static_cast<ssize_t>(kLengthBytes) ? file_of(message) : std::nullopt;
    if (!file || length > kHeadBytesMax) {
        return std::nullopt;
    }
    std::string text(length, '\0');
    if (!receive(socket, text.data(), text.size(), for_ever)) {
        return std::nullopt;
    }
    const auto parsed = json::parse_object(text);
    auto order = parsed ? Order::from_json(*parsed) : fail(parsed.error());
    if (!order) {
        return std::nullopt;
    }
    return Received{std::move(*order), std::move(*file)};
}

bool send_answer(int socket, const Answer& answer) {
    const std::string head = json::serialize(head_of(answer));
    if (!send_all(socket, length_of(head.size()) + head)) {
        return false;
    }
    return std::ranges::all_of(answer.variants, [socket](const Variant& variant) {
        return send_all(socket, variant.bytes);
    });
}

}  // namespace comfyd::media
