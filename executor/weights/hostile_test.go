package weights

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
)

// headed is a file of a header and so many bytes of data.
func headed(header string, data int) []byte {
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	return append(file, make([]byte, data)...)
}

func one(dtype, shape, offsets string) string {
	return fmt.Sprintf(`{"model.norm.weight":{"dtype":%q,"shape":%s,"data_offsets":%s}}`, dtype, shape, offsets)
}

func onTheSameBytes(count int) string {
	var text strings.Builder
	for i := range count {
		fmt.Fprintf(&text, `,"weight_%d":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}`, i)
	}
	return "{" + text.String()[1:] + "}"
}

// hostile are files that safetensors' own tests refuse, and what else parsers of
// the kind were attacked with; each is to be refused for the reason next to it.
var hostile = map[string]struct {
	file []byte
	want string
}{
	"empty":               {nil, "too short"},
	"7 bytes":             {make([]byte, 7), "too short"},
	"too large":           {append([]byte("<\x00\x00\x00\x00\xff\xff\xff"), headed("{}", 0)...), "header length 18446742974197923900"},
	"beyond the file":     {[]byte("<\x00\x00\x00\x00\x00\x00\x00"), "only 0 bytes follow"},
	"not UTF-8":           {headed("\xff", 0), "invalid character"},
	"not JSON":            {headed("{", 0), "JSON ends early"},
	"ten on the same":     {headed(onTheSameBytes(10), 16), "overlap"},
	"200,000 of the same": {headed(onTheSameBytes(200_000), 16), "overlap"},
	"hole":                {headed(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}`, 3), "hole"},
	"not from 0":          {headed(one("U8", "[1]", "[1,2]"), 2), "does not begin at 0"},
	"end before begin":    {headed(one("F32", "[2]", "[16,8]"), 16), "end before begin"},
	"polyglot":            {append(headed(one("F32", "[2]", "[0,8]"), 8), "PK\x03\x04"...), "4 bytes after the last tensor"},
	"bytes missing":       {headed(one("F32", "[2]", "[0,8]"), 6), "the file holds 6 bytes"},
	"another size":        {headed(one("F32", "[2,2]", "[0,4]"), 4), "takes 16"},
	"overflow":            {headed(one("F32", "[2,18446744073709551614]", "[0,16]"), 16), "overflows"},
	"overflow in bits":    {headed(one("F32", "[2,9223372036854775807]", "[0,16]"), 16), "overflows"},
	"half a byte":         {headed(one("F4", "[3]", "[0,2]"), 2), "whole number of bytes"},
	"unknown type":        {headed(one("F7", "[1]", "[0,1]"), 1), "unknown dtype"},
	"metadata no text":    {headed(`{"__metadata__":{"a":1}}`, 0), "want string"},
	"twice":               {headed(`{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, 0), "duplicate key"},
	"negative":            {headed(one("U8", "[1]", "[-1,0]"), 1), "-1 is not an integer"},
	"a fraction":          {headed(one("U8", "[1]", "[0,1.0]"), 1), "is not an integer"},
	"1e0":                 {headed(one("U8", "[1]", "[0,1e0]"), 1), "is not an integer"},
	"deep":                {headed(strings.Repeat("[", 100_000), 0), "want {"},
	"claims a terabyte":   {headed(one("F32", "[274877906944]", "[0,1099511627776]"), 8), "the file holds 8 bytes"},
	"nothing in it":       {headed("{}", 0), "it is gone"},
	"other tensors":       {headed(one("F32", "[8]", "[0,32]"), 32), "it is gone"},
	"git lfs":             {[]byte("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12345\n"), "Git LFS"},
}

// TestHostile puts each in the place of a file whose model was read already:
// weights are refused in bounded memory, before a caller reserves any.
func TestHostile(t *testing.T) {
	for name, test := range hostile {
		folder := t.TempDir()
		writeCheckpoint(t, folder, tinyConfig, modelgraph.F32)
		graph := readGraph(t, folder)
		writeFile(t, filepath.Join(folder, "model.safetensors"), test.file)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		source, err := Checkpoint(graph)
		runtime.ReadMemStats(&after)
		if err == nil || source != nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), filepath.Join(folder, "model.safetensors")) {
			t.Errorf("%s: %v; want %s", name, err, test.want)
		}
		if taken := after.TotalAlloc - before.TotalAlloc; taken > 4<<20 {
			t.Errorf("%s: %d bytes were allocated to refuse it", name, taken)
		}
	}
}

// FuzzCheckpoint puts any bytes in the place of a file that was read: either it
// is refused, or what is handed over is what those bytes hold.
func FuzzCheckpoint(f *testing.F) {
	folder := f.TempDir()
	writeCheckpoint(f, folder, tinyConfig, modelgraph.F32)
	path := filepath.Join(folder, "model.safetensors")
	good, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	graph := readGraph(f, folder)
	f.Add(good)
	for _, test := range hostile {
		if len(test.file) < 1<<12 {
			f.Add(test.file)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		writeFile(t, path, data)
		source, err := Checkpoint(graph)
		if err != nil {
			return
		}
		for i := range graph.Layers {
			for _, tensor := range graph.Layers[i].Owned() {
				part := tensor.Parts[0]
				got, err := streamed(source, modelgraph.FullName(graph.Layers[i].Name, tensor.Name), modelgraph.F32)
				if err != nil || !bytes.Equal(got, data[part.Begin:part.End]) {
					t.Errorf("%s: %v", tensor.Name, err)
				}
			}
		}
		if err := source.Close(); err != nil {
			t.Error(err)
		}
	})
}
