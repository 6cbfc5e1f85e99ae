// include/kassette/backend/config.h - settings for all functions: backend, epsilon, floatx, data format, counters.
#ifndef KASSETTE_BACKEND_CONFIG_H
#define KASSETTE_BACKEND_CONFIG_H
#include <kassette/none.h>
#include <kassette/print.h>
#include <kassette/tensor.h>

namespace kassette {
namespace backend {

// The first use of any K function reads keras.json and KERAS_BACKEND and loads the backend that they name. That throws
// ValueError if it cannot be loaded, and AssertionError for a bad value in the file.

/// The name of the active backend, as it was configured. docs/backends.md lists the available backends.
KASSETTE_API Text backend();
/// Reads keras.json and the environment again and loads the backend, as Python's reload(K) does; for tests. Values that
/// the program has set are lost.
KASSETTE_API void reload();

/// The fuzz constant, 1e-07 unless set.
KASSETTE_API double epsilon();
/// Sets the fuzz constant for functions that are called or recorded afterwards.
KASSETTE_API void set_epsilon(double e);

/// The dtype of tensors for which none is given: float32 unless set.
KASSETTE_API DType floatx();
/// Sets floatx to "float16", "float32" or "float64". Throws ValueError for another name, and keeps the old value.
KASSETTE_API void set_floatx(Name floatx);
/// x converted to floatx; a number or list becomes a tensor.
KASSETTE_API Tensor cast_to_floatx(const Operand& x);

/// "channels_last" (unless set) or "channels_first".
KASSETTE_API Text image_data_format();
/// Sets the data format. Throws ValueError for another name, and keeps the old value.
KASSETTE_API void set_image_data_format(Name data_format);
/// A data format in lower case; for None, image_data_format(). Throws ValueError for another name.
KASSETTE_API Text normalize_data_format(Name value = None);

/// With true, variables made from now on have no value until K::set_value or K::update gives them one; reading one
/// before that throws RuntimeError, in functions too.
KASSETTE_API void manual_variable_initialization(bool value);

/// The next number for the prefix: 1, 2, ... for each prefix.
KASSETTE_API std::int64_t get_uid(Name prefix = "");
/// Makes the next get_uid of every prefix return 1 again.
KASSETTE_API void reset_uids();

}  // namespace backend
}  // namespace kassette

#endif  // KASSETTE_BACKEND_CONFIG_H
