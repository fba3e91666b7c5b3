package kernel

// Those of heads that attend and of the head.
func init() {
	for name, run := range map[string]func(call *Call) error{
		"rope": rope, "rope_backward": ropeBackward, "qknorm": qknorm, "qknorm_backward": qknormBackward,
		"attention": attention, "attention_delta": attentionDelta, "attention_dkv": attentionDKV, "attention_dq": attentionDQ,
		"cache": cache, "attention_decode": attentionDecode, "attention_join": attentionJoin,
		"softmax_sums": softmaxSums, "loss": loss, "count": count, "loss_backward": lossBackward, "softcap": softcap, "argmax": argmax,
	} {
		kernels[name] = run
	}
}
