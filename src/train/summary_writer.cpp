// What is in TensorBoard's events, and the file they go to.
#include <volta/train/summary_writer.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>

#include <volta/autograd.h>
#include <volta/grad_mode.h>
#include <volta/ops.h>

#include "core/check.h"
#include "train/event_record.h"
#include "train/output_file.h"
#include "train/png.h"
#include "train/text.h"

namespace volta {
namespace {

using Clock = std::chrono::steady_clock;
constexpr const char* op = "SummaryWriter";

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  std::string text = name.data();
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

// Names sort by time; the process and a count keep those of one second apart.
std::string file_name(const std::string& suffix) {
  static std::atomic<int64_t> made = 0;
  require(suffix.find('/') == std::string::npos, ErrorKind::argument, op, "the suffix '", suffix, "' names a folder");
  const std::string seconds = std::to_string(int64_t(wall_time()));
  return "events.out.tfevents." + std::string(10 - std::min<size_t>(10, seconds.size()), '0') + seconds + "." +
         host_name() + "." + std::to_string(getpid()) + "." + std::to_string(made.fetch_add(1)) + suffix;
}

ProtoMessage tagged(const std::string& tag) {
  require(!tag.empty(), ErrorKind::argument, op, "a tag is empty");
  ProtoMessage value;
  value.bytes(1, valid_utf8(tag));
  return value;
}

// Upper ends of the buckets: -1.1^k … 0 … 1.1^k from 1e-12 to 1e20, and the largest number.
const std::vector<double>& bucket_limits() {
  static const std::vector<double> limits = [] {
    std::vector<double> up;
    for (double v = 1e-12; v < 1e20; v *= 1.1) up.push_back(v);
    std::vector<double> all;
    for (size_t i = up.size(); i-- > 0;) all.push_back(-up[i]);
    all.push_back(0);
    all.insert(all.end(), up.begin(), up.end());
    all.push_back(std::numeric_limits<double>::max());
    return all;
  }();
  return limits;
}

ProtoMessage histogram_of(const std::vector<double>& values) {
  const std::vector<double>& limits = bucket_limits();
  std::vector<double> counts(limits.size());
  double low = 0, high = 0, number = 0, sum = 0, squares = 0;
  for (const double v : values) {
    if (!std::isfinite(v)) continue;
    low = number == 0 ? v : std::min(low, v);
    high = number == 0 ? v : std::max(high, v);
    number += 1;
    sum += v;
    squares += v * v;
    const auto place = std::upper_bound(limits.begin(), limits.end(), v) - limits.begin();
    counts[std::min(size_t(place), limits.size() - 1)] += 1;
  }
  // Without the empty buckets at either end, but for one below, whose limit is where the first begins.
  size_t begin = 0, end = counts.size();
  while (begin + 1 < end && counts[begin] == 0) ++begin;
  while (end > begin + 1 && counts[end - 1] == 0) --end;
  begin -= begin > 0;
  const auto part = [&](const std::vector<double>& v) {
    return std::vector<double>(v.begin() + std::ptrdiff_t(begin), v.begin() + std::ptrdiff_t(end));
  };
  ProtoMessage histogram;
  histogram.number(1, low).number(2, high).number(3, number).number(4, sum).number(5, squares);
  return histogram.numbers(6, part(limits)).numbers(7, part(counts));
}

// Rows of pixels of one byte per channel.
Tensor pixels_of(const Tensor& image) {
  const NoGrad off;
  const Tensor wide = image.dim() == 2 ? image.unsqueeze(0) : image;
  require(wide.dim() == 3 && (wide.size(0) == 1 || wide.size(0) == 3 || wide.size(0) == 4), ErrorKind::shape, op,
          "an image is [H, W] or [C, H, W] with 1, 3 or 4 channels, got ", image);
  require(image.dtype() == u8 || is_floating(image.dtype()), ErrorKind::dtype, op,
          "an image is u8 from 0 to 255 or floating from 0 to 1, got ", image.dtype());
  const Tensor bytes =
      image.dtype() == u8 ? wide : (nan_to_num(wide.detach().to(f32)).clamp(0, 1) * 255).round().to(u8);
  return bytes.permute({1, 2, 0}).contiguous();
}

}  // namespace

struct SummaryWriter::State {
  State(const std::string& folder, const SummaryWriterOptions& options)
      : file(folder + "/" + file_name(options.suffix), false, op), flush_seconds(options.flush_seconds) {}

