"""Arrays on the device."""

import gc
import os
import pathlib
import pickle
import socket

import numpy as np
import pytest

import gpud
from daemon import Daemon


def test_behaves_like_an_array(each: gpud.Client) -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    b = each.array(x)
    assert (b.shape, b.dtype, b.ndim, b.size, b.nbytes, b.itemsize, len(b)) == ((2, 3, 4), x.dtype, 3, 24, 96, 4, 2)
    np.testing.assert_array_equal(b.get(), x)
    for key in (0, -1, slice(1, 2), (1, 2), (1, slice(0, 2)), (0, 1, 3), ..., (1, ...), slice(5, 9)):
        np.testing.assert_array_equal(b[key].get(), x[key])
    assert [part.get().tolist() for part in b[1]] == x[1].tolist()
    for key in (slice(None, None, 2), (slice(0, 1), 1), (0, 1, 2, 3), "x"):
        with pytest.raises((IndexError, AttributeError)):
            b[key]
    with pytest.raises(IndexError, match="index 2 of 2"):
        b[2]


def test_assignment(g: gpud.Client) -> None:
    b = g.zeros((3, 2), np.int32)
    b[...] = 5
    b[0] = [1, 2]
    b[1] = b[0]
    b[2, 1] = np.int64(7)
    assert b.get().tolist() == [[1, 2], [1, 2], [5, 7]]
    with pytest.raises(gpud.ArgShapeError):
        b[0] = [1, 2, 3]
    with pytest.raises(gpud.ArgShapeError):
        b[0] = b
    with pytest.raises(gpud.ArgTypeError, match="astype"):
        b[0] = np.ones(2, np.float32)
    with pytest.raises(gpud.RangeError, match="2.5 is no int32"):
        b.fill(2.5)
    with pytest.raises(gpud.RangeError):
        b.fill(2**40)
    assert b.get().tolist() == [[1, 2], [1, 2], [5, 7]]


def test_get_into(g: gpud.Client) -> None:
    b = g.array(np.arange(6, dtype=np.float64).reshape(2, 3))
    out = np.zeros((2, 3))
    assert b.get(out) is out and out[1, 2] == 5
    for wrong in (np.zeros((3, 2)), np.zeros((2, 3), np.float32)):
        with pytest.raises(gpud.ArgShapeError, match="the buffer"):
            b.get(wrong)


def test_kernels_use_buffers_in_place(each: gpud.Client) -> None:
    x, y = each.array(np.float32([1, 2])), each.array(np.float32([1, 1]))
    assert each.call("axpy", 2.0, x, y) is y and y.get().tolist() == [3, 5]
    z = each.call("scale", 2.0, x)  # a new buffer, because x is one
    assert isinstance(z, gpud.Buffer) and z.get().tolist() == [2, 4]
    assert each.call("scale", 3.0, x[1:], out=y[:1]).get().tolist() == [6]
    assert y.get().tolist() == [6, 5]


def test_undefined_until_written(g: gpud.Client) -> None:
    b = g.empty_like(np.zeros(3, np.float32))
    assert b.state == "undefined"
    with pytest.raises(gpud.UndefinedError):
        b.get()
    with pytest.raises(gpud.UndefinedError):
        g.call("axpy", 1.0, np.ones(3, np.float32), b)
    g.call("fill", 1, out=b)
    assert b.state == "defined" and b.get().tolist() == [1, 1, 1]


def test_other_libraries_get_copies(g: gpud.Client) -> None:
    b = g.array(np.float32([[1, 2], [3, 4]]))
    x = np.asarray(b)
    assert x.tolist() == [[1, 2], [3, 4]] and not x.flags.writeable  # what is written there would be lost
    b.fill(0)
    del b
    gc.collect()
    assert x.tolist() == [[1, 2], [3, 4]]
    c = g.array(np.int32([1, 2]))
    assert np.from_dlpack(c).tolist() == [1, 2] and c.__dlpack_device__() == (1, 0)
    assert c.tobytes() == np.int32([1, 2]).tobytes()
    assert np.asarray(g.empty(0)).shape == (0,)
    assert np.asarray(c[1]) == 2


