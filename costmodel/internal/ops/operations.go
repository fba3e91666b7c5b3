package ops

import "github.com/devmap-dev/devmap/modelgraph"

// operationOf returns the implementation of an op.
func operationOf(op modelgraph.Op) operation {
	switch op := op.(type) {
	case modelgraph.Embedding:
		return embedding{Embedding: op}
	case modelgraph.Norm:
		return norm{Norm: op}
	case modelgraph.Attention:
		if op.KVRank > 0 {
			return latentAttention{attention{Attention: op}}
		}
		return attention{Attention: op}
	case modelgraph.MLP:
		return mlp{MLP: op}
	case modelgraph.MoE:
		return moe{MoE: op}
	case modelgraph.Head:
		return head{Head: op}
	case modelgraph.Linear:
		return linear{Linear: op}
	case modelgraph.Conv:
		return conv{Conv: op}
	case modelgraph.StateSpace:
		return stateSpace{StateSpace: op}
	case modelgraph.Rotary:
		return rotary{Rotary: op}
	case modelgraph.Parameter:
		return parameter{}
	}
	return unknown{}
}

// parameter is an op that costs only its bytes.
type parameter struct{ plain }

func (parameter) cost(*Shape) Cost { return Cost{Known: true} }
func (parameter) products() bool   { return false }

// unknown is an op with known tensors and no known behaviour.
type unknown struct{ plain }

func (unknown) cost(*Shape) Cost { return Cost{} }
