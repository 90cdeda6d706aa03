// kernels: compute_lj_force<float, float3, float4>
template <class T, class forceVecType, class posVecType>
__global__ void compute_lj_force(forceVecType *__restrict__ force3,
                                 const posVecType *__restrict__ position, const int neighCount,
                                 const int *__restrict__ neighList, const T cutsq, const T lj1,
                                 const T lj2, const int inum)
{
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    posVecType ipos = position[idx];
    forceVecType f = {0.0f, 0.0f, 0.0f};
    int j = 0;
    while (j < neighCount) {
        int jidx = neighList[j * inum + idx];
        posVecType jpos = position[jidx];
        T delx = ipos.x - jpos.x, dely = ipos.y - jpos.y, delz = ipos.z - jpos.z;
        T r2inv = delx * delx + dely * dely + delz * delz;
        if (r2inv < cutsq) {
            r2inv = 1.0f / r2inv;
            T r6inv = r2inv * r2inv * r2inv;
            T force = r2inv * r6inv * (lj1 * r6inv - lj2);
            f.x += delx * force;
            f.y += dely * force;
            f.z += delz * force;
        }
        j++;
    }
    force3[idx] = f;
}
template __global__ void compute_lj_force<float, float3, float4>(float3 *, const float4 *,
                                                                 const int, const int *,
                                                                 const float, const float,
                                                                 const float, const int);
