/* What each operation does to two elements: one text for the kernels of processors and of GPUs. */
#ifndef MC_RUNTIME_OPERATORS_H
#define MC_RUNTIME_OPERATORS_H

#define SUM(a, b)  ((a) + (b))
#define PROD(a, b) ((a) * (b))
#define MIN(a, b)  ((a) < (b) ? (a) : (b))
#define MAX(a, b)  ((a) > (b) ? (a) : (b))
/* Of values of pairs: is a before b? A NaN is before all numbers, whichever way they are ordered. */
#define LESS(a, b) (((a) < (b)) | (((a) != (a)) & ((b) == (b))))
#define MORE(a, b) (((a) > (b)) | (((a) != (a)) & ((b) == (b))))
/* Promotes unsigned short to unsigned: its product as int may overflow. */
#define UPROD(a, b) (1u * (a) * (b))
#define LAND(a, b)  (((a) != 0) & ((b) != 0))
#define LOR(a, b)   (((a) != 0) | ((b) != 0))
#define LXOR(a, b)  (((a) != 0) ^ ((b) != 0))
#define BAND(a, b)  ((a) & (b))
#define BOR(a, b)   ((a) | (b))
#define BXOR(a, b)  ((a) ^ (b))

#endif
