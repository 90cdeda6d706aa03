// kernels: known<int>
// noted: undeduced.cu:7:1: note: of which types the host launches the template deep::open cannot be told: name them with the build option --name-expression=deep::open<float>
// What an argument is, is told only where one declaration says it.
template <class T> __global__ void known(T *x) { *x = 1; }

namespace deep {
template <class T> __global__ void open(T *x) { *x = 2; }
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        float *x = nullptr;
        deep::open<<<1, 1>>>(x);
    } else {
        double *x = nullptr;
        deep::open<<<1, 1>>>(x);
    }
    int *y = nullptr;
    known<<<1, 1>>>(y);
}
