// What the tests of data sets and readers share.
#pragma once
#include <gtest/gtest.h>

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

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace volta::test
