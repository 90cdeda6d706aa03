/* What of a CUDA C source is left out as its host's part. No compiler is needed. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/backend/cuda/source/cut.h"
#include "daemon/backend/cuda/source/lex.h"

static char *text;
static const char *expressions[2];
static unsigned expression_count;

static bool cut(const char *source, struct host_cut *ret_cut)
{
    struct err e = ERR_INIT;
    ck_assert_msg(lex_normalize(bytes_str(source), "k.cu", &text, &e) == 0, "%s", e.text);
    bool done = host_cut(text, expressions, expression_count, ret_cut);
    free(text);
    return done;
}

/* Blanks at the ends of lines and in rows say nothing. */
static void squeeze(char *s)
{
    char *to = s;
    for (const char *from = s; *from != '\0'; from++) {
        bool blank = *from == ' ' || *from == '\n';
        if (!blank || (to > s && to[-1] != ' ')) {
            *to++ = blank ? ' ' : *from;
        }
    }
    while (to > s && to[-1] == ' ') {
        to--;
    }
    *to = '\0';
}

#define KERNEL " __global__ void k(float *a) { a[0] = 1; }"

static const struct {
    const char *source, *left;
} cuts[] = {
    {"int main() { k<<<1, 2>>>(0); }" KERNEL, "__global__ void k(float *a) { a[0] = 1; }"},
    /* what a kernel mentions stays, and what that mentions */
    {"struct P { float x; }; typedef P Q; const int N = 4; int size;\n"
     "__global__ void k(Q *q) { q->x = N; } void run(Q *q) { k<<<1, 1>>>(q); }",
     "struct P { float x; }; typedef P Q; const int N = 4; "
     "__global__ void k(Q *q) { q->x = N; }"},
    {"enum { A, B = 3 }; enum E : int { C }; struct H { int v; };\n"
     "__global__ void k(int *a) { *a = B; }",
     "enum { A, B = 3 }; __global__ void k(int *a) { *a = B; }"},
    /* macros give to the device, through others too */
    {"#define HD __host__ __device__\n#define INLINE HD inline\nINLINE int f() { return 1; }\n"
     "int h() { return f(); }",
     "#define HD __host__ __device__ #define INLINE HD inline INLINE int f() { return 1; }"},
    {"#define T float\nstatic T *x; void h(T *a) { }" KERNEL,
     "#define T float __global__ void k(float *a) { a[0] = 1; }"},
    /* classes: of what they depend on the declaration stays */
    {"class C : public D { public: int h() { return 2; } void d(); virtual void v() { } C(int a) : "
     "x(a), y{a} { } __device__ int g() const { return x; }"
     " __host__ ~C() { } int x, y; }; __global__ void k(C *c) { c->g(); }\nC make() { return C(1); "
     "}",
     "class C : public D { public: int h() ; void d(); virtual void v() ; C(int a) ; __device__ "
     "int g() const { return "
     "x; }"
     " ~C() ; int x, y; }; __global__ void k(C *c) { c->g(); }"},
    {"struct C { void f(); }; void C::f() { } C::C() : a(1) { }"
     "__global__ void k(C *c) { }",
     "struct C { void f(); }; __global__ void k(C *c) { }"},
    {"struct V { int x; }; struct S { int y; };\n"
     "std::ostream &operator<<(std::ostream &o, const V &v) { return o; }\n"
     "S operator+(S a, S b) { return a; } V operator+(V a, V b) { return a; }\n"
     "__device__ V operator-(V a) { return a; }",
     "struct V { int x; }; __device__ V operator-(V a) { return a; }"},
    /* spaces, templates, several names, pointers to functions */
    {"namespace a { namespace { int h() { return 1; } template <typename T, int N = 3 >\n"
     "__global__ void k(T *x) { } } } using namespace a; using std::vector; namespace b = a;\n"
     "extern \"C\" { __global__ void e() { } void c(vector<int> &v) { k<float, 4><<<1, 1>>>(p); } "
     "}",
     "namespace a { namespace { template <typename T, int N = 3 > __global__ void k(T *x) { } } }"
     " using namespace a; namespace b = a; extern \"C\" { __global__ void e() { } }"},
    {"const int A = 1, B[] = {2, 3}; typedef void (*F)(int); void (*callback)(int);\n"
     "__global__ void k(F f) { f(B[0]); }",
     "const int A = 1, B[] = {2, 3}; typedef void (*F)(int); __global__ void k(F f) { f(B[0]); }"},
    {"__constant__ float c[3] = {1, 2, 3}; std::map<int, float> m; struct timeval t;\n"
     "__launch_bounds__(64) __global__ void k() { }",
     "__constant__ float c[3] = {1, 2, 3}; __launch_bounds__(64) __global__ void k() { }"},
    /* what a function computes its type from stays */
    {"constexpr int sq(int x) { return x * x; } __global__ void k(int *a) { *a = sq(2); } int h;",
     "constexpr int sq(int x) { return x * x; } __global__ void k(int *a) { *a = sq(2); }"},
    {"#define NAME(a) N##a\nconst int N1 = 1, M1 = 2; __global__ void k(int *a) { *a = NAME(1); }",
     "#define NAME(a) N##a __global__ void k(int *a) { *a = NAME(1); }"}, /* the compiler refuses it
                                                                           */
    {"#ifdef __cplusplus\nextern \"C\" {\n#endif\nint h(int);" KERNEL
     "\n#ifdef __cplusplus\n}\n#endif",
     "#ifdef __cplusplus extern \"C\" { #endif __global__ void k(float *a) { a[0] = 1; } "
     "#ifdef __cplusplus } #endif"},
    /* functions and variables of the host go, whatever they are called */
    {"__device__ float f(float x) { return x; } double f(double x) { return g(x); } int size() { }"
     "int steps; std::vector<float> all(T<int> x) { } namespace cfg { int scale = 3; }\n"
     "__global__ void k(float *a, int steps, int size) { *a = f(1.0f) + steps + size; }",
     "__device__ float f(float x) { return x; } namespace cfg { } "
     "__global__ void k(float *a, int steps, int size) { *a = f(1.0f) + steps + size; }"},
    /* what looks like a function may be none: data, macros, guides, types with attributes */
    {"struct P { unsigned char (*tile)[32]; int n; }; __global__ void k(P p) { } int h;",
     "struct P { unsigned char (*tile)[32]; int n; }; __global__ void k(P p) { }"},
    {"#define ARRAY(n, s) n[s]\nstruct P { int ARRAY(pad, 4); int n; };"
     "__global__ void k(P p) { } int h;",
     "#define ARRAY(n, s) n[s] struct P { int ARRAY(pad, 4); int n; };__global__ void k(P p) { }"},
    {"#define SPEC(T, V) template <> struct Traits<T> { enum { v = V }; }\nSPEC(float, 4);"
     "TAG(x); int h;" KERNEL,
     "#define SPEC(T, V) template <> struct Traits<T> { enum { v = V }; } SPEC(float, 4);TAG(x); "
     "__global__ void k(float *a) { a[0] = 1; }"},
    {"#define MAKE(T) T x\nint MAKE(t) { } int h;" KERNEL,
     "#define MAKE(T) T x int MAKE(t) { } __global__ void k(float *a) { a[0] = 1; }"},
    {"template <> struct Traits<double> final { enum { v = 8 }; }; int h;\n"
     "struct ALIGN(16) V { float x; }; template <> struct ALIGN(8) Traits<short> { };" KERNEL,
     "template <> struct Traits<double> final { enum { v = 8 }; }; struct ALIGN(16) V { float x; "
     "}; template <> struct ALIGN(8) Traits<short> { }; __global__ void k(float *a) { a[0] = 1; }"},
    {"template <class T> struct Box { T v; }; Box(float) -> Box<int>; int h;\n"
     "template <class T> Box(T *) -> Box<T>;" KERNEL,
     "template <class T> struct Box { T v; }; Box(float) -> Box<int>; template <class T> Box(T *) "
     "-> Box<T>; __global__ void k(float *a) { a[0] = 1; }"},
    {"void h() {\n#ifdef OMP\nfor (;;) {\n#endif\n{ f(); }\n#ifdef OMP\n}\n#endif\n}" KERNEL,
     "#ifdef OMP #endif #ifdef OMP #endif __global__ void k(float *a) { a[0] = 1; }"},
    /* templates of types that nothing names */
    {"template <class B> class Wrong : public B { std::string what; }; template <class T>\n"
     "struct Box { T v; }; template <class T> using Row = Box<T>; template <class T> struct Pair "
     "{\n"
     "Box<T> a; }; int h; __global__ void k(Row<int> *r) { r->v = 1; }",
     "template <class T> struct Box { T v; }; template <class T> using Row = Box<T>; "
     "__global__ void k(Row<int> *r) { r->v = 1; }"},
    {"template <class T> struct From; template <> struct From<int> { int v; }; struct tm t; int "
     "h;\n"
     "template <class T> struct Unused; struct Other;" KERNEL,
     "template <class T> struct From; template <> struct From<int> { int v; }; "
     "__global__ void k(float *a) { a[0] = 1; }"},
    {"template <class T> struct std::hash<T *> { int v; }; template <> struct Traits<int> { };\n"
     "template <class T> struct ALIGN(8) V { T v; }; int h;" KERNEL,
     "template <class T> struct std::hash<T *> { int v; }; template <> struct Traits<int> { }; "
     "template <class T> struct ALIGN(8) V { T v; }; "
     "__global__ void k(float *a) { a[0] = 1; }"},
    /* constants that others are computed of; what only the host computes is its variable */
    {"const float a = 1.5f; static const double b = 1.0 / a, c = -M_PI * a; int h;\n"
     "const float d = sinf(a); __global__ void k(float *o) { *o = b + c + d; }",
     "__fix float a = 1.5f; static __fix double b = 1.0 / a, c = -M_PI * a; "
     "const float d = sinf(a); __global__ void k(float *o) { *o = b + c + d; }"},
    {"#define SQ(x) ((x) * (x))\n#define WIDTH 4\nconstexpr float half(float x) { return x / 2; }\n"
     "const float a = SQ(0.5f) * WIDTH; const float b = half(a), t[2] = {a, a}; const int n = "
     "WIDTH;"
     " int h; const float c = n * a; __global__ void k(float *o) { *o = b + c + t[0]; }",
     "#define SQ(x) ((x) * (x)) #define WIDTH 4 constexpr float half(float x) { return x / 2; } "
     "__fix float a = SQ(0.5f) * WIDTH; const float b = half(a), t[2] = {a, a}; "
     "const int n = WIDTH; __fix float c = n * a; "
     "__global__ void k(float *o) { *o = b + c + t[0]; }"},
    {"#define CONST static const\nCONST int N = 4; CONST float x = N; int h;\n"
     "__global__ void k(int *a) { *a = N; }",
     "#define CONST static const CONST int N = 4; __global__ void k(int *a) { *a = N; }"},
    {"float f(float x) { return x; } const float a = f(2); int h;\n"
     "__global__ void k(float *o, float a) { *o = a; }",
     "__global__ void k(float *o, float a) { *o = a; }"},
    /* what is not run leads to no function of the host's */
    {"int size(int n) { return n; } struct V { size_t n; }; __global__ void k(int *o, V v)\n"
     "{ *o = sizeof(V *) + sizeof(v.n) + f(size(1)); }",
     "struct V { size_t n; }; __global__ void k(int *o, V v) "
     "{ *o = sizeof(V *) + sizeof(v.n) + f(size(1)); }"},
    /* directives stay where they are */
    {"void h() {\n#ifdef X\n f();\n#else\n g();\n#endif\n#define N 3\n}" KERNEL,
     "#ifdef X #else #endif #define N 3 __global__ void k(float *a) { a[0] = 1; }"},
    /* a macro that is defined behind a function is no use of it */
    {"void check(int s, int line) { }\n#define check(s) check((s), __LINE__)\n" KERNEL
     " int main() { check(0); }",
     "#define check(s) check((s), __LINE__) __global__ void k(float *a) { a[0] = 1; }"},
    /* pointers to functions with a macro for what they are called by */
    {"typedef void (CALLED *P)(int); typedef int (CALLED F)(int, float); typedef void (CALLED H)();"
     " struct void_ { int x; }; __global__ void k(int *a, F f) { *a = f(1, 2); } void h(H f) { }",
     "typedef int (CALLED F)(int, float); __global__ void k(int *a, F f) { *a = f(1, 2); }"},
    /* an instance of a template that is asked for declares nothing that could be called */
    {"template <class T> void reduce(T *x) { } template void reduce<int>(int *x);\n"
     "extern template void reduce<long>(long *x); __device__ int g(int a) { return c::reduce(a); }",
     "__device__ int g(int a) { return c::reduce(a); }"},
    /* sizes in macros that are the same wherever they are used */
    {"#define W (sizeof(unsigned) * 8)\nint n; __global__ void k(int *a, int n) { *a = n % W; }",
     "#define W (sizeof(unsigned) * 8) __global__ void k(int *a, int n) { *a = n % W; }"},
    {"#define W(x) ((x) * sizeof(long))\nint n; __global__ void k(int *a, int n) { *a = W(n); }",
     "#define W(x) ((x) * sizeof(long)) __global__ void k(int *a, int n) { *a = W(n); }"},
};

