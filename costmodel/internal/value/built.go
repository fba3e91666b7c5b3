package value

// OnHost reports a model in host memory until FSDP cuts it: bitsandbytes quantises on the GPU.
func OnHost(builtOn, quantize string) bool { return builtOn == BuiltOnCPU && quantize == "" }
