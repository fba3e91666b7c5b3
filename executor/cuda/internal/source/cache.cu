#include "common.h"

// cache puts keys and values at their positions in the rings of their sequences. Of a
// prompt that is longer than the ring it puts the last ones.
#define KERNEL(NAME, T)                                                                                                                             \
    extern "C" __global__ void NAME(Matrix<T> k, Matrix<T> v, Matrix<T> keys, Matrix<T> values, i64 rows, i64 columns, i64 each, i64 positions,     \
                                    i64 seq, Place place) {                                                                                         \
        i64 past = place.get();                                                                                                                     \
        eights(rows, columns, k.wide() && v.wide() && keys.wide() && values.wide(), BODY                                                            \
            if (row % each < each - positions) return;                                                                                              \
            i64 to = row / each * positions + (past >= 0 ? past : row % seq) % positions;                                                           \
            store<N>(keys.at(to, column), load<N>(k.at(row, column)));                                                                              \
            store<N>(values.at(to, column), load<N>(v.at(row, column)));                                                                            \
        });                                                                                                                                         \
    }
KERNEL(cache_bf16, bf16)
KERNEL(cache_f32, float)
