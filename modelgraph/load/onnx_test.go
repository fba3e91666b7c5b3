package load

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/devmap-dev/devmap/modelgraph"
)

// field is a member of a message: text, bytes or a number.
func field(number protowire.Number, value any) []byte {
	switch value := value.(type) {
	case int:
		return protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), uint64(value))
	case string:
		return protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), value)
	case []byte:
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
	}
	panic("a field")
}

func message(fields ...[]byte) []byte { return slices.Concat(fields...) }

// weight is a TensorProto of fp32 with its data.
func weight(name string, sides ...int) []byte {
	count, out := 1, field(8, name)
	for _, side := range sides {
		out, count = append(out, field(1, side)...), count*side
	}
	return message(out, field(2, 1), field(9, make([]byte, 4*count)))
}

func node(kind, name, in, out string, more ...[]byte) []byte {
	var fields []byte
	for _, input := range strings.Fields(in) {
		fields = append(fields, field(1, input)...)
	}
	return message(fields, field(2, out), field(3, name), field(4, kind), message(more...))
}

// value is a ValueInfoProto of fp32; sides are numbers and names.
func value(name string, sides ...any) []byte {
	var shape []byte
	for _, side := range sides {
		dim := field(1, side)
		if _, named := side.(string); named {
			dim = field(2, side)
		}
		shape = append(shape, field(1, dim)...)
	}
	return message(field(1, name), field(2, field(1, message(field(1, 1), field(2, shape)))))
}

