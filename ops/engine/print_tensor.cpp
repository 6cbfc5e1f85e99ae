// ops/engine/print_tensor.cpp - an op that prints its input each time it runs.
#include "ops/engine/print_tensor.h"

#include <string>

#include <kassette/print.h>
#include "core/text.h"
#include "ops/elementwise/elementwise.h"

namespace kassette::ops {
namespace {

struct Message final : TaggedExtra<Message> {
  static constexpr const char* attrs_name = "print_tensor";
  std::string text;
};

void kernel(const OpCall& call) {
  TensorDesc& out = *call.out[0];
  Value v = read_value(*call.in[0].desc);
  out.storage = std::move(v.storage);
  out.offset = v.offset;
  TensorDesc plain;  // without history
  plain.set(out);
  plain.device = call.device;
  plain.storage = out.storage;
  plain.offset = out.offset;
  write_print(call.attrs.extra->as<Message>().text + ' ' + array_text(Access::wrap(std::move(plain))).c_str());
}

}  // namespace

constinit const OpDef print_tensor_op{.name = "print_tensor",
                                      .rule = same_rule,
                                      .cpu = kernel,
                                      .vjp = [](const VjpContext& ctx) { ctx.din(0) = ctx.dy(); },
                                      .traits = kView | kPrints,
                                      .cuda = kernel};

Tensor print_tensor(const Tensor& x, std::string message) {
  auto extra = Ref<Message>::adopt(new Message);
  extra->text = std::move(message);
  return apply1(print_tensor_op, Attrs(Ref<Extra>(extra.get())), {x});
}

}  // namespace kassette::ops
