#include "common.h"

// Areas is an argument: what a unit's kernels wrote, in their order. Kind is 1 for
// fp32, 0 for bf16, and 2 more where every value is looked at; others are only
// searched behind a finding. 4 more: looked at only if odd is set. One has less than 2^30 chunks.
struct Area { u64 data; i64 rows, columns, stride, kind; };
struct Areas { i64 count; const unsigned *odd; Area at[32]; };

// exponents: any of the values in 32 bits is NaN or infinite. Its exponent is all
// ones, and one more in the exponent's last place carries into the sign's, which
// was masked away; it carries no further.
template <class T> __device__ bool exponents(unsigned word);
template <> __device__ inline bool exponents<bf16>(unsigned word) { return ((word & 0x7f807f80u) + 0x00800080u) & 0x80008000u; }
template <> __device__ inline bool exponents<float>(unsigned word) { return ((word & 0x7f800000u) + 0x00800000u) & 0x80000000u; }

// A chunk is 16 bytes of a row, or what is left of it.
template <class T> struct Chunks {
    static constexpr i64 PER = 16 / sizeof(T);
    const T *data;
    i64 columns, stride;
    unsigned each, count; // of a row, and of all
    bool wide;
    __device__ explicit Chunks(const Area &area)
        : data((const T *)area.data), columns(area.columns), stride(area.stride), each((unsigned)((area.columns + PER - 1) / PER)), count((unsigned)area.rows * each),
          wide((area.data | (u64)(area.rows > 1 ? area.stride : 0) * sizeof(T)) % 16 == 0) {}

    __device__ const T *at(unsigned index, i64 *left) const {
        i64 row = index < each ? 0 : index / each, column = (index - row * each) * PER;
        *left = min(columns - column, PER);
        return data + row * stride + column;
    }

    __device__ bool found(unsigned index) const {
        i64 left;
        const T *values = at(index, &left);
        if (wide && left == PER) {
            uint4 four = *(const uint4 *)values;
            return exponents<T>(four.x) | exponents<T>(four.y) | exponents<T>(four.z) | exponents<T>(four.w);
        }
        bool any = false;
        _Pragma("unroll 1") for (i64 i = 0; i < left; i++) any |= !(fabsf(widen(values[i])) < __int_as_float(0x7f800000));
        return any;
    }

    // first tells the first of a chunk: 1 NaN, 2 infinite, 3 negative infinite.
    __device__ u64 first(unsigned index) const {
        i64 left;
        const T *values = at(index, &left);
        _Pragma("unroll 1") for (i64 i = 0; i < left; i++) {
            float value = widen(values[i]);
            if (value != value) return 1;
            if (fabsf(value) == __int_as_float(0x7f800000)) return value > 0 ? 2 : 3;
        }
        return 0;
    }

    // any: one of this block's share is, four chunks on their way at once.
    __device__ bool any() const {
        unsigned step = gridDim.x * 256;
        bool any = false;
        for (unsigned base = blockIdx.x * 256 + threadIdx.x; base < count; base += 4 * step)
            _Pragma("unroll") for (int j = 0; j < 4; j++)
                if (base + j * step < count) any |= found(base + j * step);
        return any;
    }

    // search is what is first in the area, by one block; 0 where there is none.
    __device__ u64 search() const {
        __shared__ u64 kind;
        __shared__ int least;
        for (unsigned base = 0; base < count; base += 256) {
            bool here = base + threadIdx.x < count && found(base + threadIdx.x);
            if (threadIdx.x == 0) least = 256;
            if (!__syncthreads_or(here)) continue;
            if (here) atomicMin(&least, (int)threadIdx.x);
            __syncthreads();
            if ((int)threadIdx.x == least) kind = first(base + threadIdx.x);
            __syncthreads();
            return kind;
        }
        return 0;
    }
};

// finite: *found = 4·area + what it has, of the first area in which a value is NaN
// or infinite, if there is one in an area that is looked at; else it is left. Each
// block that finds one looks through all areas from the first on, and writes the
// same: *found may be the host's memory, where no atomics are.
extern "C" __global__ void finite(const __grid_constant__ Areas areas, volatile u64 *found) {
    bool any = false, odd = areas.odd && *areas.odd;
    for (i64 i = 0; i < areas.count; i++) {
        const Area &area = areas.at[i];
        if (area.kind & 2 && (odd || !(area.kind & 4))) any |= area.kind & 1 ? Chunks<float>(area).any() : Chunks<bf16>(area).any();
    }
    if (!__syncthreads_or(any)) return;
    for (i64 i = 0; i < areas.count; i++) {
        const Area &area = areas.at[i];
        u64 kind = area.kind & 1 ? Chunks<float>(area).search() : Chunks<bf16>(area).search();
        if (kind == 0) continue;
        if (threadIdx.x == 0) *found = 4 * i + kind;
        return;
    }
}
