package phases

import (
	"fmt"
	"slices"
	"strings"
)

// The types of an autoencoder.
const (
	bf16 = "bf16"
	fp32 = "fp32"
)

// documented are the pipelines with documentation that loads the autoencoder in single precision.
var documented = []string{"WanImageToVideoPipeline", "WanPipeline"}

// fillPrecision sets the autoencoder's type: the documentation's under diffusers, bf16 under xDiT,
// whose runner loads all components in it.
func (work *Workload) fillPrecision(class string) error {
	known := slices.Contains(documented, class)
	switch work.VAEPrecision {
	case "":
		if known && work.gpus() == 1 {
			work.VAEPrecision = fp32
		}
	case bf16:
		if !known {
			work.VAEPrecision = ""
		}
	case fp32:
		if !known {
			return fmt.Errorf("vae precision fp32: the %s decodes in the type of its latents, bf16; %s take an autoencoder in fp32", class, strings.Join(documented, " and "))
		}
	default:
		return fmt.Errorf("vae precision %q is not known (known: bf16, fp32)", work.VAEPrecision)
	}
	return nil
}
