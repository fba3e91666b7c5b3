package highs

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// instance is one run of the module. The first error stays and makes the rest
// do nothing, so that a sequence of calls is checked once.
type instance struct {
	engine *engine
	module api.Module
	highs  uint32 // the solver, a pointer in the instance's memory
	err    error
}

func (e *engine) instance(ctx context.Context) (*instance, error) {
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	module, err := e.runtime.InstantiateModule(ctx, e.module, config)
	if err != nil {
		return nil, fmt.Errorf("starting HiGHS: %w", err)
	}
	in := &instance{engine: e, module: module}
	in.call(ctx, "__wasm_call_ctors") // C++ constructors of globals
	in.highs = uint32(in.call(ctx, "Highs_create"))
	return in, in.err
}

func (in *instance) close(ctx context.Context) { _ = in.module.Close(ctx) }

func (in *instance) fail(what string, err error) {
	if in.err == nil {
		in.err = fmt.Errorf("calling %s of HiGHS: %w", what, err)
	}
}

// call runs an exported C function by its long name.
func (in *instance) call(ctx context.Context, name string, args ...uint64) uint64 {
	if in.err != nil {
		return 0
	}
	function := in.module.ExportedFunction(in.engine.names.Exports[name])
	if function == nil {
		in.fail(name, fmt.Errorf("the module does not export it"))
		return 0
	}
	results, err := function.Call(ctx, args...)
	if err != nil {
		in.fail(name, err)
		return 0
	}
	if len(results) == 0 {
		return 0
	}
	return results[0]
}

// must calls a function of the solver that returns kHighsStatus: −1 is a fault,
// 1 a warning.
func (in *instance) must(ctx context.Context, name string, args ...uint64) {
	status := in.call(ctx, name, append([]uint64{uint64(in.highs)}, args...)...)
	if in.err == nil && api.DecodeI32(status) < 0 {
		in.fail(name, fmt.Errorf("it returned %d", api.DecodeI32(status)))
	}
}

// put copies bytes into the instance's memory; the instance ends before they
// need to be freed.
func (in *instance) put(ctx context.Context, data []byte) uint64 {
	at := in.call(ctx, "malloc", uint64(max(len(data), 8)))
	if in.err != nil {
		return 0
	}
	if at == 0 || !in.module.Memory().Write(uint32(at), data) {
		in.fail("malloc", fmt.Errorf("there is no room for %d bytes", len(data)))
	}
	return at
}

func (in *instance) text(ctx context.Context, text string) uint64 {
	return in.put(ctx, append([]byte(text), 0))
}

func (in *instance) doubles(ctx context.Context, xs []float64) uint64 {
	data := make([]byte, 0, 8*len(xs))
	for _, x := range xs {
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(x))
	}
	return in.put(ctx, data)
}

func (in *instance) ints(ctx context.Context, xs []int32) uint64 {
	data := make([]byte, 0, 4*len(xs))
	for _, x := range xs {
		data = binary.LittleEndian.AppendUint32(data, uint32(x))
	}
	return in.put(ctx, data)
}

// readDoubles copies count numbers out of the instance's memory.
func (in *instance) readDoubles(at uint64, count int) []float64 {
	if in.err != nil {
		return nil
	}
	data, ok := in.module.Memory().Read(uint32(at), uint32(8*count))
	if !ok {
		in.fail("memory", fmt.Errorf("%d numbers at %d lie outside it", count, at))
		return nil
	}
	xs := make([]float64, count)
	for i := range xs {
		xs[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
	}
	return xs
}