START_TEST(leaves_the_device)
{
    struct host_cut c = {.text = NULL};
    ck_assert_msg(cut(cuts[_i].source, &c), "%s", cuts[_i].source);
    ck_assert_uint_eq(strlen(c.text), strlen(cuts[_i].source)); /* lines and columns stay */
    squeeze(c.text);
    ck_assert_str_eq(c.text, cuts[_i].left);
    ck_assert_uint_gt(c.functions + c.others, 0);
    host_cut_finish(&c);
}
END_TEST

static const char *const uncut[] = {
    "",
    "__global__ void k() { }",
    "int h;\n#ifdef X\nvoid f() {\n#else\nvoid g() {\n#endif\n}" KERNEL,
    "void h() {\n#ifdef A\n{\n#endif\n}\n__device__ int g() { return 2; }\n#ifdef A\n}\n#endif\n"
    "int h;" KERNEL,
    "void h() {\n#ifdef A\n{\n#endif\nf();\n#ifdef B\n}\n#endif\n}" KERNEL,
    "void h() {\n#ifdef A\n{\n#endif\n#undef A\nf();\n#ifdef A\n}\n#endif\n}" KERNEL,
    "void h() {\n#ifdef A\n{\n#endif\n#ifdef B\n} } __device__ int g() { {\n#endif\nf();\n"
    "#ifdef A\n}\n#endif\n}" KERNEL,
    "namespace x {\n#if 0\nvoid f() {\n#endif\n__device__ int g() { return 2; }\n#if 0\n}\n#endif\n"
    "} int h;" KERNEL,
    "int h; }" KERNEL,
    "int h; {" KERNEL,
    "#if 1\nint h;" KERNEL,
    /* what a kernel names could mean another thing without it */
    "char probe(int); __device__ double probe(double); int h;\n"
    "__global__ void k(int *o) { *o = sizeof(probe(1)); }",
    "HD int over(float) { return 2; } __device__ int over(int) { return 3; }\n"
    "__global__ void k(int *o) { *o = over(1.f); } int h;",
    "template <class T> __device__ int f(T) { return 1; } template <> int f(float) { return 2; }"
    "__global__ void k(int *o) { *o = f(1.f); } int h;",
    "struct V { int n; }; int size(V v) { return v.n; } template <class T> __device__ auto\n"
    "pick(T t, int) -> decltype(size(t), 1) { return 1; } __global__ void k(V v) { pick(v, 0); }",
    "constexpr int f(long x) { return 1; } int f(int x) { return 2; } const int n = f(3); int h;\n"
    "__global__ void k(int *o) { *o = n; }",
    "V operator*(V, V) { } V of(int) { } __global__ void k(int *o, V a)\n"
    "{ *o = sizeof(a * a) + of(1); }",
    "#define OF(x) probe(x)\nchar probe(int); int of(int); __global__ void k(int *o)\n"
    "{ *o = sizeof(OF(1)) + of(1); } int h;",
    /* a directive that nobody has looked at */
    "__global__ void k(int *p) { *p = 1; }\nint h() { return 0; } #include \"/etc/hostname\"\n",
    "__global__ void k(int *p) { *p = 1; }\nint h() { return 0; } %: include \"/etc/hostname\"\n",
    /* what is asked of types and sizes finds operators and variables of the host, too */
    "struct V { float x; }; V operator+(V a, V b) { return a; } template <class T, class = void>\n"
    "struct has { static constexpr int v = 0; }; template <class T> struct has<T, "
    "decltype(void(T() "
    "+ T()))> { static constexpr int v = 1; }; __global__ void k(int *o) { *o = has<V>::v; }\n"
    "int main() { }",
    "__device__ float w[4]; namespace h { double w[8]; __global__ void k(int *o) { *o = sizeof(w); "
    "}"
    " } int main() { }",
    /* one that lies around what is the device's */
    "#if 0\nvoid f() {\n#endif\n__device__ int g(float) { return 2; }\n#if 0\n}\n#endif\n"
    "__device__ int g(double) { return 3; } __global__ void k(int *o) { *o = g(1.f); } int h;",
    /* and those that are not: of a parameter, of what is not there, of what goes, not closed */
    "#define W(x) sizeof(x)\nint n; __global__ void k(int *a, int n) { *a = W(n); }",
    "#define W(...) sizeof(__VA_ARGS__)\nint n; __global__ void k(int *a, int n) { *a = W(n); }",
    "#define W sizeof\nint n; __global__ void k(int *a, int n) { *a = W(n); }",
    "#define W sizeof(n)\nint n; __global__ void k(int *a, int n) { *a = W; }",
    "#define V )\n#define W sizeof((n)\nint n; __global__ void k(int *a, int n) { *a = W V; }",
};

