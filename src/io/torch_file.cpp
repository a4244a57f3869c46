// torch.save's archive: <name>/data.pkl, <name>/data/<key> for each storage, <name>/byteorder, <name>/version.
#include "io/torch_file.h"

#include <algorithm>
#include <map>
#include <set>

#include <volta/grad_mode.h>
#include <volta/ops.h>

#include "core/checked_arithmetic.h"
#include "io/endian.h"
#include "io/pickle.h"
#include "io/zip.h"

namespace volta::io {
namespace {

// The member that ends a path of one folder: "archive/data.pkl".
const ZipMember* find_pickle(const ZipArchive& archive) {
  for (const ZipMember& member : archive.members()) {
    const size_t slash = member.name.find('/');
    if (slash != std::string::npos && member.name.substr(slash) == "/data.pkl") return &member;
  }
  return nullptr;
}

class Archive {
 public:
  explicit Archive(const std::shared_ptr<MappedFile>& file) : zip_(file) {
    const FileContext& context = zip_.context();
    const ZipMember* const pickle = find_pickle(zip_);
    context.require(pickle != nullptr, "not a file of torch.save: the archive has no data.pkl");
    folder_ = pickle->name.substr(0, pickle->name.find('/') + 1);
    context.require(
        !zip_.find(folder_ + "constants.pkl"),
        "this is a TorchScript archive, which holds code; save module.state_dict() with torch.save instead");
    if (const ZipMember* const order = zip_.find(folder_ + "byteorder")) {
      const std::string text(as_text(zip_.read(*order).bytes()));
      context.require(text == "little" || text == "big", "its byteorder is '", text.substr(0, 20), "'");
      swapped_ = (text == "big") != (std::endian::native == std::endian::big);
    }
    pickle_ = zip_.read(*pickle);
  }
  TorchValue value() {
    return unpickle(zip_.context(), pickle_.bytes(), [this](const PickledTensor& t) { return tensor(t); });
  }

 private:
  struct Held {
    IntrusivePtr<Storage> storage;
    bool truths = false;  // it has been seen to hold nothing but 0 and 1
  };

  Held& storage_for(const PickledTensor& t) {
    const auto [place, fresh] = storages_.try_emplace({t.storage, swapped_ ? size_of(t.dtype) : 0});
    Held& held = place->second;
    if (!fresh) return held;
    const FileContext& context = zip_.context();
    const ZipMember* const member = zip_.find(folder_ + "data/" + t.storage);
    context.require(member != nullptr, "storage '", t.storage.substr(0, 100), "' is missing");
    const ZipContent content = zip_.read(*member);
    std::byte* const data = content.size > 0 ? content.file->data() + content.begin : nullptr;
    const bool aligned = reinterpret_cast<uintptr_t>(data) % 8 == 0;
    if (aligned && !swapped_) {
      held.storage = foreign_storage(data, int64_t(content.size), Device("cpu"), [file = content.file] {});
      return held;
    }
    held.storage = host_storage(int64_t(content.size), context.op);
    if (content.size == 0) return held;
    std::memcpy(held.storage->data, data, content.size);
    if (swapped_) swap_elements(static_cast<std::byte*>(held.storage->data), content.size, size_t(size_of(t.dtype)));
    return held;
  }

  void check(const PickledTensor& t, int64_t bytes) const {
    const FileContext& context = zip_.context();
    const auto& [shape, strides, offset] = t.layout;
    context.require(t.storage_bytes <= bytes, "storage '", t.storage, "' has ", bytes, " bytes instead of ",
                    t.storage_bytes);
    context.require(shape.size() == strides.size() && offset >= 0, "a tensor of storage '", t.storage,
                    "' has an impossible layout");
    Checked numel = 1, last = offset;
    bool empty = false;
    for (int i = 0; i < shape.size(); ++i) {
      context.require(shape[i] >= 0 && strides[i] >= 0, "a tensor of storage '", t.storage,
                      "' has an impossible layout");
      empty |= shape[i] == 0;
      numel *= std::max<int64_t>(shape[i], 1);
      last += Checked(std::max<int64_t>(shape[i], 1) - 1) * strides[i];
    }
    const int64_t count = t.storage_bytes / size_of(t.dtype);
    context.require(
        (numel * size_of(t.dtype)).fits() && last.fits() && (empty ? offset <= count : last.value_or(0) < count),
        "a tensor of shape ", shape, " does not lie within its storage '", t.storage, "' of ", count, " elements");
  }

  Tensor tensor(const PickledTensor& t) {
    Held& held = storage_for(t);
    check(t, held.storage->bytes);
    if (t.layout.numel() == 0) return empty(t.layout.shape, {.dtype = t.dtype, .device = Device()});
    if (t.dtype == boolean && !held.truths) {
      const Bytes bytes(static_cast<const std::byte*>(held.storage->data), size_t(held.storage->bytes));
      zip_.context().require(std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b <= std::byte(1); }),
                             "storage '", t.storage, "' of bool holds a byte that is neither 0 nor 1");
      held.truths = true;
    }
    return from_storage(held.storage, t.layout, t.dtype);
  }

