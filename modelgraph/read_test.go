package modelgraph_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
)

// example is the least model.json that README shows, with the head that its tie
// names.
const example = `{"format_version": "devmap.model/v1", "name": "toy",
 "layers": [
  {"name": "embed", "op": {"kind": "embedding", "vocab": 32000, "dim": 512},
   "params": [{"name": "weight", "shape": [32000, 512], "dtype": "bf16"}]},
  {"name": "h.0", "inputs": ["embed"], "unit": "h.0",
   "declared": {"params_bytes": 6291456, "activation_bytes": 4194304, "workspace_bytes": 0, "output_bytes": 1048576,
                "forward_seconds": 0.0012, "backward_seconds": 0.0025}},
  {"name": "lm_head", "op": {"kind": "head", "vocab": 32000, "dim": 512},
   "params": [{"name": "weight", "shape": [32000, 512], "dtype": "bf16"}]}],
 "ties": [["embed.weight", "lm_head.weight"]]}`

func TestReadExample(t *testing.T) {
	const path = "models/model.json"
	g, err := modelgraph.Read(strings.NewReader(example), path)
	if err != nil {
		t.Fatal(err)
	}
	if g.Name != "toy" || g.Source != path || len(g.Units) != 3 {
		t.Errorf("%q from %q: %d units", g.Name, g.Source, len(g.Units))
	}
	if n, b := g.ParamCount(), g.ParamBytes(); n != 32000*512 || b != 2*32000*512+6291456 {
		t.Errorf("%d parameters in %d bytes", n, b)
	}
	d := g.Layers[1].Declared
	if d == nil || *d != (modelgraph.Declared{ParamsBytes: 6291456, ActivationBytes: 4194304, OutputBytes: 1048576, ForwardSeconds: .0012, BackwardSeconds: .0025}) {
		t.Errorf("declared %+v", d)
	}
	if in := g.Layers[2].InputLayers; len(in) != 1 || in[0] != 1 {
		t.Errorf("the head reads %v, want the layer before", in)
	}
	if op := g.Layers[0].Op; op != (modelgraph.Embedding{Vocab: 32000, Dim: 512}) {
		t.Errorf("op %+v", op)
	}
	if sets := g.TiedUnits(); len(sets) != 1 || len(sets[0]) != 2 || sets[0][0] != 0 || sets[0][1] != 2 {
		t.Errorf("tied units %v", sets)
	}
}

// TestRepeat: how often a layer runs is read, written and part
// of what the model is.
func TestRepeat(t *testing.T) {
	digests := make(map[string]bool)
	for runs, field := range map[int64]string{0: "", 12: `, "repeat": 12`} {
		g, err := modelgraph.Read(strings.NewReader(strings.Replace(example, `"unit": "h.0"`, `"unit": "h.0"`+field, 1)), "model.json")
		if err != nil {
			t.Fatal(err)
		}
		var written strings.Builder
		if err := modelgraph.Write(&written, g); err != nil {
			t.Fatal(err)
		}
		again, err := modelgraph.Read(strings.NewReader(written.String()), "model.json")
		if err != nil || again.Layers[1].Repeat != runs || again.Layers[0].Repeat != 0 {
			t.Errorf("repeat %d is read again as %d: %v", runs, again.Layers[1].Repeat, err)
		}
		digests[again.Digest()] = true
	}
	if len(digests) != 2 {
		t.Error("a model that runs layers twelve times is the one that runs them once")
	}
}

