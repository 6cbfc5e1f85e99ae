// ops/reduce_job.cpp - an all_reduce in the background, while its rank computes: the thread that runs it, and its two
// ops.
//
// Note [Reductions in the background]
// D::gradients starts to reduce a bucket of gradients as soon as the backward pass has computed them, and waits for all
// buckets at the end. Inside of K::function these are two ops. all_reduce_start takes the token of the bucket before
// and the gradients, and returns a token that owns the job. A plan computes the inputs of an op in order, so it starts
// the first bucket before it computes the gradients of the second. all_reduce_wait takes the token and the tensors that
// were reduced, for their shapes and for the vjp. The thread has a communicator of its own and reduces bucket by
// bucket, so that results have the same bits with and without the thread.
#include "ops/reduce_job.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <thread>

#include "core/text.h"
#include "ops/collective_parts.h"
#include "ops/elementwise.h"

namespace kassette::ops {

struct ReduceJob::State {
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false, in_background = false;
  Tensors xs, results;
  Reduction how = Reduction::sum;
  RankGroup* group = nullptr;
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
    if (s.group->comm && devices::ranks_overlap()) s.group->comm->set_background(s.in_background);
    s.results = all_reduce(s.xs, s.how, *s.group);
  } catch (...) {
    s.error = std::current_exception();
  }
  std::lock_guard<std::mutex> lock(s.mutex);
  s.done = true;
  s.ended.notify_all();
}

Ref<ReduceJob> ReduceJob::begin(Tensors xs, Reduction how, RankGroup& group, bool in_background) {
  Ref<ReduceJob> job = Ref<ReduceJob>::adopt(new ReduceJob);
  job->state_->xs = std::move(xs);
  job->state_->how = how;
  job->state_->group = group.comm ? &devices::background_of(group) : &group;
  job->state_->in_background = in_background && group.size > 1 && devices::ranks_overlap();
  if (job->state_->in_background) ReduceThread::get().add(job);
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
