//go:build cuda && linux && cgo && amd64

package kernel

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/modelgraph"
)

// bench is matrices by name, each at an address of its own, and kernels as the text of programs
// has them.
type bench struct {
	t        *testing.T
	matrices map[string]Matrix
	next     driver.Address
}

func newBench(t *testing.T, sizes string) *bench {
	t.Helper()
	made := &bench{t, make(map[string]Matrix), 1 << 20}
	for _, word := range strings.Fields(sizes) {
		name, size, _ := strings.Cut(word, "=")
		var rows, columns int64
		if _, err := fmt.Sscanf(size, "%dx%d", &rows, &columns); err != nil {
			t.Fatal(err)
		}
		made.matrices[name] = Matrix{Address: made.next, DType: modelgraph.BF16, Rows: rows, Columns: columns, Stride: over(columns, 8) * 8}
		made.next += driver.Address(2*rows*over(columns, 8)*8+255) &^ 255
		if rows == 1 && columns%2 == 0 { // its halves
			half := made.matrices[name]
			half.Columns /= 2
			made.matrices[name+".left"] = half
			half.Address += addressOfValue(half.Columns)
			made.matrices[name+".right"] = half
		}
	}
	return made
}

// call reads "name dim=value : role=matrix >role=matrix".
func (bench *bench) call(line string) *Call {
	head, rest, _ := strings.Cut(line, " : ")
	words := strings.Fields(head)
	code := &recipe.Kernel{Name: words[0]}
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		code.Dims = append(code.Dims, recipe.Dim{Name: name, Value: value})
	}
	call := &Call{Kernel: code}
	for _, word := range strings.Fields(rest) {
		mode := byte(' ')
		if word[0] == '>' || word[0] == '+' {
			mode, word = word[0], word[1:]
		}
		role, name, _ := strings.Cut(word, "=")
		matrix, known := bench.matrices[name]
		if !known {
			bench.t.Fatalf("no matrix is called %q", name)
		}
		code.Operands = append(code.Operands, recipe.Operand{Role: role, Mode: mode})
		call.Operands = append(call.Operands, matrix)
	}
	return call
}

// kinds returns what the recognizer makes of lines: kinds of operations with their tiles, and
// kernels that remain.
func (bench *bench) kinds(lines []string) (out []string, all []*operation) {
	list := &recognizer{}
	for _, line := range lines {
		list.calls = append(list.calls, bench.call(line))
	}
	for list.at < len(list.calls) {
		ops, count := list.next()
		if count == 0 {
			out, count = append(out, list.calls[list.at].Kernel.Name), 1
		}
		for _, op := range ops {
			op.count()
			out = append(out, fmt.Sprintf("%s:%d", []string{"plain", "gated", "turned", "attend", "join", "pick"}[op.kind], op.tiles))
		}
		all = append(all, ops...)
		list.at += count
	}
	return out, all
}

const (
	sizes = "x=1x64 n=1x64 wn=1x64 wq=64x64 wk=32x64 wv=32x64 wo=64x64 q=1x64 k=1x32 v=1x32 a=1x64 keys=600x32 values=600x32 sums=2x72 " +
		"wg=96x64 wu=96x64 wgu=192x64 wd=64x96 g=1x96 u=1x96 gu=1x192 wh=500x64 l=1x504 b=1x64 ids=1x1 y=17x64 m=17x64 o=1x60 w60=64x60"
	normed  = "norm style=rms epsilon=1e-05 : x=x weight=wn >y=n"
	queries = "gemm form=nt : a=n b=wq >d=q"
	keys    = "gemm form=nt : a=n b=wk >d=k"
	values  = "gemm form=nt : a=n b=wv >d=v"
	turns   = "rope heads=4 kv=2 dim=16 past=7 rope=default base=10000 : +q=q +k=k"
	caches  = "cache sequences=1 positions=600 past=7 : k=k v=v +keys=keys +values=values"
	attends = "attention_decode sequences=1 heads=4 kv=2 dim=16 past=7 scale=0.25 positions=600 span=512 : q=q keys=keys values=values >parts=sums"
	joins   = "attention_join parts=2 : parts=sums >y=a"
	outs    = "gemm form=nt : a=a b=wo add=x >d=x"
	gates   = "gemm form=nt : a=n b=wg >d=g"
	ups     = "gemm form=nt : a=n b=wu >d=u"
	gated   = "gate activation=silu : gate=g up=u >y=g"
	downs   = "gemm form=nt : a=g b=wd add=x >d=x"
)

