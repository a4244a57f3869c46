// What the tests of data sets and readers share.
#pragma once
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

#include <volta/error.h>

namespace volta::test {

// The message of the Error that f must throw.
inline std::string refused(const std::function<void()>& f, Error::Kind kind = Error::Kind::io) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(int(e.kind()), int(kind)) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}
inline std::string refused(Error::Kind kind, const std::function<void()>& f) { return refused(f, kind); }

// Whether f throws an Error for want of memory in a process that may have so many bytes of addresses.
inline bool lacks_memory(rlim_t bytes, const std::function<void()>& f) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{bytes, bytes};
    setrlimit(RLIMIT_AS, &limit);
    try {
      f();
    } catch (const Error& e) {
      _exit(e.kind() == Error::Kind::memory ? 7 : 1);
    } catch (...) {
      _exit(2);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 7;
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace volta::test
