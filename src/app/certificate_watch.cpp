#include "app/certificate_watch.hpp"

#include <utility>

#include "base/log.hpp"

namespace comfyd::app {
namespace {

constexpr Millis kPause{2000};
constexpr std::chrono::days kWarnBefore{14};
constexpr std::chrono::hours kWarnEvery{24};

}  // namespace

CertificateWatch::CertificateWatch(
    Executor executor, Clock& clock, std::shared_ptr<net::TlsIdentity> identity
)
    : clock_(clock), identity_(std::move(identity)), tasks_(executor) {}

void CertificateWatch::start() {
    tasks_.spawn("certificate watch", keep_looking());
}

Task<> CertificateWatch::stop() {
    tasks_.cancel();
    co_await tasks_.join();
}

Task<> CertificateWatch::keep_looking() {
    bool goes_on = true;
    while (goes_on) {
        look();
        warn_of_end();
        goes_on = co_await sleep_for(kPause);
    }
}

void CertificateWatch::look() {
    const auto renewed = identity_->reload();
    const std::string complaint = renewed ? "" : renewed.error().message;
    if (!complaint.empty() && complaint != complaint_) {
        log::warning(
            "the certificate cannot be renewed; the one before stays in use", {{"error", complaint}}
        );
    }
    complaint_ = complaint;
    if (renewed && *renewed) {
        warned_at_.reset();
        log::info(
            "a renewed certificate is in use", {{"expires_at", to_rfc3339(identity_->expires_at())}}
        );
    }
}

void CertificateWatch::warn_of_end() {
    const Time now = clock_.now();
    const Time end = identity_->expires_at();
    if (end - now > kWarnBefore || (warned_at_ && now - *warned_at_ < kWarnEvery)) {
        return;
    }
    warned_at_ = now;
    log::warning(
        end <= now ? "the certificate has expired: clients refuse it"
                   : "the certificate expires soon",
        {{"expires_at", to_rfc3339(end)}}
    );
}

}  // namespace comfyd::app
