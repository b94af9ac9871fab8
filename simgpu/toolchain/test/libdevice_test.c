/*
 * libdevice_test.c: the device library against libm, as the host's compiler makes both.
 *
 * In: the library's sources, linked in. Out: a line for each function that misses its bound, then one line; exit status. The errors of
 * single precision are measured against libm in double precision, in units of the last place of the right result; those of double
 * precision against libm in long double precision.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int failed, checked;
static uint64_t state = 0x9e3779b97f4a7c15;

static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

static double uniform(void) { return (double)(draw() >> 11) * 0x1p-53; }

/* Arguments: uniform in the range, or of any size in it, so that small ones and limits occur as well. */
static double argument(double low, double high)
{
	if (draw() & 1)
		return low + (high - low) * uniform();
	double x = ldexp(uniform(), (int)(draw() % 400) - 300) * (draw() & 1 ? 1 : -1);
	return x < low ? low : x > high ? high : x;
}

static double ulps_f(float got, double want)
{
	if (isnan(want) || isnan(got))
		return isnan(want) && isnan(got) ? 0 : INFINITY;
	if ((float)want == got)
		return 0;
	if (isinf((float)want) || isinf(got))
		return INFINITY;
	int e = want == 0 ? -126 : ilogb(want);
	return fabs((double)got - want) / ldexp(1, (e < -126 ? -126 : e) - 23);
}

static double ulps_d(double got, long double want)
{
	if (isnan((double)want) || isnan(got))
		return isnan((double)want) && isnan(got) ? 0 : INFINITY;
	if ((double)want == got)
		return 0;
	if (isinf((double)want) || isinf(got))
		return INFINITY;
	int e = want == 0 ? -1022 : ilogbl(want);
	return (double)(fabsl((long double)got - want) / ldexpl(1, (e < -1022 ? -1022 : e) - 52));
}

static const double special[] = {0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, 10, 100, 1e-30, -1e-30, 1e-45, 88.7, -103.9, 709.7, -745.1, 1e30, -1e30, INFINITY, -INFINITY, NAN};
enum { SPECIAL = sizeof(special) / sizeof(special[0]), DRAWS = 20000 };

static void verdict(const char *name, double worst, double at, double bound)
{
	checked++;
	if (worst <= bound)
		return;
	printf("%s: %.3g units of the last place at %.17g, bound %.3g\n", name, worst, at, bound);
	failed++;
}

#define FUNCTIONS(X) \
	X(exp, -800, 800, 2) X(exp2, -1100, 1100, 2) X(exp10, -330, 330, 3) X(expm1, -50, 700, 4) X(log, 0, 1e30, 2) X(log2, 0, 1e30, 2) \
	X(log10, 0, 1e30, 2) X(log1p, -1, 1e30, 3) X(cbrt, -1e30, 1e30, 2) X(sinh, -720, 720, 4) X(cosh, -720, 720, 4) \
	X(tanh, -30, 30, 5) X(asinh, -1e30, 1e30, 4) X(acosh, 1, 1e30, 4) X(atanh, -1, 1, 4) X(sin, -1e5, 1e5, 2) X(cos, -1e5, 1e5, 2) \
	X(tan, -1e5, 1e5, 4) X(atan, -1e10, 1e10, 2) X(asin, -1, 1, 4) X(acos, -1, 1, 4) X(erf, -7, 7, 6) X(erfc, -6, 0.4, 6) \
	X(sqrt, 0, 1e30, 0.5) X(floor, -1e9, 1e9, 0) X(ceil, -1e9, 1e9, 0) X(trunc, -1e9, 1e9, 0) X(rint, -1e9, 1e9, 0) \
	X(nearbyint, -1e9, 1e9, 0) X(round, -1e9, 1e9, 0) X(fabs, -1e9, 1e9, 0)
#define TWO(X) \
	X(atan2, -1e6, 1e6, 3) X(fmod, -1e6, 1e6, 0) X(hypot, -1e30, 1e30, 2) X(fmax, -10, 10, 0) X(fmin, -10, 10, 0) X(copysign, -10, 10, 0)

