#include "support/model_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include "base/json.hpp"

namespace comfyd::support {
namespace {

constexpr int kLookMs = 20;

bool send_all(int socket, std::string_view bytes) {
    while (!bytes.empty()) {
        const auto count = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (count <= 0) {
            return false;
        }
        bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
}

}  // namespace

ModelServer::ModelServer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* name = reinterpret_cast<sockaddr*>(&address);
    socklen_t length = sizeof address;
    constexpr int kBacklog = 64;
    if (::bind(listener_, name, length) != 0 || ::listen(listener_, kBacklog) != 0 ||
        ::getsockname(listener_, name, &length) != 0) {
        throw std::runtime_error("the server of models cannot listen");
    }
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept(); });
}

ModelServer::~ModelServer() {
    stopping_ = true;
    acceptor_.join();
    for (const auto& thread : threads_) {
        thread->join();
    }
    ::close(listener_);
}

void ModelServer::serve(const std::string& path, ServedFile file) {
    serve_in_turn(path, {std::move(file)});
}

void ModelServer::serve_in_turn(const std::string& path, std::deque<ServedFile> files) {
    const std::lock_guard lock(mutex_);
    files_[path] = std::move(files);
}

std::string ModelServer::host() const {
    return "127.0.0.1:" + std::to_string(port_);
}

std::string ModelServer::url(std::string_view path) const {
    return "http://" + host() + std::string(path);
}

std::vector<SeenRequest> ModelServer::seen(std::string_view path) const {
    const std::lock_guard lock(mutex_);
    std::vector<SeenRequest> some;
    for (const SeenRequest& request : seen_) {
        if (path.empty() || request.target.substr(0, request.target.find('?')) == path) {
            some.push_back(request);
        }
    }
    return some;
}

void ModelServer::accept() {
    while (!stopping_) {
        pollfd ready{listener_, POLLIN, 0};
        if (::poll(&ready, 1, kLookMs) != 1) {
            continue;
        }
        const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (socket >= 0) {
            const std::lock_guard lock(mutex_);
            threads_.push_back(std::make_unique<std::thread>([this, socket] {
                answer(socket);
                ::close(socket);
            }));
        }
    }
}

