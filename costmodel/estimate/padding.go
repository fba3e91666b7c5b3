package estimate

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// padding is what PyTorch's allocator adds to a layer's parameters.
func (e *estimator) padding(l *modelgraph.Layer) int64 {
	if l.Declared != nil && l.Declared.ParamsBytes >= 0 {
		return 0
	}
	_, n := e.adapterParams(l)
	for i := range l.Params {
		t := &l.Params[i]
		if t.Tied() {
			continue
		}
		if parts := e.quantised(t); parts != nil {
			for _, size := range parts {
				n += rounding(size)
			}
			continue
		}
		n += rounding(e.stored(t))
	}
	return n
}

// rounding is the allocator's; parameters pay it always.
func rounding(size int64) int64 { return costmodel.Rounding(size) }
