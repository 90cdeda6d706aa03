// kernels: fill<int>
// noted: partly.cu:4:1: note: of which other types the host launches the template fill cannot be told: name them with the build option --name-expression=fill<float>
// One launch says what the template is of, and another one does not.
template <class T> __global__ void fill(T *x) { *x = 1; }

int main(int argc, char **argv)
{
    int *all = nullptr;
    fill<<<1, 1>>>(all);
    if (argc > 1) {
        float *x = nullptr;
        fill<<<1, 1>>>(x);
    } else {
        double *x = nullptr;
        fill<<<1, 1>>>(x);
    }
}