START_TEST(leaves_all)
{
    struct host_cut c = {.text = NULL};
    ck_assert_msg(!cut(uncut[_i], &c), "%s", uncut[_i]);
    ck_assert_ptr_null(c.text);
}
END_TEST

/* What names each instance, in order; "~": not as the source spells it. */
static void instances_are(const char *source, const char *const *wanted)
{
    struct host_cut c = {.text = NULL};
    ck_assert_msg(cut(source, &c), "%s", source);
    const struct instances *s = &c.instances;
    for (unsigned i = 0; i < s->count && wanted[i] != NULL; i++) {
        const char *name = s->list[i].expression;
        bool deduced = wanted[i][0] == '~';
        ck_assert_str_eq(name, wanted[i] + deduced);
        ck_assert_int_eq(s->list[i].spelled, !deduced);
    }
    ck_assert_msg(wanted[s->count] == NULL, "%u, and not %s", s->count, wanted[s->count]);
    host_cut_finish(&c);
}

static const struct {
    const char *source;
    const char *wanted[8];
} instances[] = {
    {"#define B 16\nstruct P { int x; };\n"
     "template <class T, int N> __global__ void k(T *a) { }\n__global__ void p(P *a) { }\n"
     "template <class T> void run(T *a) { k<T, 3><<<1, 2>>>(a); }\n"
     "int main() { k<float, B><<<1, 2>>>(a); k<P, 4><<<1, 2>>>(a); p<<<1, 2>>>(a);\n"
     "k< unsigned int , 2 ><<<1, 2>>>(a); k<float, B><<<1, 2>>>(b); x << 3 << 4; }\n",
     {"k<float,B>", "k<P,4>", "k<unsigned int,2>"}},
    /* a launch in a template of the host is one for each call of that */
    {"struct P { int x; }; template <class T, int N> __global__ void k(T *a) { }\n"
     "template <typename T, class U, int N = 2> void run(U u) { k<T, N><<<1, 2>>>(u);"
     " k<P, 1><<<1, 2>>>(u); }\n"
     "template void run<P, float *, 4>(float *);\n"
     "int main() { run<float, int, 1 + 2>(a); run<float, int>(a); run < 3; }",
     {"k<P,4>", "k<P,1>", "k<float,(1+2)>", "k<float,2>"}},
    /* templates in namespaces are named in full, without what is looked through */
    {"namespace a { namespace { template <class T> __global__ void k(T *x) { } }\n"
     "inline namespace v { template <int N> __global__ void n() { } } void r() { k<int><<<1, "
     "2>>>(0);"
     " } } namespace b::c { template <class T> __global__ void k(T *x) { } }\n"
     "using namespace a; int main() { b::c::k<float><<<1, 2>>>(p); n<4><<<1, 2>>>(); }",
     {"a::k<int>", "b::c::k<float>", "a::v::n<4>"}},
    /* one whose address is taken; a constant of the function; types of fixed sizes */
    {"template <class T, int N = 1> __global__ void k(T *x) { } void h() { const int n = 4 * 2;\n"
     "auto f = k<int64_t>; g((void *)k<size_t, n>); }",
     {"k<int64_t>", "~k<size_t,(4*2)>"}},
    /* what a call deduces: from declared types alone */
    {"template <class T> __global__ void k(T *x, int n) { } int main() { float *p, **q; int n;\n"
     "k<<<n, 2>>>(p, n * unknown); k<<<1, 2>>>(q[0] + n, 3); }",
     {"~k<decltype(__gpud_of_k(__gpud_value<float*>()))::__gpud_p0_0>",
      "~k<decltype(__gpud_of_k(__gpud_value<float**>()[0]+__gpud_value<int>()))::__gpud_p0_0>"}},
    {"namespace a { template <class T, int N, class U> __global__ void k(const U *u, T t) { } }\n"
     "double *all; void h(const unsigned long *list, int v[]) { a::k<float, 3><<<1, 2>>>(list, "
     "v);\n"
     "a::k<float, 3><<<1, 2>>>(all, 1); }",
     {"~a::k<float,3,decltype(a::__gpud_of_k<float,3>(__gpud_value<const unsigned "
      "long*>(),__gpud_value<int[]>()))::__gpud_p0_2>",
      "~a::k<float,3,decltype(a::__gpud_of_k<float,3>(__gpud_value<double*>(),1))::__gpud_p0_2>"}},
    {"template <class T> __global__ void k(T *x) { } template <class U> void run(U *u, S s) {"
     " k<U><<<1, 2>>>(u); } int main() { auto p = new short; run(p, s); }",
     {"~k<decltype(__gpud_of_run((new short)))::__gpud_p1_0>"}},
    /* what cannot be told is not: two types of one name, unknown ones, packs, overloads */
    {"template <class T> __global__ void k(T *x) { } template <class... T> __global__ void v(T... "
     "x) "
     "{ } template <class T> __global__ void o(T *x) { } template <class T> __global__ void o(T x) "
     "{ } int main() { if (a) { float *p; k<<<1, 2>>>(p); } else { int *p; k<<<1, 2>>>(p); }\n"
     "v<<<1, 2>>>(1); v<int><<<1, 2>>>(1); o<<<1, 2>>>(1); int n = f(); k<n><<<1, 2>>>(0); }",
     {"~v<int>"}}, /* a call may add to a pack */
    /* what a call may deduce is no default's; what cannot be deduced is */
    {"template <int B, class T = float> __global__ void k(const T *a, T *o) { }\n"
     "template <int B, bool C = false> __global__ void n(int *x) { }\n"
     "int main() { double *a, *o; k<256><<<1, 2>>>(a, o); n<3><<<1, 2>>>(0); }",
     {"~k<256>", "n<3>"}},
    /* names that are others behind the source than where they stand */
    {"using real = float; const int N = 4; namespace p { using real = double;\n"
     "template <class T> __global__ void k(T *x) { } template <int M> __global__ void m() { }\n"
     "void h(double *d) { enum { N = 64 }; k<real><<<1, 2>>>(d); m<N><<<1, 2>>>(); } }\n"
     "template <class C> void r() { p::m<C::N><<<1, 2>>>(); } int main() { r<A>(); }",
     {NULL}},
    {"#define B 64\ntemplate <int N> __global__ void k() { } void f() { k<B><<<1, 2>>>(); }\n"
     "#undef B\n#define B 512\n#define C (B + 1)\n#define D 3\n"
     "void g() { k<C><<<1, 2>>>(); k<D><<<1, 2>>>(); }",
     {"~k<B>", "~k<C>", "k<D>"}},
};

