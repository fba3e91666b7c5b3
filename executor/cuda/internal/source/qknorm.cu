#include "rotation.h"

// A head is a warp's, in pairs: pair p is the values that turn together, p and
// half + p, and behind what turns 2p and 2p + 1. A lane has every 32nd pair.
const int PAIRS = 4; // heads of up to 256

struct Places {
    i64 first, second; // second is dim where there is none
    __device__ Places(i64 p, i64 half, i64 dim) : first(p < half ? p : 2 * p), second(p < half ? p + half : min(2 * p + 1, dim)) {}
};

// Turn is the cosines and sines of a lane's pairs at a position.
struct Turn {
    float cosine[PAIRS], sine[PAIRS];
    template <class T> __device__ void at(const Frequencies &turn, i64 position) {
        _Pragma("unroll") for (int j = 0; j < PAIRS; j++) {
            int p = threadIdx.x % 32 + 32 * j;
            if (p >= turn.half) continue;
            float2 both = cosineAndSine((float)position * turn.inverse[p]);
            cosine[j] = rounded<T>(both.x * (float)turn.factor), sine[j] = rounded<T>(both.y * (float)turn.factor);
        }
    }
};

#define OVER(p) _Pragma("unroll") for (int j = 0; j < PAIRS; j++) if (i64 p = threadIdx.x % 32 + 32 * j; p < (dim + 1) / 2)

// qknorm: RMSNorm of each head, rounded before it is multiplied by the weight
// (LlamaRMSNorm) or once (Gemma3RMSNorm), which then turns. A block has a row of
// q (blockIdx.y 0) or k.
template <class T>
__device__ void qknorm(Matrix<T> x, Matrix<T> weight, Matrix<T> y, const Frequencies &turn, i64 heads, i64 dim, i64 seq, i64 past, i64 gemma, double epsilon) {
    __shared__ float cosines[128], sines[128];
    i64 row = blockIdx.x;
    angles<T>(turn, position(row, seq, past), cosines, sines);
    __syncthreads();
    for (i64 head = threadIdx.x / 32; head < heads; head += blockDim.x / 32) {
        T *from = x.at(row, head * dim), *to = y.at(row, head * dim);
        float one[PAIRS], two[PAIRS], squares = 0;
        OVER(p) {
            Places at(p, turn.half, dim);
            one[j] = widen(from[at.first]), two[j] = at.second < dim ? widen(from[at.second]) : 0;
            squares = fmaf(one[j], one[j], fmaf(two[j], two[j], squares));
        }
        float inverse = 1 / sqrtf(warpSum(squares) / dim + (float)epsilon);
        OVER(p) {
            Places at(p, turn.half, dim);
            float first = one[j] * inverse, second = two[j] * inverse;
            float left = widen(*weight.at(0, at.first)), right = at.second < dim ? widen(*weight.at(0, at.second)) : 0;
            if (gemma) left += 1, right += 1;
            else first = rounded<T>(first), second = rounded<T>(second);
            first = rounded<T>(first * left), second = rounded<T>(second * right);
            if (p < turn.half) turned<T>(first, second, cosines[p], sines[p]);
            to[at.first] = narrow<T>(first);
            if (at.second < dim) to[at.second] = narrow<T>(second);
        }
    }
}

const int GROUP = 4;

