// The settings of where outputs go, how long they stay and how they are linked to.
#include "app/config/setting_kinds.hpp"

namespace comfyd::app {

std::vector<Setting> result_settings() {
    using assets::RetentionClass;
    return {
        text(
            "results.store",
            "Name of the store for outputs whose request names none; local: a folder of this "
            "server.",
            &Config::results_store
        ),
        choice(
            "results.retention",
            "How long outputs are kept whose request does not say: immediate, standard, archive or "
            "glacier. Standard ones stay as long as their job.",
            &Config::results_retention,
            {{"immediate", RetentionClass::immediate},
             {"standard", RetentionClass::standard},
             {"archive", RetentionClass::archive},
             {"glacier", RetentionClass::glacier}}
        ),
        decimal(
            "results.immediate_hours",
            "Hours that outputs of the class immediate are kept.",
            &Config::results_immediate_hours,
            0.0001,
            24 * 365
        ),
        decimal(
            "results.archive_days",
            "Days that outputs of the class archive are kept; the cheaper storage they move to is "
            "that of the store.",
            &Config::results_archive_days,
            0.0001,
            36'500
        ),
        decimal(
            "results.glacier_days",
            "The same for the class glacier.",
            &Config::results_glacier_days,
            0.0001,
            36'500
        ),
        text(
            "results.cdn_url",
            "Prefix of links to outputs, where a CDN fetches them from comfyd; empty: as other "
            "links.",
            &Config::results_cdn_url
        ),
        decimal(
            "results.link_hours",
            "Hours that a signed link to an output works.",
            &Config::results_link_hours,
            0.001,
            24 * 365
        ),
        number(
            "results.inline_kb",
            "KB of base64 that one answer may hold where a request asks for its outputs in the "
            "answer; others are linked to. 0: none.",
            &Config::results_inline_kb,
            0,
            64 * 1024
        ),
        flag(
            "results.allow_private_buckets",
            "Requests may name buckets in private networks, and such that are asked without TLS.",
            &Config::results_allow_private_buckets
        ),
        text(
            "results.buckets_ca_file",
            "PEM file with further certificate authorities for the buckets of requests.",
            &Config::results_buckets_ca_file
        ),
    };
}

}  // namespace comfyd::app
