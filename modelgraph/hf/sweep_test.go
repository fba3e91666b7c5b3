package hf

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/spell"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
)

// sweepCase is a config and the result of Transformers 5.17 (fixtures/oracle/sweep.py).
type sweepCase struct {
	Case, Class, Digest string
	Params              int64
	Config              json.RawMessage
}

// drifted are types that Transformers 5.24 builds differently from 5.17, whose figures the file
// has. The table, of 5.24, equals that release's builds.
var drifted = map[string]bool{
	"aria": true, "dinov2_with_registers": true, "inkling_text": true, "qwen2_5_omni_thinker": true, "qwen3_omni_moe_thinker": true, "rf_detr_dinov2": true,
	"aria_text": true, "depth_anything": true, "depth_pro": true, "prompt_depth_anything": true, "qwen2_5_omni": true, "tipsv2": true, "tipsv2_dpt": true, "tipsv2_vision_model": true, "yolos": true,
}

// TestSweep: a config of every model type in Transformers is read as there, tensor for tensor, or
// refused. Families with readers refuse few. Families that the tables fill have separate random
// configs, since these may have more experts a token than there are (TestFamilies).
func TestSweep(t *testing.T) {
	var cases []sweepCase
	readGzip(t, "../../fixtures/oracle/sweep.json.gz", &cases)
	types, read, refused := map[string]bool{}, map[string]int{}, map[string]int{}
	for _, c := range cases {
		modelType, _, _ := strings.Cut(c.Case, "/")
		types[modelType] = true
		g, err := FromConfig("config.json", tiedByDefault(t, c.Config), "5.17")
		switch {
		case err != nil:
			refused[modelType]++
			checkRefusal(t, c.Case, err)
			continue
		case strings.HasSuffix(c.Case, "/unnamed") && g.Class != c.Class: // its own class, if none is named
			continue
		case drifted[modelType], c.Class == "Dinov2Backbone":
			continue
		case g.ParamCount() != c.Params:
			t.Errorf("%s (%s): %d parameters, Transformers has %d", c.Case, c.Class, g.ParamCount(), c.Params)
		case digest(g) != c.Digest:
			t.Errorf("%s (%s): the names, shapes or ties are not Transformers'", c.Case, c.Class)
		}
		read[modelType]++
	}
	t.Logf("%d types, %d of them read", len(types), len(read))
	if len(types) < 450 || len(read) < 33 {
		t.Errorf("%d types, %d of them read: the sweep has lost some", len(types), len(read))
	}
	for modelType := range types {
		if f := families[modelType]; f != nil && !f.table && read[modelType] < refused[modelType] {
			t.Errorf("%s: %d configs are read and %d refused", modelType, read[modelType], refused[modelType])
		}
	}
}

// tiedByDefault writes out the class's default of a switch that devmap reads by the published
// checkpoints ([ownHeads]); Transformers builds a model from a config so.
func tiedByDefault(t *testing.T, config []byte) []byte {
	t.Helper()
	var members map[string]json.RawMessage
	if json.Unmarshal(config, &members) != nil || ownHeads[strings.Trim(string(members["model_type"]), `"`)] == "" || members["tie_word_embeddings"] != nil {
		return config
	}
	members["tie_word_embeddings"] = json.RawMessage("true")
	out, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// checkRefusal: a refusal names the field or the way out.
func checkRefusal(t *testing.T, name string, err error) {
	t.Helper()
	var syn *modelgraph.SyntaxError
	placed := errors.As(err, &syn) && syn.Place != ""
	if !placed && !strings.HasSuffix(err.Error(), spell.WayOut) {
		t.Errorf("%s: %v", name, err)
	}
}

// digest is sweep.py's: of the sorted lines "name shape" and "owner = name".
func digest(g *modelgraph.Graph) string {
	lines := graphTensors(g, func(l *modelgraph.Layer) []modelgraph.Tensor { return l.Params })
	for _, tie := range g.Ties {
		for _, name := range tie[1:] {
			lines = append(lines, tie[0]+" = "+name)
		}
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:])[:16]
}

