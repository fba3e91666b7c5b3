package ask

// Precisions says what each value of --precision is called by the engines.
const Precisions = `Precisions, as each engine calls them (states: an optimizer's):

  bf16-true   weights, gradients and states bf16
                DeepSpeed     bf16 with enabled, bf16_master_weights_and_grads
                              and bf16_optimizer_states
                Accelerate    mixed_precision="no", the model loaded in bf16
                Transformers  the model loaded in bf16; bf16=True adds autocast
                              to such weights and keeps the same states
                Lightning     precision="bf16-true"
                FSDP2         a bf16 model, no MixedPrecisionPolicy
  bf16-mixed  compute in bf16; master weights and states fp32
                DeepSpeed     bf16 with enabled (bf16 weights, fp32 master)
                Accelerate    mixed_precision="bf16", the model in fp32
                Transformers  bf16=True, the model in fp32; with Accelerate's
                              FSDP of a bf16 model too, which it makes fp32
                Lightning     precision="bf16-mixed"
                FSDP2         an fp32 model, MixedPrecisionPolicy(param_dtype=
                              bfloat16, reduce_dtype=float32)
  16-mixed    bf16-mixed with fp16 and a loss scale
                DeepSpeed     fp16 with enabled
                Accelerate    mixed_precision="fp16"
                Transformers  fp16=True
                Lightning     precision="16-mixed"
                FSDP2         MixedPrecisionPolicy(param_dtype=float16,
                              reduce_dtype=float32)
  16-true     bf16-true with fp16
                DeepSpeed     none on GPUs alone (fp16_master_weights_and_grads
                              wants the optimizer on the CPU)
                Accelerate    mixed_precision="no", the model loaded in fp16
                Transformers  the model loaded in fp16
                Lightning     precision="16-true"
                FSDP2         an fp16 model, no MixedPrecisionPolicy
  32-true     all in fp32
                DeepSpeed     neither section, the model in fp32
                Accelerate    mixed_precision="no", the model in fp32
                Transformers  neither bf16 nor fp16, the model in fp32
                Lightning     precision="32-true"
                FSDP2         an fp32 model, no MixedPrecisionPolicy

Left out, it is as the checkpoint or config says; under zero1–3 bf16-mixed for
a bf16 model and 16-mixed for an fp16 one, which is what "bf16": {"enabled":
true} and "fp16": {"enabled": true} do.`
