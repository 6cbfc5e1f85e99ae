// ops/collective/reduce_job.cpp - an all_reduce in the background, while its rank computes: the thread that runs it,
// and its two ops.
//
// Note [Reductions in the background]
// D::gradients starts to reduce a bucket of gradients as soon as the backward pass has computed them, and waits for all
// buckets at the end. Inside of K::function these are two ops. all_reduce_start takes the token of the bucket before
// and the gradients, and returns a token that owns the job. A plan computes the inputs of an op in order, so it starts
// the first bucket before it computes the gradients of the second. all_reduce_wait takes the token and the tensors that
// were reduced, for their shapes and for the vjp. The thread has a communicator of its own and reduces bucket by
// bucket, so that results have the same bits with and without the thread.
//
// A bucket fails on all ranks or on none. Then the later ones of that pass are not exchanged on any rank. If one rank
// leaves the pass between two buckets, by an error of its own, it refuses the next. The calls of the thread's
// communicator are not compared with those of the group: before its first bucket a pass meets the group.
#include "ops/collective/reduce_job.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <string>
#include <thread>

#include <kassette/interrupt.h>

#include "core/text.h"
#include "ops/collective/collective_parts.h"
#include "ops/elementwise/elementwise.h"
#include "ops/collective/left_out.h"

namespace kassette::ops {

struct ReduceJob::State {
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false, in_background = false;
  Tensors xs, results;
  Reduction how = Reduction::sum;
  RankGroup* group = nullptr;
  Ref<ReduceJob> previous;
  std::exception_ptr error;
};

/// The background thread, one per process. Runs jobs in the order in which they are added.
class ReduceThread {
 public:
  static ReduceThread& get() {
    static ReduceThread* t = new ReduceThread;  // runs until the process ends
    return *t;
  }
  void add(Ref<ReduceJob> job) {
    std::lock_guard<std::mutex> lock(mutex_);
    jobs_.push_back(std::move(job));
    more_.notify_one();
  }

