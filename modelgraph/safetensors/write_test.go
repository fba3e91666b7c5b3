package safetensors

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
)

func mustType(t *testing.T, name string) modelgraph.DType {
	t.Helper()
	dtype, err := modelgraph.ParseDType(name)
	if err != nil {
		t.Fatal(err)
	}
	return dtype
}

// TestEncodeAsSafetensors: safetensors.torch.save (safetensors 0.8.0) gives these
// bytes for these tensors.
func TestEncodeAsSafetensors(t *testing.T) {
	for name, test := range map[string]struct {
		metadata map[string]string
		tensors  []Tensor
		want     string
	}{
		"several types": {map[string]string{"format": "pt"}, []Tensor{
			{Name: "c", DType: mustType(t, "I64")},
			{Name: "B", DType: modelgraph.F32, Shape: []int64{1, 2}},
			{Name: "b", DType: modelgraph.F32, Shape: []int64{2}},
			{Name: "z\"é\n\x01/<", DType: modelgraph.F32, Shape: []int64{0, 3}},
			{Name: "a", DType: modelgraph.BF16, Shape: []int64{1}},
		}, "H\x01\x00\x00\x00\x00\x00\x00" + `{"__metadata__":{"format":"pt"},"c":{"dtype":"I64","shape":[],"data_offsets":[0,8]},"B":{"dtype":"F32","shape":[1,2],"data_offsets":[8,16]},"b":{"dtype":"F32","shape":[2],"data_offsets":[16,24]},"z\"é\n\u0001/<":{"dtype":"F32","shape":[0,3],"data_offsets":[24,24]},"a":{"dtype":"BF16","shape":[1],"data_offsets":[24,26]}}      `},
		"none": {nil, nil, "\x08\x00\x00\x00\x00\x00\x00\x00{}      "},
		"one":  {nil, []Tensor{{Name: "a", DType: modelgraph.F16, Shape: []int64{1}}}, "8\x00\x00\x00\x00\x00\x00\x00" + `{"a":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}}  `},
	} {
		head, err := Encode(test.metadata, test.tensors)
		if err != nil || string(head) != test.want {
			t.Errorf("%s: %v\n got %q\nwant %q", name, err, head, test.want)
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	for want, tensors := range map[string][]Tensor{
		"the name is taken":                      {{Name: "a", DType: modelgraph.F32}, {Name: "a", DType: modelgraph.F32}},
		`"__metadata__", F32[]: the name`:        {{Name: "__metadata__", DType: modelgraph.F32}},
		"F32[-1 0]: no size":                     {{Name: "a", DType: modelgraph.F32, Shape: []int64{-1, 0}}},
		"INVALID[]: no size":                     {{Name: "a"}},
		"element count overflows":                {{Name: "a", DType: modelgraph.F32, Shape: []int64{1 << 40, 1 << 40}}},
		`"b", F32[1]: no size`:                   {{Name: "a", DType: modelgraph.F32, Shape: []int64{1 << 54}}, {Name: "b", DType: modelgraph.F32, Shape: []int64{1}}},
		"F4[1]: size is not a whole number":      {{Name: "a", DType: mustType(t, "F4"), Shape: []int64{1}}},
		`tensor "\xff": jsontext: invalid UTF-8`: {{Name: "\xff", DType: modelgraph.F32}},
	} {
		if head, err := Encode(nil, tensors); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q, %v; want %s", head, err, want)
		}
	}
}

// FuzzEncode: a written header is read back with the same contents.
func FuzzEncode(f *testing.F) {
	f.Add("a", "model.layers.0.weight", int64(3), int64(5), "format", "pt")
	f.Add("", "\"\\\x00\u2028", int64(0), int64(1), "", "\n")
	f.Fuzz(func(t *testing.T, one, other string, rows, columns int64, key, value string) {
		metadata := map[string]string{key: value}
		tensors := []Tensor{
			{Name: one, DType: modelgraph.F32, Shape: []int64{rows, columns}},
			{Name: other, DType: modelgraph.BF16, Shape: []int64{columns}},
		}
		head, err := Encode(metadata, tensors)
		if err != nil || tensors[1].End > 1<<20 {
			return
		}
		file := slices.Concat(head, make([]byte, tensors[1].End-int64(len(head))))
		header, err := readHeader(bytes.NewReader(file), int64(len(file)), "f")
		if err != nil {
			t.Fatalf("%v: %q", err, head)
		}
		if !reflect.DeepEqual(header.Metadata, metadata) || len(header.Tensors) != 2 {
			t.Fatalf("%q is read as %+v", head, header)
		}
		for _, got := range header.Tensors {
			if !reflect.DeepEqual(got, tensors[0]) && !reflect.DeepEqual(got, tensors[1]) {
				t.Errorf("%+v is none of %+v", got, tensors)
			}
		}
	})
}
