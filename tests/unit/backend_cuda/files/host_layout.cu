// refused: host_layout.cu:3:
// An attribute that the compiler would leave out, with a warning: the host's bytes have another order.
struct __attribute__((scalar_storage_order("big-endian"))) record {
    short tag;
    int value;
};

__global__ void read(const record *r, int *out) { out[threadIdx.x] = r[threadIdx.x].value; }

int main()
{
    read<<<1, 1>>>(nullptr, nullptr);
}
