"""The kernel by Jupyter's own test of kernels, jupyter_kernel_test. See tests/scripts/notebook.sh."""
import unittest

import jupyter_kernel_test


class Protocol(jupyter_kernel_test.KernelTests):
    kernel_name = "kassette"
    language_name = "c++"
    file_extension = ".cpp"
    code_hello_world = '#include <iostream>\nstd::cout << "hello, world" << std::endl;'
    code_stderr = '#include <iostream>\nstd::cerr << "test" << std::endl;'
    completion_samples = [{"text": "K::softm", "matches": {"softmax"}},
                          {"text": "Tensor q = K::ones({2});\nK::softs", "matches": {"softsign"}}]
    complete_code_samples = ["1", "int a = 1;", "float f(float x) {\n  return x;\n}", "?K::softmax"]
    incomplete_code_samples = ["float f(float x) {", "K::softmax(", "for (int i = 0; i < 3; ++i)", "/* a comment"]
    code_generate_error = "K::dot(K::ones({2, 3}), K::ones({4, 5}))"
    code_execute_result = [{"code": "6*7", "result": "42"}, {"code": 'std::string("a") + "b"', "result": '"ab"'}]
    code_display_data = [{"code": "display(plot(K::arange(0., 3., 1.)));", "mime": "image/png"}]
    code_page_something = "?K::softmax"
    code_inspect_sample = "K::softmax"
    code_clear_output = "clear_output();"
    code_history_pattern = "6?*7"
    supported_history_operations = ("tail", "range", "search")


if __name__ == "__main__":
    unittest.main()
