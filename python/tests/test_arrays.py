"""Arrays as NumPy users have them: each kind has a defined outcome."""

from typing import Any

import numpy as np
import pytest

import gpud


def test_wrong_type(g: gpud.Client) -> None:
    x = np.ones(3, np.float32)
    with pytest.raises(gpud.ArgTypeError, match="argument y: f32 3, kernel needs f64"):
        g.call("axpy", 2.0, np.ones(3), x)
    with pytest.raises(gpud.ArgTypeError, match="made for f32 f64"):
        g.call("axpy", 2.0, np.ones(3, np.int32), np.ones(3, np.int32))


@pytest.mark.parametrize("kind, hint", [(bool, "view"), (np.complex64, "reshape"), ("M8[s]", "gpud has"), (object, "")])
def test_types_that_no_kernel_takes(g: gpud.Client, kind: Any, hint: str) -> None:
    x = np.zeros(3, kind)
    for use in (lambda: g.call("scale", 1, x), lambda: g.array(x)):
        with pytest.raises(gpud.ArgTypeError, match=hint):
            use()
    if kind is not object:
        with pytest.raises(gpud.ArgTypeError):
            g.empty(3, kind)
    with pytest.raises(gpud.ArgTypeError, match="filled"):
        g.call("scale", 1, np.ma.array([1.0, 2.0], mask=[0, 1]))
    with pytest.raises(gpud.ArgTypeError):
        g.call("scale", 1, np.array(["a"]))


def test_complex_numbers_as_the_hint_says(g: gpud.Client) -> None:
    x = np.array([1, 0, 0, 0], np.complex64)
    y = g.call("fft", x.view(np.float32).reshape(*x.shape, 2)).view(np.complex64)[:, 0]
    np.testing.assert_allclose(y, np.fft.fft(x))


@pytest.mark.parametrize("n", [10, 300])
def test_non_contiguous(g: gpud.Client, n: int) -> None:
    whole = np.arange(n * n, dtype=np.float32).reshape(n, n)
    for x in (whole[:, 1], whole[::2, ::3], whole.T, whole[::-1], np.asfortranarray(whole), whole[..., None][:, ::2]):
        np.testing.assert_array_equal(g.call("scale", 2.0, x), 2 * x)
        b = g.array(x)
        np.testing.assert_array_equal(b.get(), x)
    out = np.zeros((n, n), np.float32)
    column = out[:, 1]
    assert g.call("scale", 2.0, whole[0], out=column) is column
    np.testing.assert_array_equal(out[:, 1], 2 * whole[0])
    assert not out[:, 0].any() and not out[:, 2].any()
    g.array(whole).get(out.T)
    np.testing.assert_array_equal(out, whole.T)


def test_read_only(g: gpud.Client) -> None:
    x = np.ones(3, np.float32)
    x.flags.writeable = False
    assert g.call("axpy", 1.0, x, x).tolist() == [2, 2, 2]  # inputs, also where the kernel changes them
    assert np.frombuffer(g.array(x).tobytes(), np.float32).tolist() == [1, 1, 1]
    for use in (lambda: g.call("scale", 1.0, x, out=x), lambda: g.array(x).get(x)):
        with pytest.raises(ValueError, match="read-only"):
            use()
    assert x.tolist() == [1, 1, 1]


def test_big_endian(g: gpud.Client) -> None:
    x = np.array([1, 2, 3], ">f4")
    assert g.call("scale", 2.0, x).tolist() == [2, 4, 6]
    assert g.array(x).dtype == np.dtype("=f4") and g.array(x).get().tolist() == [1, 2, 3]
    out = np.zeros(3, ">f4")
    assert g.call("scale", 2.0, x, out=out) is out and out.tolist() == [2, 4, 6]
    b = g.empty(3)
    b.set(x)
    assert b.get().tolist() == [1, 2, 3]
    assert g.empty(2, ">i4").dtype == np.int32


def test_other_shapes(g: gpud.Client) -> None:
    assert g.call("scale", 2.0, np.float32(3)) == 6  # a single element
    assert g.array(np.float32(3)).shape == (1,)
    assert g.call("scale", 2.0, np.zeros((0, 3), np.float32)).shape == (0, 3)
    with pytest.raises(gpud.ArgShapeError, match="5 dimensions, at most 4"):
        g.call("scale", 2.0, np.zeros((1, 1, 1, 1, 1), np.float32))
    with pytest.raises(gpud.ArgShapeError, match="negative"):
        g.empty((2, -1))
    with pytest.raises(gpud.ArgShapeError, match="no shape"):
        g.empty(2.5)


def test_unaligned(g: gpud.Client) -> None:
    x = np.frombuffer(b"\0" + np.arange(5, dtype=np.float64).tobytes(), np.uint8)[1:].view(np.float64)
    assert not x.flags.aligned
    assert g.call("scale", 2.0, x).tolist() == [0, 2, 4, 6, 8]


def test_lists_and_other_libraries(g: gpud.Client) -> None:
    assert g.call("gaussian", [[1, 1], [1, 1]], 0.01).tolist() == [[1, 1], [1, 1]]  # f32, as the kernel says

    class Tensor:
        """What PyTorch's tensors look like."""

        def __init__(self, array: "np.ndarray[Any, Any]") -> None:
            self.array = array

        def __dlpack__(self, **options: Any) -> Any:
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self.array.__dlpack_device__()

    assert g.call("scale", 2, Tensor(np.int32([1, 2]))).tolist() == [2, 4]
    elsewhere = Tensor(np.int32([1]))
    elsewhere.__dlpack_device__ = lambda: (2, 0)  # type: ignore[method-assign]
    with pytest.raises(gpud.ArgTypeError, match="argument x: it lies on a device.*cpu"):
        g.call("scale", 2, elsewhere)
    assert g.array(memoryview(b"\1\2")).get().tolist() == [1, 2]


def test_shared_arrays(each: gpud.Client) -> None:
    x = each.shared_empty((300, 200))
    x[...] = np.arange(60_000, dtype=np.float32).reshape(300, 200)
    y = each.shared_empty((300, 200))
    assert each.call("scale", 2.0, x, out=y) is y
    np.testing.assert_array_equal(y, 2 * x)
    np.testing.assert_array_equal(each.call("axpy", 1.0, x[10:20], y[10:20]), 3 * x[10:20])
    np.testing.assert_array_equal(y, 2 * x)  # an input, shared or not, stays as it was
    each.call("axpy", 1.0, x[50:], out=y[50:])
    np.testing.assert_array_equal(y[50:], 3 * x[50:])
    np.testing.assert_array_equal(y[:50], 2 * x[:50])
    b = each.array(x)
    b.get(y)
    np.testing.assert_array_equal(y, x)
    b[:2].set(y[10:12])
    np.testing.assert_array_equal(b[:2].get(), x[10:12])
    assert each.shared_empty(0).shape == (0,)
    each.close()
    assert x[0, 5] == 5  # the array outlives its client
    with gpud.connect(each.url) as other:
        np.testing.assert_array_equal(other.call("scale", 1.0, x), x)
