// The settings of who may connect, by which name, with which key, and how much at a time.
#include "app/config/setting_kinds.hpp"

namespace comfyd::app {

std::vector<Setting> serving_settings() {
    return {
        text(
            "listen",
            "Address and port to serve on, or unix:/path; port 0 takes a free one.",
            &Config::listen
        ),
        text(
            "tls.certificate",
            "PEM file with the certificate to show, and its chain; a renewed one is taken into use "
            "within seconds. Empty: plain HTTP.",
            &Config::tls_certificate
        ),
        text("tls.key", "PEM file with the certificate's key.", &Config::tls_key),
        text(
            "public_url",
            "Prefix of links in answers, where clients reach comfyd by another address.",
            &Config::public_url
        ),
        words(
            "hosts",
            "Names by which clients may address comfyd, beside those of loopback and public_url; * "
            "for any. Empty: any, unless it listens on loopback.",
            &Config::hosts
        ),
        words(
            "proxies.trusted",
            "Addresses and ranges of reverse proxies that are believed when they say whom they ask "
            "for; empty: none.",
            &Config::proxies_trusted
        ),
        flag(
            "proxies.protocol",
            "They speak the PROXY protocol (version 1 or 2), and nobody else may connect.",
            &Config::proxies_protocol
        ),
        choice(
            "proxies.header",
            "Where they say it; the other header is not looked at.",
            &Config::proxies_header,
            {{"x-forwarded-for", net::TrustedProxies::Header::x_forwarded_for},
             {"forwarded", net::TrustedProxies::Header::forwarded}}
        ),
        text(
            "frontend.dir",
            "Folder with the files of ComfyUI's editor, to be served at /; empty: none.",
            &Config::frontend_dir
        ),
        number(
            "io_threads",
            "Threads that serve connections; 0: one per core, at most 8.",
            &Config::io_threads,
            0,
            64
        ),
        words(
            "auth.operators",
            "Names of API keys that may administer the fleet and see all tenants.",
            &Config::operators
        ),
        flag(
            "auth.required",
            "Every request needs credentials, though the configuration has no key: those made at "
            "run time count.",
            &Config::auth_required
        ),
        flag(
            "auth.key_in_query",
            "Take an API key as ?token= on all event streams; stream tickets are safer.",
            &Config::key_in_query
        ),
        flag(
            "metrics.open",
            "Serve /metrics without a key, for scrapers; else it needs an operator's.",
            &Config::metrics_open
        ),
        number("limits.body_mb", "Largest JSON request, in MB.", &Config::body_mb_max, 1, 1024),
        number(
            "limits.upload_mb", "Largest uploaded file, in MB.", &Config::upload_mb_max, 1, 1 << 20
        ),
        number(
            "limits.bodies_mb",
            "Requests other than uploads that are read or answered at the same time, in MB.",
            &Config::bodies_mb_max,
            1,
            1 << 20
        ),
        number(
            "limits.stall_timeout_s",
            "Seconds that a request's body may stop arriving for.",
            &Config::stall_timeout_s,
            1,
            3600
        ),
        number(
            "limits.connections",
            "Open connections; fewer where the system allows fewer open files.",
            &Config::connections_max,
            16,
            1 << 20
        ),
        number(
            "limits.connections_per_address",
            "Open connections from one address on which no good key was shown; 0: a quarter of "
            "all, "
            "and no such limit on loopback.",
            &Config::connections_per_address,
            0,
            1 << 20
        ),
        number(
            "limits.strangers_per_minute",
            "Requests a minute without a good key, from one address, but for loopback; a wrong key "
            "counts as ten. 0: no limit.",
            &Config::strangers_per_minute,
            0,
            1'000'000'000
        ),
        words(
            "limits.blocked_addresses",
            "Addresses and ranges that are answered 403.",
            &Config::blocked_addresses
        ),
        text(
            "limits.tier_default",
            "Tier of tenants for which none is named; empty: they have no limits of a tier.",
            &Config::tier_default
        ),
        number(
            "limits.disk_free_mb",
            "With fewer MB of the disk free nothing new is taken in; 0: 512, or a twentieth of a "
            "small disk.",
            &Config::disk_free_mb,
            0,
            1 << 24
        ),
        number("limits.streams", "Open event streams.", &Config::streams_max, 1, 1 << 20),
        number("limits.queue", "Waiting jobs.", &Config::queue_max, 1, 100'000'000),
        number(
            "limits.header_timeout_s",
            "Seconds for a request's headers to arrive.",
            &Config::header_timeout_s,
            1,
            3600
        ),
        number(
            "limits.idle_timeout_s",
            "Seconds that an idle connection is kept.",
            &Config::idle_timeout_s,
            1,
            86'400
        ),
    };
}

}  // namespace comfyd::app
