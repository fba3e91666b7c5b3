package serving

import (
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/gguf"
)

// maxBlocks is llama.cpp's own limit (llama-hparams.h: LLAMA_MAX_LAYERS).
const maxBlocks = 1024

// expertParts are in the names of tensors that hold all experts of a block (llama.cpp:
// LLM_FFN_EXPS_REGEX of common/common.h).
var expertParts = []string{"_exps", "_chexps"}

// Architectures by their memory (llama-arch.cpp: llm_arch_is_recurrent and llm_arch_is_hybrid).
var (
	recurrent = []string{"mamba", "mamba2", "rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7"}
	// hybrid blocks without keys are recurrent.
	hybrid = []string{"jamba", "plamo2", "granitehybrid", "lfm2", "lfm2moe", "kimi-linear", "bailingmoe3"}
	// every interval-th block has attention, and the others are recurrent.
	intervals = []string{"qwen3next", "qwen35", "qwen35moe"}
	// refused have caches of other forms.
	refused = []string{"deepseek32", "deepseek4", "dflash", "dots3note", "glm-dsa", "glm5-next", "hy-v4", "kimi-k3", "minimax-01", "qwen4exp", "nanbeige", "t5", "t5encoder", "clip"}
)

// judged architectures are those of fixtures/oracle/llamacpp.py.
var judged = []string{
	"command-r", "deci", "ernie4_5", "gemma", "gemma2", "gemma3", "gpt-oss", "granite", "hunyuan-dense", "internlm2", "llama", "minicpm", "mistral3",
	"phi3", "qwen2", "qwen2moe", "qwen2vl", "qwen3", "qwen3moe", "qwen3vl", "smollm3", "xverse",
}

// unscaled architectures do not divide the weights of experts by their sum (norm_w of build_moe_ffn).
var unscaled = []string{"gpt-oss", "qwen2moe"}

// FromGGUF returns what llama.cpp's memory depends on. The error for a file without the keys that it
// takes, or with a cache that is not counted here, is a [*modelgraph.SyntaxError].
func FromGGUF(file *gguf.File) (*Model, error) {
	fault := func(key, format string, args ...any) error {
		return &modelgraph.SyntaxError{File: file.Path, Place: key, Msg: fmt.Sprintf(format, args...)}
	}
	arch := file.Architecture
	if slices.Contains(refused, arch) || file.Has("attention.indexer.head_count") {
		return nil, fault("general.architecture", "%q: its cache is not counted here", arch)
	}
	count := file.Number("block_count", 0)
	if count <= 0 || count > maxBlocks {
		return nil, fault(arch+".block_count", "%d is not a number of blocks from 1 to %d", count, maxBlocks)
	}
	model := &Model{
		Architecture: arch, Judged: slices.Contains(judged, arch), Blocks: make([]Block, count), positions: 1,
		Width: file.Number("embedding_length", 0), Trained: file.Number("context_length", 0),
		Experts: file.Number("expert_count", 0), ExpertsUsed: most(file.Numbers("expert_used_count", count)),
		Heads:      most(file.Numbers("attention.head_count", count)),
		Vocabulary: file.Number("vocab_size", file.Items("tokenizer.ggml.tokens")),
	}
	if model.Width <= 0 {
		return nil, fault(arch+".embedding_length", "it is missing")
	}
	if model.Vocabulary == 0 {
		model.Vocabulary = rowCount(file, "token_embd.weight")
	}
	if sections := file.Numbers("rope.dimension_sections", 2); len(sections) == 2 && sections[0] > 0 && sections[1] > 0 {
		const axes = 4 // llama-hparams.cpp, n_pos_per_embd
		model.positions = axes
	}
	model.scaled = strings.HasPrefix(arch, "gemma") || arch == "minicpm" || file.Has("embedding_scale")
	model.weigh(file)
	if err := model.caches(file, fault); err != nil {
		return nil, err
	}
	if err := model.agree(file, fault); err != nil {
		return nil, err
	}
	model.shape(file)
	model.period = model.repeats()
	return model, nil
}

func most(numbers []int64) int64 {
	if len(numbers) == 0 {
		return 0
	}
	return slices.Max(numbers)
}

// weigh adds up the bytes of tensors by their place.
func (model *Model) weigh(file *gguf.File) {
	own, table, tablePadding := false, int64(0), int64(0)
	for i := range file.Tensors {
		const alignment = 32 // of each tensor
		tensor := &file.Tensors[i]
		size := padded(tensor.Bytes, alignment)
		padding := onCUDA(tensor) - size
		switch number := gguf.Block(tensor.Name); {
		case number >= 0 && number < int64(len(model.Blocks)):
			block := &model.Blocks[number]
			block.Bytes, block.padding = block.Bytes+size, block.padding+padding
			if slices.ContainsFunc(expertParts, func(part string) bool { return strings.Contains(tensor.Name, part) }) {
				block.Expert, block.expertPadding = block.Expert+size, block.expertPadding+padding
				block.Largest = max(block.Largest, size)
			}
		case gguf.Input(tensor.Name):
			model.Input += size
			if tensor.Name == "token_embd.weight" {
				table, tablePadding = size, padding
			}
		default:
			model.Output, model.padding = model.Output+size, model.padding+padding
			own = own || tensor.Name == "output.weight"
		}
	}
	if !own {
		model.Output, model.padding = model.Output+table, model.padding+tablePadding
	}
}

// onCUDA is the size of a tensor in CUDA's memory. The last row of a quantised one is filled up to 512
// elements (ggml-cuda.cu, ggml_backend_cuda_buffer_type_get_alloc_size).
func onCUDA(tensor *modelgraph.Tensor) int64 {
	const row, alignment = 512, 128
	size := tensor.Bytes
	if last := len(tensor.Shape) - 1; last >= 0 && tensor.DType.Bits() == 0 && tensor.Shape[last]%row != 0 {
		if rest, err := modelgraph.NewTensor("", tensor.DType, row-tensor.Shape[last]%row); err == nil {
			size += rest.Bytes
		}
	}
	return padded(size, alignment)
}

