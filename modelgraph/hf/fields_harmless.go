package hf

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// harmless are fields of any config that no module's shape depends on: those
// that all configs have in Transformers 4 and 5 (configuration_utils.py:
// PretrainedConfig, PreTrainedConfig), those of generation, and those of
// norms, positions, dropout, training and files that decoders share.
var harmless = wordSet(`
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

func wordSet(words string) map[string]bool {
	set := make(map[string]bool)
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}

// anyToken reports whether a field names tokens, or is one of the framework's
// own: an underscore is in front of what it keeps privately.
func anyToken(name string) bool {
	return strings.HasPrefix(name, "_") || strings.HasSuffix(name, "_token_id") || strings.HasSuffix(name, "_token_ids") ||
		strings.HasSuffix(name, "_token_index")
}

// empty is a value that adds nothing.
func empty(v jsontext.Value) bool {
	v = v.Clone()
	return v.Compact() == nil && slices.Contains([]string{"null", "false", "0", "0.0", `""`, "[]", "{}"}, string(v))
}
