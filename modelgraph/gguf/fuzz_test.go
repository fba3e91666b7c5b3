package gguf

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

// FuzzReadHeader: an accepted header has tensors that follow each other and end in the file, and an
// error has one line.
func FuzzReadHeader(f *testing.F) {
	for _, seed := range []*made{llama(), part(0, 3, 3), part(1, 3, 3), llama().key("x", kindF64, 1.5).key("y", kindArray, uint32(kindBool), uint64(2), true, false)} {
		f.Add(seed.bytes())
	}
	f.Fuzz(checkHeader)
}

func checkHeader(t *testing.T, data []byte) {
	t.Helper()
	head, err := readHeader("f", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("error of several lines: %q", err)
		}
		return
	}
	var before int64
	for i := range head.tensors {
		part := head.tensors[i].Parts[0]
		if part.Begin < before || part.End < part.Begin || part.End > int64(len(data)) {
			t.Errorf("tensor %q lies from %d to %d, after %d, in %d bytes", part.Name, part.Begin, part.End, before, len(data))
		}
		before = part.End
	}
	file := &File{Path: "f", Architecture: "llama", Tensors: head.tensors, values: head.values}
	if _, err := file.Graph(); err != nil && strings.Contains(err.Error(), "\n") {
		t.Errorf("error of several lines: %q", err)
	}
	for key := range head.values {
		file.Numbers(key, 8)
	}
}

// TestDamaged reads 20,000 files with damaged headers.
func TestDamaged(t *testing.T) {
	const files = 20_000
	random := rand.New(rand.NewPCG(42, 7))
	whole := [][]byte{llama().bytes(), part(0, 3, 3).bytes()}
	for range files {
		data := bytes.Clone(whole[random.IntN(len(whole))])
		for range 1 + random.IntN(4) {
			at := random.IntN(min(len(data), 800))
			switch random.IntN(5) {
			case 0:
				data = data[:at+1]
			case 1:
				data[at] ^= 1 << random.IntN(8)
			case 2:
				data[at] = [...]byte{0, 0xff, 0x80, 0x7f}[random.IntN(4)]
			case 3:
				data = append(data[:at:at], data[min(len(data), at+1+random.IntN(16)):]...)
			default:
				copy(data[at:], data[random.IntN(len(data)):])
			}
			if len(data) == 0 {
				break
			}
		}
		checkHeader(t, data)
	}
}
