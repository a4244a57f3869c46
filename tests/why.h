// What an Error says.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include <volta/error.h>

namespace volta::test {

// The text of the Error that f throws; empty if it throws none.
inline std::string why(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

// EXPECT_TRUE(says([&] { f(); }, "text")): that f throws an Error with this text.
inline testing::AssertionResult says(const std::function<void()>& f, const char* text) {
  const std::string message = why(f);
  if (message.find(text) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << (message.empty() ? "no error" : message);
}

}  // namespace volta::test