START_TEST(finds_instances)
{
    instances_are(instances[_i].source, instances[_i].wanted);
}
END_TEST

/* Beside each template whose arguments are deduced stands what tells them; lines stay. */
START_TEST(puts_probes)
{
    struct host_cut c = {.text = NULL};
    ck_assert(cut("template <class T, int N = 2>\n__global__ void k(__grid_constant__ const T x, "
                  "int *y, T (&z)[N] = 0) { }\nvoid h(float *p) { k<<<1, 2>>>(*p, 0, t); }",
                  &c));
    squeeze(c.text);
    ck_assert_str_eq(
        c.text,
        "template <class T, int N = 2> __global__ void k(__grid_constant__ const T x, int *y, T "
        "(&z)[N] = 0) { } __gpud_probe(template <class T,int N> struct __gpud_held0 { typedef T "
        "__gpud_p0_0; static constexpr decltype(N) __gpud_p0_1 = N; }; template <class T,int N=2> "
        "__device__ __gpud_held0<T,N> __gpud_of_k(const T x,T(&z)[N]);)");
    host_cut_finish(&c);
}
END_TEST

/* A type that only an instance of a kernel is named by. */
START_TEST(keeps_types_of_instances)
{
    static const char source[] =
        "struct Base { float x; }; struct Given : Base { }; struct Launched { int y; };\n"
        "struct Other { int z; }; template <class T> __global__ void k(T *a) { }\n"
        "template <class T> struct Box { T v; };\n"
        "int main() { k<Box<Launched>><<<1, 2>>>(a); }";
    struct host_cut c = {.text = NULL};
    expressions[0] = "k<float>";
    expressions[1] = "k<Given>";
    expression_count = 2;
    ck_assert(cut(source, &c));
    ck_assert_ptr_nonnull(strstr(c.text, "struct Base"));
    ck_assert_ptr_nonnull(strstr(c.text, "struct Given"));
    ck_assert_ptr_nonnull(strstr(c.text, "struct Launched"));
    ck_assert_ptr_null(strstr(c.text, "struct Other"));
    ck_assert_uint_eq(c.instances.count, 1);
    ck_assert_str_eq(c.instances.list[0].expression, "k<Box<Launched>>");
    host_cut_finish(&c);
}
END_TEST

