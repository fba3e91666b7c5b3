package modelgraph

import (
	"fmt"
	"strings"
)

// New checks the layers and returns their graph. Layers stand in module
// order. ties lists, per shared parameter, the full names that share it; the
// first owns it. Faults are [*SyntaxError] or [*CycleError].
func New(name string, layers []Layer, ties [][]string) (*Graph, error) {
	g := &Graph{Name: name, Layers: layers}
	steps := []func() error{g.index, g.measure, g.link, g.group, func() error { return g.tie(ties) }, g.order}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return g, nil
}

func (g *Graph) index() error {
	if len(g.Layers) == 0 {
		return placeError("layers", "the model has no layers")
	}
	g.layerIndex = make(map[string]int, len(g.Layers))
	for i := range g.Layers {
		l := &g.Layers[i]
		if l.Name == "" {
			return placeError(fmt.Sprintf("layers[%d].name", i), "a layer needs a name")
		}
		if strings.HasPrefix(l.Name, ".") || strings.HasSuffix(l.Name, ".") || strings.Contains(l.Name, "..") {
			return placeError(fmt.Sprintf("layers[%d].name", i), "%q is not a module path: it has an empty part", l.Name)
		}
		if j, ok := g.layerIndex[l.Name]; ok {
			return placeError(fmt.Sprintf("layers[%d].name", i), "%q is also the name of layers[%d]", l.Name, j)
		}
		g.layerIndex[l.Name] = i
	}
	return nil
}

// measure sizes every tensor and bounds the sum.
func (g *Graph) measure() error {
	var total int64
	for i := range g.Layers {
		l := &g.Layers[i]
		if l.Op == nil {
			l.Op = Opaque{}
		}
		if err := checkOp(l.Op); err != nil {
			return placeError(fmt.Sprintf("layers[%d].op", i), "%v", err)
		}
		for _, list := range []struct {
			kind string
			of   []Tensor
		}{{"params", l.Params}, {"buffers", l.Buffers}} {
			for j := range list.of {
				t := &list.of[j]
				if err := t.measure(); err != nil {
					return placeError(fmt.Sprintf("layers[%d].%s[%d]", i, list.kind, j), "%v", err)
				}
				if total += t.Bytes(); total > maxBytes {
					return tooLarge(i, l)
				}
			}
		}
		if err := checkDeclared(l.Declared); err != nil {
			return placeError(fmt.Sprintf("layers[%d].declared", i), "%v", err)
		}
		if err := l.checkWeights(); err != nil {
			return placeError(fmt.Sprintf("layers[%d]", i), "%v", err)
		}
		if d := l.Declared; d != nil {
			total += max(0, d.ParamsBytes) + max(0, d.ActivationBytes) + max(0, d.WorkspaceBytes) + max(0, d.OutputBytes)
		}
		if total > maxBytes {
			return tooLarge(i, l)
		}
	}
	return nil
}

func tooLarge(i int, l *Layer) error {
	return placeError(fmt.Sprintf("layers[%d]", i), "the layers up to %q add up to more than 2^56 bytes", l.Name)
}

func checkDeclared(d *Declared) error {
	if d == nil {
		return nil
	}
	for _, v := range []int64{d.ParamsBytes, d.ActivationBytes, d.WorkspaceBytes, d.OutputBytes} {
		if v > maxBytes {
			return fmt.Errorf("%d is more than 2^56 bytes", v)
		}
	}
	for _, s := range []float64{d.ForwardSeconds, d.BackwardSeconds} {
		if s != s || s > 1e9 {
			return fmt.Errorf("%v is not a time in seconds", s)
		}
	}
	return nil
}

// link resolves the names in Inputs.
func (g *Graph) link() error {
	for i := range g.Layers {
		l := &g.Layers[i]
		if l.Inputs == nil && i > 0 {
			l.inputs = []int{i - 1}
			continue
		}
		l.inputs = make([]int, len(l.Inputs))
		for j, name := range l.Inputs {
			k, ok := g.layerIndex[name]
			if !ok {
				return placeError(fmt.Sprintf("layers[%d].inputs[%d]", i, j), "unknown layer %q", name)
			}
			l.inputs[j] = k
		}
	}
	return nil
}

// names finds the parameters by full name, and refuses a name that two tensors
// have.
func (g *Graph) names() (params map[string]*Tensor, layerOf map[string]int, err error) {
	params, layerOf = make(map[string]*Tensor), make(map[string]int)
	for i := range g.Layers {
		l := &g.Layers[i]
		add := func(kind string, j int, t *Tensor) error {
			full := FullName(l.Name, t.Name)
			if k, ok := layerOf[full]; ok {
				return placeError(fmt.Sprintf("layers[%d].%s[%d].name", i, kind, j), "%q is already a tensor of layers[%d]", full, k)
			}
			layerOf[full] = i
			return nil
		}
		for j := range l.Params {
			if err := add("params", j, &l.Params[j]); err != nil {
				return nil, nil, err
			}
			params[FullName(l.Name, l.Params[j].Name)] = &l.Params[j]
		}
		for j := range l.Buffers {
			if err := add("buffers", j, &l.Buffers[j]); err != nil {
				return nil, nil, err
			}
		}
	}
	return params, layerOf, nil
}

// tie marks shared tensors and joins their units.
func (g *Graph) tie(ties [][]string) error {
	byName, layerOf, err := g.names()
	if err != nil {
		return err
	}
	owns := make(map[string]bool) // of a group before
	for t, names := range ties {
		if len(names) < 2 {
			return placeError(fmt.Sprintf("ties[%d]", t), "a tie needs two names or more, it has %d", len(names))
		}
		group := TieGroup{Tensors: names}
		for j, name := range names {
			p, ok := byName[name]
			place := fmt.Sprintf("ties[%d][%d]", t, j)
			switch {
			case !ok:
				return placeError(place, "%q is not a parameter of the model", name)
			case p.Tied() || j > 0 && (name == names[0] || owns[name]):
				return placeError(place, "%q is tied twice", name)
			case p.numel != byName[names[0]].numel:
				return placeError(place, "%q has %d elements and %q has %d: they cannot share storage", name, p.numel, names[0], byName[names[0]].numel)
			}
			if j > 0 {
				p.Owner = names[0]
			}
			group.Units = append(group.Units, g.Layers[layerOf[name]].unit)
		}
		owns[names[0]] = true
		g.Ties = append(g.Ties, group)
	}
	g.joinTies()
	return nil
}
