package weights

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

// readable reports whether weights can be converted from a type, as [modelgraph.DType.Float] does.
// Quantised types have separate scales, which are in no slice.
func readable(dtype modelgraph.DType) bool { return dtype.Float() }

// block is how many values are converted at once, in the processor's caches.
const block = 1024

// convert appends the values of raw, stored as from, in the type to. Every value
// passes through fp32, as in torch (c10/util/TypeCast.h: a double becomes a
// float first), and is rounded to nearest even.
func convert(into, raw []byte, from, to modelgraph.DType) []byte {
	if from == to {
		return append(into, raw...)
	}
	var values [block]float32
	size := int(from.Bits() / 8)
	for len(raw) >= size {
		count := min(block, len(raw)/size)
		widen(values[:count], raw, from)
		into = appendValues(into, values[:count], to)
		raw = raw[count*size:]
	}
	return into
}

// widen reads values that are stored in a type.
func widen(values []float32, raw []byte, from modelgraph.DType) {
	switch from {
	case modelgraph.F32:
		for i := range values {
			values[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
	case modelgraph.BF16:
		for i := range values {
			values[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(raw[2*i:])) << 16)
		}
	case modelgraph.F16:
		for i := range values {
			values[i] = half(binary.LittleEndian.Uint16(raw[2*i:]))
		}
	default:
		for i := range values {
			values[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:])))
		}
	}
}

// appendValues appends values as F32 or BF16.
func appendValues(into []byte, values []float32, to modelgraph.DType) []byte {
	begin, size := len(into), int(to.Bits()/8)
	into = slices.Grow(into, len(values)*size)[:begin+len(values)*size]
	made := into[begin:]
	if to == modelgraph.F32 {
		for i, value := range values {
			binary.LittleEndian.PutUint32(made[4*i:], math.Float32bits(value))
		}
		return into
	}
	for i, value := range values {
		binary.LittleEndian.PutUint16(made[2*i:], brain(math.Float32bits(value)))
	}
	return into
}

// brain rounds fp32 to bf16, to nearest even (c10/util/BFloat16.h: round_to_nearest_even). NaN
// becomes the quiet one: plain rounding could make it infinity.
func brain(bits uint32) uint16 {
	const sign, infinity, quiet = 1 << 31, 0xff << 23, 0x7fc0
	if bits&^sign > infinity {
		return quiet
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

// half widens fp16, exactly: 5 bits of exponent, where 31 is infinity or
// NaN and 0 stands for multiples of 2⁻²⁴ (IEEE 754, binary16).
func half(bits uint16) float32 {
	sign, exponent, fraction := uint32(bits>>15)<<31, uint32(bits>>10&31), uint32(bits&1023)
	switch exponent {
	case 0:
		value := float32(fraction) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(value) | sign)
	case 31:
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}