// TestRecognize: the operations of a layer, and what is none.
func TestRecognize(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"a layer", []string{normed, queries, keys, values, turns, caches, attends, joins, outs, normed, gates, ups, gated, downs}, "[turned:8 attend:4 join:0 plain:4 gated:12 plain:4]"},
		{"norms of queries between", []string{normed, queries, keys, values, "qknorm : +q=q +k=k", caches, attends, joins}, "[plain:8 qknorm cache attend:4 join:0]"},
		{"a rotation that changes with the length", []string{normed, queries, keys, values, strings.Replace(turns, "rope=default", "rope=dynamic factor=2 trained=4", 1), caches}, "[plain:8 rope cache]"},
		{"half of a head turns", []string{normed, queries, keys, values, strings.Replace(turns, "dim=16", "dim=16 width=8", 1), caches}, "[plain:8 rope cache]"},
		{"the cache takes values for keys", []string{normed, queries, keys, values, turns, strings.Replace(caches, "k=k", "k=v", 1)}, "[plain:8 rope cache]"},
		{"gate and up in one weight", []string{normed, "gemm form=nt : a=n b=wgu >d=gu", "gate activation=silu : gate=gu up=gu >y=gu"}, "[plain:12 gate]"},
		{"halves of one weight's result", []string{normed, "gemm form=nt : a=n b=wgu >d=gu", "gate activation=silu : gate=gu.left up=gu.right >y=gu.left"}, "[gated:12]"},
		{"halves of a result with an addend", []string{normed, "gemm form=nt : a=n b=wgu add=gu >d=gu", "gate activation=silu : gate=gu.left up=gu.right >y=gu.left"}, "[plain:12 gate]"},
		{"another product adds", []string{outs, "gemm form=nt : a=a b=wq >d=q"}, "[plain:4 plain:4]"},
		{"a width of no eights", []string{"gemm form=nt : a=o b=w60 >d=q"}, "[gemm]"},
		{"queries of others turn", []string{normed, queries, keys, values, strings.Replace(turns, "q=q", "q=a", 1), caches}, "[plain:8 rope cache]"},
		{"keys of others turn", []string{normed, queries, keys, values, strings.Replace(turns, "k=k", "k=v", 1), caches}, "[plain:8 rope cache]"},
		{"the cache takes keys for values", []string{normed, queries, keys, values, turns, strings.Replace(caches, "v=v", "v=k", 1)}, "[plain:8 rope cache]"},
		{"positions of their own", []string{normed, queries, keys, values, strings.Replace(turns, "past=7 ", "", 1), caches}, "[plain:8 rope cache]"},
		{"the cache of more sequences", []string{normed, queries, keys, values, turns, strings.Replace(caches, "sequences=1", "sequences=2", 1)}, "[plain:8 rope cache]"},
		{"attention of more sequences", []string{strings.Replace(attends, "sequences=1", "sequences=2", 1), joins}, "[attention_decode attention_join]"},
		{"a key head with sixteen heads", []string{strings.Replace(attends, "heads=4 kv=2", "heads=16 kv=1", 1), joins}, "[attend:4 join:0]"},
		{"heads that occupy the GPU without parts", []string{strings.Replace(attends, "heads=4 kv=2", "heads=66 kv=66", 1), joins}, "[attend:66]"},
		{"keys are read again", []string{normed, queries, keys, values, turns, caches, "copy : x=k >y=a"}, "[plain:8 rope cache copy]"},
		{"values are read again", []string{normed, queries, keys, values, turns, caches, "copy : x=v >y=a"}, "[plain:8 rope cache copy]"},
		{"up is read again", []string{normed, gates, ups, gated, "copy : x=u >y=g"}, "[plain:12 gate copy]"},
		{"the norm is read again", []string{normed, gates, "copy : x=n >y=a"}, "[norm plain:6 copy]"},
		{"a product of another x than the norm's", []string{normed, "gemm form=nt : a=a b=wo >d=q"}, "[norm plain:4]"},
		{"the norm is written again", []string{normed, gates, "copy : x=x >y=n", "copy : x=n >y=a"}, "[plain:6 copy copy]"},
		{"a norm with a mean", []string{strings.Replace(normed, "rms", "layer", 1), gates}, "[norm plain:6]"},
		{"transposed weights", []string{"gemm form=nn : a=n b=wq >d=q"}, "[gemm]"},
		{"seventeen rows", []string{"gemm form=nt : a=y b=wq >d=m"}, "[gemm]"},
		{"the head", []string{"norm style=rms epsilon=1e-05 : x=x weight=wn >y=x", "gemm form=nt : a=x b=wh >d=l", "argmax : x=l >y=ids"}, "[plain:32 pick:0]"},
		{"the largest of one of two results", []string{"gemm form=nt : a=x b=wq >d=q", "gemm form=nt : a=x b=wk >d=k", "argmax : x=q >y=ids"}, "[plain:6 argmax]"},
		{"the largest of another matrix", []string{"gemm form=nt : a=x b=wh >d=l", "argmax : x=a >y=ids"}, "[plain:32 argmax]"},
	} {
		got, _ := newBench(t, sizes).kinds(test.lines)
		if text := fmt.Sprint(got); text != test.want {
			t.Errorf("%s: %s, want %s", test.name, text, test.want)
		}
	}
}