/* The bound of single precision is one for all: the result of double precision, rounded. */
#define BOUND_F 0.501
#define DECLARE(name, low, high, bound) \
	double __nv_##name(double); \
	float __nv_##name##f(float); \
	static void test_##name(void) \
	{ \
		double worst = 0, worst_f = 0, at = 0, at_f = 0; \
		for (int i = 0; i < SPECIAL + DRAWS; i++) { \
			double x = i < SPECIAL ? special[i] : argument(low, high), e = ulps_d(__nv_##name(x), name##l(x)); \
			float f = (float)x; \
			double ef = ulps_f(__nv_##name##f(f), name((double)f)); \
			if (e > worst) \
				worst = e, at = x; \
			if (ef > worst_f) \
				worst_f = ef, at_f = f; \
		} \
		verdict(#name, worst, at, bound); \
		verdict(#name "f", worst_f, at_f, BOUND_F); \
	}
FUNCTIONS(DECLARE)
#define DECLARE2(name, low, high, bound) \
	double __nv_##name(double, double); \
	float __nv_##name##f(float, float); \
	static void test_##name(void) \
	{ \
		double worst = 0, worst_f = 0, at = 0, at_f = 0; \
		for (int i = 0; i < SPECIAL * SPECIAL + DRAWS; i++) { \
			double x = i < SPECIAL * SPECIAL ? special[i / SPECIAL] : argument(low, high); \
			double y = i < SPECIAL * SPECIAL ? special[i % SPECIAL] : argument(low, high); \
			double e = ulps_d(__nv_##name(x, y), name##l(x, y)); \
			float f = (float)x, g = (float)y; \
			double ef = ulps_f(__nv_##name##f(f, g), name((double)f, (double)g)); \
			if (e > worst) \
				worst = e, at = x; \
			if (ef > worst_f) \
				worst_f = ef, at_f = f; \
		} \
		verdict(#name, worst, at, bound); \
		verdict(#name "f", worst_f, at_f, BOUND_F); \
	}
TWO(DECLARE2)

double __nv_pow(double, double), __nv_erfinv(double), __nv_lgamma(double), __nv_erfc(double), __nv_rsqrt(double), __nv_ldexp(double, int);
float __nv_powf(float, float), __nv_erfinvf(float), __nv_lgammaf(float), __nv_erfcf(float), __nv_rsqrtf(float), __nv_ldexpf(float, int);
float __nv_powif(float, int), __nv_nextafterf(float, float), __nv_sinf(float), __nv_cosf(float);
double __nv_sin(double), __nv_cos(double), __nv_nextafter(double, double);
int __nv_ilogb(double), __nv_ilogbf(float), __nv_isnanf(float), __nv_isinff(float), __nv_finitef(float), __nv_signbitf(float);
int __nv_clz(int), __nv_popc(int), __nv_ffs(int), __nv_mulhi(int, int), __nv_abs(int);
unsigned __nv_umulhi(unsigned, unsigned);
unsigned long long __nv_umul64hi(unsigned long long, unsigned long long);
long long __nv_llrint(double);

#define WORST(value, arg) \
	do { \
		double e_ = (value); \
		if (e_ > worst) \
			worst = e_, at = (arg); \
	} while (0)

/* The error of a double-precision power grows with its exponent, up to 1,000 units; that of single precision does not show it. */
static void powers(void)
{
	double worst = 0, at = 0;
	for (int i = 0; i < SPECIAL * SPECIAL; i++) {
		double x = special[i / SPECIAL], y = special[i % SPECIAL];
		WORST(ulps_d(__nv_pow(x, y), powl(x, y)), x);
	}
	for (int i = 0; i < DRAWS; i++) {
		double x = fabs(argument(-1e20, 1e20)), y = argument(-40, 40);
		WORST(ulps_d(__nv_pow(x, y), powl(x, y)), x);
	}
	verdict("pow", worst, at, 1000);
	worst = 0;
	for (int i = 0; i < SPECIAL * SPECIAL + DRAWS; i++) {
		float x = (float)(i < SPECIAL * SPECIAL ? special[i / SPECIAL] : argument(-50, 50));
		float y = (float)(i < SPECIAL * SPECIAL ? special[i % SPECIAL] : i & 1 ? rint(argument(-20, 20)) : argument(-20, 20));
		WORST(ulps_f(__nv_powf(x, y), pow((double)x, (double)y)), x);
		if (fabsf(y) < 100 && rintf(y) == y)
			WORST(ulps_f(__nv_powif(x, (int)y), pow((double)x, (double)y)), x);
	}
	verdict("powf, powif", worst, at, BOUND_F);
}

/* The tail of erfc; erfinv by its inverse; lgamma, whose zeros at 1 and 2 bound the error in absolute terms. */
static void specials(void)
{
	double worst = 0, at = 0;
	for (int i = 0; i < DRAWS; i++) {
		double x = 0.4 + 26 * uniform();
		WORST(ulps_d(__nv_erfc(x), erfcl(x)), x);
	}
	verdict("erfc, tail", worst, at, 400);
	worst = 0;
	for (int i = 0; i < DRAWS; i++) {
		float x = (float)(0.4 + 10 * uniform());
		WORST(ulps_f(__nv_erfcf(x), erfc((double)x)), x);
		x = (float)argument(-0.4, 0.4);
		WORST(ulps_f(__nv_erfcf(x), erfc((double)x)), x);
	}
	verdict("erfcf", worst, at, BOUND_F);
	worst = 0;
	for (int i = 0; i < DRAWS; i++) {
		double y = argument(-4, 4), x = erf(y);
		if (fabs(x) < 1 && fabs(y) > 1e-200) { /* erf loses digits towards one */
			double slack = x == 0 ? 0 : fabs(x) * 0x1p-52 / (1.1283791670955126 * exp(-y * y));
			WORST((fabs(__nv_erfinv(x) - y) - slack) / fabs(y) * 0x1p52, y);
		}
	}
	verdict("erfinv", worst, at, 40);
	worst = 0;
	for (int i = 0; i < DRAWS; i++) {
		double x = i & 1 ? argument(1e-10, 1e8) : -30 * uniform();
		double want = lgamma(x);
		WORST(fabs(__nv_lgamma(x) - want) / fmax(1, fabs(want)) * 0x1p52, x);
	}
	verdict("lgamma", worst, at, 400);
	verdict("erfinv(1)", __nv_erfinv(1) == INFINITY && __nv_erfinvf(-1) == -INFINITY && isnan(__nv_erfinv(1.5)) ? 0 : 1, 1, 0);
	verdict("lgammaf", ulps_f(__nv_lgammaf(0.25f), lgamma(0.25)) + ulps_f(__nv_lgammaf(1e5f), lgamma(1e5)), 0, 2 * BOUND_F);
}

/* Multiples of pi/2 far out: the reduction needs many digits of 2/pi. */
static void far_angles(void)
{
	double worst = 0, at = 0;
	for (int i = 0; i < DRAWS; i++) {
		double x = ldexp(1 + uniform(), (int)(draw() % 1023));
		WORST(ulps_d(__nv_sin(x), sinl(x)), x);
		WORST(ulps_d(__nv_cos(x), cosl(x)), x);
	}
	for (int i = 1; i < 200; i++) {
		double x = rint(ldexp(1 + uniform(), i % 60)) * 1.5707963267948966;
		WORST(ulps_d(__nv_sin(x), sinl(x)), x);
		WORST(ulps_d(__nv_cos(x), cosl(x)), x);
	}
	WORST(ulps_d(__nv_cos(0x1.6ac5b262ca1ffp+849), cosl(0x1.6ac5b262ca1ffp+849)), 0x1.6ac5b262ca1ffp+849);
	verdict("sin, cos, far", worst, at, 2);
	worst = 0;
	for (int i = 0; i < DRAWS; i++) {
		float x = (float)ldexp(1 + uniform(), (int)(draw() % 128));
		WORST(ulps_f(__nv_sinf(x), sin((double)x)), x);
		WORST(ulps_f(__nv_cosf(x), cos((double)x)), x);
	}
	verdict("sinf, cosf, far", worst, at, BOUND_F);
}

static void exact_ones(void)
{
	int wrong = 0;
	for (int i = 0; i < DRAWS; i++) {
		uint32_t a = (uint32_t)draw(), b = (uint32_t)draw();
		uint64_t c = draw(), d = draw();
		float x, y;
		double z;
		memcpy(&x, &a, 4);
		memcpy(&y, &b, 4);
		memcpy(&z, &c, 8);
		wrong += __nv_umulhi(a, b) != (uint32_t)((uint64_t)a * b >> 32) || __nv_mulhi((int)a, (int)b) != (int)((int64_t)(int)a * (int)b >> 32);
		wrong += __nv_umul64hi(c, d) != (uint64_t)((unsigned __int128)c * d >> 64);
		wrong += __nv_clz((int)a) != (a ? __builtin_clz(a) : 32) || __nv_popc((int)a) != __builtin_popcount(a) || __nv_ffs((int)a) != ffs((int)a);
		wrong += __nv_isnanf(x) != !!isnan(x) || __nv_isinff(x) != !!isinf(x) || __nv_finitef(x) != !!isfinite(x) || __nv_signbitf(x) != !!signbit(x);
		wrong += ulps_f(__nv_nextafterf(x, y), nextafterf(x, y)) != 0;
		if (!isnan(z) && !isinf(z) && z != 0) {
			int n = (int)(d % 4400) - 2200;
			wrong += ulps_d(__nv_ldexp(z, n), ldexp(z, n)) != 0 || __nv_ilogb(z) != ilogb(z);
			wrong += ulps_d(__nv_nextafter(z, 0), nextafter(z, 0)) != 0;
		}
		if (isfinite(x) && x != 0) {
			int n = (int)(d % 600) - 300;
			wrong += ulps_f(__nv_ldexpf(x, n), ldexpf(x, n)) != 0 || __nv_ilogbf(x) != ilogbf(x);
		}
	}
	for (int i = -1000; i < 1000; i++)
		wrong += __nv_llrint(i / 8.0) != llrint(i / 8.0) || __nv_abs(i) != (i < 0 ? -i : i);
	verdict("exact functions", wrong, 0, 0);
	double worst = 0, at = 0;
	for (int i = 0; i < DRAWS; i++) {
		double x = ldexp(1 + uniform(), (int)(draw() % 200) - 100);
		WORST(ulps_d(__nv_rsqrt(x), 1 / sqrtl(x)), x);
		WORST(ulps_f(__nv_rsqrtf((float)x), 1 / sqrt((double)(float)x)), x);
	}
	verdict("rsqrt", worst, at, 1.5);
}

int main(void)
{
#define RUN(name, low, high, bound) test_##name();
	FUNCTIONS(RUN)
	TWO(RUN)
	powers();
	specials();
	far_angles();
	exact_ones();
	printf("libdevice: %d bounds held, %d missed\n", checked - failed, failed);
	return failed != 0;
}
