package weights

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
)

// TestHalf holds every fp16 to its value by the definition.
func TestHalf(t *testing.T) {
	for bits := range 1 << 16 {
		sign, exponent, fraction := 1-2*float64(bits>>15), bits>>10&31, float64(bits&1023)
		want := sign * math.Ldexp(1+fraction/1024, exponent-15)
		switch {
		case exponent == 0:
			want = sign * math.Ldexp(fraction/1024, -14)
		case exponent == 31 && fraction == 0:
			want = math.Inf(int(sign))
		case exponent == 31:
			want = math.NaN()
		}
		got := float64(half(uint16(bits)))
		if got != want && !(math.IsNaN(got) && math.IsNaN(want)) || math.Signbit(got) != (bits>>15 == 1) {
			t.Fatalf("%#04x is %v, want %v", bits, got, want)
		}
	}
}

// nearest is the bf16 nearest to a number, the even one of two, found among its
// neighbours.
func nearest(value float32) uint16 {
	low := uint16(math.Float32bits(value) >> 16) // towards zero
	wide := func(bits uint16) float64 {
		if bits&0x7fff == 0x7f80 { // one step beyond the largest
			return math.Copysign(math.Ldexp(1, 128), float64(value))
		}
		return float64(math.Float32frombits(uint32(bits) << 16))
	}
	below, above := math.Abs(float64(value)-wide(low)), math.Abs(wide(low+1)-float64(value))
	if above < below || above == below && low&1 == 1 {
		return low + 1
	}
	return low
}

func TestBrain(t *testing.T) {
	const seed = 20261122
	t.Logf("seed %d", seed)
	generator := rand.New(rand.NewPCG(seed, 0))
	for range 1 << 20 {
		bits := generator.Uint32()
		value := math.Float32frombits(bits)
		if got, want := brain(bits), nearest(value); !math.IsNaN(float64(value)) && !math.IsInf(float64(value), 0) && got != want {
			t.Fatalf("%v (%#x) becomes %#x, want %#x", value, bits, got, want)
		}
	}
	for bits, want := range map[uint32]uint16{
		0x3f808000: 0x3f80, 0x3f818000: 0x3f82, 0x3f808001: 0x3f81, // ties go to the even one
		0x7f800000: 0x7f80, 0xff800000: 0xff80, 0x7f7fffff: 0x7f80, // infinity, and what rounds to it
		0x7f800001: 0x7fc0, 0xffffffff: 0x7fc0, 0x80000000: 0x8000, // NaN stays NaN
	} {
		if got := brain(bits); got != want {
			t.Errorf("%#x becomes %#x, want %#x", bits, got, want)
		}
	}
}

// TestConvert: whatever the stored type, the values arrive.
func TestConvert(t *testing.T) {
	for _, name := range []string{"F64", "F32", "BF16", "F16"} {
		from, err := modelgraph.ParseDType(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range []modelgraph.DType{modelgraph.F32, modelgraph.BF16} {
			if got, want := convert(nil, rawOf(2, 40, from), from, to), rawOf(2, 40, to); !bytes.Equal(got, want) {
				t.Errorf("%v to %v: %x, want %x", from, to, got, want)
			}
		}
	}
	double := binary.LittleEndian.AppendUint64(nil, math.Float64bits(1+1.0/256+1.0/(1<<40)))
	f64, _ := modelgraph.ParseDType("F64")
	// torch.tensor(1 + 2**-8 + 2**-40, dtype=torch.float64).bfloat16() is 1.0:
	// what fp32 does not hold is lost before the tie is broken.
	if got := convert(nil, double, f64, modelgraph.BF16); !bytes.Equal(got, []byte{0x80, 0x3f}) {
		t.Errorf("a double becomes %x", got)
	}
}
