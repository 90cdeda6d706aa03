#include "tests/fakecuda/fake.h"

/* The double has no graphs: every call of theirs is refused. */

static CUresult refuse(const char *name)
{
    CUresult r = call_enter(name, NEED_INIT);
    return call_leave(r ? r : CUDA_ERROR_NOT_SUPPORTED);
}

CUresult cuGraphCreate(CUgraph *graph, unsigned int flags)
{
    (void)graph;
    (void)flags;
    return refuse("cuGraphCreate");
}

CUresult cuGraphDestroy(CUgraph graph)
{
    (void)graph;
    return refuse("cuGraphDestroy");
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    (void)exec;
    (void)graph;
    (void)flags;
    return refuse("cuGraphInstantiate");
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    (void)exec;
    (void)stream;
    return refuse("cuGraphLaunch");
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    (void)exec;
    return refuse("cuGraphExecDestroy");
}

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode)
{
    (void)stream;
    (void)mode;
    return refuse("cuStreamBeginCapture");
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    (void)stream;
    (void)graph;
    return refuse("cuStreamEndCapture");
}
