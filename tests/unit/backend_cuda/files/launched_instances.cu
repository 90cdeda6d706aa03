// kernels: known<int> deep::open<float> deep::open<double>
// What an argument is, the compiler tells: the launches make the instances.
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