func onnxFile(tb testing.TB, members ...[]byte) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "net.onnx")
	if err := os.WriteFile(path, field(7, message(members...)), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// twoLayers is x → a → relu → b, and a skip from a to b's result.
func twoLayers() [][]byte {
	return [][]byte{
		field(11, value("x", "batch", 8)), field(12, value("y", "batch", 8)),
		field(13, value("h", "batch", 8)), field(13, value("r", "batch", 8)), field(13, value("g", "batch", 8)),
		field(5, weight("net.a.weight", 8, 8)), field(5, weight("net.b.weight", 8, 8)), field(5, weight("net.b.bias", 8)),
		field(1, node("MatMul", "/net/a/MatMul", "x net.a.weight", "h")),
		field(1, node("Relu", "/net/Relu", "h", "r")),
		field(1, node("Gemm", "/net/b/Gemm", "r net.b.weight net.b.bias", "g")),
		field(1, node("Add", "/net/Add", "g h", "y")),
	}
}

func TestONNX(t *testing.T) {
	graph, err := Model(onnxFile(t, twoLayers()...), Options{Dims: map[string]int64{"batch": 4}})
	if err != nil {
		t.Fatal(err)
	}
	if graph.ParamCount() != 8*8*2+8 || graph.ParamBytes() != 4*graph.ParamCount() {
		t.Errorf("%d parameters in %d bytes", graph.ParamCount(), graph.ParamBytes())
	}
	if len(graph.Layers) != 2 || graph.Layers[0].Name != "net.a" || graph.Layers[1].Name != "net.b" || graph.Layers[1].Params[1].Name != "bias" {
		t.Fatalf("%+v", graph.Layers)
	}
	// A value has 4·8 numbers of 4 bytes. b reads h and r of a; it makes g and y, and g ends with y's node.
	const one = 4 * 8 * 4
	for i, want := range []modelgraph.Declared{{OutputBytes: 2 * one, WorkspaceBytes: 0}, {OutputBytes: one, WorkspaceBytes: one}} {
		if got := graph.Layers[i].Declared; got.OutputBytes != want.OutputBytes || got.WorkspaceBytes != want.WorkspaceBytes {
			t.Errorf("layer %d: output %d, workspace %d; want %d, %d", i, got.OutputBytes, got.WorkspaceBytes, want.OutputBytes, want.WorkspaceBytes)
		}
	}
	if got := graph.Layers[1].Inputs; !slices.Equal(got, []string{"net.a"}) {
		t.Errorf("b reads %q", got)
	}
	graph, err = Model(onnxFile(t, twoLayers()...), Options{})
	if err != nil || !slices.ContainsFunc(graph.Warnings, func(said string) bool { return strings.Contains(said, "--dim batch=1") }) {
		t.Errorf("%v: %q", err, graph.Warnings)
	}
}

// constant is a node that makes a tensor.
func constant(out string, tensor []byte) []byte {
	return field(1, node("Constant", "/"+out, "", out, field(5, message(field(1, "value"), field(5, tensor), field(20, 4)))))
}

// TestONNXConstant: the tensor of a Constant is a weight of the node that reads it, in a subgraph too, a list of integers is none.
func TestONNXConstant(t *testing.T) {
	body := message(constant("u", weight("", 4, 4)), field(1, node("MatMul", "m", "h u", "z")), field(12, value("z", 2, 8)))
	shape := message(field(1, 2), field(2, 7), field(9, make([]byte, 16)))
	text := message(field(1, 2), field(2, 8))
	graph, err := Model(onnxFile(t, field(11, value("x", 2, 8)), field(12, value("y", 2, 8)),
		constant("c", weight("", 8, 8)), constant("s", shape), constant("t", text),
		field(1, node("MatMul", "/a/MatMul", "x c", "g")), field(1, node("Reshape", "/Reshape", "g s", "h")),
		field(1, node("If", "/if", "x", "y", field(5, message(field(1, "then_branch"), field(6, body)))))), Options{})
	if err != nil || graph.ParamCount() != 8*8+4*4 || graph.ParamBytes() != 4*(8*8+4*4) {
		t.Fatalf("%v: %+v", err, graph)
	}
	at := slices.IndexFunc(graph.Layers, func(layer modelgraph.Layer) bool { return layer.Name == "a" })
	if at < 0 || len(graph.Layers[at].Params) != 1 || graph.Layers[at].Params[0].Name != "c" {
		t.Errorf("%+v", graph.Layers)
	}
}

// TestONNXFunction: each call of a function has its constants, of all kinds; a function that calls itself is refused.
func TestONNXFunction(t *testing.T) {
	floats := field(1, node("Constant", "/f", "", "f", field(5, message(field(1, "value_floats"), field(7, make([]byte, 4*16))))))
	sparse := field(1, node("Constant", "/s", "", "s", field(5, message(field(1, "sparse_value"), field(22, message(field(1, weight("", 5)), field(2, weight("", 5))))))))
	function := func(name string, nodes ...[]byte) []byte {
		body := message(field(1, name), field(10, "my"))
		for _, one := range nodes {
			body = append(body, field(7, one)...)
		}
		return field(25, body)
	}
	called := func(name, in, out string) []byte { return field(1, node(name, "/"+out, in, out, field(7, "my"))) }
	graph := field(7, message(field(11, value("x", 2, 8)), field(12, value("y", 2, 8)), floats, sparse, called("F", "x", "p"), called("F", "p", "q"), field(1, node("Sum", "/sum", "q f s", "y"))))
	inside := constant("w", weight("", 8, 8))
	inside, _ = protowire.ConsumeBytes(inside[1:]) // a node without its tag
	for name, c := range map[string]struct {
		functions []byte
		params    int64
	}{
		"constants": {message(function("F", node("G", "g", "X", "Y", field(7, "my"))), function("G", inside)), 16 + 5 + 5 + 2*64},
		"itself":    {message(function("F", node("G", "g", "X", "Y", field(7, "my"))), function("G", node("F", "f", "X", "Y", field(7, "my")))), -1},
	} {
		path := filepath.Join(t.TempDir(), "net.onnx")
		if err := os.WriteFile(path, message(graph, c.functions), 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := Model(path, Options{})
		if c.params < 0 && (err == nil || !strings.Contains(err.Error(), "calls itself")) || c.params >= 0 && (err != nil || found.ParamCount() != c.params) {
			t.Errorf("%s: %v: %+v", name, err, found)
		}
	}
}

// TestONNXDims: a number is refused for a dimension that the file does not have.
func TestONNXDims(t *testing.T) {
	_, err := Model(onnxFile(t, field(11, value("x", "batch", "length")), field(12, value("x", "batch", "length"))), Options{Dims: map[string]int64{"batch": 2, "C": 3}})
	if err == nil || !strings.Contains(err.Error(), `no dimension is named "C", for --dim C=3; symbolic dimensions: batch, length`) {
		t.Error(err)
	}
	_, err = Model(onnxFile(t, field(11, value("x", 2))), Options{Dims: map[string]int64{"C": 3}})
	if err == nil || !strings.Contains(err.Error(), "symbolic dimensions: none") {
		t.Error(err)
	}
}

// TestONNXSubgraph: weights of a subgraph belong to the node around it, and what it reads from outside ends later.
func TestONNXSubgraph(t *testing.T) {
	body := message(field(5, weight("w", 8, 8)), field(1, node("MatMul", "m", "h w", "z")), field(12, value("z", 2, 8)))
	path := onnxFile(t, field(11, value("x", 2, 8)), field(12, value("y", 2, 8)), field(5, weight("a.weight", 8, 8)),
		field(1, node("MatMul", "/a/MatMul", "x a.weight", "h")),
		field(1, node("If", "/if", "x", "y", field(5, message(field(1, "then_branch"), field(6, body))))))
	graph, err := Model(path, Options{})
	if err != nil || graph.ParamCount() != 128 || len(graph.Layers) != 2 {
		t.Fatalf("%v: %+v", err, graph)
	}
	if got := graph.Layers[1].Inputs; !slices.Equal(got, []string{"a"}) {
		t.Errorf("the branch reads %q", got)
	}
}

// external is a tensor whose data lie in another file.
func external(location, offset, length string, sides ...int) []byte {
	out := message(field(8, "w"), field(2, 1), field(14, 1))
	for _, side := range sides {
		out = append(out, field(1, side)...)
	}
	for key, value := range map[string]string{"location": location, "offset": offset, "length": length} {
		if value != "" {
			out = append(out, field(13, message(field(1, key), field(2, value)))...)
		}
	}
	return out
}

func TestONNXExternal(t *testing.T) {
	for name, c := range map[string]struct {
		tensor []byte
		err    string
	}{
		"there":      {external("net.data", "64", "256", 8, 8), ""},
		"whole file": {external("net.data", "", "", 8, 10), ""},
		"above":      {external("../net.data", "", "", 8, 8), `external data in "../net.data"`},
		"absolute":   {external("/etc/passwd", "", "", 8, 8), `external data in "/etc/passwd"`},
		"no file":    {external("other.data", "", "", 8, 8), "other.data"},
		"short":      {external("net.data", "65", "256", 8, 8), "bytes 65 to 321, the file has 320"},
		"far":        {external("net.data", "9223372036854775807", "256", 8, 8), "the file has 320"},
		"unlike":     {external("net.data", "0", "300", 8, 8), "length is 300 bytes, shape [8 8] asks for 256"},
		"negative":   {external("net.data", "-1", "256", 8, 8), `offset "-1" is no number of bytes`},
	} {
		path := onnxFile(t, field(11, value("x", 2, 8)), field(12, value("y", 2, 8)), field(5, c.tensor), field(1, node("MatMul", "m", "x w", "y")))
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), "net.data"), make([]byte, 320), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Model(path, Options{})
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %v, want %q", name, err, c.err)
		}
	}
}

