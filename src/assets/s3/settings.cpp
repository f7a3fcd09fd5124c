#include "assets/s3/s3_store.hpp"
#include "assets/store_options.hpp"

namespace comfyd::assets::s3 {
namespace {

Style style_of(const std::string& text) {
    return text == "path" ? Style::path
                          : (text == "virtual" ? Style::virtual_host : Style::automatic);
}

// "comfyd" and "/comfyd/" both mean "comfyd/".
std::string folder_of(std::string prefix) {
    while (prefix.starts_with('/')) {
        prefix.erase(0, 1);
    }
    return prefix.empty() || prefix.ends_with('/') ? prefix : prefix + "/";
}

Result<> check(const S3Settings& settings) {
    const Credentials& given = settings.credentials.given;
    if (given.access_key.empty() != given.secret_key.empty()) {
        return fail(Code::config_invalid, "access_key and secret_key: give both or neither");
    }
    if (!given.access_key.empty() && !settings.credentials.profile.empty()) {
        return fail(Code::config_invalid, "profile: keys are given already");
    }
    if (!settings.bucket.kms_key.empty() && settings.bucket.encryption != "aws:kms") {
        return fail(Code::config_invalid, "kms_key: needs sse: aws:kms");
    }
    auto address = address_of(settings.requests.name);
    return address ? Result<>() : fail(std::move(address.error()));
}

}  // namespace

Result<S3Settings> read_settings(const std::map<std::string, std::string>& options) {
    StoreOptionReader reader(options);
    S3Settings settings;
    BucketName& name = settings.requests.name;
    name.bucket = reader.take_required("bucket");
    name.endpoint = reader.take("endpoint");
    name.region = reader.take("region");
    name.style = style_of(reader.take_one_of("style", {"auto", "path", "virtual"}));
    if (name.region.empty() && name.endpoint.empty()) {
        const Environment environment = process_environment();
        name.region =
            environment("AWS_REGION").value_or(environment("AWS_DEFAULT_REGION").value_or(""));
    }
    settings.requests.public_endpoint = reader.take("public_endpoint");
    settings.requests.ca_file = reader.take("ca_file");
    settings.gives_links = reader.take_one_of("links", {"signed", "streamed"}) == "signed";

    settings.credentials.given = {
        reader.take("access_key"), reader.take("secret_key"), reader.take("session_token")
    };
    settings.credentials.profile = reader.take("profile");

    BucketOptions& bucket = settings.bucket;
    bucket.prefix = folder_of(reader.take("prefix"));
    bucket.encryption = reader.take("sse");
    bucket.kms_key = reader.take("kms_key");
    bucket.classes = default_classes(name);
    const auto override_with = [](std::string& which, std::string value) {
        if (!value.empty()) {
            which = std::move(value);
        }
    };
    override_with(bucket.classes.standard, reader.take("storage_class"));
    override_with(bucket.classes.archive, reader.take("archive_class"));
    override_with(bucket.classes.glacier, reader.take("glacier_class"));
    const std::string versions = reader.take_one_of("versions", {"auto", "keep", "remove"});
    bucket.removes_versions = versions == "remove" || (versions == "auto" && is_backblaze(name));
    if (auto finished = reader.finish(); !finished) {
        return fail(std::move(finished.error()));
    }
    if (auto checked = check(settings); !checked) {
        return fail(std::move(checked.error()));
    }
    return settings;
}

}  // namespace comfyd::assets::s3