 private:
  ReduceThread() {
    std::thread([this] { run(); }).detach();
  }
  void run() {
    for (;;) {
      std::unique_lock<std::mutex> lock(mutex_);
      more_.wait(lock, [&] { return !jobs_.empty(); });
      Ref<ReduceJob> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job->run();
    }
  }
  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<Ref<ReduceJob>> jobs_;
};

ReduceJob::ReduceJob() : state_(new State) {}
ReduceJob::~ReduceJob() { delete state_; }

void ReduceJob::run() {
  State& s = *state_;
  try {
    Scoped<bool> off(context().recording, false);
    if (const Ref<ReduceJob> previous = std::move(s.previous)) previous->wait();
    reduce();
  } catch (...) {
    s.error = std::current_exception();
  }
  std::lock_guard<std::mutex> lock(s.mutex);
  s.done = true;
  s.ended.notify_all();
}

void ReduceJob::reduce() {
  State& s = *state_;
  const std::int64_t calls = s.group->calls;
  try {
    if (s.group->comm && devices::ranks_overlap()) s.group->comm->set_background(s.in_background);
    s.results = all_reduce(s.xs, s.how, *s.group);
  } catch (const std::exception& e) {
    if (s.group->calls == calls) devices::refuse_call(*s.group, e.what());  // it has not joined the others: Interrupted
    throw;
  }
}

Ref<ReduceJob> ReduceJob::begin(Tensors xs, Reduction how, RankGroup& group, Ref<ReduceJob> previous,
                                bool in_background) {
  Ref<ReduceJob> job = Ref<ReduceJob>::adopt(new ReduceJob);
  State& s = *job->state_;
  const bool overlaps = group.size > 1 && devices::ranks_overlap();
  s.xs = std::move(xs);
  s.how = how;
  s.group = overlaps ? &devices::background_of(group) : &group;
  if (overlaps && !previous) {
    const std::function<std::string()> words = [] { return std::string("gradients"); };
    devices::RankCall meet(group, devices::call_number("gradients"), words);
  }
  s.previous = std::move(previous);
  s.in_background = in_background && overlaps;
  if (s.in_background) ReduceThread::get().add(job);
  else job->run();
  return job;
}

const Tensors& ReduceJob::wait() {
  State& s = *state_;
  std::unique_lock<std::mutex> lock(s.mutex);
  s.ended.wait(lock, [&] { return s.done; });
  if (s.error) std::rethrow_exception(s.error);
  return s.results;
}

bool ReduceJob::has_failed() {
  State& s = *state_;
  std::unique_lock<std::mutex> lock(s.mutex);
  s.ended.wait(lock, [&] { return s.done; });
  return s.error != nullptr;
}

void ReduceJob::refuse_next(const std::string& why) {
  if (!has_failed()) devices::refuse_call(*state_->group, why);
}

namespace {

/// A job that was started before its op was recorded. The op's first run takes it; later runs start their own.
struct StartedJob final : TaggedExtra<StartedJob> {
  static constexpr const char* attrs_name = "started_job";
  Ref<ReduceJob> job;
  std::mutex mutex;
  Ref<ReduceJob> take() {
    std::lock_guard<std::mutex> lock(mutex);
    return std::move(job);
  }
};

/// The last n_out inputs are reduced; a token may be in front of them.
ReduceJob* previous_job(const OpCall& call) {
  const bool has_token = call.n_in > outputs_in<CollectiveAttrs>(call.attrs);
  return has_token ? reinterpret_cast<ReduceJob*>(call.in[0].data) : nullptr;
}

void start_rule(const OpCall&, TensorSpec* out) { *out = TensorSpec(uint8, {}); }
void start_kernel(const OpCall& call) {
  Ref<ReduceJob> job;
  if (call.attrs.extra) job = call.attrs.extra->as<StartedJob>().take();
  if (!job) {
    Tensors xs;
    for (int i = call.n_in - outputs_in<CollectiveAttrs>(call.attrs); i < call.n_in; ++i) {
      TensorDesc b;
      b.set(*call.in[i].desc);
      b.device = call.device;
      Value v = read_value(*call.in[i].desc);
      b.storage = std::move(v.storage);
      b.offset = v.offset;
      xs.push_back(Access::wrap(std::move(b)));
    }
    job = ReduceJob::begin(std::move(xs), reduction_of(call.attrs), group_of(call.attrs),
                           Ref<ReduceJob>(previous_job(call)),
                           call.device == cpu && call.attrs.as<CollectiveAttrs>().in_background);
  }
  // The token's storage is the job.
  TensorDesc& token = *call.out[0];
  ReduceJob* held = job.release();
  token.storage = Storage::borrow(held, 1, {[](void* p) { Ref<ReduceJob>::drop(static_cast<ReduceJob*>(p)); }, held});
  token.offset = 0;
}

void wait_rule(const OpCall& call, TensorSpec* out) {
  for (int i = 1; i < call.n_in; ++i) out[i - 1].set(call.spec(i));
}
void wait_kernel(const OpCall& call) {
  auto* job = reinterpret_cast<ReduceJob*>(call.in[0].data);
  const Tensors& results = job->wait();
  for (int i = 0; i < call.n_out; ++i) {
    const TensorDesc& b = Access::desc(results[i]);
    call.out[i]->storage = b.storage;
    call.out[i]->offset = b.offset;
  }
}
void wait_vjp(const VjpContext& ctx) {
  list_vjp(ctx, 1, [&](const Tensors& dy) { return all_reduce(dy, reduction_of(ctx.attrs), group_of(ctx.attrs)); });
}

}  // namespace

constinit const OpDef all_reduce_start_op{
    .name = "all_reduce_start", .rule = start_rule, .cpu = start_kernel, .traits = kView, .cuda = start_kernel};
constinit const OpDef all_reduce_wait_op{.name = "all_reduce_wait",
                                         .rule = wait_rule,
                                         .cpu = wait_kernel,
                                         .vjp = wait_vjp,
                                         .shape_only = ~1u,
                                         .host = 1,
                                         .traits = kView,
                                         .n_out = 0,
                                         .outputs = outputs_in<CollectiveAttrs>,
                                         .cuda = wait_kernel};

bool runs_together(const OpDef& op) {
  for (const OpDef* each : {&all_reduce_op, &all_reduce_nonlinear_op, &broadcast_op, &reduce_op, &all_gather_op,
                            &reduce_scatter_op, &reduce_scatter_nonlinear_op, &all_to_all_op, &all_reduce_start_op})
    if (&op == each) return true;
  return false;
}

void leave_out(const OpCall& call, bool behind) {
  std::string why = "an exception";
  try {
    throw;
  } catch (const Interrupted& e) {
    why = e.what();
    behind = true;
  } catch (const std::exception& e) {
    why = e.what();
  } catch (...) {
  }
  if (!behind) return;
  ReduceJob* previous = &call.op == &all_reduce_start_op ? previous_job(call) : nullptr;
  if (previous) previous->refuse_next(why);
  else devices::refuse_call(group_of(call.attrs), why);
}

Tensor all_reduce_start(const Tensors& xs, const Tensor& previous, Reduction how, const RankGroup& group,
                        bool in_background, Ref<ReduceJob> started_job) {
  CollectiveAttrs job = collective_attrs(xs.size(), group, how);
  job.in_background = in_background;
  Attrs attrs = job;
  if (started_job) {
    auto extra = Ref<StartedJob>::adopt(new StartedJob);
    extra->job = std::move(started_job);
    attrs.extra = Ref<Extra>(extra.get());
  }
  std::vector<In> ins;
  if (previous.defined()) ins.push_back(previous);
  for (const Tensor& x : xs) ins.push_back(x);
  Tensor token;
  apply(all_reduce_start_op, attrs, ins.data(), static_cast<int>(ins.size()), &token, 1);
  return token;
}

Tensors all_reduce_wait(const Tensor& token, const Tensors& xs, Reduction how, const RankGroup& group) {
  Tensors ins{token};
  for (const Tensor& x : xs) ins.push_back(x);
  return apply_all(all_reduce_wait_op, collective_attrs(xs.size(), group, how), ins);
}

}  // namespace kassette::ops