func TestONNXHostile(t *testing.T) {
	deep := node("If", "i", "", "z")
	for range 40 {
		deep = node("If", "i", "", "z", field(5, field(6, field(1, deep))))
	}
	huge := message(field(8, "w"), field(2, 1), field(1, 1<<40), field(1, 1<<40))
	short := message(field(8, "w"), field(2, 1), field(1, 100), field(9, make([]byte, 8)))
	for name, c := range map[string]struct {
		members [][]byte
		err     string
	}{
		"a cycle":          {[][]byte{field(1, node("Add", "p", "q", "p")), field(1, node("Add", "q", "p", "q"))}, `node "p" reads "q", and node "q" makes it later`},
		"nothing makes it": {[][]byte{field(1, node("Add", "p", "nowhere", "p"))}, `reads "nowhere", which nothing makes`},
		"twice":            {[][]byte{field(1, node("Add", "p", "", "p")), field(1, node("Add", "q", "", "p"))}, `"p" is the output of two nodes`},
		"overflow":         {[][]byte{field(5, huge)}, `tensor "w"`},
		"negative":         {[][]byte{field(5, message(field(8, "w"), field(2, 1), field(1, -1)))}, "negative dimension"},
		"short data":       {[][]byte{field(5, short)}, "has 8 bytes of data, its shape and type ask for 400"},
		"strings":          {[][]byte{field(5, message(field(8, "w"), field(2, 8), field(1, 2)))}, "data type 8"},
		"deep":             {[][]byte{field(1, deep)}, "deep, at most 32"},
		"a length":         {[][]byte{protowire.AppendVarint(protowire.AppendTag(nil, 5, protowire.BytesType), 1<<62)}, "are left"},
		"a long name":      {[][]byte{field(1, node("Add", strings.Repeat("n", maxName+1), "", "p"))}, "a name of"},
	} {
		_, err := Model(onnxFile(t, c.members...), Options{})
		if err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %q", name, err, c.err)
		}
	}
}

// FuzzONNX: whatever bytes are an ONNX file, what is read of them is a graph.
func FuzzONNX(f *testing.F) {
	f.Add(field(7, message(twoLayers()...)))
	f.Add(field(7, message(field(11, value("x", "batch", 8)), field(12, value("y", "batch", 8)), field(5, external("net.data", "64", "256", 8, 8)), field(1, node("MatMul", "m", "x w", "y")))))
	f.Add(field(7, message(field(11, value("x", "batch", 8)), constant("w", weight("w", 8, 8)), field(1, node("If", "i", "x", "y", field(5, field(6, message(field(1, node("Add", "a", "x w", "y"))))))))))
	f.Add(binary.AppendUvarint(nil, 1<<63))
	dir := f.TempDir() // one of each worker: a new one for each input takes most of the time
	path := filepath.Join(dir, "net.onnx")
	if err := os.WriteFile(filepath.Join(dir, "net.data"), make([]byte, 320), 0o600); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		graph, err := Model(path, Options{Dims: map[string]int64{"batch": 3}})
		if err == nil && (len(graph.Layers) == 0 || graph.ParamBytes() < 0) {
			t.Errorf("%d layers of %d bytes", len(graph.Layers), graph.ParamBytes())
		}
	})
}
