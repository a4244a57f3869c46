#include "exchange.h"

#include <sys/socket.h>

#include <algorithm>

#include "connections.h"

namespace volta::app {

ssize_t Exchange::read(char* to, size_t size) {
  const size_t count = left_.copy(to, size);
  left_.remove_prefix(count);
  return ssize_t(count);
}

ssize_t Exchange::write(const char* from, size_t size) {
  if (broken_) return -1;
  waiting_.append(from, size);
  ++writes_;
  if (writes_ == 2) finish();
  if (writes_ > 2) {
    broken_ = !send_all(socket_, waiting_, patience_);
    waiting_.clear();
  }
  return broken_ ? -1 : ssize_t(size);
}

bool Exchange::finish() {
  std::string_view left = waiting_;
  broken_ = broken_ || !send_now(socket_, left);
  waiting_.erase(0, waiting_.size() - left.size());
  return !broken_;
}

std::string Exchange::unsent() { return broken_ ? std::string() : std::move(waiting_); }

bool Exchange::there() const {
  char byte = 0;
  const ssize_t size = ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return !broken_ && (size > 0 || (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)));
}

static thread_local const Exchange* answering = nullptr;

const Exchange* Exchange::current() { return answering; }

bool Router::handle(Exchange& exchange, bool last) {
  answering = &exchange;
  bool closed = false;
  // From version 0.18 on, process_request wants to know the addresses.
  const auto process = [&](auto& stream) {
    if constexpr (requires { process_request(stream, last, closed, nullptr); })
      return process_request(stream, last, closed, nullptr);
    else return process_request(stream, "", 0, "", 0, last, closed, nullptr);
  };
  bool fine = false;
  try {
    fine = process(static_cast<httplib::Stream&>(exchange));
  } catch (const std::exception&) {
    fine = false;  // in the middle of an answer: all that is left is to end the connection
  }
  answering = nullptr;
  return exchange.finish() && fine && !closed && !last;
}

}  // namespace volta::app