// TestOperation: where operations read and write, and that their table is as the kernel has it.
func TestOperation(t *testing.T) {
	t.Parallel()
	bench := newBench(t, sizes)
	_, ops := bench.kinds([]string{normed, queries, keys, values, turns, caches, attends, joins, outs, normed, gates, ups, gated, downs})
	at := func(name string) driver.Address { return bench.matrices[name].Address }
	turned, attend, join, out, gate := ops[0], ops[1], ops[2], ops[3], ops[4]
	for _, test := range []struct {
		name      string
		got, want driver.Address
	}{
		{"x of a norm", turned.x, at("x")},
		{"norm", turned.norm, at("wn")},
		{"queries", turned.parts[0].to, at("q")},
		{"keys", turned.parts[1].to, at("keys")},
		{"values", turned.parts[2].to, at("values")},
		{"sums", attend.sums.at, at("sums")},
		{"no output", attend.y.at, 0},
		{"joined", join.y.at, at("a")},
		{"x without a norm", out.x, at("a")},
		{"add", out.add, at("x")},
		{"up", gate.parts[1].weight, at("wu")},
		{"gated", gate.parts[0].to, at("g")},
	} {
		if test.got != test.want {
			t.Errorf("%s: %#x, want %#x", test.name, test.got, test.want)
		}
	}
	if turned.past != 7 || turned.positions != 600 || turned.dim != 16 || len(turned.found.inverse) != 8 || attend.spans != 2 || attend.scale != 0.25 {
		t.Errorf("%+v, %+v", turned, attend)
	}
	if size := unsafe.Offsetof(turned.found); size != operationBytes {
		t.Errorf("an operation has %d bytes, the kernel's %d", size, operationBytes)
	}
}

// TestDivide: many sequences leave a sequence's positions in one block.
func TestDivide(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ rows, kv, positions, span, spans int64 }{
		{1, 8, 256, 512, 1}, {1, 8, 4096, 512, 8}, {16, 8, 640, 1024, 1}, {16, 8, 4096, 4096, 1}, {16, 2, 640, 512, 2}, {16, 2, 4096, 1024, 4}, {5, 8, 640, 512, 2},
	} {
		op := &operation{kind: attendKind, rows: test.rows, heads: 4 * test.kv, kv: test.kv, positions: test.positions, span: 512}
		op.divide()
		if op.span != test.span || op.spans != test.spans {
			t.Errorf("%+v: %d spans of %d", test, op.spans, op.span)
		}
	}
}