func TestReadRefuses(t *testing.T) {
	const (
		head = `{"format_version":"devmap.model/v1","name":"m","layers":`
		a    = `{"name":"a"}`
		one  = head + `[{"name":"a"`
	)
	tensor := func(shape string) string {
		return one + `,"params":[{"name":"w","shape":` + shape + `,"dtype":"bf16"}]}]}`
	}
	for _, c := range []struct{ name, in, want string }{
		{"empty", ``, `m.json: the file is empty`},
		{"not an object", `[]`, `m.json: line 1, column 1: cannot read array as object`},
		{"truncated", one, `m.json: layers[0] (line 1, column 69): the file is cut off: unexpected EOF`},
		{"another version", `{"format_version":"devmap.model/v2","layers":[]}`, `m.json: format_version: "devmap.model/v2" is not "devmap.model/v1"`},
		{"no version", `{"layers":[` + a + `]}`, `m.json: format_version: "" is not "devmap.model/v1"`},
		{"no layers", head + `[]}`, `m.json: layers: the model has no layers`},
		{"no name", head + `[{"op":{"kind":"opaque"}}]}`, `m.json: layers[0].name: a layer needs a name`},
		{"empty part", head + `[{"name":"a..b"}]}`, `m.json: layers[0].name: "a..b" is not a module path: it has an empty part`},
		{"same name", head + `[` + a + `,` + a + `]}`, `m.json: layers[1].name: "a" is also the name of layers[0]`},
		{"unknown field", one + `,"colour":1}]}`, `m.json: layers[0].colour (line 1, column 70): unknown field "colour"`},
		{"repeats", one + `,"repeat":-1}]}`, `m.json: layers[0].repeat: -1 is not a number of runs (0 to 250000)`},
		{"unknown field on top", `{"format_version":"devmap.model/v1","layer":[]}`, `m.json: layer (line 1, column 37): unknown field "layer"`},
		{"unknown field of a tensor", one + `,"params":[{"name":"w","shape":[1],"type":"bf16"}]}]}`, `m.json: layers[0].params[0].type (line 1, column 104): unknown field "type"`},
		{"unknown field of an op", one + `,"op":{"kind":"mlp","dim":1,"widht":2}}]}`, `m.json: layers[0].op: op "mlp": unknown field "widht"`},
		{"duplicate key", one + `,"name":"b"}]}`, `m.json: layers[0].name (line 1, column 70): duplicate object member name`},
		{"duplicate key of an op", one + `,"op":{"kind":"mlp","dim":1,"dim":2}}]}`, `m.json: layers[0].op.dim (line 1, column 97): duplicate object member name`},
		{"negative dimension", tensor(`[2,-3]`), `m.json: layers[0].params[0]: tensor "w" has a negative dimension in shape [2 -3]`},
		{"overflowing shape", tensor(`[4294967296,4294967296]`), `m.json: layers[0].params[0]: tensor "w" of shape [4294967296 4294967296] is larger than 2^56 bytes`},
		{"number past int64", tensor(`[9223372036854775808]`), `m.json: layers[0].params[0].shape[0] (line 1, column 101): 9223372036854775808: value out of range`},
		{"fraction", tensor(`[1.5]`), `m.json: layers[0].params[0].shape[0] (line 1, column 101): 1.5: invalid syntax`},
		{"unknown dtype", one + `,"params":[{"name":"w","shape":[1],"dtype":"bf17"}]}]}`, `m.json: layers[0].params[0].dtype: unknown dtype "bf17" (known: BOOL, U8, I8, F8_E4M3, F16, BF16, F32, … as safetensors names them)`},
		{"same tensor twice", one + `,"params":[{"name":"w","shape":[1],"dtype":"bf16"},{"name":"w","shape":[1],"dtype":"bf16"}]}]}`, `m.json: layers[0].params[1].name: "a.w" is already a tensor of layers[0]`},
		{"sum of layers", head + `[{"name":"a","declared":{"params_bytes":72057594037927936}},{"name":"b","declared":{"params_bytes":1}}]}`, `m.json: layers[1]: the layers up to "b" add up to more than 2^56 bytes`},
		{"negative bytes", one + `,"declared":{"params_bytes":-1}}]}`, `m.json: layers[0].declared.params_bytes: -1 is negative`},
		{"overflowing bytes", one + `,"declared":{"output_bytes":72057594037927937}}]}`, `m.json: layers[0].declared: 72057594037927937 is more than 2^56 bytes`},
		{"negative time", one + `,"declared":{"forward_seconds":-0.5}}]}`, `m.json: layers[0].declared.forward_seconds: -0.5 is not a time`},
		{"endless time", one + `,"declared":{"backward_seconds":1e300}}]}`, `m.json: layers[0].declared: 1e+300 is not a time in seconds`},
		{"negative growth", one + `,"declared":{"growth":{"output_bytes":{"token":-2}}}}]}`, `m.json: layers[0].declared.growth.output_bytes.token: -2 is not between 0 and 2^40`},
		{"unknown growth", one + `,"declared":{"growth":{"params_bytes":{"token":2}}}}]}`, `m.json: layers[0].declared.growth.params_bytes (line 1, column 92): unknown field "params_bytes"`},
		{"taken nowhere", `{"format_version":"devmap.model/v1","taken":{"batch":-1},"layers":[` + a + `]}`, `m.json: taken: batch -1, seq 0 and target_seq 0 are not between 0 and 2^40`},
		{"cycle forward", head + `[{"name":"a","inputs":["b"]},{"name":"b"}]}`, `m.json: layers read each other in a circle: "a" → "b" → "a"`},
		{"cycle on itself", one + `,"inputs":["a"]}]}`, `m.json: layers read each other in a circle: "a" → "a"`},
		{"unknown input", head + `[` + a + `,{"name":"b","inputs":["a","h.2"]}]}`, `m.json: layers[1].inputs[1]: unknown layer "h.2"`},
		{"unknown op kind", one + `,"op":{"kind":"warp"}}]}`, `m.json: layers[0].op: unknown op kind "warp" (known: attention, conv, embedding, head, linear, mlp, moe, norm, opaque, parameter, rotary, state-space)`},
		{"op without a kind", one + `,"op":{"dim":1}}]}`, `m.json: layers[0].op: an op needs a kind (known: attention, conv, embedding, head, linear, mlp, moe, norm, opaque, parameter, rotary, state-space)`},
		{"negative op dimension", one + `,"op":{"kind":"head","dim":-1,"vocab":2}}]}`, `m.json: layers[0].op: op "head": dim is -1, not between 0 and 2^40`},
		{"unknown norm style", one + `,"op":{"kind":"norm","dim":1,"style":"batch"}}]}`, `m.json: layers[0].op: op "norm": unknown norm style "batch" (known: rms, gemma-rms, layer)`},
		{"unknown query norm", one + `,"op":{"kind":"attention","qk_norm":"batch"}}]}`, `m.json: layers[0].op: op "attention": unknown norm style "batch" (known: rms, gemma-rms, layer)`},
		{"unknown index", one + `,"op":{"kind":"embedding","index":"place"}}]}`, `m.json: layers[0].op: op "embedding": unknown index "place" (known: position, token-type; absent: tokens)`},
		{"negative epsilon", one + `,"op":{"kind":"norm","dim":1,"epsilon":-1e-5}}]}`, `m.json: layers[0].op: op "norm": epsilon is -1e-05, not between 0 and 1e30`},
		{"huge rope base", one + `,"op":{"kind":"attention","rotation":{"base":1e31}}}]}`, `m.json: layers[0].op: op "attention": rotation.base is 1e+31, not between 0 and 1e30`},
		{"endless cap", one + `,"op":{"kind":"head","logit_cap":1e400}}]}`, `m.json: layers[0].op: op "head": 1e400: value out of range`},
		{"negative rope width", one + `,"op":{"kind":"attention","rotation":{"width":-2}}}]}`, `m.json: layers[0].op: op "attention": rotation.width is -2, not between 0 and 2^40`},
		{"unknown field of a rope", one + `,"op":{"kind":"attention","rotation":{"theta":1}}}]}`, `m.json: layers[0].op: op "attention": unknown field "theta"`},
		{"unknowns that are no list", `{"format_version":"devmap.model/v1","unknown":{},"layers":[` + a + `]}`, `m.json: unknown (line 1, column 47): cannot read object as array`},
		{"bad stream", one + `,"stream":{"kind":"video"}}]}`, `m.json: layers[0].stream: unknown kind "video" (known: target, fixed, image; absent: text)`},
		{"bad stream length", one + `,"stream":{"kind":"fixed","tokens":-4}}]}`, `m.json: layers[0].stream: -4 is not a number of tokens`},
		{"bad longest sequence", `{"format_version":"devmap.model/v1","max_seq":-1,"layers":[` + a + `]}`, `m.json: max_seq: -1 is not a sequence length`},
		{"tie of an unknown tensor", head + `[` + a + `],"ties":[["a.weight","b.weight"]]}`, `m.json: ties[0][0]: "a.weight" is not a parameter of the model`},
		{"tie of different sizes", head + `[{"name":"a","params":[{"name":"w","shape":[2],"dtype":"bf16"},{"name":"v","shape":[3],"dtype":"bf16"}]}],"ties":[["a.w","a.v"]]}`, `m.json: ties[0][1]: "a.v" has 3 elements and "a.w" has 2: they cannot share storage`},
		{"tie of one", head + `[` + a + `],"ties":[["a.w"]]}`, `m.json: ties[0]: a tie needs two names or more, it has 1`},
		{"tie of a tied tensor", head + `[{"name":"a","params":[{"name":"u","shape":[2],"dtype":"bf16"},{"name":"v","shape":[2],"dtype":"bf16"},{"name":"w","shape":[2],"dtype":"bf16"}]}],"ties":[["a.u","a.v"],["a.w","a.u"]]}`, `m.json: ties[1][1]: "a.u" is tied twice`},
		{"unit not consecutive", head + `[{"name":"a","unit":"u"},{"name":"b"},{"name":"c","unit":"u"}]}`, `m.json: layers[2].unit: "u" is not consecutive: unit 0 ended before "b"`},
		{"layer around another unit", head + `[` + a + `,{"name":"a.b"}]}`, `m.json: layers[0].name: layers of other units lie inside "a": no key of a device map means it alone`},
		{"trailing garbage", example + ` {}`, `m.json: line 10, column 48: invalid character '{' after top-level value`},
		{"bad UTF-8", head + "[{\"name\":\"a\xff\"}]}", `m.json: layers[0].name (line 1, column 68): invalid UTF-8`},
		{"line break in a key", one + `,"co\nlour":1}]}`, `m.json: layers[0]."co\nlour" (line 1, column 70): unknown field "co\nlour"`},
		{"array over lines for a number", head + "[{\"name\":\"a\",\"params\":[{\"shape\":[[\n1]]}]}]}", `m.json: layers[0].params[0].shape[0] (line 1, column 90): cannot read array as int64`},
		{"number for a string", head + `[{"name":7}]}`, `m.json: layers[0].name (line 1, column 66): cannot read number as string`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := modelgraph.Read(strings.NewReader(c.in), "m.json")
			if err == nil {
				t.Fatal("it is read")
			}
			if err.Error() != c.want {
				t.Errorf("error\n%s, want\n%s", err, c.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Error("more than one line")
			}
		})
	}
}

