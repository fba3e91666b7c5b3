package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"os"
	"slices"
)

// formula is a tensor's shape, and its values: shift + scale · sampleValue.
type formula struct {
	shape        []int
	shift, scale float64
}

// UnmarshalJSON reads [shape, shift, scale].
func (tensor *formula) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&tensor.shape, &tensor.shift, &tensor.scale})
}

// sampleValue returns value i of the named tensor, from -1 to 1. It is the upper 24 bits of
// splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
func sampleValue(name string, i int) float64 {
	mixed := uint64(crc32.ChecksumIEEE([]byte(name)))<<32 + uint64(i) + 0x9e3779b97f4a7c15
	mixed = (mixed ^ mixed>>30) * 0xbf58476d1ce4e5b9
	mixed = (mixed ^ mixed>>27) * 0x94d049bb133111eb
	mixed ^= mixed >> 31
	return float64(mixed>>40)/(1<<23) - 1
}

// writeModel writes the model's folder and the file of token ids.
func (bench *valueBench) writeModel() {
	header, values := map[string]tensor{}, new(bytes.Buffer)
	for _, name := range slices.Sorted(maps.Keys(bench.want.Tensors)) {
		of, begin, count := bench.want.Tensors[name], values.Len(), 1
		shape := make([]int64, len(of.shape))
		for i, size := range of.shape {
			shape[i], count = int64(size), count*size
		}
		for i := range count {
			bits := math.Float32bits(float32(of.shift + of.scale*sampleValue(name, i)))
			values.Write(binary.LittleEndian.AppendUint32(nil, bits))
		}
		header[name] = tensor{DType: "F32", Shape: shape, Offsets: [2]int64{int64(begin), int64(values.Len())}}
	}
	text, err := json.Marshal(header)
	if err != nil {
		bench.t.Fatal(err)
	}
	file := slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text, values.Bytes())
	if err := os.Mkdir(bench.path("model"), 0o750); err != nil {
		bench.t.Fatal(err)
	}
	bench.write("model/model.safetensors", file)
	bench.write("model/config.json", bench.want.Config)
	var lines bytes.Buffer
	for _, line := range bench.want.IDs {
		text, err := json.Marshal(line)
		if err != nil {
			bench.t.Fatal(err)
		}
		fmt.Fprintf(&lines, "%s\n", text)
	}
	bench.write("ids", lines.Bytes())
}

func (bench *valueBench) write(name string, data []byte) {
	if err := os.WriteFile(bench.path(name), data, 0o600); err != nil {
		bench.t.Fatal(err)
	}
}

// tensors reads a dump.
func (bench *valueBench) tensors(path string) map[string][]float64 {
	bench.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil || len(data) < 8 {
		bench.t.Fatalf("%s has %d bytes (%v)", path, len(data), err)
	}
	size := binary.LittleEndian.Uint64(data)
	var header map[string]json.RawMessage
	if err := json.Unmarshal(data[8:8+size], &header); err != nil {
		bench.t.Fatalf("%s: %v", path, err)
	}
	delete(header, "__metadata__")
	out := map[string][]float64{}
	for name, text := range header {
		var of tensor
		if err := json.Unmarshal(text, &of); err != nil || of.DType != "F32" {
			bench.t.Fatalf("%s: tensor %q is %s (%v)", path, name, text, err)
		}
		for bytes := range slices.Chunk(data[8+int64(size)+of.Offsets[0]:8+int64(size)+of.Offsets[1]], 4) {
			out[name] = append(out[name], float64(math.Float32frombits(binary.LittleEndian.Uint32(bytes))))
		}
	}
	return out
}

func (bench *valueBench) only(path, name string) []float64 {
	bench.t.Helper()
	got := bench.tensors(path)
	if len(got) != 1 {
		bench.t.Fatalf("%s has %d tensors, not %s alone", path, len(got), name)
	}
	return got[name]
}

// distance returns ‖got − want‖ / ‖want‖.
func distance(got, want []float64) float64 {
	if len(got) != len(want) {
		return math.Inf(1)
	}
	apart := make([]float64, len(got))
	for i := range got {
		apart[i] = got[i] - want[i]
	}
	return norm(apart) / norm(want)
}

func norm(values []float64) float64 {
	sum := 0.0
	for _, value := range values {
		sum += value * value
	}
	return math.Sqrt(sum)
}
