"""Names that a function of an exported file of C cannot have."""

from __future__ import annotations

import re

KEYWORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int
long register restrict return short signed sizeof static struct switch typedef union unsigned void
volatile while
"""
# of the file itself, and the function that begins a program
FILE = """
NODES ROOTS THRESHOLDS VALUES CATEGORIES SETS SUMS SUMMED EDGES EDGES_AT BINS node walk exp_of place
find_places sum_goes_left main
"""
# functions of math.h and complex.h, which come in three types
MATH = """
acos acosh asin asinh atan atan2 atanh cabs cacos cacosh carg casin casinh catan catanh cbrt ccos
ccosh ceil cexp cimag clog conj copysign cos cosh cpow cproj creal csin csinh csqrt ctan ctanh erf
erfc exp exp2 expm1 fabs fdim floor fma fmax fmin fmod frexp hypot ilogb ldexp lgamma llrint llround
log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter nexttoward pow remainder remquo
rint round scalbln scalbn sin sinh sqrt tan tanh tgamma trunc
"""
# other functions and types of the standard library: a program has them once
LIBRARY = """
abort abs asctime assert atexit atof atoi atol atoll bsearch calloc clearerr clock ctime difftime
div double_t errno exit fclose feof ferror fflush fgetc fgetpos fgets float_t fopen fpclassify
fprintf fputc fputs fread free freopen fscanf fseek fsetpos ftell fwrite getc getchar getenv gets
gmtime isalnum isalpha isblank iscntrl isdigit isfinite isgraph isgreater isgreaterequal isinf
isless islessequal islessgreater islower isnan isnormal isprint ispunct isspace isunordered isupper
iswalnum iswalpha iswblank iswcntrl iswdigit iswgraph iswlower iswprint iswpunct iswspace iswupper
iswxdigit isxdigit labs ldiv llabs lldiv localeconv localtime longjmp malloc math_errhandling mblen
mbstowcs mbtowc memchr memcmp memcpy memmove memset mktime perror printf putc putchar puts qsort
raise rand realloc remove rename rewind scanf setbuf setjmp setlocale setvbuf signal signbit
snprintf sprintf srand sscanf strcat strchr strcmp strcoll strcpy strcspn strerror strftime strlen
strncat strncmp strncpy strpbrk strrchr strspn strstr strtod strtof strtok strtol strtold strtoll
strtoul strtoull strxfrm system time tmpfile tmpnam tolower toupper towlower towupper ungetc va_arg
vfprintf vfscanf vprintf vscanf vsnprintf vsprintf vsscanf wcstombs wctomb
"""
TAKEN = {*f"{KEYWORDS} {FILE} {LIBRARY}".split()}
TAKEN |= {name + kind for name in MATH.split() for kind in ("", "f", "l")}
# types and macros of stdint.h and math.h
FAMILIES = re.compile(
    r"u?int(_least|_fast)?\d+_t|u?int(max|ptr)_t|U?INT\w*_(MIN|MAX|C)|SIZE_MAX"
    r"|(PTRDIFF|SIG_ATOMIC|WCHAR|WINT)_(MIN|MAX)|(FP|MATH|M)_\w+|HUGE_VAL[FL]?|INFINITY|NAN"
)


def is_free(name: str) -> bool:
    """Whether a function can have the name. C keeps all that begin with "_" for itself."""
    is_name = re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) is not None
    return is_name and name not in TAKEN and not FAMILIES.fullmatch(name)