// publicRead are the models of public.json.gz that are read; others are refused.
var publicRead = tables.WordSet(`
albert-base-v2 albert-large-v2 albert-xlarge albert-xxlarge-v2 apertus-8b arcee-4.5b aya-expanse-32b baichuan2-13b baichuan2-7b bakllava bart-base
bart-large bart-large-cnn bart-large-mnli bert-base-multilingual-cased bert-base-uncased bert-large-uncased-whole-word-masking-finetuned-squad
bert-ner bge-m3 bge-reranker-large bge-small-en bigbird-base bigbird-roberta-base bitnet-2b-bf16 bitnet-b1.58-2b bitnet-llama bloom-560m bloomz-7b1
byt5-small c4ai-command-a chatglm3-6b clip-b16 clip-bigG clip-vit-base-patch32 clip-vit-h-14-laion2b clip-vit-l14 codegen-16b codegen-350m command-r
command-r-plus command-r7b convnext-base-224 convnext-tiny convnext-xlarge dbrx deberta-v2-xlarge deberta-v2-xxlarge deberta-v3-base
deberta-v3-base-nli deberta-v3-large deberta-v3-small-mnli deepseek-coder-v2-lite deepseek-llm-7b deepseek-moe-16b deepseek-v2 deepseek-v2-lite
deepseek-v3.2 dialogpt dinov2-base dinov2-giant dinov2-large dinov2-small distil-whisper distilbart-cnn-12-6 distilbert-base distilbert-sst2
distilgpt2 dots1 ds-r1-distill-qwen-1.5b e5-mistral electra-base electra-gen electra-large electra-smol embeddinggemma-300m ernie-4.5-0.3b
ernie-4.5-21b-a3b ernie-4.5-21b-think ernie-4.5-300b eurobert-210m exaone-3.5-2.4b exaone-4.0-1.2b exaone-4.0-32b falcon-180b falcon-40b falcon-7b
falcon-h1-0.5b falcon-h1-1.5b falcon-h1-34b falcon-h1-7b falcon-mamba-7b falcon-rw-1b falcon3-7b flan-t5-base flan-t5-xl flux-text_encoder_2
gemma-2-27b gemma-2b gemma-3-12b-it gemma-3-1b-it gemma-3-270m gemma-3-27b-it gemma-3-4b-it gemma-3n-e2b gemma-3n-e2b-it gemma-7b glm-4-32b-0414
glm-4-9b glm-4-9b-0414 glm-4-9b-chat-hf glm-4.5 glm-4.5-air glm-4.6 gpt-j-6b gpt-neo-1.3b gpt-neo-2.7b gpt-neox-20b gpt-oss-120b gpt-oss-20b-bf16
gpt-oss-20b-quantised gpt2 gpt2-xl granite-3.0-1b-a400m granite-3.1-1b-a400m granite-3.1-3b-a800m granite-3.1-8b granite-3.3-2b granite-4.0-h-micro
granite-4.0-h-small granite-4.0-h-tiny granite-4.0-micro granite-8b-code gte-modernbert gte-qwen2-1.5b helium-1-2b hubert-base hubert-base-ls960
hubert-large-ls960-ft hunyuan-0.5b hunyuan-4b hunyuan-7b hunyuan-7b-v1 hunyuan-a13b hunyuan-mt-7b idefics3-8b internlm-7b internlm2_5-7b internlm3-8b
internvl2-8b internvl2_5-1b internvl3-1b-hf internvl3-8b ip-adapter-image_encoder jamba-1.5-large jamba-1.5-mini jamba-v0.1 kimi-k2 lfm2-1.2b
lfm2-350m llama-3.1-70b llama-3.1-8b-bnb llama-3.2-11b-vision llama-3.2-11b-vision-instruct llama-3.2-1b llama-3.2-90b-vision
llama-4-maverick-17b-128e-instruct llama-4-scout llama-4-scout-published llama-guard-4 llava-1.5-13b-hf llava-1.5-7b-hf llava-v1.5-7b
llava-v1.6-mistral-7b-hf llava-v1.6-vicuna-7b longformer-base longformer-base-4096 mamba-130m-hf mamba-2.8b-hf mamba-codestral-7b mamba2-2.7b
mamba2-370m-hf mdeberta-v3 me5-large me5-small mimo-7b minicpm3-4b minilm-l6 minimax-m2 minimax-m2.1 minimax-text-01-hf minimax-text-01-published
ministral-8b minitron-4b mistral-7b-v0.3 mistral-large-2407 mistral-nemo mistral-small-24b-2501 mistral-small-3.1 mistral-small-3.1-24b
mistral-small-3.2 mixtral-8x22b mllama-90b-old mms-1b-all modernbert-base modernbert-large modernbert-reranker moonlight-16b-a3b mpt-7b mt5-base
mt5-small mt5-xl nemotron-4-minitron-8b nemotron-h-8b nvidia-nemotron-3.5-lightning-30b-a3b-nvfp4 olmo-1b olmo-2-13b olmo-2-1b olmo-2-32b olmo-2-7b
olmo-3-32b olmo-3-7b olmo-7b-hf olmoe-1b-7b olmoe-instruct opt-1.3b opt-350m paligemma-3b-pt-224 paligemma2-10b paligemma2-3b phi-1 phi-1.5 phi-2
phi-3-medium-4k phi-3.5-mini phi-3.5-moe phi-4 phi-4-mini phi-4-mini-reasoning phi-4-multimodal-instruct pixtral-12b pythia-1.4b pythia-12b
pythia-160m pythia-6.9b pythia-70m qwen1.5-110b qwen1.5-moe qwen1.5-moe-chat qwen2-57b-a14b qwen2-vl-2b qwen2-vl-72b qwen2-vl-7b qwen2.5-0.5b
qwen2.5-14b qwen2.5-3b qwen2.5-math-rm-72b qwen2.5-vl-3b qwen2.5-vl-7b qwen3-0.6b qwen3-30b-a3b qwen3-8b qwen3-coder-480b-a35b-instruct
qwen3-embed-0.6b qwen3-next-80b qwen3-next-80b-think qwen3-vl-235b-a22b-instruct qwen3-vl-2b-instruct qwen3-vl-30b-a3b qwen3-vl-32b qwen3-vl-4b
qwen3-vl-4b-thinking qwen3-vl-8b-instruct qwen3.5 qwen3.5-122b-a10b qwen3.5-27b qwen3.5-35b-a3b qwen3.5-397b-a17b raven-1b5 redpajama-3b roberta-base
roberta-large-mnli roberta-large-squad rwkv-4-169m rwkv-4-3b rwkv-4-430m sam-large sam-vit-base sam-vit-huge sd-1.5-text_encoder sdxl-text_encoder_2
seed-oss-36b siglip-base-patch16-224 siglip-large-256 siglip-so400m siglip-so400m-patch14-384 siglip2-base-patch16-224 smollm-135m smollm2-1.7b
smollm3-3b smollm3-base smolvlm-2.2b smolvlm-256m smolvlm2-2.2b smolvlm2-500m stablelm-2-1.6b stablelm-2-12b stablelm-3b-4e1t stablelm-zephyr-3b
starcoder starcoder2-15b starcoder2-3b starcoder2-7b starcoderbase-1b swin-large-384 swin-tiny swin-tiny-patch4-window7-224 t5-small tinyllama-1.1b
twitter-roberta umt5-base vit-base-patch16-224 vit-huge vit-large-in21k vit-nsfw w2v2-large-xlsr-en wan2.1-text_encoder wav2vec2-base
wav2vec2-base-960h wav2vec2-large-xlsr-53 wav2vec2-xls-r-300m whisper-large-v3 whisper-large-v3-turbo whisper-tiny xlm-roberta-base xlm-roberta-large
xlnet-base xlnet-base-cased xverse-7b yi-6b zamba2-1.2b zamba2-2.7b zamba2-7b
`)

// TestPublicConfigs: published models have their published number of parameters, or are refused.
func TestPublicConfigs(t *testing.T) {
	var models []struct {
		Name   string
		Params int64
		Config json.RawMessage
	}
	readGzip(t, "../../fixtures/oracle/public.json.gz", &models)
	for _, m := range models {
		g, _, _, err := unquantised(m.Config) // weights, before they were quantised
		switch {
		case err != nil && publicRead[m.Name]:
			t.Errorf("%s: %v", m.Name, err)
		case err != nil:
			checkRefusal(t, m.Name, err)
		case g.ParamCount() != m.Params:
			t.Errorf("%s: %d parameters, it has %d", m.Name, g.ParamCount(), m.Params)
		}
	}
	if len(models) < 100 {
		t.Errorf("%d models", len(models))
	}
}

// publicConfig is one of public.json.gz.
func publicConfig(t *testing.T, name string) fields {
	t.Helper()
	var models []struct {
		Name   string
		Config fields
	}
	readGzip(t, "../../fixtures/oracle/public.json.gz", &models)
	for _, m := range models {
		if m.Name == name {
			return m.Config
		}
	}
	t.Fatal(name + " is not in public.json.gz")
	return nil
}
