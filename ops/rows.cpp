// ops/rows.cpp - the list of all rows.
#include "ops/rows.h"

#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/collective.h"
#include "ops/compare.h"
#include "ops/conv.h"
#include "ops/ctc.h"
#include "ops/dims.h"
#include "ops/like.h"
#include "ops/matmul.h"
#include "ops/normalization.h"
#include "ops/pool.h"
#include "ops/print_tensor.h"
#include "ops/random.h"
#include "ops/reduce.h"
#include "ops/reduce_arg.h"
#include "ops/reduce_job.h"
#include "ops/resize.h"
#include "ops/scan.h"
#include "ops/shaping.h"
#include "ops/softmax.h"
#include "ops/sparse.h"
#include "ops/stop.h"
#include "ops/ternary.h"
#include "ops/unary.h"

namespace kassette {

std::vector<const OpDef*> all_rows() {
  std::vector<const OpDef*> rows{
      &cast_row,
      &logical_not_row,
      &shape_row, &size_row, &pack_row,
      &broadcast_like_row, &sum_to_like_row, &fitting_row,
      &matmul_row, &unranked_product_row,
      &convolution_row, &convolution_input_gradient_row, &convolution_kernel_gradient_row,
      &max_pool_row, &max_pool_spread_row, &max_pool_pick_row, &avg_pool_row, &avg_pool_spread_row,
      &resize_bilinear_row, &resize_bilinear_gradient_row,
      &random_key_row, &random_uniform_row, &random_between_row, &random_integers_row, &random_normal_row, &truncated_normal_row,
      &bernoulli_row, &dropout_row,
      &sum_row, &prod_row, &max_row, &min_row, &mean_row, &var_row, &std_row, &spread_row, &ties_row,
      &argmax_row, &argmin_row, &any_row, &all_row, &in_top_k_row,
      &cumsum_row, &cumprod_row, &recurrence_row, &shift_row,
      &reshape_row, &reshape_like_row, &expand_dims_row, &squeeze_row, &flatten_row, &identity_row, &permute_row,
      &concatenate_row, &split_like_row, &stack_row, &unstack_row, &index_row, &index_grad_like_row, &slice_row,
      &slice_grad_like_row, &pad_row, &reverse_row, &gather_row, &gather_grad_like_row, &one_hot_row, &repeat_row,
      &repeat_grad_like_row, &tile_row, &tile_grad_like_row, &broadcast_to_row, &arange_row, &eye_row, &to_row,
      &softmax_row, &log_softmax_row, &softmax_grad_row, &logsumexp_row, &softmax_from_logsumexp_row,
      &softmax_cross_entropy_row, &softmax_cross_entropy_grad_row, &sparse_softmax_cross_entropy_row,
      &sparse_softmax_cross_entropy_grad_row, &sigmoid_cross_entropy_row, &probability_cross_entropy_row, &probability_cross_entropy_grad_row,
      &sparse_probability_row, &sparse_probability_grad_row, &binary_probability_row, &binary_probability_grad_row, &pick_row, &place_row,
      &normalize_batch_row, &normalize_batch_grad_row, &center_scale_row,
      &sparse_coo_row, &sparse_nonzero_row, &sparse_to_dense_row, &sparse_gather_row, &sparse_dot_row, &sparse_products_row,
      &sparse_concatenate_row,
      &ctc_batch_cost_row, &ctc_batch_cost_grad_row, &ctc_batch_cost_grad_grad_row, &ctc_label_mask_row, &ctc_greedy_row, &ctc_beam_row,
      &stop_gradient_row, &print_tensor_row,
      &where_row,
      &all_reduce_row, &all_reduce_nonlinear_row, &broadcast_row, &reduce_row, &all_gather_row, &reduce_scatter_row, &reduce_scatter_nonlinear_row,
      &shard_row, &unshard_like_row, &all_to_all_row, &send_row, &recv_row,
      &all_reduce_start_row, &all_reduce_wait_row,
  };
  for (const OpDef& row : unary_rows) rows.push_back(&row);
  for (const OpDef& row : binary_rows) rows.push_back(&row);
  for (const OpDef& row : compare_rows) rows.push_back(&row);
  return rows;
}

}  // namespace kassette
