// kernels: paint
// noted: host code from here on is left out
#include <GL/glew.h>
#include <GL/freeglut.h>
#include <dlfcn.h>
#include <sys/utsname.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/sort.h>
#include <xmmintrin.h>

using namespace thrust;

static GLuint picture;
static thrust::device_vector<int> order;

__global__ void paint(uchar4 *out, int width)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < width) {
        out[x] = make_uchar4(x & 255, 0, 0, 255);
    }
}

static void draw(void)
{
    struct utsname system;
    uname(&system);
    thrust::sort(thrust::device, order.begin(), order.end());
    paint<<<4, 64>>>(NULL, 256);
    glDrawPixels(256, 1, GL_RGBA, GL_UNSIGNED_BYTE, 0);
    glutSwapBuffers();
}

int main(int argc, char **argv)
{
    glutInit(&argc, argv);
    glGenBuffers(1, &picture);
    glutDisplayFunc(draw);
    glutMainLoop();
}
