#include "models/source.hpp"

#include <algorithm>

#include "base/json.hpp"
#include "base/text.hpp"
#include "models/answer_head.hpp"
#include "models/wish.hpp"

namespace comfyd::models {
namespace {

constexpr std::size_t kSourceBytesMax = 4'096;
constexpr std::string_view kHuggingFaceHost = "huggingface.co";
constexpr std::string_view kCivitaiHost = "civitai.com";
constexpr std::string_view kCivitaiPath = "/api/download/models/";

tl::unexpected<Error> wrong(const std::string& why) {
    return fail(
        Code::invalid_argument,
        why +
            "; a source looks like https://host/file, hf:owner/repo@revision/file, civitai:12345, "
            "s3://bucket/key or upload:SHA256"
    );
}

bool is_number(std::string_view text) {
    constexpr std::size_t kDigitsMax = 18;
    return !text.empty() && text.size() <= kDigitsMax &&
           text.find_first_not_of("0123456789") == std::string_view::npos;
}

// A part of a path that means itself, whoever reads it.
bool is_plain(std::string_view part) {
    const auto decoded = net::percent_decode(part);
    return decoded && !decoded->empty() && *decoded != "." && *decoded != ".." &&
           std::ranges::all_of(*decoded, [](char c) {
               return static_cast<unsigned char>(c) >= ' ' && c != '\x7f' && c != '\\';
           });
}

bool are_plain(std::string_view path) {
    while (true) {
        const auto slash = path.find('/');
        if (!is_plain(path.substr(0, slash))) {
            return false;
        }
        if (slash == std::string_view::npos) {
            return true;
        }
        path.remove_prefix(slash + 1);
    }
}

std::string encoded(std::string_view text) {
    const auto decoded = net::percent_decode(text);
    return net::percent_encode(decoded ? *decoded : std::string(text), true);
}

Result<Source> hugging_face(
    std::string_view repo, std::string_view revision, std::string_view path
) {
    const bool is_repo = std::ranges::count(repo, '/') == 1 && are_plain(repo);
    if (!is_repo || !is_plain(revision) || !are_plain(path)) {
        return wrong("this names no file of a repository");
    }
    Source source;
    source.kind = Source::Kind::hugging_face;
    source.repo = encoded(repo);
    // A revision with a slash ("refs/pr/1") is one part of the path.
    const auto decoded = net::percent_decode(revision);
    source.revision = net::percent_encode(*decoded);
    source.path = encoded(path);
    return source;
}

// "owner/repo@revision/path", "owner/repo/path"
Result<Source> parse_hugging_face(std::string_view text) {
    const auto owner = text.find('/');
    const auto end = owner == std::string_view::npos ? owner : text.find('/', owner + 1);
    if (end == std::string_view::npos) {
        return wrong("this names no file of a repository");
    }
    std::string_view repo = text.substr(0, end);
    std::string_view revision = "main";
    if (const auto at = repo.find('@'); at != std::string_view::npos) {
        revision = repo.substr(at + 1);
        repo = repo.substr(0, at);
    }
    return hugging_face(repo, revision, text.substr(end + 1));
}

// "/owner/repo/resolve/revision/path", also as its page (blob).
std::optional<Result<Source>> of_hugging_face(const net::Url& url) {
    const std::string_view target = std::string_view(url.target).substr(0, url.target.find('?'));
    for (const std::string_view way : {"/resolve/", "/blob/"}) {
        const auto at = target.find(way);
        if (at == std::string_view::npos || at == 0) {
            continue;
        }
        const std::string_view rest = target.substr(at + way.size());
        const auto slash = rest.find('/');
        if (slash == std::string_view::npos || std::ranges::count(target.substr(0, at), '/') != 2) {
            continue;
        }
        return hugging_face(
            target.substr(1, at - 1), rest.substr(0, slash), rest.substr(slash + 1)
        );
    }
    return std::nullopt;
}

// "bucket/key"; the key is not encoded.
Result<Source> parse_bucket(std::string_view text) {
    const auto slash = text.find('/');
    const std::string_view key = slash == std::string_view::npos ? "" : text.substr(slash + 1);
    const bool is_key = !key.empty() && !key.ends_with('/') && std::ranges::all_of(key, [](char c) {
        return static_cast<unsigned char>(c) >= ' ' && c != '\x7f';
    });
    if (slash == 0 || !is_key) {
        return wrong("this names no object of a bucket");
    }
    Source source;
    source.kind = Source::Kind::bucket;
    source.bucket = text.substr(0, slash);
    source.key = key;
    return source;
}

Result<Source> parse_upload(std::string_view text) {
    if (!is_sha256(text)) {
        return wrong("an upload is named by its SHA-256, in small letters");
    }
    Source source;
    source.kind = Source::Kind::upload;
    source.sha256 = text;
    return source;
}

Result<Source> parse_url(std::string_view text) {
    const auto url = net::Url::parse(text);
    if (!url || (url->scheme != "https" && url->scheme != "http")) {
        return wrong(url ? "its scheme must be https" : url.error().message);
    }
    const std::string host = lower(url->host);
    if (host == kHuggingFaceHost && url->is_tls()) {
        if (auto source = of_hugging_face(*url)) {
            return *source;
        }
    }
    Source source;
    if (host == kCivitaiHost && url->is_tls() && url->target.starts_with(kCivitaiPath) &&
        is_number(std::string_view(url->target).substr(kCivitaiPath.size()))) {
        source.kind = Source::Kind::civitai;
        source.version = url->target.substr(kCivitaiPath.size());
        return source;
    }
    source.url = text;
    return source;
}

// "\"abc\"" as in an ETag; empty: it is a weak one.
std::string_view unquoted(std::string_view etag) {
    const bool is_quoted = etag.size() >= 2 && etag.front() == '"' && etag.back() == '"';
    return is_quoted ? etag.substr(1, etag.size() - 2) : etag.starts_with("W/") ? "" : etag;
}

}  // namespace

Result<Source> parse_source(std::string_view text) {
    if (text.empty() || text.size() > kSourceBytesMax) {
        return wrong("this is no source");
    }
    constexpr std::string_view kHf = "hf:";
    constexpr std::string_view kCivitai = "civitai:";
    constexpr std::string_view kBucket = "s3://";
    constexpr std::string_view kUpload = "upload:";
    if (text.starts_with(kBucket)) {
        return parse_bucket(text.substr(kBucket.size()));
    }
    if (text.starts_with(kUpload)) {
        return parse_upload(text.substr(kUpload.size()));
    }
    if (text.starts_with(kHf)) {
        return parse_hugging_face(text.substr(kHf.size()));
    }
    if (text.starts_with(kCivitai)) {
        Source source;
        source.kind = Source::Kind::civitai;
        source.version = text.substr(kCivitai.size());
        return is_number(source.version) ? Result<Source>(std::move(source))
                                         : wrong("a version of Civitai is a number");
    }
    return parse_url(text);
}

std::string shown_source(std::string_view text) {
    return std::string(text.substr(0, text.find('?')));
}

std::string hugging_face_url(const Endpoints& at, const Source& source) {
    return at.hugging_face + "/" + source.repo + "/resolve/" + source.revision + "/" + source.path;
}

Result<Target> read_hugging_face(
    const Endpoints& at, const Source& source, int status, const net::Headers& headers
) {
    const bool is_there = status == 200 || (status >= 300 && status < 400);
    if (!is_there) {
        return fail(refusal("Hugging Face", status, headers));
    }
    Source pinned = source;
    const std::string_view commit = headers.get("X-Repo-Commit");
    constexpr std::size_t kCommitDigits = 40;
    if (commit.size() == kCommitDigits &&
        commit.find_first_not_of("0123456789abcdef") == std::string_view::npos) {
        pinned.revision = commit;
    }
    Target target;
    target.url = hugging_face_url(at, pinned);
    const std::string_view hash = unquoted(headers.get("X-Linked-Etag"));
    if (is_sha256(hash)) {  // of small files it is git's, of something else
        target.sha256 = hash;
    }
    target.bytes = number_in(headers.get("X-Linked-Size"));
    return target;
}

std::string civitai_url(const Endpoints& at, const Source& source) {
    return at.civitai + "/api/v1/model-versions/" + source.version;
}

Result<Target> read_civitai(const Endpoints& at, const Source& source, std::string_view body) {
    const auto document = json::parse_object(body);
    const auto files = document ? json::find_array(*document, "files")
                                : Result<const json::array*>(fail(document.error()));
    const json::object* chosen = nullptr;
    if (files && *files != nullptr) {
        for (const json::value& file : **files) {
            const json::object* one = file.if_object();
            const json::value* primary = one == nullptr ? nullptr : json::find(*one, "primary");
            const bool is_primary = primary != nullptr && primary->is_bool() && primary->get_bool();
            if (one != nullptr && (chosen == nullptr || is_primary)) {
                chosen = one;
            }
        }
    }
    if (chosen == nullptr) {
        return fail(
            Code::upstream_error, "Civitai tells of no file for the version " + source.version
        );
    }
    Target target;
    target.url = at.civitai + std::string(kCivitaiPath) + source.version;
    // An address of another host would be asked with nothing that Civitai needs.
    const auto told = json::find_string(*chosen, "downloadUrl");
    if (told && *told && (*told)->starts_with(at.civitai + "/")) {
        target.url = **told;
    }
    const auto hashes = json::find_object(*chosen, "hashes");
    if (hashes && *hashes != nullptr) {
        const auto hash = json::find_string(**hashes, "SHA256");
        if (hash && *hash && is_sha256(lower(**hash))) {
            target.sha256 = lower(**hash);
        }
    }
    return target;
}

}  // namespace comfyd::models
