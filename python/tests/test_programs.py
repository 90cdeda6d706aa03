"""Several steps as one job."""

from typing import Any

import numpy as np
import pytest

import gpud


def test_steps_of_one_job(each: gpud.Client) -> None:
    with each.program("edges") as p:
        x = p.input((2, 3), np.float32, "x")
        a = p.scalar(np.float32, "a")
        scaled = p.call("scale", a, x)
        p.output((p.call("add", scaled, x), scaled))
    values = np.float32([[1, 2, 3], [4, 5, 6]])
    summed, scaled_ = p(values, 10.0)
    np.testing.assert_array_equal(summed, 11 * values)
    np.testing.assert_array_equal(scaled_, 10 * values)
    assert repr(p) == "<gpud.Program edges(x, a)>"
    job = each.submit(p, values, 2.0)
    assert job.result()[1][0, 0] == 2 and len(job.times.steps) >= 1
    np.testing.assert_array_equal(p(values, 0.5)[1], values / 2)


def test_inputs_stay_as_they_were(g: gpud.Client) -> None:
    with g.program() as p:
        x = p.input(3, np.float32)
        once = p.call("axpy", 1.0, x, x)  # changes its second array, so that gets a copy
        twice = p.call("axpy", 1.0, x, once)
        p.output((once, twice, x))
        p.call("axpy", 1.0, x, out=twice)  # in place, after it was read
    once_, twice_, x_ = p(np.ones(3, np.float32))
    assert (once_.tolist(), twice_.tolist(), x_.tolist()) == ([2] * 3, [3] * 3, [1] * 3)


def test_buffers_constants_and_large_arrays(g: gpud.Client) -> None:
    n = 100_000
    total = g.zeros(n)
    table = np.arange(4, dtype=np.float32)
    with g.program() as p:
        x, b = p.input(n, np.float32), p.buffer(n, np.float32)
        small = p.temp(4, np.float32)
        p.call("axpy", 1.0, x, b)
        p.call("scale", 2.0, table, out=small)
        p.copy(total, b)
        p.fill(b, 0)
        p.output(small)
    b_ = g.array(np.ones(n, np.float32))
    assert p(np.full(n, 2, np.float32), b_).tolist() == [0, 2, 4, 6]
    assert (total.get() == 3).all() and not b_.get().any()


def test_decorator(g: gpud.Client) -> None:
    traced = []

    @g.program
    def double(p: gpud.Program, x: gpud.Node, a: gpud.Node) -> Any:
        """Twice a x."""
        traced.append(x.shape)
        return p.call("scale", 2, p.call("scale", a, x))

    for values in (np.int32([1, 2]), np.int32([3, 4]), np.float64([[1.5]])):
        np.testing.assert_array_equal(double(values, 3), 6 * values)
    assert traced == [(2,), (1, 1)]  # built once for each shape and type
    assert double.__doc__ == "Twice a x." and double.__name__ == "double"
    buffer = g.array(np.int32([5]))
    assert double(buffer, 3).tolist() == [30]
    assert double.submit(np.int32([1]), 1).result().tolist() == [2]
    for n in range(1, 70):
        double(np.ones(n, np.int32), 1)
    assert len(double._programs) == 64


def test_mistakes(g: gpud.Client) -> None:
    with pytest.raises(gpud.StateError, match="not sealed"):
        g.program()._prepare([])
    with pytest.raises(ZeroDivisionError):
        with g.program() as unfinished:
            1 / 0
    with pytest.raises(gpud.StateError):
        unfinished()
    with g.program() as odd:
        odd.output(odd.call("axpy", 1.0, odd.input(3, np.float32), odd.input(4, np.float32)))
    with pytest.raises(gpud.ArgShapeError, match="argument y") as caught:
        odd(np.ones(3, np.float32), np.ones(4, np.float32))
    assert caught.value.step == 1  # behind the copy of y
    with g.program("f") as p:
        x, b, s = p.input(3, np.float32), p.buffer(3, np.float32), p.scalar(np.int32)
        p.output(p.call("scale", 1, x))
    with pytest.raises(gpud.StateError, match="sealed"):
        p.fill(b, 0)
    buffer, array = g.zeros(3), np.zeros(3, np.float32)
    for args, kind, message in (
        ((array, buffer), gpud.ArgCountError, "2 arguments given"),
        ((buffer, buffer, 1), gpud.ArgTypeError, "p0: an array of the host"),
        ((array, array, 1), gpud.ArgTypeError, "p1: a gpud.Buffer is needed"),
        ((array, buffer, array), gpud.ArgTypeError, "p2: a number is needed"),
        ((array, buffer, 2.5), gpud.RangeError, "p2: 2.5 is no int32"),
        ((np.zeros(4, np.float32), buffer, 1), gpud.ArgShapeError, ""),
        ((np.zeros(3, np.float64), buffer, 1), gpud.ArgTypeError, ""),
    ):
        with pytest.raises(kind, match=message):
            p(*args)
    with pytest.raises(gpud.InvalidError, match="one value for each parameter, and nothing else"):
        g.call(p, array, buffer, 1, grid=3)
    assert p(array, buffer, 1).tolist() == [0, 0, 0]
