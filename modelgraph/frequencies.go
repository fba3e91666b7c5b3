package modelgraph

import (
	"cmp"
	"fmt"
	"math"
)

// maxWidth limits the rotated dimensions of a head: the widest heads of public models have 512.
const maxWidth = 1 << 16

// Frequencies returns the inverse frequencies [width/2] by which positions rotate q and k, in
// radians a position. factor multiplies cosines and sines. tokens is the length of the sequences.
// Only "dynamic" depends on it, beyond the trained positions. The error is for an unknown type, and
// for numbers that give no frequencies.
//
// Everything is computed in float32 and in the order of Transformers (modeling_rope_utils.py; the
// models' compute_default_rope_parameters). The power is the float32 nearest to the exact one.
// Those of torch differ from it by a unit in the last place, also between CPU and GPU.
func (attention Attention) Frequencies(tokens int64) (inverse []float32, factor float64, err error) {
	rotation := attention.Rotation
	if rotation.Width == 0 {
		rotation.Width = cmp.Or(attention.RopeDim, attention.HeadDim)
	}
	rotation.Base = cmp.Or(rotation.Base, 10_000)
	factor = cmp.Or(rotation.AttentionFactor, 1)
	if err := rotation.check(); err != nil {
		return nil, 0, err
	}
	switch rotation.Type {
	case "linear":
		inverse = rotation.linear()
	case "dynamic":
		inverse, err = rotation.dynamic(tokens)
	case "llama3":
		inverse, err = rotation.llama3()
	case "yarn":
		if rotation.AttentionFactor == 0 && rotation.Factor > 1 {
			factor = 0.1*math.Log(rotation.Factor) + 1
		}
		inverse, err = rotation.yarn()
	default:
		inverse = rotation.plain(float32(rotation.Base))
	}
	return inverse, factor, err
}

// check returns an error for an unknown type, and for one without the numbers that it needs.
func (rotation *Rotation) check() error {
	if rotation.Width%2 != 0 || rotation.Width == 0 || rotation.Width > maxWidth {
		return fmt.Errorf("rope width %d is not even and from 2 to %d: dimensions turn in pairs", rotation.Width, maxWidth)
	}
	switch rotation.Type {
	case "", "default":
		return nil
	case "linear", "dynamic", "llama3", "yarn":
	default:
		return fmt.Errorf("rope type %q is not known here (known: default, linear, dynamic, llama3, yarn)", rotation.Type)
	}
	if rotation.Factor <= 0 {
		return fmt.Errorf("rope type %q needs a factor, it has none", rotation.Type)
	}
	if rotation.Trained == 0 && rotation.Type != "linear" {
		return fmt.Errorf("rope type %q needs the number of positions that were trained, it has none", rotation.Type)
	}
	return nil
}

// powers returns base^(2i/width).
func (rotation *Rotation) powers(base float32) []float32 {
	powers := make([]float32, rotation.Width/2)
	for i := range powers {
		exponent := float32(2*i) / float32(rotation.Width)
		powers[i] = float32(math.Pow(float64(base), float64(exponent)))
	}
	return powers
}

// plain returns the frequencies without scaling.
func (rotation *Rotation) plain(base float32) []float32 {
	inverse := rotation.powers(base)
	for i, power := range inverse {
		inverse[i] = 1 / power
	}
	return inverse
}

// linear stretches every dimension equally.
func (rotation *Rotation) linear() []float32 {
	inverse := rotation.plain(float32(rotation.Base))
	for i := range inverse {
		inverse[i] /= float32(rotation.Factor)
	}
	return inverse
}

// dynamic uses a larger base for sequences that are longer than the trained ones. For those torch
// has the length as a tensor, and so computes in float32. For others it is Python's float64, in
// which the base does not change.
func (rotation *Rotation) dynamic(tokens int64) ([]float32, error) {
	if rotation.Width == 2 {
		return nil, fmt.Errorf("rope type %q divides by width - 2: the width must not be 2", rotation.Type)
	}
	power := float64(rotation.Width) / float64(rotation.Width-2)
	if tokens <= rotation.Trained {
		stretch := rotation.Factor*1 - (rotation.Factor - 1)
		return rotation.plain(float32(rotation.Base * math.Pow(stretch, power))), nil
	}
	length := float32(rotation.Factor) * float32(tokens) / float32(rotation.Trained)
	stretch := length - float32(rotation.Factor-1)
	return rotation.plain(float32(rotation.Base) * float32(math.Pow(float64(stretch), power))), nil
}

// llama3 stretches the dimensions that turn slowly, leaves those that turn
// fast, and goes from one to the other in between.
func (rotation *Rotation) llama3() ([]float32, error) {
	if !(rotation.Slow > 0 && rotation.Fast > rotation.Slow) {
		return nil, fmt.Errorf("rope type %q needs a low frequency factor above 0 and a high one above that: they are %v and %v", rotation.Type, rotation.Slow, rotation.Fast)
	}
	trained, stretch := float32(rotation.Trained), float32(rotation.Factor)
	longest := float32(float64(rotation.Trained) / rotation.Slow)
	shortest := float32(float64(rotation.Trained) / rotation.Fast)
	inverse := rotation.plain(float32(rotation.Base))
	for i, plain := range inverse {
		switch wave := 1 / plain * float32(2*math.Pi); {
		case wave > longest:
			inverse[i] = plain / stretch
		case wave >= shortest:
			turns := 1 / wave * trained
			share := (turns - float32(rotation.Slow)) / float32(rotation.Fast-rotation.Slow)
			// Each product is rounded, as in torch's kernels: no fused operation.
			stretched := float32((1-share)*plain) / stretch
			inverse[i] = float32(stretched) + float32(share*plain)
		}
	}
	return inverse, nil
}

// yarn is the same with a ramp over dimensions (Peng et al. 2023, arXiv
// 2309.00071, §3.2).
func (rotation *Rotation) yarn() ([]float32, error) {
	if rotation.Base <= 1 {
		return nil, fmt.Errorf("rope type %q needs a base above 1, it is %v", rotation.Type, rotation.Base)
	}
	slow, fast := rotation.Slow, rotation.Fast
	if slow == 0 {
		slow = 1
	}
	if fast == 0 {
		fast = 32
	}
	low, high := rotation.turning(fast), rotation.turning(slow)
	if !rotation.Untruncated {
		low, high = math.Floor(low), math.Ceil(high)
	}
	low, high = max(low, 0), min(high, float64(rotation.Width-1))
	if low == high {
		high += 0.001
	}
	inverse := rotation.powers(float32(rotation.Base))
	for i, power := range inverse {
		plain, stretched := 1/power, 1/(float32(rotation.Factor)*power)
		ramp := (float32(i) - float32(low)) / float32(high-low)
		left := 1 - min(max(ramp, 0), 1)
		inverse[i] = float32(stretched*(1-left)) + float32(plain*left)
	}
	return inverse, nil
}

// turning returns the dimension that rotates so many times over the trained positions.
func (rotation *Rotation) turning(times float64) float64 {
	return float64(rotation.Width) * math.Log(float64(rotation.Trained)/(times*2*math.Pi)) / (2 * math.Log(rotation.Base))
}
