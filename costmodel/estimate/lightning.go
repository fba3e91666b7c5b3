package estimate

import "github.com/devmap-dev/devmap/costmodel"

// lightning is PyTorch Lightning's defaults on torch's engines.
func lightning(w *costmodel.Workload) engine { return torch(w) }
