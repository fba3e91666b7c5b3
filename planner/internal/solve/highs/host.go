package highs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero/api"
)

var errThrown = errors.New("HiGHS threw a C++ exception")

// badDescriptor is WASI's EBADF: HiGHS is given no files.
const badDescriptor = 8

// clock counts from a start of its own; HiGHS takes differences only.
var clock = time.Now()

// host makes the one module that HiGHS imports: a clock, memory that grows,
// ends by exception or exit, and files that are not there.
func (e *engine) host(ctx context.Context) error {
	functions := map[string]api.GoModuleFunc{
		"___cxa_throw": func(context.Context, api.Module, []uint64) { panic(errThrown) },
		"__abort_js":   func(context.Context, api.Module, []uint64) { panic(errors.New("HiGHS aborted")) },
		"_exit": func(_ context.Context, _ api.Module, stack []uint64) {
			panic(fmt.Errorf("HiGHS left with %d", stack[0]))
		},
		"_proc_exit": func(_ context.Context, _ api.Module, stack []uint64) {
			panic(fmt.Errorf("HiGHS left with %d", stack[0]))
		},
		"_emscripten_resize_heap": growHeap,
		"_clock_time_get":         clockTime,
		"_emscripten_date_now":    milliseconds,
		"_emscripten_get_now":     milliseconds,
		"_fd_write":               discard,
		"_environ_sizes_get":      noEnvironment,
		"_environ_get":            returns(0),
		"_fd_close":               returns(badDescriptor),
		"_fd_read":                returns(badDescriptor),
		"_fd_seek":                returns(badDescriptor),
		"___syscall_fcntl64":      returns(^uint64(badDescriptor - 1)),
		"___syscall_ioctl":        returns(^uint64(badDescriptor - 1)),
		"___syscall_openat":       returns(^uint64(badDescriptor - 1)),
		"__setitimer_js":          returns(0),
		"__tzset_js":              nothing,

		"__emscripten_runtime_keepalive_clear": nothing,
	}
	builder := e.runtime.NewHostModuleBuilder("a")
	for _, def := range e.module.ImportedFunctions() {
		_, short, _ := def.Import()
		goModuleFunc := functions[e.names.Imports[short]]
		if goModuleFunc == nil {
			return fmt.Errorf("HiGHS imports %q (%q), which nothing provides", short, e.names.Imports[short])
		}
		builder.NewFunctionBuilder().WithGoModuleFunction(goModuleFunc, def.ParamTypes(), def.ResultTypes()).Export(short)
	}
	if _, err := builder.Instantiate(ctx); err != nil {
		return fmt.Errorf("making what HiGHS imports: %w", err)
	}
	return nil
}

func nothing(context.Context, api.Module, []uint64) {}

func returns(code uint64) api.GoModuleFunc {
	return func(_ context.Context, _ api.Module, stack []uint64) { stack[0] = api.EncodeU32(uint32(code)) }
}

// growHeap makes the memory at least stack[0] bytes, and a fifth larger so that it is
// seldom asked.
func growHeap(_ context.Context, module api.Module, stack []uint64) {
	const page = 64 << 10
	want := uint64(api.DecodeU32(stack[0]))
	have := uint64(module.Memory().Size())
	stack[0] = 0
	for _, size := range []uint64{max(want, min(have+have/5, want+96<<20)), want} {
		if size <= have {
			stack[0] = 1
			return
		}
		if _, ok := module.Memory().Grow(uint32((size - have + page - 1) / page)); ok {
			stack[0] = 1
			return
		}
	}
}

func clockTime(_ context.Context, module api.Module, stack []uint64) {
	module.Memory().WriteUint64Le(api.DecodeU32(stack[2]), uint64(time.Since(clock)))
	stack[0] = 0
}

func milliseconds(_ context.Context, _ api.Module, stack []uint64) {
	stack[0] = api.EncodeF64(time.Since(clock).Seconds() * 1e3)
}

// discard says that all was written: the lengths of the vectors at stack[1].
func discard(_ context.Context, module api.Module, stack []uint64) {
	total := uint32(0)
	for i := range api.DecodeU32(stack[2]) {
		n, _ := module.Memory().ReadUint32Le(api.DecodeU32(stack[1]) + 8*i + 4)
		total += n
	}
	module.Memory().WriteUint32Le(api.DecodeU32(stack[3]), total)
	stack[0] = 0
}

func noEnvironment(_ context.Context, module api.Module, stack []uint64) {
	module.Memory().WriteUint32Le(api.DecodeU32(stack[0]), 0)
	module.Memory().WriteUint32Le(api.DecodeU32(stack[1]), 0)
	stack[0] = 0
}
