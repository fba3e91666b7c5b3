package paged

import (
	"fmt"
	"slices"
)

// DegreeError is a degree of tensor parallelism that the model does not take.
type DegreeError struct {
	Tensor int64
	What   string // what it does not divide
	Size   int64
	// Below and Above are the nearest degrees that the model takes; 0: none.
	Below, Above int64
}

// Error implements error.
func (err *DegreeError) Error() string {
	text := fmt.Sprintf("tensor parallelism over %d GPUs: %d does not divide %s, of which there are %d", err.Tensor, err.Tensor, err.What, err.Size)
	switch {
	case err.Below > 0 && err.Above > 0:
		return fmt.Sprintf("%s; %d and %d do", text, err.Below, err.Above)
	case err.Below > 0:
		return fmt.Sprintf("%s; %d does", text, err.Below)
	}
	return text
}

// mostTensor bounds the search for a degree that the model takes.
const mostTensor = 1024

// Takes reports a degree of tensor parallelism that the model does not take, as a [*DegreeError].
func (model *Model) Takes(tensor int64) error {
	what, size := model.undivided(tensor)
	if what == "" {
		return nil
	}
	err := &DegreeError{Tensor: tensor, What: what, Size: size}
	for degree := tensor - 1; degree > 0 && err.Below == 0; degree-- {
		if what, _ := model.undivided(degree); what == "" {
			err.Below = degree
		}
	}
	for degree := tensor + 1; degree <= mostTensor && err.Above == 0; degree++ {
		if what, _ := model.undivided(degree); what == "" {
			err.Above = degree
		}
	}
	return err
}

// undivided is what a degree does not divide (config/model.py, verify_with_parallel_config;
// vocab_parallel_embedding.py; linear.py, divide).
func (model *Model) undivided(tensor int64) (what string, size int64) {
	switch {
	case model.Heads%tensor != 0:
		return "the heads", model.Heads
	case paddedRows(model.Vocabulary)%tensor != 0:
		return "the rows of the vocabulary", paddedRows(model.Vocabulary)
	case model.KeyHeads > 0 && model.KeyHeads%tensor != 0 && tensor%model.KeyHeads != 0:
		return "the heads of keys", model.KeyHeads
	}
	for i := range model.Layers {
		for _, width := range model.Layers[i].widths {
			if width%tensor != 0 {
				return fmt.Sprintf("a width of layer %d", i), width
			}
		}
	}
	return "", 0
}

// Admits reports degrees that the engine does not take for the model.
func (set *Settings) Admits(model *Model, degrees Degrees) error {
	if err := model.Takes(degrees.Tensor); err != nil {
		return err
	}
	if set.Engine == VLLM && model.Quantized == "bitsandbytes" && !set.Version.before(withoutBitsAndBytes) {
		return fmt.Errorf("vLLM %v does not read weights of bitsandbytes: take another checkpoint, or an older release", set.Version)
	}
	unstaged := vllmUnstaged
	if set.Engine == SGLang {
		unstaged = sglangUnstaged
	}
	if degrees.Pipeline > 1 && slices.Contains(unstaged, model.Class) {
		return fmt.Errorf("pp %d: the engine's %s has no pipeline parallelism", degrees.Pipeline, model.Class)
	}
	switch ranks := degrees.Tensor * degrees.Data; {
	case degrees.Experts == 0:
	case model.Experts == 0:
		return fmt.Errorf("ep %d: the model has no experts", degrees.Experts)
	case set.Engine == VLLM && degrees.Experts != ranks:
		return fmt.Errorf("ep %d: vLLM spreads experts over all ranks of tp and dp, here %d", degrees.Experts, ranks)
	case set.Engine == SGLang && degrees.Tensor%degrees.Experts != 0:
		return fmt.Errorf("ep %d: SGLang spreads experts over ranks of tp, here %d", degrees.Experts, degrees.Tensor)
	}
	return nil
}

// withoutBitsAndBytes is a release of vLLM that refuses them (layers/quantization/__init__.py).
var withoutBitsAndBytes = Version{0, 33}