  ZipArchive zip_;
  std::string folder_;
  bool swapped_ = false;
  ZipContent pickle_;
  std::map<std::pair<std::string, int64_t>, Held> storages_;
};

}  // namespace

bool looks_like_torch_zip(const std::shared_ptr<MappedFile>& file) {
  return looks_like_zip(file->bytes()) && find_pickle(ZipArchive(file)) != nullptr;
}

bool looks_like_old_torch(Bytes file) {
  constexpr std::string_view magic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 14);
  const bool tar = file.size() > 262 && as_text(file.subspan(257, 5)) == "ustar";
  return as_text(file).starts_with(magic) || tar;
}

TorchValue read_torch_value(const std::shared_ptr<MappedFile>& file) {
  const FileContext& context = file->context();
  context.require(!looks_like_old_torch(file->bytes()),
                  "this is the form that torch.save wrote before PyTorch 1.6; load it there and save it again: "
                  "torch.save(torch.load(path, weights_only=True), path)");
  context.require(looks_like_zip(file->bytes()), "not a file of torch.save, which is a zip archive");
  return context.about([&] { return Archive(file).value(); });
}

StateDict read_torch(const std::shared_ptr<MappedFile>& file) {
  const TorchValue value = read_torch_value(file);
  const FileContext& context = file->context();
  context.require(value.is(TorchValue::Kind::dict), "the file holds a ", name(value.kind()), ", not a state dict");
  try {
    return value.state_dict();
  } catch (const Error& e) {
    context.fail_text(e.what() + e.op().size() + 2);
  }
}

namespace {

// Storages to be written, in the order of their keys.
class Storages {
 public:
  // Two passes over the value: the first finds what is shared.
  void count(const Tensor& x) {
    Shared& s = shared_[key_of(x)];
    const Layout& layout = volta::layout(x);
    if (s.tensors++ == 0) s.layout = layout;
    else s.alike = s.alike && s.layout == layout;
  }
  PickledTensor place(const Tensor& x) {
    Shared& s = shared_.at(key_of(x));
    if (s.alike) {
      if (!s.key) s.key = add(x);
      return described(*s.key, x.dtype(), Layout::contiguous(x.shape()));
    }
    const Layout& layout = volta::layout(x);
    if (std::any_of(layout.strides.begin(), layout.strides.end(), [](int64_t stride) { return stride < 0; }))
      return described(add(x), x.dtype(), Layout::contiguous(x.shape()));  // PyTorch has no views that run backwards
    if (!s.key) {
      const int64_t elements = x.impl().storage->bytes / size_of(x.dtype());
      s.key = add(from_storage(x.impl().storage, Layout::contiguous({elements}), x.dtype()));
    }
    return described(*s.key, x.dtype(), layout);
  }
  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  using Key = std::pair<const Storage*, DType>;
  struct Shared {
    int tensors = 0;
    bool alike = true;  // all of one layout: what it covers is written, else the whole storage
    Layout layout = {};
    std::optional<size_t> key = {};
  };
  size_t add(const Tensor& x) {
    tensors_.push_back(x);
    return tensors_.size() - 1;
  }
  PickledTensor described(size_t key, DType dtype, const Layout& layout) const {
    return {std::to_string(key), tensors_[key].nbytes(), dtype, layout};
  }
  static Key key_of(const Tensor& x) { return {x.impl().storage.get(), x.dtype()}; }
  std::map<Key, Shared> shared_;
  std::vector<Tensor> tensors_;
};

void write(const FileContext& context, const TorchValue& value) {
  const NoGrad off;
  Storages storages;
  pickle(context, value, [&](const Tensor& x) {
    storages.count(x);
    return PickledTensor{};
  });
  const std::string text = pickle(context, value, [&](const Tensor& x) { return storages.place(x); });
  AtomicFile file(context.op, context.path);
  ZipWriter zip(file);
  zip.add("archive/data.pkl", {as_bytes(text)});
  zip.add("archive/byteorder", {as_bytes(std::endian::native == std::endian::little ? "little" : "big")});
  for (size_t i = 0; i < storages.tensors().size(); ++i)
    zip.add("archive/data/" + std::to_string(i), {HostBytes(storages.tensors()[i]).bytes});
  zip.add("archive/version", {as_bytes("3\n")});
  zip.finish();
  file.commit();
}

}  // namespace
}  // namespace volta::io

namespace volta {

TorchValue read_torch_value(const std::string& path) {
  const NoGrad off;
  return io::read_torch_value(io::MappedFile::open("read_torch_value", path));
}

StateDict read_torch(const std::string& path) {
  const NoGrad off;
  return io::read_torch(io::MappedFile::open("read_torch", path));
}

void write_torch(const std::string& path, const StateDict& state) { write_torch(path, TorchValue(state)); }
void write_torch(const std::string& path, const TorchValue& value) {
  const io::FileContext context{"write_torch", path};
  context.about([&] { io::write(context, value); });
}

}  // namespace volta
