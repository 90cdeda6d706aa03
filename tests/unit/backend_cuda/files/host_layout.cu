// refused: host_layout.cu:6:
// An attribute that the compiler would leave out, with a warning: the host's struct has 5 bytes.
typedef struct {
    char tag;
    int value;
} __attribute__((packed)) record;

__global__ void read(const record *r, int *out) { out[threadIdx.x] = r[threadIdx.x].value; }

int main()
{
    read<<<1, 1>>>(nullptr, nullptr);
}
