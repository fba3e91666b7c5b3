package serving

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/gguf"
)

// known are the tensors that llama.cpp 0.5.0 loads for judged architectures (src/models/*.cpp), without
// the block and without what follows the last dot.
var known = strings.Fields(`attn_k attn_k_norm attn_norm attn_output attn_q attn_q_norm attn_qkv attn_rot_embd attn_sinks attn_v exp_probs_b
	ffn_down ffn_down_exps ffn_down_shexp ffn_gate ffn_gate_exps ffn_gate_inp ffn_gate_inp_shexp ffn_gate_shexp ffn_gate_up_exps ffn_norm ffn_up ffn_up_exps ffn_up_shexp
	post_attention_norm post_ffw_norm cls cls.output dense_2 dense_3 output output_norm rope_factors_long rope_factors_short rope_freqs token_embd`)

// stranger is the first tensor that llama.cpp does not know.
func stranger(file *gguf.File) string {
	for i := range file.Tensors {
		name := file.Tensors[i].Name
		part := name
		if gguf.Block(name) >= 0 {
			_, part, _ = strings.Cut(strings.TrimPrefix(name, "blk."), ".")
		}
		if dot := strings.LastIndexByte(part, '.'); dot >= 0 {
			part = part[:dot]
		}
		if !slices.Contains(known, part) {
			return name
		}
	}
	return ""
}

// agree compares the keys that memory is computed from with the tensors. llama.cpp does the same when
// it loads them (llama-model.cpp, create_tensor). Only judged architectures have known tensors.
func (model *Model) agree(file *gguf.File, fault func(key, format string, args ...any) error) error {
	if model.Judged {
		model.Unknown = stranger(file)
	}
	seen, table, err := model.parts(file, fault)
	switch {
	case err != nil || !model.Judged:
		return err
	case !table:
		return fault("token_embd.weight", "it is missing, or its rows have not %s.embedding_length (%d) numbers", model.Architecture, model.Width)
	}
	for number := range seen {
		block, parts := &model.Blocks[number], seen[number]
		switch {
		case block.Key > 0 && !parts["attn_k.weight"] && !parts["attn_qkv.weight"]:
			return fault(model.Architecture+".attention.head_count_kv", "block %d has no attn_k.weight", number)
		case block.FeedForward > 0 && !parts["ffn_up.weight"] && !parts["ffn_up_exps.weight"]:
			return fault(model.Architecture+".feed_forward_length", "block %d has no ffn_up.weight", number)
		}
	}
	return nil
}

// parts lists the tensors of each block, and reports a table of embeddings of the model's width.
func (model *Model) parts(file *gguf.File, fault func(key, format string, args ...any) error) (seen []map[string]bool, table bool, err error) {
	count := int64(len(model.Blocks))
	seen = make([]map[string]bool, count)
	for i := range file.Tensors {
		tensor := &file.Tensors[i]
		number := gguf.Block(tensor.Name)
		if number >= count {
			return nil, false, fault(tensor.Name, "%s.block_count is %d", model.Architecture, count)
		}
		if number < 0 {
			table = table || tensor.Name == "token_embd.weight" && len(tensor.Shape) == 2 && tensor.Shape[1] == model.Width
			continue
		}
		if seen[number] == nil {
			seen[number] = make(map[string]bool)
		}
		_, part, _ := strings.Cut(strings.TrimPrefix(tensor.Name, "blk."), ".")
		seen[number][part] = true
		if key, ok := model.Blocks[number].matches(part, tensor); model.Judged && !ok {
			return nil, false, fault(tensor.Name, "its shape %v contradicts %s.%s", tensor.Shape, model.Architecture, key)
		}
	}
	return seen, table, nil
}

// matches reports that a tensor of a block has the rows that the keys say, and which key says so.
func (block *Block) matches(part string, tensor *modelgraph.Tensor) (key string, ok bool) {
	if len(tensor.Shape) != 2 {
		return "", true
	}
	switch rows := tensor.Shape[0]; part {
	case "attn_k.weight":
		return "attention.head_count_kv", rows == block.Key
	case "attn_v.weight":
		return "attention.head_count_kv", rows == block.Value
	case "attn_q.weight":
		return "attention.head_count", rows == block.Heads*block.head
	case "attn_qkv.weight":
		return "attention.head_count", rows == block.Heads*block.head+block.Key+block.Value
	case "ffn_up.weight":
		return "feed_forward_length", rows == block.FeedForward || rows == 2*block.FeedForward
	}
	return "", true
}

// rowCount is the number of rows of a tensor, 1 of a vector; 0 if there is none.
func rowCount(file *gguf.File, name string) int64 {
	for i := range file.Tensors {
		switch tensor := &file.Tensors[i]; {
		case tensor.Name != name:
		case len(tensor.Shape) == 1:
			return 1
		case len(tensor.Shape) == 2:
			return tensor.Shape[0]
		}
	}
	return 0
}
