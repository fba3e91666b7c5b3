// Package phases predicts a diffusion pipeline's memory on each GPU while it encodes the prompt,
// denoises and decodes, as diffusers 0.42 and xDiT 0.7 run it without gradients.
package phases