void ModelServer::answer(int socket) {
    std::string head;
    char byte = 0;
    while (!head.ends_with("\r\n\r\n")) {
        pollfd ready{socket, POLLIN, 0};
        const int polled = ::poll(&ready, 1, kLookMs);
        if (stopping_ || (polled == 1 && ::recv(socket, &byte, 1, 0) != 1)) {
            return;
        }
        if (polled == 1) {
            head += byte;
        }
    }
    SeenRequest request;
    request.method = head.substr(0, head.find(' '));
    const auto from = request.method.size() + 1;
    request.target = head.substr(from, head.find(' ', from) - from);
    for (auto at = head.find("\r\n"); at + 2 < head.size();) {
        const auto end = head.find("\r\n", at + 2);
        const std::string line = head.substr(at + 2, end - at - 2);
        if (const auto colon = line.find(": "); colon != std::string::npos) {
            request.headers.add(line.substr(0, colon), line.substr(colon + 2));
        }
        at = end;
    }
    ServedFile file;
    {
        const std::lock_guard lock(mutex_);
        seen_.push_back(request);
        const auto found = files_.find(request.target.substr(0, request.target.find('?')));
        if (found == files_.end()) {
            file.status = 404;
        } else {
            std::deque<ServedFile>& turns = found->second;
            file = turns.front();
            turns.front().cuts -= turns.front().cuts > 0 ? 1 : 0;
            if (turns.size() > 1) {
                turns.pop_front();
            }
        }
    }
    const std::string if_range(request.headers.get("If-Range"));
    const bool is_wanted =
        file.takes_ranges && (!file.heeds_if_range || if_range.empty() || if_range == file.etag);
    const auto range = is_wanted ? net::parse_range(request.headers.get("Range"), file.bytes.size())
                                 : Result<std::optional<net::ByteRange>>(std::nullopt);
    std::string body = file.bytes;
    std::size_t first = 0;
    int status = file.status == 0 ? 200 : file.status;
    std::string answer;
    if (!file.etag.empty()) {
        answer += "ETag: " + file.etag + "\r\n";
        if (file.status == 0 && request.headers.get("If-None-Match") == file.etag) {
            status = 304;
            body.clear();
        }
    }
    if (file.status == 0 && !range) {
        status = 416;
        body.clear();
        answer += "Content-Range: bytes */" + std::to_string(file.bytes.size()) + "\r\n";
    } else if (file.status == 0 && *range && status == 200) {
        status = 206;
        first = (*range)->first;
        body = body.substr(first, (*range)->length);
        answer += "Content-Range: bytes " + std::to_string((*range)->first) + "-" +
                  std::to_string((*range)->first + (*range)->length - 1) + "/" +
                  std::to_string(file.bytes.size()) + "\r\n";
    }
    if (file.is_chunked) {
        answer += "Transfer-Encoding: chunked\r\n";
    } else if (file.has_length) {
        answer += "Content-Length: " +
                  std::to_string(static_cast<std::int64_t>(body.size()) + file.length_lie) + "\r\n";
    }
    for (const auto& [name, value] : file.headers.all()) {
        answer += name + ": " + value + "\r\n";
    }
    answer = "HTTP/1.1 " + std::to_string(status) + " X\r\nConnection: close\r\n" + answer + "\r\n";
    if (!send_all(socket, answer) || request.method == "HEAD") {
        return;
    }
    const bool is_cut = file.cut_after && file.cuts > 0;
    if (is_cut) {
        body.resize(std::min(body.size(), *file.cut_after));
    }
    std::string rest;
    if (file.stall_after && !released_) {
        const std::size_t before = std::max(*file.stall_after, first) - first;
        rest = body.substr(std::min(body.size(), before));
        body.resize(body.size() - rest.size());
    }
    constexpr std::size_t kStep = 64 * 1024;
    for (std::size_t at = 0; at < body.size(); at += kStep) {
        std::string piece = body.substr(at, kStep);
        if (file.is_chunked) {
            char size[24];
            std::snprintf(size, sizeof size, "%zx\r\n", piece.size());
            piece = size + piece + "\r\n";
        }
        if (stopping_ || !send_all(socket, piece)) {
            return;
        }
    }
    if (file.is_chunked && !is_cut && !file.stall_after) {
        send_all(socket, "0\r\n\r\n");
    }
    while (!rest.empty() && !stopping_ && !released_) {  // until the client has had enough
        pollfd ready{socket, POLLIN, 0};
        if (::poll(&ready, 1, kLookMs) == 1 && ::recv(socket, &byte, 1, 0) <= 0) {
            return;
        }
    }
    send_all(socket, rest);
}

std::string safetensors_file(std::size_t data_bytes, const std::string& tensor) {
    return safetensors_file(std::vector<Tensor>{{tensor, {data_bytes}}});
}

std::string safetensors_file(const std::vector<Tensor>& tensors) {
    json::object members;
    std::size_t data_bytes = 0;
    for (const Tensor& tensor : tensors) {
        std::size_t bytes = 1;
        for (const std::size_t length : tensor.shape) {
            bytes *= length;
        }
        members[tensor.name] = {
            {"dtype", "U8"},
            {"shape", json::array(tensor.shape.begin(), tensor.shape.end())},
            {"data_offsets", json::array{data_bytes, data_bytes + bytes}},
        };
        data_bytes += bytes;
    }
    const std::string head = json::serialize(members);
    std::string file;
    for (std::size_t i = 0; i < 8; ++i) {
        file += static_cast<char>(head.size() >> (8 * i) & 0xff);
    }
    file += head;
    for (std::size_t i = 0; i < data_bytes; ++i) {
        file += static_cast<char>('a' + i * 7 % 23 + i / 4096 % 3);
    }
    return file;
}

std::string checkpoint_file(std::size_t text_width) {
    return safetensors_file({
        {"model.diffusion_model.input_blocks.4.1.transformer_blocks.0.attn2.to_k.weight",
         {1, text_width}},
        {"first_stage_model.decoder.conv_in.weight", {1, 4, 3, 3}},
    });
}

std::string lora_file(std::size_t text_width) {
    constexpr const char* kKey =
        "lora_unet_down_blocks_1_attentions_0_transformer_blocks_0_attn2_to_k";
    return safetensors_file({
        {std::string(kKey) + ".lora_down.weight", {1, text_width}},
        {std::string(kKey) + ".lora_up.weight", {8, 1}},
    });
}

}  // namespace comfyd::support