// caches fills in what each block keeps of a token and of a sequence.
func (model *Model) caches(file *gguf.File, fault func(key, format string, args ...any) error) error {
	count := int64(len(model.Blocks))
	heads := file.Numbers("attention.head_count", count)
	keyed := file.Numbers("attention.head_count_kv", count)
	if keyed == nil {
		keyed = heads
	}
	if heads == nil && !slices.Contains(recurrent, model.Architecture) {
		return fault(model.Architecture+".attention.head_count", "it is missing, or has numbers for fewer than %d blocks", count)
	}
	slides, tokens := sliding(file, count)
	recur, state := model.recurs(file, keyed), recurrentState(file, model)
	key, value := model.headWidths(file, heads, "")
	slidingKey, slidingValue := model.headWidths(file, heads, "_swa")
	model.Window, model.Latent = tokens, file.Number("attention.key_length_mla", 0) > 0
	cached := model.loaded(file)
	for i := range model.Blocks {
		block := &model.Blocks[i]
		keys, values := key, value
		if block.Sliding = slides[i]; block.Sliding {
			keys, values = slidingKey, slidingValue
		}
		if block.head = keys; recur[i] {
			block.State = state
		}
		if (recur[i] && model.Architecture != "falcon-h1") || int64(i) >= cached || keyed == nil {
			continue
		}
		block.Key, block.Value = keyed[i]*keys, keyed[i]*values
		if model.Latent { // llama-kv-cache.cpp: keys alone, of one head
			block.Value = 0
		}
	}
	model.widths(file, heads)
	return nil
}

// loaded drops the weights of a draft's blocks, which are not loaded (TENSOR_SKIP), and returns how
// many blocks have a cache of their own.
func (model *Model) loaded(file *gguf.File) int64 {
	count := int64(len(model.Blocks))
	loaded := count - file.Number("nextn_predict_layers", 0)
	for i := max(0, loaded); i < count; i++ {
		model.Blocks[i].Bytes, model.Blocks[i].Expert, model.Blocks[i].Largest = 0, 0, 0
	}
	if model.Architecture == "gemma3n" {
		const own = 20 // gemma3n.cpp: n_layer_kv_from_start
		return min(loaded, own)
	}
	return min(loaded, count-file.Number("attention.shared_kv_layers", 0))
}

// widths fills in the widths of each block's values.
func (model *Model) widths(file *gguf.File, heads []int64) {
	count := int64(len(model.Blocks))
	feeds, experts := file.Numbers("feed_forward_length", count), file.Numbers("expert_feed_forward_length", count)
	at := func(numbers []int64, i int, absent int64) int64 {
		if i < len(numbers) {
			return numbers[i]
		}
		return absent
	}
	for i := range model.Blocks {
		block := &model.Blocks[i]
		block.Heads, block.FeedForward = at(heads, i, 0), at(feeds, i, 0)
		block.ExpertWidth = at(experts, i, block.FeedForward)
	}
}

// headWidths are the widths of a head's keys and values (llama-model.cpp, load_hparams).
func (model *Model) headWidths(file *gguf.File, heads []int64, kind string) (key, value int64) {
	usual := int64(0)
	if len(heads) > 0 && heads[0] > 0 {
		usual = model.Width / heads[0]
	}
	key, value = file.Number("attention.key_length", usual), file.Number("attention.value_length", usual)
	if kind == "" {
		return key, value
	}
	return file.Number("attention.key_length"+kind, key), file.Number("attention.value_length"+kind, value)
}

// recurs lists the recurrent blocks.
func (model *Model) recurs(file *gguf.File, keyed []int64) []bool {
	recur := make([]bool, len(model.Blocks))
	const usualInterval = 4
	interval := max(1, file.Number("full_attention_interval", usualInterval))
	feeds := file.Numbers("feed_forward_length", int64(len(recur)))
	for i := range recur {
		switch arch := model.Architecture; {
		case slices.Contains(recurrent, arch), arch == "falcon-h1":
			recur[i] = true
		case slices.Contains(hybrid, arch):
			recur[i] = len(keyed) > i && keyed[i] == 0
		case arch == "nemotron_h", arch == "nemotron_h_moe":
			recur[i] = len(keyed) > i && keyed[i] == 0 && len(feeds) > i && feeds[i] == 0
		case slices.Contains(intervals, arch):
			recur[i] = (int64(i)+1)%interval != 0
		}
	}
	return recur
}

// recurrentState is the bytes of a block's state of one sequence, in fp32 (llama-hparams.cpp,
// n_embd_r and n_embd_s).
func recurrentState(file *gguf.File, model *Model) int64 {
	const fp32 = 4
	number := func(key string) int64 { return file.Number(key, 0) }
	conv := number("ssm.conv_kernel")
	switch width := number("wkv.head_size"); {
	case width > 0:
		return fp32 * model.Width * (file.Number("token_shift_count", 2) + width)
	case number("shortconv.l_cache") > 0:
		return fp32 * model.Width * (number("shortconv.l_cache") - 1)
	case number("kda.head_dim") > 0:
		const usualConv = 4
		if conv == 0 {
			conv = usualConv
		}
		head := number("kda.head_dim")
		return fp32 * (3*(conv-1)*model.Heads*head + head*head*model.Heads)
	}
	inner, state := number("ssm.inner_size"), number("ssm.state_size")
	return fp32 * (max(0, conv-1)*(inner+2*number("ssm.group_count")*state) + state*inner)
}