def test_the_end_of_a_buffer(g: gpud.Client) -> None:
    with g.array(np.ones(3)) as b:
        part = b[1:]
    for use in (b.get, part.get, lambda: b.fill(1), lambda: g.call("scale", 2.0, b)):
        with pytest.raises(gpud.StaleHandleError):
            use()
    b.free()  # twice is allowed
    before = len(g.query("kernels"))
    c = g.array(np.ones(3))
    d = c[1:]
    del c
    gc.collect()
    assert d.get().tolist() == [1, 1]  # a part keeps the whole
    assert len(g.query("kernels")) == before


def test_freed_memory_returns(g: gpud.Client) -> None:
    for _ in range(40):  # 40 times half of the simulated device's memory
        g.empty(128 << 20, np.float32)
    with pytest.raises((gpud.DeviceMemoryError, gpud.LimitError)):
        kept = [g.empty(128 << 20, np.float32) for _ in range(40)]
        del kept


def test_after_close(each: gpud.Client) -> None:
    b = each.array(np.ones(3))
    each.close()
    for use in (b.get, b.free, lambda: b.fill(1), lambda: b[1].get(), lambda: np.asarray(b), lambda: b.state, b.seal):
        with pytest.raises(gpud.ClosedError, match="closed"):
            use()
    assert b.shape == (3,)


def test_seal_and_publish(g: gpud.Client) -> None:
    b = g.array(np.float32([1, 2, 3]), label="weights")
    b.publish("python-weights")
    assert b.label == "weights" and b.device == 0
    with gpud.connect(g.url) as other:
        c = other.open("python-weights")
        assert c.shape == (3,) and c.dtype == np.float32 and c.get().tolist() == [1, 2, 3]
        with pytest.raises(gpud.PermissionError):
            c.fill(0)
        with pytest.raises(gpud.NotFoundError):
            other.open("nothing")
    assert b.seal() is b and b.state == "sealed"
    with pytest.raises(gpud.SealedError):
        b.fill(1)


def test_grants(g: gpud.Client) -> None:
    b = g.array(np.float32([4, 5]))
    with pytest.raises(gpud.StateError):
        b.grant("python-granted", "reader")
    b.seal().grant("python-granted", "reader", "writer", linger=1)
    tenants = {row["name"]: row["granted_to"] for row in g.query("buffers")}
    assert sorted(tenants["python-granted"].replace(",", " ").split()) == ["reader", "writer"]
    with gpud.connect(g.url) as other, pytest.raises(gpud.NotFoundError):
        other.open_granted("reader", "python-granted")  # it granted nothing
    b.grant("python-granted")


def test_a_granted_copy_is_the_readers_own(tmp_path: pathlib.Path) -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        far = f"tcp://127.0.0.1:{one.getsockname()[1]}"
    settings = tmp_path / "gpud.conf"
    settings.write_text(f"[tenant near]\nusers = {os.getuid()}\n[tenant far]\ntcp = yes\n")
    daemon = Daemon("sim", "--config", str(settings), "--listen", far)
    try:
        with gpud.connect(far) as reader:
            with gpud.connect(daemon.url) as owner:
                weights = owner.array(np.float32([4, 5])).seal()
                weights.grant("weights", "far")
                copy = reader.open_granted("near", "weights")
                with pytest.raises(gpud.NotFoundError):
                    reader.open_granted("near", "others")
            assert copy.state == "sealed" and copy.get().tolist() == [4, 5]  # it outlives its owner
            with pytest.raises(gpud.SealedError):
                copy.fill(1)
    finally:
        daemon.stop()


def test_export_says_why_not(g: gpud.Client) -> None:
    with pytest.raises(gpud.StateError):
        g.array(np.ones(3)).export()


def test_buffers_of_other_clients_and_processes(g: gpud.Client) -> None:
    b = g.array(np.float32([1, 2]))
    with gpud.connect(g.url) as other:
        with pytest.raises(gpud.BadHandleError, match="argument x: a buffer of another client") as caught:
            other.call("scale", 2.0, b)
        assert caught.value.arg == 1
        c = other.zeros(2)
        c[...] = b  # through this process
        assert other.array(b).get().tolist() == c.get().tolist() == [1, 2]
    for thing in (g, b, g.kernel("scale")):
        with pytest.raises(TypeError, match="belong to one process"):
            pickle.dumps(thing)