  void write(const ProtoMessage& event) {
    const std::string record = tf_record(event.text());
    const std::lock_guard lock(mutex);
    file.write(record);
    if (std::chrono::duration<double>(Clock::now() - flushed).count() >= flush_seconds) flush();
  }
  void write_value(const ProtoMessage& value, int64_t step) {
    ProtoMessage event;
    write(event.number(1, wall_time()).whole(2, step).message(5, ProtoMessage().message(1, value)));
  }
  void flush() {
    file.flush();
    flushed = Clock::now();
  }

  std::mutex mutex;
  OutputFile file;
  double flush_seconds;
  Clock::time_point flushed = Clock::now();
};

SummaryWriter::SummaryWriter(const std::string& folder, const SummaryWriterOptions& options) {
  require(!folder.empty(), ErrorKind::argument, op, "the folder has no name");
  require(options.flush_seconds >= 0, ErrorKind::argument, op, "flush_seconds is negative");
  make_folder(folder, op);
  state_ = std::make_unique<State>(folder, options);
  ProtoMessage version;
  state_->write(version.number(1, wall_time()).bytes(3, "brain.Event:2"));
  flush();
}
SummaryWriter::~SummaryWriter() = default;

void SummaryWriter::add_scalar(const std::string& tag, double value, int64_t step) {
  state_->write_value(tagged(tag).single(2, float(value)), step);
}

void SummaryWriter::add_scalars(const std::string& tag, const Dict<double>& values, int64_t step) {
  const std::string folder = tag + "/";
  for (const auto& [name, value] : values) add_scalar(folder + name, value, step);
}

void SummaryWriter::add_histogram(const std::string& tag, const Tensor& values, int64_t step) {
  require(values.checked(op).numel() > 0, ErrorKind::shape, op, "a histogram of no values: ", values);
  state_->write_value(tagged(tag).message(5, histogram_of(values.detach().to_vector<double>())), step);
}

void SummaryWriter::add_image(const std::string& tag, const Tensor& image, int64_t step) {
  const Tensor pixels = pixels_of(image.checked(op));
  const int64_t height = pixels.size(0), width = pixels.size(1), channels = pixels.size(2);
  const std::string file = png(pixels.to_vector<uint8_t>(), height, width, channels, op);
  ProtoMessage message;
  message.whole(1, height).whole(2, width).whole(3, channels).bytes(4, file);
  state_->write_value(tagged(tag).message(4, message), step);
}

void SummaryWriter::add_text(const std::string& tag, const std::string& text, int64_t step) {
  constexpr int64_t string_type = 7;  // DT_STRING
  ProtoMessage plugin, metadata, dim, shape, tensor;
  metadata.message(1, plugin.bytes(1, "text"));
  shape.message(2, dim.whole(1, 1));
  tensor.whole(1, string_type).message(2, shape).bytes(8, valid_utf8(text));
  state_->write_value(tagged(tag).message(9, metadata).message(8, tensor), step);
}

void SummaryWriter::add_graph_text(const std::string& tag, const Tensor& result, int64_t step) {
  std::string text;  // indented lines are code in Markdown
  const std::string graph = graph_text(result);
  for (size_t at = 0; at < graph.size();) {
    const size_t end = std::min(graph.find('\n', at), graph.size());
    text += "    " + graph.substr(at, end - at) + "\n";
    at = end + 1;
  }
  add_text(tag, text, step);
}

void SummaryWriter::flush() {
  const std::lock_guard lock(state_->mutex);
  state_->flush();
}

std::string SummaryWriter::path() const { return state_->file.path(); }

}  // namespace volta
