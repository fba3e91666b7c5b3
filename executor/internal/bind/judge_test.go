package bind

import (
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/modelgraph"
)

// bindingOf is the binder of an instruction that accesses two buffers of 192
// bytes in a mode. Its unit has one tensor, of 128 bytes behind 64 others.
func bindingOf(mode program.Mode) *binder {
	prog := &program.Program{Buffers: []program.Buffer{{Name: "a", Offset: 1024, Bytes: 192}, {Name: "b", Offset: 2048, Bytes: 192}}}
	bound := &Bound{Program: prog, Workload: &costmodel.Workload{MicroBatches: 1}}
	accesses := []program.Access{{Buffer: 0, Mode: mode}, {Buffer: 1, Mode: mode}}
	frame := &frame{Bound: bound, instr: new(program.Instr), accesses: accesses}
	code := &recipe.Code{Tensors: []recipe.Tensor{{Name: "x", Class: savedClass, DType: modelgraph.F32, Rows: 4, Columns: 8, Offset: 64, Tie: -1}}}
	return &binder{frame, &Run{Offsets: []int64{-1}, parts: 1, code: code}, sites{savedClass: {buffer: 0}}, []int32{0}}
}

// TestModes: an instruction only does to a buffer what its access allows, and an
// update reads as well as it writes.
func TestModes(t *testing.T) {
	t.Parallel()
	const written, overwritten = "and the instruction only reads a", "is read before it is written, and the instruction overwrites a"
	for _, test := range []struct {
		access program.Mode
		mode   byte
		want   string
	}{
		{program.Read, reads, ""},
		{program.Read, writes, written},
		{program.Read, updates, written},
		{program.Read, gathers, written},
		{program.Write, reads, overwritten},
		{program.Write, writes, ""},
		{program.Write, updates, overwritten},
		{program.Write, gathers, ""},
		{program.Accumulate, reads, ""},
		{program.Accumulate, writes, ""},
		{program.Accumulate, updates, ""},
	} {
		err := bindingOf(test.access).operand(&recipe.Operand{Mode: test.mode})
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.HasSuffix(err.Error(), test.want)) {
			t.Errorf("access %v, operand %q: error %v, want %q", test.access, test.mode, err, test.want)
		}
	}
	binder := bindingOf(program.Write)
	kernel := &recipe.Kernel{Operands: []recipe.Operand{{Mode: writes}}}
	if err := binder.operand(&kernel.Operands[0]); err != nil {
		t.Fatal(err)
	}
	binder.written(kernel)
	if err := binder.operand(&recipe.Operand{Mode: updates}); err != nil {
		t.Errorf("an update of what the instruction has written: %v", err)
	}
}

// TestBounds: a tensor fills its buffer to the last byte, and not a byte more.
func TestBounds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		bytes, shift int64
		want         string
	}{
		{192, 0, ""},
		{191, 0, `saved "x" takes bytes 64 to 192 of a, which has 191`},
		{192, 1, `saved "x" takes bytes 65 to 193 of a, which has 192`},
		{192, -64, ""},
		{192, -65, `saved "x" takes bytes -1 to 127 of a, which has 192`},
		{0, 0, `saved "x" takes bytes 64 to 192 of a, which has 0`},
	} {
		binder := bindingOf(program.Accumulate)
		binder.Program.Buffers[0].Bytes = test.bytes
		binder.sites[savedClass] = site{buffer: 0, shift: test.shift}
		err := binder.operand(new(recipe.Operand))
		if test.want == "" && err != nil || test.want != "" && (err == nil || err.Error() != test.want) {
			t.Errorf("%d bytes, shift %d: error %v, want %q", test.bytes, test.shift, err, test.want)
		}
		if err == nil && binder.run.Offsets[0] != 1088+test.shift {
			t.Errorf("%d bytes, shift %d: the tensor is at %d", test.bytes, test.shift, binder.run.Offsets[0])
		}
	}
}

// TestCopiedSizes: buffers are copied whole, so that both are equally large.
func TestCopiedSizes(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[int64]string{
		192: "", 191: "a has 192 bytes, and b, into which it is copied, 191", 193: "a has 192 bytes, and b, into which it is copied, 193",
	} {
		frame := bindingOf(program.Write).frame
		frame.Program.Buffers[1].Bytes = bytes
		copied, err := frame.copied(0, 1)
		if want == "" && (err != nil || copied != Copy{From: 1024, To: 2048, Bytes: 192}) || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%d bytes: %+v, error %v, want %q", bytes, copied, err, want)
		}
	}
}
