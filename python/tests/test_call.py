"""One kernel: arguments by position and name, results, errors."""

import numpy as np
import pytest

import gpud


def test_results_are_new_arrays(each: gpud.Client) -> None:
    x, y = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    r = each.call("axpy", 2.0, x, y)
    assert r.tolist() == [1, 3, 5, 7]
    assert x.tolist() == [0, 1, 2, 3] and y.tolist() == [1, 1, 1, 1]
    assert r.dtype == np.float32 and r.flags.writeable


@pytest.mark.parametrize("n", [0, 1, 1000, 20_000, 100_000])
def test_every_size_takes_the_same_way(each: gpud.Client, n: int) -> None:
    x = np.arange(n, dtype=np.float32)
    np.testing.assert_array_equal(each.call("axpy", 1.0, x, x), 2 * x)
    np.testing.assert_array_equal(x, np.arange(n, dtype=np.float32))


def test_shapes_follow_from_the_signature(g: gpud.Client) -> None:
    a, b = np.ones((2, 3)), np.ones((3, 5))
    assert g.call("gemm", a, b).shape == (2, 5)
    assert g.call("transpose", np.ones((2, 3), np.float32)).shape == (3, 2)
    assert g.call("square", np.ones((2, 3, 4), np.int32)).shape == (2, 3, 4)
    assert g.call("reduce_max", np.ones((2, 3), np.uint32)).shape == (1,)
    assert g.call("rgb_to_gray", np.zeros((4, 6, 3), np.uint8)).dtype == np.float32
    x = np.zeros((4, 2), np.float32)
    np.testing.assert_allclose(g.call("fft", np.float32([[1, 0], [0, 0], [0, 0], [0, 0]])), x + [1, 0])


def test_names_stand_for_positions(g: gpud.Client) -> None:
    image = np.zeros((3, 3), np.float32)
    assert g.call("gaussian", image, sigma=1.0).shape == (3, 3)
    assert g.call("axpy", y=np.float32([1]), x=np.float32([2]), a=3).tolist() == [7]
    with pytest.raises(gpud.ArgCountError, match="no parameter 'sigmo'"):
        g.call("gaussian", image, sigmo=1.0)


def test_several_results_are_a_tuple(g: gpud.Client) -> None:
    position, velocity = np.float32([[0, 0, 0, 1]]), np.float32([[1, 0, 0, 0]])
    moved, following = g.call("nbody", 0.5, 0.1, position, velocity)
    assert moved[0, 0] == 1 and following[0, 0] == 0.5
    assert velocity.tolist() == [[1, 0, 0, 0]]


def test_out_is_written_and_returned(each: gpud.Client) -> None:
    for n in (3, 50_000):
        x, out = np.ones(n, np.float32), np.zeros(n, np.float32)
        assert each.call("scale", 3.0, x, out=out) is out
        assert (out == 3).all()
        assert each.call("add", x, x, out) is out  # as NumPy's functions do
        assert (out == 2).all()
        assert each.call("axpy", 1.0, x, out=out) is out  # changed in place
        assert (out == 3).all()


def test_a_result_without_a_size_needs_out(g: gpud.Client) -> None:
    values = np.uint8([0, 2, 2, 9])
    with pytest.raises(gpud.ArgShapeError, match="m does not follow"):
        g.call("histogram", values)
    assert g.call("histogram", values, out=np.empty(4, np.uint32)).tolist() == [1, 0, 2, 0]
    assert g.call("fill", 7, out=np.empty(3, np.int32)).tolist() == [7, 7, 7]
    with pytest.raises(gpud.ArgShapeError, match="n does not follow.*give out="):
        g.call("random_uniform", 1)
    with pytest.raises(gpud.ArgCountError, match="out has 2 arrays for 1 results"):
        g.call("fill", 7, out=(np.empty(3), np.empty(3)))


def test_numbers_are_converted_if_they_survive(g: gpud.Client) -> None:
    x = np.int32([1, 2])
    assert g.call("scale", 3.0, x).tolist() == [3, 6]
    assert g.call("scale", np.float64(3), x).tolist() == [3, 6]
    assert g.call("scale", np.array(3), x).tolist() == [3, 6]
    assert g.call("scale", True, x).tolist() == [1, 2]
    with pytest.raises(gpud.RangeError):
        g.call("scale", 2.5, x)
    with pytest.raises(gpud.RangeError, match="64 bits"):
        g.call("scale", 2**64, x)
    assert g.call("random_uniform", 2**64 - 1, out=np.empty(4, np.float32)).shape == (4,)


