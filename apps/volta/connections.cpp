#include "connections.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include <volta/error.h>

#include "framer.h"

namespace volta::app {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds tick{250};
constexpr std::chrono::seconds drain_time{2};
constexpr int64_t bodies_buffered = 16;  // of the largest size; small ones hardly count
constexpr int max_refused = 256;         // connections above the limit that are told so

[[noreturn]] void fail(const std::string& why) { throw Error(Error::Kind::io, "serve", why); }

std::string cure(int error, int port) {
  const std::string number = std::to_string(port);
  switch (error) {
    case EADDRINUSE:
      return "the port is in use; choose another with --port (0 takes any), or end the program that has it (ss -ltnp "
             "'sport = :" +
             number + "' names it)";
    case EACCES: return "the port is not allowed; choose one above 1023 with --port";
    case EADDRNOTAVAIL: return "this machine does not have that address; try --host 127.0.0.1 or --host 0.0.0.0";
    default: return std::strerror(error);
  }
}

int listening_socket(const addrinfo& address) {
  const int socket =
      ::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address.ai_protocol);
  if (socket < 0) return -1;
  const int yes = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(socket, address.ai_addr, address.ai_addrlen) == 0 && ::listen(socket, SOMAXCONN) == 0) return socket;
  const int error = errno;
  ::close(socket);
  errno = error;
  return -1;
}

int port_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  const auto* const six = reinterpret_cast<const sockaddr_in6*>(&address);
  const auto* const four = reinterpret_cast<const sockaddr_in*>(&address);
  return ntohs(address.ss_family == AF_INET6 ? six->sin6_port : four->sin_port);
}

}  // namespace

bool send_now(int socket, std::string_view& bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) bytes.remove_prefix(size_t(sent));
    else if (errno != EINTR) return errno == EAGAIN || errno == EWOULDBLOCK;
  }
  return true;
}

bool send_all(int socket, std::string_view bytes, std::chrono::milliseconds& time) {
  while (send_now(socket, bytes)) {
    if (bytes.empty()) return true;
    if (time.count() <= 0) return false;
    const auto start = Clock::now();
    pollfd one{socket, POLLOUT, 0};
    if (::poll(&one, 1, int(time.count())) < 0 && errno != EINTR) return false;
    time -= std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
  }
  return false;
}

// While `waiting`, a connection is any thread's to take and the clock's to end; else it belongs to the thread that took it.
struct Connections::Connection {
  explicit Connection(const ConnectionLimits& limits) : framer(limits.max_body) {}
  std::string buffer;
  std::string output;  // of an answer, not taken yet: the next request waits for it
  Framer framer;
  Clock::time_point deadline;
  bool waiting = true, late = false;
  bool told_to_continue = false;
  bool ending = false;    // closed when the output is sent
  bool draining = false;  // answered; what the client still sends is thrown away, or a reset would overtake the answer
};

Connections::Connections(const ConnectionLimits& limits, ConnectionHandlers handlers)
    : limits_(limits), handlers_(std::move(handlers)) {
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (epoll_ < 0 || wake_ < 0) fail(std::string("cannot wait for connections: ") + std::strerror(errno));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = wake_;
  epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event);
}

Connections::~Connections() {
  for (const auto& [socket, connection] : open_) ::close(socket);
  for (const int descriptor : {listener_, wake_, epoll_})
    if (descriptor >= 0) ::close(descriptor);
}

int Connections::bind(const std::string& host, int port) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found);
  if (error != 0)
    fail("cannot listen on " + host + ": " + gai_strerror(error) + "; try --host 127.0.0.1 or --host 0.0.0.0");
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, &freeaddrinfo);
  for (const addrinfo* a = found; a && listener_ < 0; a = a->ai_next) listener_ = listening_socket(*a);
  if (listener_ < 0) fail("cannot listen on " + host + ":" + std::to_string(port) + ": " + cure(errno, port));
  arm(listener_, true);
  return port_of(listener_);
}

int64_t Connections::count() const {
  const std::scoped_lock lock(mutex_);
  return int64_t(open_.size());
}

void Connections::arm(int socket, bool first, bool to_send) {
  epoll_event event{};
  event.events = EPOLLONESHOT | (to_send ? EPOLLOUT : EPOLLIN | EPOLLRDHUP);
  event.data.fd = socket;
  epoll_ctl(epoll_, first ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, socket, &event);
}

void Connections::run() {
  std::vector<std::thread> threads;
  for (int i = 0; i < limits_.threads; ++i) threads.emplace_back([this] { work(); });
  pollfd wake{wake_, POLLIN, 0};
  while (!stopping_) {
    ::poll(&wake, 1, int(tick.count()));
    cut_late();
  }
  for (std::thread& thread : threads) thread.join();
  send_what_is_left();
}

void Connections::stop() {
  stopping_ = true;
  const uint64_t one = 1;
  if (::write(wake_, &one, sizeof one) < 0) return;  // full: it has been woken before
}

// After stop, a thread goes on while there is anything that has arrived.
void Connections::work() {
  bool ending = false;
  while (true) {
    epoll_event events[2];
    const int count = epoll_wait(epoll_, events, ending ? 2 : 1, ending ? 0 : -1);
    if (count < 0 && errno != EINTR) return;
    bool idle = true;
    for (int i = 0; i < count; ++i) {
      const int descriptor = events[i].data.fd;
      if (descriptor == wake_) {
        ending = true;
        continue;
      }
      idle = false;
      if (descriptor == listener_) accept_all();
      else serve(descriptor);
    }
    if (ending && idle && count >= 0) return;
  }
}