// TestReadCycleHasNoPlace: no one layer of a cycle is wrong.
func TestReadCycleHasNoPlace(t *testing.T) {
	in := `{"format_version":"devmap.model/v1","layers":[{"name":"a","inputs":["c"]},{"name":"b"},{"name":"c"}]}`
	_, err := modelgraph.Read(strings.NewReader(in), "m.json")
	var fault *modelgraph.SyntaxError
	if !errors.As(err, &fault) || fault.Place != "" || fault.File != "m.json" || strings.Count(fault.Msg, "→") != 3 {
		t.Errorf("%v is no cycle of three", err)
	}
}

// TestDoubts: slips of a file by hand that nothing refuses get a note, once.
func TestDoubts(t *testing.T) {
	const file = `{"format_version": "devmap.model/v1", "name": "m"%s, "layers": [{"name": "up", "op": {"kind": "linear", "in": %d, "out": %d, "activation": %q},
		"params": [{"name": "weight", "shape": [4, 8], "dtype": "f32"}]}]}`
	for _, test := range []struct {
		more       string
		in, out    int
		activation string
		want       []string
	}{
		{"", 8, 4, "silu", nil},
		{"", 4, 8, "silu", []string{"torch.nn.Linear's is [out, in]"}},
		{`, "taken": {"batch": 2}`, 4, 8, "silu", nil},
		{"", 8, 4, "gleu", []string{`activation "gleu" is not known`}},
	} {
		graph, err := modelgraph.Read(strings.NewReader(fmt.Sprintf(file, test.more, test.in, test.out, test.activation)), "m.json")
		if err != nil {
			t.Fatal(err)
		}
		var written strings.Builder
		if err := modelgraph.Write(&written, graph); err != nil {
			t.Fatal(err)
		}
		if graph, err = modelgraph.Read(strings.NewReader(written.String()), "m.json"); err != nil {
			t.Fatal(err)
		}
		if len(graph.Warnings) != len(test.want) || len(test.want) > 0 && !strings.Contains(graph.Warnings[0], test.want[0]) {
			t.Errorf("%+v: %q", test, graph.Warnings)
		}
	}
}

// TestStaged: groups of a pipeline's stage come back, and unknown layers are refused.
func TestStaged(t *testing.T) {
	const file = `{"format_version": "devmap.model/v1", "name": "m", "staged": [{"layers": ["a", %q], "why": "x.py:1 calls a"}], "layers": [
		{"name": "a", "declared": {"params_bytes": 4}}, {"name": "b", "declared": {"params_bytes": 4}}]}`
	graph, err := modelgraph.Read(strings.NewReader(fmt.Sprintf(file, "b")), "m.json")
	if err != nil || len(graph.Staged) != 1 || len(graph.Staged[0].Units) != 2 || graph.Staged[0].Units[1] != 1 {
		t.Fatalf("%v: %+v", err, graph.Staged)
	}
	var written strings.Builder
	if err := modelgraph.Write(&written, graph); err != nil || !strings.Contains(written.String(), "x.py:1 calls a") {
		t.Errorf("%v: %s", err, written.String())
	}
	if _, err := modelgraph.Read(strings.NewReader(fmt.Sprintf(file, "c")), "m.json"); err == nil || !strings.Contains(err.Error(), `staged[0].layers[1]: unknown layer "c"`) {
		t.Error(err)
	}
}
