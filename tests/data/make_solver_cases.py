#!/usr/bin/env python3
"""tests/data/make_solver_cases.py - writes solver_cases.txt: what SciPy finds for the problems of tests/numpy/optimize_test.cpp and
integrate_test.cpp.

Run with NumPy and SciPy: `python3 tests/data/make_solver_cases.py`. A line is a name and numbers.
"""
import pathlib

import numpy as np
import scipy.integrate
import scipy.optimize

out = []


def put(name, *numbers):
    out.append(" ".join([name, *(repr(float(x)) for part in numbers for x in np.ravel(part))]))


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def beale(x):
    return (1.5 - x[0] + x[0] * x[1]) ** 2 + (2.25 - x[0] + x[0] * x[1] ** 2) ** 2 + (2.625 - x[0] + x[0] * x[1] ** 3) ** 2


start = np.array([1.3, 0.7, 0.8, 1.9, 1.2])
put("rosenbrock_at_start", rosenbrock(start))
put("rosenbrock_gradient_at_start", scipy.optimize.rosen_der(start))
put("rosenbrock_minimum", scipy.optimize.minimize(scipy.optimize.rosen, start, jac=scipy.optimize.rosen_der, method="L-BFGS-B", tol=1e-14).x)
put("beale_minimum", scipy.optimize.minimize(beale, [1.0, 1.0], method="Nelder-Mead", options={"xatol": 1e-12, "fatol": 1e-24}).x)

# Logistic regression of six points with a penalty: no minimum by hand.
points = np.array([[0.5, 1], [1, -1], [-1, 0.5], [2, 1], [-0.5, -2], [0, 0.25]])
labels = np.array([1, 1, -1, 1, -1, -1])
logistic = lambda w: np.sum(np.log1p(np.exp(-labels * (points @ w)))) + 0.05 * w @ w
best = scipy.optimize.minimize(logistic, np.zeros(2), method="BFGS", options={"gtol": 1e-9})
put("logistic_minimum", best.x)
put("logistic_value", best.fun)

# a e^(-b t) + c with errors that are no noise but the sine of a large number.
t = np.linspace(0, 4, 20)
data = 2.5 * np.exp(-1.3 * t) + 0.5 + 0.01 * np.sin(100 * t)
fit = scipy.optimize.least_squares(lambda p: p[0] * np.exp(-p[1] * t) + p[2] - data, [1, 1, 0], method="lm", xtol=1e-14, ftol=1e-14, gtol=1e-14)
put("exponential_fit", fit.x)
put("exponential_fit_cost", fit.cost)

system = lambda x: [x[0] + 0.5 * (x[0] - x[1]) ** 3 - 1, 0.5 * (x[1] - x[0]) ** 3 + x[1]]   # from SciPy's page of root
put("root_of_cubics", scipy.optimize.root(system, [0, 0], tol=1e-14).x)
put("root_of_cosine", scipy.optimize.brentq(lambda x: np.cos(x) - x, 0, 1, xtol=1e-15))

# ---- differential equations
van_der_pol = lambda t, y: [y[1], 2 * (1 - y[0] ** 2) * y[1] - y[0]]
times = np.linspace(0, 10, 11)
coarse = scipy.integrate.solve_ivp(van_der_pol, (0, 10), [2, 0], method="RK45", t_eval=times)
put("van_der_pol_rk45", coarse.y.T)
put("van_der_pol_rk45_nfev", coarse.nfev)
put("van_der_pol_rk45_backward", scipy.integrate.solve_ivp(van_der_pol, (3, 0), [1, 1], method="RK45", t_eval=[3, 2.5, 1.25, 0], rtol=1e-6, atol=1e-8).y.T)
put("van_der_pol_precise", scipy.integrate.solve_ivp(van_der_pol, (0, 10), [2, 0], method="DOP853", t_eval=times, rtol=1e-13, atol=1e-14).y.T)
driven = lambda t, y: [-0.5 * y[0] + np.sin(3 * t)]
put("driven_rk45", scipy.integrate.solve_ivp(driven, (0, 4), [1], method="RK45", t_eval=[0, 0.1, 1.7, 4], first_step=0.1, max_step=0.25).y)

(pathlib.Path(__file__).with_name("solver_cases.txt")).write_text("\n".join(out) + "\n")
