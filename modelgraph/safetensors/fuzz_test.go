package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// FuzzReadHeader: accepted headers cover the data without gaps, and mean the same to encoding/json.
func FuzzReadHeader(f *testing.F) {
	for _, c := range accepted {
		f.Add([]byte(c.file))
	}
	for _, c := range rejected {
		f.Add([]byte(c.file))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := readHeader(bytes.NewReader(data), int64(len(data)), "f")
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error of several lines: %q", err)
			}
			return
		}
		checkTiles(t, h, data)
		checkAgainstJSON(t, h, data)
	})
}

// checkAgainstJSON reads the header in the obvious way.
func checkAgainstJSON(t *testing.T, h *fileHeader, data []byte) {
	t.Helper()
	n := binary.LittleEndian.Uint64(data)
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(data[8:8+n], &entries); err != nil {
		t.Fatalf("accepted, but encoding/json says %v", err)
	}
	delete(entries, "__metadata__")
	if len(entries) != len(h.Tensors) {
		t.Fatalf("%d tensors, but %d entries", len(h.Tensors), len(entries))
	}
	for _, x := range h.Tensors {
		// A map, as a struct would match keys whatever their case.
		var fields map[string]json.RawMessage
		var shape, offsets []int64
		var dtype string
		if json.Unmarshal(entries[x.Name], &fields) != nil ||
			json.Unmarshal(fields["shape"], &shape) != nil ||
			json.Unmarshal(fields["data_offsets"], &offsets) != nil ||
			json.Unmarshal(fields["dtype"], &dtype) != nil {
			t.Fatalf("tensor %q is %s", x.Name, entries[x.Name])
		}
		begin := 8 + int64(n)
		if dtype != x.DType.String() || !slices.Equal(shape, x.Shape) ||
			!slices.Equal(offsets, []int64{x.Begin - begin, x.End - begin}) {
			t.Errorf("tensor %q is %+v, want %s", x.Name, x, entries[x.Name])
		}
	}
}

// FuzzReadIndex: accepted indexes name only files beneath the folder.
func FuzzReadIndex(f *testing.F) {
	f.Add([]byte(index2))
	for _, c := range rejectedIndexes {
		f.Add([]byte(c.json))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := readIndex(bytes.NewReader(data), "i")
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error of several lines: %q", err)
			}
			return
		}
		if w := x.totalSizeLie(0); strings.Contains(w, "\n") {
			t.Errorf("warning of several lines: %q", w)
		}
		if !json.Valid(data) {
			t.Fatal("accepted, but encoding/json does not take it for JSON")
		}
		x.sortFiles()
		for tensor, i := range x.shard {
			name := x.files[i]
			if strings.HasPrefix(name, "/") || slices.Contains(strings.Split(name, "/"), "..") || strings.ContainsAny(name, "\\\x00") {
				t.Errorf("tensor %q is in %q", tensor, name)
			}
		}
	})
}
