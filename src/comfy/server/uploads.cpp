// POST /upload/image and /upload/mask.
#include <map>
#include <utility>

#include "comfy/members.hpp"
#include "comfy/server/picture_bytes.hpp"
#include "comfy/server/routes.hpp"
#include "net/multipart_receive.hpp"

namespace comfyd::comfy::server {
namespace {

constexpr std::size_t kFieldBytesMax = 64 * 1024;
constexpr std::size_t kFieldsMax = 16;

// The form: the file goes to the backend as it comes, the fields into memory.
class Form final : public net::PartSink {
public:
    explicit Form(Backend& backend) : backend_(backend) {}

    Result<> begin_part(net::PartHead head) override {
        field_ = head.name;
        in_file_ = head.name == "image" && head.filename.has_value();
        text_image_ = text_image_ || (head.name == "image" && !head.filename);
        if (!in_file_) {
            return {};
        }
        filename_ = *head.filename;
        auto begun = backend_.begin_file(std::move(head.content_type));
        if (!begun) {
            return fail(std::move(begun.error()));
        }
        file = std::move(*begun);
        return {};
    }
    Result<> part_data(std::string_view piece) override {
        if (in_file_) {
            return file->append(piece);
        }
        std::string& value = fields_[field_];
        if (fields_.size() > kFieldsMax || value.size() + piece.size() > kFieldBytesMax) {
            return fail(Code::invalid_argument, "a field of the form is too long");
        }
        value += piece;
        return {};
    }
    Result<> end_part() override { return {}; }

    std::string field(const std::string& name) const {
        const auto found = fields_.find(name);
        return found == fields_.end() ? std::string() : found->second;
    }
    bool overwrites() const {
        const std::string value = field("overwrite");
        return value == "true" || value == "1";
    }
    // Where the file is to lie, or the status that refuses it.
    tl::expected<FileName, int> place() const {
        if (!file) {
            return tl::unexpected(text_image_ ? 500 : 400);
        }
        const std::string type = field("type");
        return check_upload({filename_, field("subfolder"), type.empty() ? "input" : type});
    }

    std::unique_ptr<NewFile> file;

private:
    Backend& backend_;
    std::string field_;
    std::string filename_;
    std::map<std::string, std::string> fields_;
    bool in_file_ = false;
    bool text_image_ = false;
};

net::Response describe(const FileName& file) {
    json::object body;
    body["name"] = file.name;
    body["subfolder"] = file.subfolder;
    body["type"] = file.type;
    return json_reply(200, body);
}

// nullopt: it is refused, and answered.
Task<std::optional<FileName>> receive(Call& call, Backend& backend, Form& form) {
    auto received =
        co_await net::receive_multipart(call.exchange, form, backend.limits().upload_bytes_max);
    if (!received) {
        const bool is_form = received.error().code != Code::unsupported_media_type;
        co_await answer(call, is_form ? encode_error(received.error()) : empty_reply(400));
        co_return std::nullopt;
    }
    auto place = form.place();
    if (!place) {
        co_await answer(call, place.error() == 500 ? trouble() : empty_reply(place.error()));
        co_return std::nullopt;
    }
    co_return std::move(*place);
}

Task<> keep(
    Call& call, Backend& backend, std::unique_ptr<NewFile> file, FileName place, bool overwrite
) {
    auto kept = co_await backend.keep_file(std::move(file), std::move(place), overwrite);
    co_await answer(call, kept ? describe(*kept) : encode_error(kept.error()));
}

// nullopt: there is no such picture.
Task<Result<std::optional<std::string>>> read_original(Backend& backend, FileName name) {
    auto file = co_await backend.find_file(std::move(name));
    if (!file && file.error().code == Code::not_found) {
        co_return std::nullopt;
    }
    if (!file) {
        co_return fail(std::move(file.error()));
    }
    auto bytes = co_await picture_bytes(backend, std::move(*file));
    if (!bytes) {
        co_return fail(std::move(bytes.error()));
    }
    co_return std::optional(std::move(*bytes));
}

}  // namespace

Task<> upload_image(Call& call, Backend& backend) {
    Form form(backend);
    auto place = co_await receive(call, backend, form);
    if (place) {
        co_await keep(call, backend, std::move(form.file), std::move(*place), form.overwrites());
    }
}

// The alpha of the uploaded picture replaces that of another one.
Task<> upload_mask(Call& call, Backend& backend) {
    Form form(backend);
    auto place = co_await receive(call, backend, form);
    if (!place) {
        co_return;
    }
    const auto reference = json::parse_object(form.field("original_ref"));
    if (!reference) {
        co_await answer(call, trouble());
        co_return;
    }
    const auto name = check_shown({
        text_of(*reference, "filename"),
        text_of(*reference, "subfolder"),
        maybe_text(*reference, "type").value_or("output"),
    });
    if (!name) {
        co_await answer(call, empty_reply(name.error()));
        co_return;
    }
    auto original = co_await read_original(backend, *name);
    if (original && !*original) {
        // As ComfyUI: the answer names a file that was not written.
        co_await answer(call, describe(*place));
        co_return;
    }
    auto mask = co_await backend.take_bytes(std::move(form.file), *place);
    if (!original || !mask) {
        co_await answer(call, trouble());
        co_return;
    }
    auto made = co_await backend.replace_alpha(std::move(**original), std::move(*mask));
    if (!made) {
        const bool is_picture = made.error().code != Code::invalid_argument;
        co_await answer(call, is_picture ? encode_error(made.error()) : trouble());
        co_return;
    }
    auto file = backend.begin_file("image/png");
    auto written = file ? (*file)->append(*made) : Result<>(fail(std::move(file.error())));
    if (!written) {
        co_await answer(call, encode_error(written.error()));
        co_return;
    }
    co_await keep(call, backend, std::move(*file), std::move(*place), form.overwrites());
}

}  // namespace comfyd::comfy::server