def test_errors_name_the_argument(each: gpud.Client) -> None:
    x = np.ones(3, np.float32)
    with pytest.raises(gpud.ArgCountError, match=r"axpy<T: f32 f64>\(T a, in T x\[n\], inout T y\[n\]\): 1 arguments"):
        each.call("axpy", 2.0)
    with pytest.raises(gpud.ArgShapeError, match="argument y: f32 4, kernel needs n = 3") as caught:
        each.call("axpy", 2.0, x, np.ones(4, np.float32))
    assert caught.value.arg == 2 and caught.value.step == 0 and caught.value.effects == "none"
    assert isinstance(caught.value, (gpud.RequestError, ValueError)) and caught.value.name == "ARG_SHAPE"
    with pytest.raises(gpud.ArgTypeError, match="argument a: a number is needed, not an array of shape") as caught2:
        each.call("axpy", x, x, x)
    assert caught2.value.arg == 0 and isinstance(caught2.value, TypeError)
    with pytest.raises(gpud.ArgTypeError, match="argument x: an array of numbers is needed, not a value of type str"):
        each.call("axpy", 2.0, "x", x)
    with pytest.raises(LookupError, match="there is no kernel nothing"):
        each.call("nothing")
    with pytest.raises(gpud.ArgCountError, match="no parameter 'priority', which options=gpud.Options"):
        each.call("scale", 2.0, x, priority=1)
    with pytest.raises(TypeError, match="options is a gpud.Options, not a dict"):
        each.call("scale", 2.0, x, options={"priority": 1})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not a int"):
        each.call(5, x)  # type: ignore[arg-type]


def test_a_grid_is_refused_where_sizes_follow(g: gpud.Client) -> None:
    with pytest.raises(gpud.InvalidError):
        g.call("axpy", 2.0, np.ones(3, np.float32), np.ones(3, np.float32), grid=3)
    with pytest.raises(gpud.ArgShapeError, match="at most three sizes"):
        g.call("axpy", 2.0, np.ones(3, np.float32), np.ones(3, np.float32), grid=(1, 2, 3, 4))


def test_wrong_address_and_options() -> None:
    with pytest.raises(gpud.ConnectError, match="nothing"):
        gpud.connect("ipc:///nothing/here", connect_timeout=0.05)
    with pytest.raises(ConnectionError):
        gpud.connect("ipc:///nothing/here", connect_timeout=0.05)
    with pytest.raises(TypeError):
        gpud.connect(patience=3)  # type: ignore[call-arg]


def test_what_is_there(each: gpud.Client) -> None:
    device = each.devices()[0]
    assert device.state == "ready" and device.backend in ("opencl", "sim")
    assert device.simulated == (device.backend == "sim")
    assert each.limits.connected and each.limits.max_buffers > 0
    assert {row["name"] for row in each.query("kernels", "scan_")} >= {"scan_inclusive", "scan_exclusive"}
    assert 0 < each.ping() < 60
    each.flush()


def test_after_close(each: gpud.Client) -> None:
    axpy = each.kernel("axpy")
    each.close()
    each.close()
    assert each.closed and "closed" in repr(each)
    for use in (lambda: each.call("axpy", 1.0, [1.0], [1.0]), lambda: axpy(1.0, np.ones(1), np.ones(1)), each.ping):
        with pytest.raises(gpud.ClosedError):
            use()


def test_errors_survive_pickling(g: gpud.Client) -> None:
    import pickle

    with pytest.raises(gpud.ArgShapeError) as caught:
        g.call("axpy", 2.0, np.ones(3), np.ones(4))
    copy = pickle.loads(pickle.dumps(caught.value))
    assert type(copy) is gpud.ArgShapeError and str(copy) == str(caught.value) and copy.arg == 2


def test_every_code_has_a_class() -> None:
    from gpud import errors
    from gpud._lib import lib, text

    for code in range(-1, lib.GPUD_ERR_STATE - 1, -1):
        cls = errors._CLASSES[code]
        words = text(lib.gpud_err_name(code)).split("_")
        assert cls.__name__ == "".join(word.capitalize() for word in words) + "Error"
        assert getattr(gpud, cls.__name__) is cls
        # the docstring says what libgpud says
        assert cls.__doc__ and issubclass(cls, gpud.Error)


def test_help_names_the_kernels(g: gpud.Client) -> None:
    listed = gpud.__doc__.split("computes:")[1].split("Numbers and arrays")[0].split() if gpud.__doc__ else []
    assert len(listed) > 30
    for name in listed:
        assert g.kernel(name).signature.startswith(name)
    public = {row["name"] for row in g.query("kernels") if row["kind"] == "operation"}
    assert public <= set(listed)