// qknorm_backward turns the gradients of q and k back and takes them through the
// norms, in place. Row i belongs to part i modulo the parts: a part is a block,
// its warps go through the heads of its rows, some at a time, and their sums are
// added in order.
template <class T>
__device__ void back(Matrix<T> x, Matrix<T> weight, Matrix<T> gradient, Matrix<float> sums, const Frequencies &turn, i64 rows, i64 heads, i64 dim,
                     i64 seq, i64 past, i64 gemma, double epsilon, i64 parts) {
    __shared__ float room[256];
    int warp = threadIdx.x / 32, warps = blockDim.x / 32;
    float left[PAIRS] = {}, right[PAIRS] = {}; // sums
    Turn angles;
    i64 groups = (heads + GROUP - 1) / GROUP;
    for (i64 item = warp; blockIdx.x + item / groups * parts < rows; item += warps) {
        i64 row = blockIdx.x + item / groups * parts, begin = item % groups * GROUP;
        angles.at<T>(turn, position(row, seq, past));
        for (i64 head = begin; head < min(begin + GROUP, heads); head++) {
            T *from = x.at(row, head * dim), *to = gradient.at(row, head * dim);
            float one[PAIRS], two[PAIRS], first[PAIRS], second[PAIRS], squares = 0, product = 0;
            OVER(p) {
                Places at(p, turn.half, dim);
                bool pair = at.second < dim;
                one[j] = widen(from[at.first]), two[j] = pair ? widen(from[at.second]) : 0;
                first[j] = widen(to[at.first]), second[j] = pair ? widen(to[at.second]) : 0;
                squares = fmaf(one[j], one[j], fmaf(two[j], two[j], squares));
            }
            float inverse = 1 / sqrtf(warpSum(squares) / dim + (float)epsilon);
            OVER(p) {
                Places at(p, turn.half, dim);
                if (p < turn.half) turned<T>(first[j], second[j], angles.cosine[j], -angles.sine[j]);
                one[j] *= inverse, two[j] *= inverse;
                left[j] = fmaf(first[j], one[j], left[j]), right[j] = fmaf(second[j], two[j], right[j]);
                first[j] *= widen(*weight.at(0, at.first)) + (gemma ? 1 : 0);
                second[j] *= at.second < dim ? widen(*weight.at(0, at.second)) + (gemma ? 1 : 0) : 0;
                product = fmaf(first[j], one[j], fmaf(second[j], two[j], product));
            }
            product = warpSum(product) / dim;
            OVER(p) {
                Places at(p, turn.half, dim);
                to[at.first] = narrow<T>(inverse * (first[j] - one[j] * product));
                if (at.second < dim) to[at.second] = narrow<T>(inverse * (second[j] - two[j] * product));
            }
        }
    }
    for (int turnOf = 0; turnOf < warps; turnOf++) {
        __syncthreads();
        if (turnOf != warp) continue;
        OVER(p) {
            Places at(p, turn.half, dim);
            room[at.first] = warp ? room[at.first] + left[j] : left[j];
            if (at.second < dim) room[at.second] = warp ? room[at.second] + right[j] : right[j];
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < dim; i += blockDim.x) *sums.at(blockIdx.x, i) = room[i];
}

#define KERNELS(NAME, BACK, T)                                                                                                                  \
    extern "C" __global__ void NAME(Matrix<T> q, Matrix<T> k, Matrix<T> qweight, Matrix<T> kweight, Matrix<T> yq, Matrix<T> yk, i64 heads,      \
                                    i64 kv, i64 dim, i64 seq, i64 past, i64 style, double epsilon, const __grid_constant__ Frequencies turn) {  \
        if (blockIdx.y == 0) qknorm<T>(q, qweight, yq, turn, heads, dim, seq, past, style, epsilon);                                            \
        else qknorm<T>(k, kweight, yk, turn, kv, dim, seq, past, style, epsilon);                                                               \
    }                                                                                                                                           \
    extern "C" __global__ void __launch_bounds__(1024) BACK(                                                                                     \
        Matrix<T> q, Matrix<T> k, Matrix<T> qweight, Matrix<T> kweight, Matrix<T> dq, Matrix<T> dk, Matrix<float> qsums, Matrix<float> ksums,   \
        i64 rows, i64 heads, i64 kv, i64 dim, i64 seq, i64 past, i64 style, double epsilon, i64 parts, const __grid_constant__ Frequencies turn) { \
        if (blockIdx.y == 0) back<T>(q, qweight, dq, qsums, turn, rows, heads, dim, seq, past, style, epsilon, parts);                          \
        else back<T>(k, kweight, dk, ksums, turn, rows, kv, dim, seq, past, style, epsilon, parts);                                             \
    }
KERNELS(qknorm_bf16, qknorm_backward_bf16, bf16)
KERNELS(qknorm_f32, qknorm_backward_f32, float)