/* Pieces of sources, joined by chance: nothing but the length is sure. */
START_TEST(takes_anything)
{
    static const char *const piece[] = {"struct ",
                                        "a ",
                                        "( ",
                                        ") ",
                                        "{ ",
                                        "} ",
                                        "; ",
                                        "= ",
                                        "< ",
                                        "> ",
                                        ":: ",
                                        ": ",
                                        "operator ",
                                        "__global__ ",
                                        "template ",
                                        "enum ",
                                        ", ",
                                        "[ ",
                                        "] ",
                                        "\n#define b ",
                                        "\n#if 1\n",
                                        "\n#endif\n",
                                        "namespace ",
                                        "using ",
                                        "~ ",
                                        "\"x\" ",
                                        "extern \"C\" ",
                                        "* ",
                                        "b ",
                                        "const ",
                                        "template <class a> ",
                                        "b<<<a>>>(a, ",
                                        "template <class b, int c = 1> __global__ void a(b *c) { }",
                                        "{ a<<<1, 2>>>(b); ",
                                        "auto b = ",
                                        "decltype("};
    unsigned seed = 7 + (unsigned)_i;
    char source[4096];
    for (int round = 0; round < 2000; round++) {
        size_t size = 0;
        source[0] = '\0';
        for (int i = 0; i < 60; i++) {
            seed = seed * 1103515245u + 12345u;
            const char *add = piece[(seed >> 16) % (sizeof piece / sizeof piece[0])];
            memcpy(source + size, add, strlen(add) + 1);
            size += strlen(add);
        }
        struct host_cut c = {.text = NULL};
        if (cut(source, &c)) {
            ck_assert_uint_ge(strlen(c.text), size);
            host_cut_finish(&c);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda cut");
    TCase *all = tcase_create("cut");
    tcase_add_loop_test(all, leaves_the_device, 0, sizeof cuts / sizeof cuts[0]);
    tcase_add_loop_test(all, leaves_all, 0, sizeof uncut / sizeof uncut[0]);
    tcase_add_loop_test(all, finds_instances, 0, sizeof instances / sizeof instances[0]);
    tcase_add_test(all, puts_probes);
    tcase_add_test(all, keeps_types_of_instances);
    tcase_add_loop_test(all, takes_anything, 0, 8);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
