package estimate

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// gradient is what a layer's backward makes: first gradients, and second ones
// for parameters that a later layer gave one already. waits are those that
// wait, in the engine's buffer before AccumulateGrad, for a tied parameter's
// other gradients: negative where the last of these comes and they go.
type gradient struct{ first, second, waits int64 }

// gradients shares out the gradient of each parameter: a tied one is made
// first by the layer that runs last.
func (e *estimator) gradients() []gradient {
	g, w := e.g, &e.w
	out := make([]gradient, len(g.Layers))
	if w.Mode != costmodel.Train {
		return out
	}
	if e.frozen() {
		e.adapterGradients(out)
		return out
	}
	last := make(map[string]int)   // owner → the layer that uses it last
	lowest := make(map[string]int) // and first
	each := func(f func(i int, owner string, size int64)) {
		for i := range g.Layers {
			if n, _ := w.Tokens(g.Layers[i].Stream); n == 0 {
				continue
			}
			l := &g.Layers[i]
			if l.Declared != nil && l.Declared.ParamsBytes >= 0 {
				out[i].first = l.Declared.ParamsBytes
				continue
			}
			for j := range l.Params {
				t := &l.Params[j]
				owner := t.Owner
				if owner == "" {
					owner = modelgraph.FullName(l.Name, t.Name)
				}
				if t.DType.Float() {
					f(i, owner, t.Numel()*e.compute.WeightBytes())
				}
			}
		}
	}
	each(func(i int, owner string, _ int64) {
		if _, ok := lowest[owner]; !ok {
			lowest[owner] = i
		}
		last[owner] = max(last[owner], i)
	})
	each(func(i int, owner string, size int64) {
		if last[owner] == i {
			out[i].first += size
		} else {
			out[i].second += size
		}
		if last[owner] != lowest[owner] {
			switch i {
			case last[owner]:
				out[i].waits += size
			case lowest[owner]:
				out[i].waits -= size
			}
		}
	})
	return out
}

// adapterGradients are those of a frozen model: its adapters' alone.
func (e *estimator) adapterGradients(out []gradient) {
	for i := range e.g.Layers {
		if e.runs(i) {
			size, _ := e.adapterParams(&e.g.Layers[i])
			out[i].first = size / e.adapterBytes() * e.adapterCompute()
		}
	}
}
