// cpp-httplib for what it is good at: one request that has arrived goes in, its answer comes out on the socket.
#pragma once
#include <httplib.h>

#include <chrono>
#include <string>
#include <string_view>

namespace volta::app {

// Whether a client is still there is asked by one name up to version 0.18, by others later.
template <class S>
concept AskedIfWritable = requires(const S& stream) {
  stream.is_writable();
};
template <class S, bool early = AskedIfWritable<S>> class Attended : public S {
 public:
  bool is_writable() const override { return there(); }
  virtual bool there() const = 0;
};
template <class S> class Attended<S, false> : public S {
 public:
  bool wait_readable() const override { return this->is_readable(); }
  bool wait_writable() const override { return there(); }
  time_t duration() const override { return 0; }
  virtual bool there() const = 0;
};

// Reads from memory, writes to the socket. The start of an answer waits for what follows it, to leave with it; of an answer
// that is whole then, what the client does not take at once is left for unsent(). Only a stream waits for its client.
class Exchange : public Attended<httplib::Stream> {
 public:
  Exchange(std::string_view request, int socket, std::chrono::milliseconds patience)
      : left_(request), socket_(socket), patience_(patience) {}

  using httplib::Stream::write;
  bool is_readable() const override { return !left_.empty(); }
  bool there() const override;  // the client has not hung up
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return -1; }  // for nobody to wait on

  static const Exchange* current();  // the one that this thread is answering
  bool finish();                     // sends what still waits and goes at once; false if the client is gone
  std::string unsent();              // the rest

 private:
  std::string_view left_;
  int socket_;
  std::chrono::milliseconds patience_;  // of waiting for the client to read, all together
  std::string waiting_;
  int writes_ = 0;
  bool broken_ = false;
};

// The routes and handlers of httplib::Server without its sockets and threads.
class Router : public httplib::Server {
 public:
  Router() { svr_sock_ = 0; }  // else streams would end at once, for a server that is shutting down
  // Says whether the connection may stay open.
  bool handle(Exchange& exchange, bool last);
};

}  // namespace volta::app
