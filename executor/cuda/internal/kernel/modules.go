//go:build cuda && linux && cgo && amd64

package kernel

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/source"
)

// runtimePTX has the kernels of the runtime itself, for all but copies and fills.
//
//go:embed runtime.ptx
var runtimePTX string

// modules are the modules of a context by name, which the threads of all devices of the GPU share.
// Each is loaded on first use: the driver compiles PTX, which takes a second for the larger ones,
// and no program needs all of them.
type modules struct {
	lock   sync.Mutex
	loaded map[string]*driver.Module
	// threads is how many threads have kernels. taken is how many bytes of the table of fused
	// operations are in use.
	threads int
	taken   int64
}

// get returns a module. On first use it calls image and loads the module. The context must be
// bound.
func (modules *modules) get(name string, image func() (string, error)) (*driver.Module, error) {
	modules.lock.Lock()
	defer modules.lock.Unlock()
	if found := modules.loaded[name]; found != nil {
		return found, nil
	}
	text, err := image()
	if err != nil {
		return nil, err
	}
	module, err := driver.LoadModule(text)
	if err != nil {
		return nil, fmt.Errorf("module %s: %w", name, err)
	}
	modules.loaded[name] = module
	return module, nil
}

// unload unloads all modules.
func (modules *modules) unload() error {
	modules.lock.Lock()
	defer modules.lock.Unlock()
	var all []error
	for _, module := range modules.loaded {
		all = append(all, module.Unload())
	}
	clear(modules.loaded)
	return errors.Join(all...)
}

// images are the PTX of package source and of the runtime: texts by module, holder the module of
// each entry.
type images struct{ texts, holder map[string]string }

// ours reads the images once in a process.
var ours = sync.OnceValues(func() (images, error) {
	texts, err := source.Modules()
	if err != nil {
		return images{}, err
	}
	texts["runtime"] = runtimePTX
	found := images{texts, make(map[string]string)}
	for module, text := range texts {
		for {
			_, rest, more := strings.Cut(text, ".entry ")
			if !more {
				break
			}
			name, behind, _ := strings.Cut(rest, "(")
			found.holder[name], text = module, behind
		}
	}
	return found, nil
})
