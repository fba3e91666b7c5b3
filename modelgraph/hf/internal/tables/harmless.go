package tables

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/spell"
)

// Harmless are fields of any config that no module's shape depends on. All configs of Transformers
// 4 and 5 have the first ones (configuration_utils.py: PretrainedConfig, PreTrainedConfig). The
// others are of generation, norms, positions, dropout, training and files.
var Harmless = WordSet(`
architectures auto_map model_type transformers_version torch_dtype dtype name_or_path tokenizer_class
tokenizer_type processor_class return_dict output_hidden_states output_attentions output_scores use_cache
torchscript use_bfloat16 tf_legacy_loss chunk_size_feed_forward is_encoder_decoder is_decoder tie_encoder_decoder
cross_attention_hidden_size id2label label2id num_labels problem_type finetuning_task task_specific_params
attn_implementation attention_implementation use_flash_attn use_flash_attention quantization_config compression_config

max_length min_length max_new_tokens do_sample early_stopping num_beams num_beam_groups diversity_penalty
temperature top_k top_p typical_p repetition_penalty length_penalty no_repeat_ngram_size
encoder_no_repeat_ngram_size bad_words_ids num_return_sequences return_dict_in_generate remove_invalid_values
exponential_decay_length_penalty suppress_tokens begin_suppress_tokens prefix keys_to_ignore_at_inference
cache_implementation

hidden_act initializer_range initializer_factor init_std rms_norm_eps layer_norm_eps layer_norm_epsilon norm_eps
attention_dropout hidden_dropout hidden_dropout_prob attention_probs_dropout_prob resid_pdrop embd_pdrop attn_pdrop
residual_dropout embedding_dropout dropout activation_dropout classifier_dropout layerdrop pretraining_tp
rope_theta rope_scaling rope_parameters rope_interleave rope_local_base_freq original_max_position_embeddings
max_position_embeddings max_sequence_length model_max_length max_seq_len seq_length sliding_window use_sliding_window
router_aux_loss_coef output_router_logits aux_loss_alpha z_loss_coefficient
bos_token eos_token pad_token mask_token unk_token sep_token cls_token
unsloth_version unsloth_fixed is_causal mamba_ssm_dtype
`)

// WordSet is a set of the words of a text.
func WordSet(words string) map[string]bool {
	set := make(map[string]bool)
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}

// AnyToken reports whether a field names tokens, or is private to the framework (an underscore).
func AnyToken(name string) bool {
	return strings.HasPrefix(name, "_") || strings.HasSuffix(name, "_token_id") || strings.HasSuffix(name, "_token_ids") ||
		strings.HasSuffix(name, "_token_index")
}

// Empty is a value that adds nothing.
func Empty(v jsontext.Value) bool {
	v = v.Clone()
	return v.Compact() == nil && slices.Contains([]string{"null", "false", "0", "0.0", `""`, "[]", "{}"}, string(v))
}

// MeantField is the note on a field that a reader does not have, if one of its absent fields has
// nearly the same name.
func MeantField(path, reader string, absent []string) []string {
	name := path[strings.LastIndexByte(path, '.')+1:]
	slices.Sort(absent)
	near := modelgraph.Nearest(name, absent, 1, 1+len(name)/12)
	if len(name) <= 4 || len(near) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the config has %q, which %s does not read: did you mean %q? Its default is counted", spell.Clip(path), reader, near[0])}
}

// Activation are the names that Transformers 5.17 to 5.24 know (activations.py, ACT2CLS).
var Activation = WordSet(`gelu gelu_10 gelu_accurate gelu_fast gelu_new gelu_python gelu_python_tanh gelu_pytorch_tanh hardswish
laplace leaky_relu linear mish prelu quick_gelu relu relu2 relu6 sigmoid silu sqrtsoftplus swish tanh xielu`)

// NoActivation is the message about another activation: its name and the release.
const NoActivation = "%q is no activation of Transformers %s, which fails with it (ACT2FN): correct it"

// Adds reports whether a field of that name adds modules in some family: experts, another tower,
// adapters, a recurrence, layers unlike each other.
func Adds(name string) bool {
	return slices.ContainsFunc([]string{
		"expert", "moe", "lora_rank", "vision", "visual", "audio", "speech", "text_config", "llm_config", "mamba", "ssm_", "index_",
		"linear_num", "linear_conv", "per_layer", "block_config", "layer_config", "pruned_heads", "altup", "adapter",
	}, func(component string) bool { return strings.Contains(name, component) })
}

// UnevenText is the message about a list without an entry for each layer: its length, the layers
// and the release.
const UnevenText = "%v entries for num_hidden_layers %v: Transformers %s refuses them together; correct one"
