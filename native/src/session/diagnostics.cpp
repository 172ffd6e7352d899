#include "ds4/diagnostics.h"

#include "session/impl.h"

namespace ds4 {
namespace {

std::vector<float> read(const ggml_tensor* t, session::Traffic& traffic) {
    std::vector<float> data(ggml_nelements(t));
    traffic.get(t, data.data());
    return data;
}

}  // namespace

SessionDiagnostics Session::diagnostics() { return SessionDiagnostics(*impl_); }

TrafficCount SessionDiagnostics::traffic() const { return {session_->traffic.to_device, session_->traffic.to_host}; }

DraftTrace SessionDiagnostics::draft_trace() const {
    const DeviceCall call(*session_);
    const graph::Draft* draft = session_->latest_draft;
    if (!draft) throw RequestError("nothing has been drafted yet");
    const auto rows = static_cast<size_t>(session_->drafter->hyperparameters().block);
    return {rows, read(draft->hidden, session_->traffic), read(draft->base, session_->traffic)};
}

}  // namespace ds4
