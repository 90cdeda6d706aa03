"""Source of one's own."""

import pathlib

import numpy as np
import pytest

import gpud

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "kernels"
# as in the examples of Client.compile and Module: compiled once
TWICE = """
//@kernel twice(in f32 x[n], out f32 y[n])  over n
{ y[i] = 2.0f * x[i]; }
"""
HALVE = """
__kernel void halve(__global const float *x, __global float *y)
{
    y[get_global_id(0)] = x[get_global_id(0)] / 2;
}"""


def test_opencl_from_a_file(cl: gpud.Client) -> None:
    x, n = np.float32([1, 2, 3]), 3
    k = cl.compile(path=EXAMPLES / "saxpy.cl")["saxpy"]
    assert [param.name for param in k.params] == ["a", "x", "y", "n"]
    y = np.float32([1, 1, 1])
    assert k(2.0, x, y, n, grid=n).tolist() == [3, 5, 7]
    assert y.tolist() == [1, 1, 1]
    assert k(2.0, x, n, out=y, grid=n) is y and y.tolist() == [3, 5, 7]
    b = cl.array(x)
    assert k(1.0, x, b, n, grid=n) is b and b.get().tolist() == [2, 4, 6]
    with pytest.raises(gpud.ArgCountError, match=r"saxpy\(a, x, y, n\): 2 arguments given"):
        k(2.0, x, grid=n)


def test_results_stay_on_the_device(cl: gpud.Client) -> None:
    k = cl.compile(source=HALVE, lang="opencl")["halve"]
    x = np.arange(1000, dtype=np.float32)
    b = cl.array(x)
    result = k(b, out=cl.empty_like(x), grid=x.size)
    np.testing.assert_array_equal(result.get(), x / 2)


def test_structs_vectors_and_local_memory(cl: gpud.Client) -> None:
    source = """
    #include "pair.h"
    __kernel void f(__global float *y, pair p, float4 v, __local float *scratch)
    {
        scratch[get_local_id(0)] = p.a * N + v.w;
        y[get_global_id(0)] = scratch[get_local_id(0)] + p.b;
    }"""
    header = "typedef struct { float a; int b; } pair;"
    k = cl.compile(source=source, lang="opencl", headers={"pair.h": header}, options="-DN=10")["f"]
    pair = np.array((1.5, 2), np.dtype([("a", np.float32), ("b", np.int32)]))
    vector = np.float32([0, 0, 0, 100])
    y = k(np.zeros(2, np.float32), pair, vector, 8, grid=2, local=2)
    assert y.tolist() == [117, 117]
    with pytest.raises(gpud.ArgTypeError, match="argument p: a struct"):
        k(y, 1.5, vector, 8, grid=2)
    with pytest.raises(gpud.ArgTypeError, match="argument scratch: local memory"):
        k(y, pair, vector, y, grid=2)


def test_dialect_and_signatures(cl: gpud.Client) -> None:
    with cl.compile(source=TWICE, lang="dialect") as module:
        assert module.names == ["twice"] == list(module) and "twice" in module and len(module) == 1
        kernel = module["twice"]
        assert kernel(np.float32([1])).tolist() == [2]
    with pytest.raises(gpud.StaleHandleError):
        kernel(np.float32([1]))
    signed = cl.compile(  # sizes that the line names are arguments of the code
        source="__kernel void f(__global const float *x, __global float *y, ulong n)"
        "{ size_t i = get_global_id(0); if (i < n) { y[i] = -x[i]; } }",
        lang="opencl",
        signature="//@kernel f(in f32 x[n], out f32 y[n])  over n",
    )
    assert signed["f"](np.float32([3, 4])).tolist() == [-3, -4]


def test_a_kernel_keeps_its_module(cl: gpud.Client) -> None:
    kernel = cl.compile(source=TWICE, lang="dialect")["twice"]
    assert kernel(np.float32([1])).tolist() == [2]


def test_errors_of_the_compiler(cl: gpud.Client, tmp_path: pathlib.Path) -> None:
    (tmp_path / "wrong.cl").write_text("__kernel void f(__global int *x)\n{\n    x[0] = y;\n    x[1] = z;\n}\n")
    with pytest.raises(gpud.CompileError, match="wrong.cl:3:12: error: .*'y'") as caught:
        cl.compile(path=tmp_path / "wrong.cl")
    assert "4:12" in caught.value.log and "'z'" in caught.value.log
    with pytest.raises(FileNotFoundError):
        cl.compile(path=tmp_path / "absent.cl")
    with pytest.raises(gpud.InvalidError, match="lang=None: give one of dialect, opencl"):
        cl.compile(source="")
    with pytest.raises(gpud.InvalidError, match="give path= or source="):
        cl.compile()
    with pytest.raises(gpud.NotFoundError, match="twice"):
        cl.compile(source=TWICE, lang="dialect")["nothing"]


def test_simulated_devices_say_that_they_do_not_compile(g: gpud.Client) -> None:
    with pytest.raises(gpud.UnsupportedError, match="built-in kernels only"):
        g.compile(path=EXAMPLES / "saxpy.gk")
