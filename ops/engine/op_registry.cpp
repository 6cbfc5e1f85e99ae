// ops/engine/op_registry.cpp - the list of all ops.
#include "ops/attention/attention.h"
#include "ops/engine/op_registry.h"

#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/collective/collective.h"
#include "ops/elementwise/compare.h"
#include "ops/convolution/conv.h"
#include "ops/ctc/ctc.h"
#include "ops/engine/dims.h"
#include "ops/fft/fft.h"
#include "ops/linalg/linalg.h"
#include "ops/shape/checked.h"
#include "ops/shape/like.h"
#include "ops/product/distance.h"
#include "ops/product/matmul.h"
#include "ops/normalization/normalization.h"
#include "ops/convolution/pool.h"
#include "ops/order/order.h"
#include "ops/custom/host_function.h"
#include "ops/engine/print_tensor.h"
#include "ops/random/generator.h"
#include "ops/random/random.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/reduce_arg.h"
#include "ops/collective/reduce_job.h"
#include "ops/convolution/resize.h"
#include "ops/reduce/scan.h"
#include "ops/shape/positions.h"
#include "ops/shape/put.h"
#include "ops/shape/shaping.h"
#include "ops/softmax/softmax.h"
#include "ops/sparse/sparse.h"
#include "ops/engine/stop.h"
#include "ops/elementwise/ternary.h"
#include "ops/elementwise/unary.h"
#include "ops/reduce/variance.h"

namespace kassette::ops {

std::vector<const OpDef*> all_ops() {
  std::vector<const OpDef*> list{
      // clang-format off
      &cast_op,
      &logical_not_op,
      &shape_op, &size_op, &pack_op,
      &broadcast_like_op, &sum_to_like_op, &assert_shape_op, &check_shapes_op,
      &matmul_op, &unranked_product_op, &cdist_op,
      &cholesky_op, &triangular_solve_op, &solve_op, &slogdet_op, &lu_op, &qr_op, &eigh_op, &eigvalsh_op, &svd_op,
      &svdvals_op, &eig_op, &fft_op, &fft_like_op,
      &convolution_op, &convolution_input_gradient_op, &convolution_kernel_gradient_op,
      &max_pool_op, &max_pool_grad_op, &max_pool_take_op, &avg_pool_op, &avg_pool_grad_op,
      &resize_bilinear_op, &resize_bilinear_gradient_op,
            &random_key_op, &random_uniform_op, &random_between_op, &random_integers_op, &random_normal_op,
      &truncated_normal_op,
      &bernoulli_op,
      &random_rejection_op, &dropout_op,
      &sum_op, &prod_op, &max_op, &min_op, &mean_op, &var_op, &std_op, &center_op, &unreduce_op, &extremum_mask_op,
      &argmax_op, &argmin_op, &any_op, &all_op, &in_top_k_op,
      &cumsum_op, &cumprod_op, &recurrence_op, &shift_op, &cummax_places_op, &cummin_places_op,
      &reshape_op, &reshape_like_op, &expand_dims_op, &squeeze_op, &flatten_op, &identity_op, &permute_op,
      &concatenate_op, &split_like_op, &stack_op, &unstack_op, &index_op, &index_grad_like_op, &slice_op,
      &slice_grad_like_op, &pad_op, &reverse_op, &gather_op, &gather_grad_like_op, &nonzero_op,
      &index_positions_op, &index_set_op, &index_add_op, &index_multiply_op, &index_min_op, &index_max_op,
      &take_last_op, &one_hot_op, &repeat_op,
      &repeat_grad_like_op, &tile_op, &tile_grad_like_op, &broadcast_to_op, &arange_op, &eye_op, &to_op,
      &softmax_op, &log_softmax_op, &softmax_grad_op, &logsumexp_op, &logsumexp_grad_op,
      &softmax_cross_entropy_op, &softmax_cross_entropy_grad_op, &sparse_softmax_cross_entropy_op,
            &sparse_softmax_cross_entropy_grad_op, &sigmoid_cross_entropy_op, &probability_cross_entropy_op,
      &probability_cross_entropy_grad_op,
            &sparse_probability_op, &sparse_probability_grad_op, &binary_probability_op, &binary_probability_grad_op,
      &take_along_axis_op, &scatter_along_axis_op,
      &normalize_batch_op, &normalize_batch_grad_op, &center_scale_op, &attention_op, &attention_grad_op,
      &sparse_coo_op, &sparse_nonzero_op, &sparse_to_dense_op, &sparse_gather_op, &sparse_dot_op, &sparse_products_op,
      &sparse_concatenate_op,
            &ctc_batch_cost_op, &ctc_batch_cost_grad_op, &ctc_batch_cost_grad_grad_op, &ctc_label_mask_op,
      &ctc_greedy_op, &ctc_beam_op,
      &stop_gradient_op, &print_tensor_op, &custom_gradient_op, &host_call_op,
      &where_op,
      &betainc_op,
      &sort_op, &argsort_op, &top_k_op, &take_places_op, &put_places_like_op, &flat_places_op, &searchsorted_op,
            &all_reduce_op, &all_reduce_nonlinear_op, &broadcast_op, &reduce_op, &all_gather_op, &reduce_scatter_op,
      &reduce_scatter_nonlinear_op,
      &shard_op, &unshard_like_op, &all_to_all_op, &send_op, &recv_op,
      &all_reduce_start_op, &all_reduce_wait_op,
      // clang-format on
  };
  for (const OpDef& op : unary_op_defs) list.push_back(&op);
  for (const OpDef& op : binary_op_defs) list.push_back(&op);
  for (const OpDef& op : compare_op_defs) list.push_back(&op);
  return list;
}

}  // namespace kassette::ops