void Connections::accept_all() {
  while (true) {
    const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      break;
    }
    const int yes = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    auto connection = std::make_unique<Connection>(limits_);
    connection->deadline = Clock::now() + limits_.timeout;
    const int64_t open = count();
    if (open >= limits_.connections) refuse(socket, *connection, 503, "too many connections");
    const std::scoped_lock lock(mutex_);
    if (open >= limits_.connections + max_refused) {
      ::close(socket);
      continue;
    }
    open_[socket] = std::move(connection);
    arm(socket, true);
  }
  if (!stopping_) arm(listener_, false);
}

void Connections::serve(int socket) {
  Connection* taken = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = open_.find(socket);
    if (found == open_.end()) return;
    taken = found->second.get();
    taken->waiting = false;
  }
  Connection& c = *taken;
  if (!c.output.empty()) return go_on_sending(socket, c);
  char bytes[64 << 10];
  const ssize_t size = ::recv(socket, bytes, sizeof bytes, MSG_DONTWAIT);
  const bool gone = size == 0 || (size < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
  if (size > 0 && !c.draining) {
    if (c.buffer.empty()) c.deadline = Clock::now() + limits_.timeout;
    c.buffer.append(bytes, size_t(size));
    buffered_ += size;
    if (!answer_arrived(socket, c)) return;
  }
  if ((c.late || size == 0) && !c.buffer.empty() && !c.draining && c.output.empty()) {
    std::chrono::milliseconds none{0};
    send_all(socket,
             c.late ? handlers_.refusal(408, "the request did not arrive in time")
                    : handlers_.refusal(400, "the request ended before it was whole"),
             none);
  }
  if (gone || c.late) close(socket);
  else wait_for_more(socket, c);
}

// Whole requests at the front of the buffer; false if the connection was closed.
bool Connections::answer_arrived(int socket, Connection& c) {
  while (!c.buffer.empty()) {
    const Framer::State state = c.framer.look(c.buffer);
    if (state == Framer::State::refused) return refuse(socket, c, c.framer.status(), c.framer.why()), true;
    if (state == Framer::State::partial) {
      if (buffered_ > bodies_buffered * int64_t(limits_.max_body + Framer::max_head))
        return refuse(socket, c, 503, "too many requests are on their way"), true;
      if (c.framer.expects_continue() && !c.told_to_continue) {
        std::chrono::milliseconds none{0};
        send_all(socket, "HTTP/1.1 100 Continue\r\n\r\n", none);
        c.told_to_continue = true;
      }
      return true;
    }
    const size_t size = c.framer.size();
    const std::string_view arrived = std::string_view(c.buffer).substr(0, size);
    const std::string joined = c.framer.plain() ? std::string() : c.framer.joined(arrived);
    Answered answered = handlers_.answer(c.framer.plain() ? arrived : joined, socket, stopping_);
    c.buffer.erase(0, size);
    buffered_ -= int64_t(size);
    c.framer = Framer(limits_.max_body);
    c.told_to_continue = false;
    c.output = std::move(answered.unsent);
    c.ending = !answered.stays || stopping_;
    if (!c.output.empty()) return c.deadline = Clock::now() + limits_.timeout, true;
    if (c.ending) return close(socket), false;
    c.deadline = Clock::now() + (c.buffer.empty() ? limits_.idle : limits_.timeout);
  }
  if (c.buffer.capacity() > 64 << 10) std::string().swap(c.buffer);  // an idle client keeps no large body
  return true;
}

static bool send_output(int socket, std::string& output) {
  std::string_view left = output;
  const bool there = send_now(socket, left);
  output.erase(0, output.size() - left.size());
  return there;
}

// The client has room again, or is gone.
void Connections::go_on_sending(int socket, Connection& c) {
  if (!send_output(socket, c.output) || (c.output.empty() && c.ending)) return close(socket);
  if (c.output.empty()) {
    c.deadline = Clock::now() + (c.buffer.empty() ? limits_.idle : limits_.timeout);
    if (!answer_arrived(socket, c)) return;
  }
  wait_for_more(socket, c);
}

// After the threads have ended: answers that clients are still taking.
void Connections::send_what_is_left() {
  while (true) {
    std::vector<pollfd> waiting;
    for (const auto& [socket, c] : open_) {
      if (c->output.empty() || c->deadline < Clock::now()) continue;
      if (!send_output(socket, c->output)) c->output.clear();
      if (!c->output.empty()) waiting.push_back({socket, POLLOUT, 0});
    }
    if (waiting.empty()) return;
    ::poll(waiting.data(), waiting.size(), int(tick.count()));
  }
}

void Connections::refuse(int socket, Connection& c, int status, const std::string& why) {
  std::chrono::milliseconds none{0};
  send_all(socket, handlers_.refusal(status, why), none);
  ::shutdown(socket, SHUT_WR);
  buffered_ -= int64_t(c.buffer.size());
  std::string().swap(c.buffer);
  c.draining = true;
  c.deadline = Clock::now() + drain_time;
}

void Connections::wait_for_more(int socket, Connection& c) {
  const std::scoped_lock lock(mutex_);
  c.waiting = true;
  arm(socket, false, !c.output.empty());
}

void Connections::close(int socket) {
  const std::scoped_lock lock(mutex_);
  const auto found = open_.find(socket);
  buffered_ -= int64_t(found->second->buffer.size());
  open_.erase(found);
  ::close(socket);
}

// The thread that hears of the end closes: a number must not be used again while another thread may still mean the old one.
void Connections::cut_late() {
  const auto now = Clock::now();
  const std::scoped_lock lock(mutex_);
  for (const auto& [socket, connection] : open_)
    if (connection->waiting && !connection->late && connection->deadline < now) {
      connection->late = true;
      ::shutdown(socket, connection->output.empty() ? SHUT_RD : SHUT_RDWR);
    }
}

}  // namespace volta::app