// vllmUnstaged are classes of vLLM 0.33 without pipeline parallelism (models/interfaces.py, SupportsPP;
// fixtures/oracle/engines/vllm_architectures.jsonl.gz).
var vllmUnstaged = []string{
	"AriaForConditionalGeneration", "Gemma3nForCausalLM", "Gemma3nForConditionalGeneration", "Idefics3ForConditionalGeneration", "Mamba2ForCausalLM",
	"PaddleOCRVLForConditionalGeneration", "Phi4MMForCausalLM", "SmolVLMForConditionalGeneration", "Zamba2ForCausalLM",
}

// sglangUnstaged are classes of SGLang 0.5.23 whose forward takes nothing from an earlier stage
// (model_executor/model_runner.py, support_pp).
var sglangUnstaged = []string{
	"ChatGLMModel", "Cohere2ForCausalLM", "Cohere2VisionForConditionalGeneration", "CohereForCausalLM", "DbrxForCausalLM", "DeepseekForCausalLM", "Ernie4_5_MoeForCausalLM",
	"Ernie4_5_VLMoeForConditionalGeneration", "ExaoneForCausalLM", "FalconH1ForCausalLM", "FalconMambaForCausalLM", "GPT2LMHeadModel", "GPTBigCodeForCausalLM", "GPTJForCausalLM",
	"Gemma2ForCausalLM", "Gemma3ForCausalLM", "Gemma3ForConditionalGeneration", "Gemma3nForCausalLM", "Gemma3nForConditionalGeneration", "GemmaForCausalLM", "GraniteForCausalLM",
	"GraniteMoeForCausalLM", "HunYuanDenseV1ForCausalLM", "HunYuanMoEV1ForCausalLM", "InternLM2ForCausalLM", "InternVLChatModel", "Lfm2ForCausalLM", "Lfm2MoeForCausalLM",
	"Lfm2VlForConditionalGeneration", "Llama4ForConditionalGeneration", "LongcatFlashForCausalLM", "Mamba2ForCausalLM", "MambaForCausalLM", "MiMoForCausalLM", "MiniCPM3ForCausalLM",
	"MiniCPMForCausalLM", "Olmo2ForCausalLM", "OlmoForCausalLM", "OlmoeForCausalLM", "PaddleOCRVLForConditionalGeneration", "Phi4MMForCausalLM", "PhiForCausalLM", "PhiMoEForCausalLM",
	"Qwen2VLForConditionalGeneration", "Qwen3NextForCausalLM", "StableLmForCausalLM", "Starcoder2ForCausalLM", "XverseForCausalLM",
}

// vllmRemoved are classes that vLLM had before 0.33 (models/registry.py).
var vllmRemoved = []string{
	"BaichuanForCausalLM", "Dots1ForCausalLM", "InternLMForCausalLM", "MPTForCausalLM", "MiniMaxForCausalLM", "MiniMaxText01ForCausalLM", "MllamaForConditionalGeneration", "MptForCausalLM",
	"Phi4MultimodalForCausalLM", "XverseForCausalLM",
}

// sglangMissing are classes that SGLang 0.5.23 does not have (srt/models).
var sglangMissing = []string{
	"AriaForConditionalGeneration", "BloomForCausalLM", "CodeGenForCausalLM", "FalconForCausalLM", "GPTNeoForCausalLM", "GPTNeoXForCausalLM", "GlmForCausalLM", "Idefics3ForConditionalGeneration",
	"JambaForCausalLM", "LlavaNextForConditionalGeneration", "MptForCausalLM", "NemotronForCausalLM", "PaliGemmaForConditionalGeneration", "SmolVLMForConditionalGeneration", "Zamba2ForCausalLM",
}

// Missing reports that the engine has no class of its own for the model.
func (set *Settings) Missing(model *Model) bool {
	if set.Engine == SGLang {
		return slices.Contains(sglangMissing, model.Class)
	}
	return slices.Contains(vllmRemoved, model.Class) && !set.Version.before(secondRunner)
}
