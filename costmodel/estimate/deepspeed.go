package estimate

import "github.com/devmap-dev/devmap/costmodel"

// deepspeed is DeepSpeed's ZeRO.
func deepspeed(w *costmodel.Workload) engine { return torch(w) }
